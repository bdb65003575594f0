# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: in asyncio, reentrant and read-write locks are as for threads, with tasks in their place.

Method: as in test_aio.py.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref

import pytest
import redlatch
from redlatch.testing import expire

from .both import free, raises, read_of, waiting
from .conftest import Run


def test_what_a_repr_shows(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        assert repr(client.aio.rwlock("report")) == "<AsyncRWLock 'report'>"
        lock = client.aio.rlock("report")
        assert repr(lock).startswith("<redlatch.AsyncRLock object at 0x")
        assert repr(lock).endswith(" 'report' not held here owner=0 count=0 [unlocked]>")
        async with lock, lock:
            task = asyncio.current_task()
            assert task is not None
            assert " 'report' held fence=" in repr(lock)
            assert repr(lock).endswith(f"s owner={task.get_name()!r} count=2 [locked]>")

    run(main())


# ---- reentrant -----------------------------------------------------------------------------------


def test_of_what_has_ended_nothing_is_kept(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.rlock("report")
        task = asyncio.ensure_future(lock.acquire(timeout=30))
        lease = await task
        assert lease is not None
        await lease.release()
        async with lock:
            pass
        assert not lock._holds
        gone = weakref.ref(task)
        del task
        # The loop itself may keep it until it goes round.
        for _ in range(100):
            gc.collect()
            if gone() is None:
                break
            await asyncio.sleep(0.01)
        assert gone() is None

    run(main())


def test_loss_cancels_blocks_within_blocks(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.rlock("report", on_lost="cancel")
        with pytest.raises(redlatch.LockLost):
            async with lock, lock:
                expire(client, "report")
                await asyncio.sleep(3600)
        if sys.version_info >= (3, 11):
            task = asyncio.current_task()
            assert task is not None and task.cancelling() == 0
        await asyncio.sleep(0)
        with pytest.raises(redlatch.LockLost):
            async with client.aio.rlock("report"):
                expire(client, "report")
        with pytest.raises(ZeroDivisionError):
            async with lock:
                expire(client, "report")
                _ = 1 / 0
        async with lock, lock:
            await asyncio.sleep(0)
        assert free(client, "report")
        with pytest.raises(redlatch.Invalid, match='"ignore" or "cancel"'):
            client.aio.rlock("report", on_lost="panic")  # type: ignore[arg-type]
        with pytest.raises(redlatch.Invalid, match='"ignore" or "cancel"'):
            client.aio.lock("report", on_lost="panic")  # type: ignore[arg-type]

    run(main())


# ---- read-write ----------------------------------------------------------------------------------


def test_loss_cancels_a_reader(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.rwlock("report")
        for side in (lock.read(on_lost="cancel"), lock.write(on_lost="cancel")):
            with pytest.raises(redlatch.LockLost) as caught:
                async with side:
                    expire(client, "report")
                    await asyncio.sleep(3600)
            assert isinstance(caught.value.__cause__, asyncio.CancelledError)
        with pytest.raises(redlatch.Invalid, match='"ignore" or "cancel"'):
            lock.read(on_lost="panic")  # type: ignore[arg-type]

    run(main())


def test_cancelled_upgrade_reads_on(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        first, second = await read_of(client.aio), await read_of(other.aio)
        task = asyncio.ensure_future(first.upgrade())
        await waiting(client, "upgrade")
        task.cancel()
        await raises(asyncio.CancelledError, task)
        await waiting(client)
        assert first.mode == "read" and first.held
        assert await (await read_of(other.aio)).release() is True
        await first.release()
        assert await second.upgrade(timeout=0) is True
        await second.release()
        assert free(client, "report")

    run(main())
