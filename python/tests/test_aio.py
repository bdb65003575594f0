# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: in asyncio, locks are what its users expect of tasks: they are cancelled, and forgotten.

Method: one server, clients of this process, each test in each kind of event loop that is there.
What locks have in common with those for threads is tested in test_both.py.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import redlatch
from redlatch._pump import pump_here
from redlatch.testing import expire
from support.servers import Server

from . import both
from .both import free, raises, read_of, until
from .conftest import Run


async def waiting(client: redlatch.Client, name: str, count: int = 1) -> None:
    await until(lambda: client.inspect(name).waiting == count)


async def lease_of(client: redlatch.Client, name: str, **options: Any) -> redlatch.AsyncLease:
    lease = await client.aio.acquire(name, **options)
    assert lease is not None
    return lease


# ---- operations ----------------------------------------------------------------------------------


def test_repr_of_each_state(run: Run, client: redlatch.Client) -> None:
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


def test_connecting_later(run: Run, server: Server) -> None:
    server.kill()
    client = redlatch.connect(server.url, wait=None)

    async def main() -> None:
        await raises(redlatch.Unavailable, client.aio.connect())
        await raises(redlatch.Unavailable, client.aio.connect(wait=0.05))
        connecting = asyncio.ensure_future(client.aio.connect(wait=30))
        await asyncio.sleep(0.05)
        assert not connecting.done()
        server.start()
        await connecting
        await client.aio.connect()

    run(main())
    client.close()


# ---- cancellation --------------------------------------------------------------------------------


def test_cancelled_wait_leaves_nothing_behind(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        held = await lease_of(other, "report")
        task = asyncio.ensure_future(client.aio.acquire("report"))
        await waiting(other, "report")
        task.cancel()
        await raises(asyncio.CancelledError, asyncio.wait_for(task, 30))
        await waiting(other, "report", 0)
        await raises(asyncio.TimeoutError, asyncio.wait_for(client.aio.acquire("report"), 0.02))
        if sys.version_info >= (3, 11):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    async with client.aio.lock("report"):
                        pytest.fail("the block began")
        await waiting(other, "report", 0)
        await held.release()
        assert free(other, "report")

    run(main())


def test_cancelled_release_continues(run: Run, server: Server, client: redlatch.Client) -> None:
    async def main() -> None:
        lease = await lease_of(client, "report")
        server.pause()
        task = asyncio.ensure_future(lease.release())
        await asyncio.sleep(0.01)
        task.cancel()
        await raises(asyncio.CancelledError, task)
        server.resume()
        await until(lambda: free(client, "report"))

    run(main())


def test_cancelled_block_is_released(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def block() -> None:
            async with client.aio.lock("report"):
                begun.set()
                await asyncio.sleep(3600)

        task = asyncio.ensure_future(block())
        await begun.wait()
        task.cancel()
        await raises(asyncio.CancelledError, task)
        assert free(client, "report")

    run(main())


def test_cancelled_upgrade_reads_on(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        first, second = await read_of(client.aio), await read_of(other.aio)
        task = asyncio.ensure_future(first.upgrade())
        await both.waiting(client, "upgrade")
        task.cancel()
        await raises(asyncio.CancelledError, task)
        await both.waiting(client)
        assert first.mode == "read" and first.held
        assert await (await read_of(other.aio)).release() is True
        await first.release()
        assert await second.upgrade(timeout=0) is True
        await second.release()
        assert free(client, "report")

    run(main())


# ---- a lock that is lost -------------------------------------------------------------------------


CANCELLED: dict[str, Callable[[redlatch.Aio], Any]] = {
    "lock": lambda aio: aio.lock("report", on_lost="cancel"),
    "max_hold": lambda aio: aio.lock("report", on_lost="cancel", max_hold=0.3),
    "rlock": lambda aio: aio.rlock("report", on_lost="cancel"),
    "read": lambda aio: aio.rwlock("report").read(on_lost="cancel"),
    "write": lambda aio: aio.rwlock("report").write(on_lost="cancel"),
}


@pytest.mark.parametrize("kind", CANCELLED)
def test_loss_cancels_the_block(run: Run, client: redlatch.Client, kind: str) -> None:
    async def main() -> None:
        block = CANCELLED[kind](client.aio)
        with pytest.raises(redlatch.LockLost) as caught:
            async with block:
                if kind != "max_hold":  # which ends it
                    expire(client, "report")
                await asyncio.sleep(3600)
        assert isinstance(caught.value.__cause__, asyncio.CancelledError)
        if sys.version_info >= (3, 11):
            task = asyncio.current_task()
            assert task is not None and task.cancelling() == 0
        await asyncio.sleep(0)
        async with block:
            await asyncio.sleep(0)

    run(main())


def test_loss_cancels_blocks_of_one_lock_within_each_other(
    run: Run, client: redlatch.Client
) -> None:
    async def main() -> None:
        lock = client.aio.rlock("report", on_lost="cancel")
        with pytest.raises(redlatch.LockLost):
            async with lock, lock:
                expire(client, "report")
                await asyncio.sleep(3600)
        async with lock, lock:
            await asyncio.sleep(0)
        assert free(client, "report")

    run(main())


def test_lock_acquired_again_in_its_block_is_guarded(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.lock("report", on_lost="cancel")
        with pytest.raises(redlatch.LockLost) as caught:
            async with lock:
                released = weakref.ref(lock.lease)
                await lock.release()
                assert await lock.acquire()
                gc.collect()
                assert released() is None
                expire(client, "report")
                await asyncio.sleep(3600)
        assert isinstance(caught.value.__cause__, asyncio.CancelledError)
        async with lock:
            await asyncio.sleep(0)
        assert free(client)

    run(main())


def test_lock_acquired_again_after_its_loss_ends_well(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.lock("report", on_lost="cancel")
        async with lock:
            expire(client, "report")
            await raises(asyncio.CancelledError, asyncio.sleep(3600))
            await raises(redlatch.LockLost, lock.release())
            assert await lock.acquire()
            if sys.version_info >= (3, 11):
                task = asyncio.current_task()
                assert task is not None and task.cancelling() == 0
        assert free(client)

    run(main())


def test_lock_that_cannot_be_guarded_is_released(
    run: Run, client: redlatch.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        lock = client.aio.lock("report", on_lost="cancel")
        async with lock:
            await lock.release()
            with monkeypatch.context() as patch:
                patch.setattr(redlatch._core, "lease_watch", lambda *_: redlatch.Status.E_NO_MEMORY)
                await raises(redlatch.NoMemory, lock.acquire())
                assert free(client)
                await raises(redlatch.NoMemory, lock.__aenter__())
                assert free(client)
            assert await lock.acquire()
            expire(client, "report")
            await raises(asyncio.CancelledError, asyncio.sleep(3600))
            await raises(redlatch.LockLost, lock.release())
        assert free(client) and not lock._holds

    run(main())


def test_wrong_reaction_to_a_loss_is_refused(client: redlatch.Client) -> None:
    aio: Any = client.aio
    for make in (aio.lock, aio.rlock, lambda name, on_lost: aio.rwlock(name).read(on_lost=on_lost)):
        with pytest.raises(redlatch.Invalid, match='"ignore" or "cancel"'):
            make("report", on_lost="panic")


def test_loss_that_the_body_swallows_is_raised_at_the_end(
    run: Run, client: redlatch.Client
) -> None:
    async def main() -> None:
        with pytest.raises(redlatch.LockLost):
            async with client.aio.lock("report", on_lost="cancel"):
                expire(client, "report")
                await raises(asyncio.CancelledError, asyncio.sleep(3600))
        # Neither does the cancellation come back.
        await asyncio.sleep(0.01)

    run(main())


def test_loss_that_comes_with_the_end_cancels_nothing_later(
    run: Run, client: redlatch.Client
) -> None:
    async def main() -> None:
        with pytest.raises(redlatch.LockLost):
            async with client.aio.lock("report", on_lost="cancel"):
                expire(client, "report")
                pump_here().drain()  # The block ends before anything else can run.
        await asyncio.sleep(0.01)

    run(main())


def test_closing_the_client_cancels_the_block(run: Run, server: Server) -> None:
    async def main() -> None:
        client = redlatch.connect(server.url)
        with pytest.raises(redlatch.Closed) as caught:
            async with client.aio.lock("report", on_lost="cancel"):
                await asyncio.get_running_loop().run_in_executor(None, client.close)
                await asyncio.sleep(3600)
        assert isinstance(caught.value.__cause__, asyncio.CancelledError)

    run(main())


@pytest.mark.parametrize("how", ["release", "detach", "elsewhere", "detach elsewhere"])
def test_early_release_cancels_nothing(run: Run, client: redlatch.Client, how: str) -> None:
    async def main() -> None:
        async with client.aio.lock("report", on_lost="cancel") as lease:
            if how == "release":
                await lease.release()
            elif how == "detach":
                await lease.detach()
            elif how == "detach elsewhere":
                await asyncio.ensure_future(lease.detach())
            else:
                await asyncio.ensure_future(lease.release())
            await asyncio.sleep(0.01)

    run(main())


def test_block_that_hides_its_loss_ends_with_it(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        with pytest.raises(redlatch.LockLost):
            async with client.aio.lock("report", on_lost="cancel") as lease:
                expire(client, "report")
                try:
                    await asyncio.sleep(3600)
                finally:
                    await raises(redlatch.LockLost, lease.release())

    run(main())


def test_cancellation_from_outside_wins(run: Run, client: redlatch.Client) -> None:
    if sys.version_info < (3, 11):
        return  # Before 3.11 nobody can tell the two from each other.

    async def main() -> None:
        begun = asyncio.Event()

        async def block() -> None:
            async with client.aio.lock("report", on_lost="cancel"):
                begun.set()
                await asyncio.sleep(3600)

        task = asyncio.ensure_future(block())
        await begun.wait()
        expire(client, "report")
        # The loss cancels it first, in the same turn of the loop.
        pump_here().drain()
        asyncio.get_running_loop().call_soon(task.cancel)
        await raises(asyncio.CancelledError, task)
        assert task.cancelled() and task.cancelling() == 1

    run(main())


def test_blocks_within_blocks_end_by_their_own_loss(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        with pytest.raises(redlatch.LockLost, match="outer"):
            async with client.aio.lock("outer", on_lost="cancel"):
                async with client.aio.lock("inner", on_lost="cancel"):
                    expire(client, "outer")
                    await asyncio.sleep(3600)
        async with client.aio.lock("outer", on_lost="cancel") as outer:
            with pytest.raises(redlatch.LockLost, match="inner"):
                async with client.aio.lock("inner", on_lost="cancel"):
                    expire(client, "inner")
                    await asyncio.sleep(3600)
            await asyncio.sleep(0.01)
            outer.check()

    run(main())


def test_forgotten_lease_is_released_with_a_warning(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lease = await lease_of(client, "report")
        watched = await lease_of(client, "watched")
        await watched.wait_lost(0.01)
        with pytest.warns(ResourceWarning, match="never released: <AsyncLease '.*' held"):
            del lease, watched
            gc.collect()
        await until(lambda: free(client, "report") and free(client, "watched"))

    run(main())


def test_forgotten_guarded_lease_is_released_with_a_warning(
    run: Run, client: redlatch.Client
) -> None:
    async def main() -> None:
        lock = client.aio.lock("report", on_lost="cancel")
        await lock.__aenter__()
        waiting_tags = len(pump_here().waiting)
        with pytest.warns(ResourceWarning, match="never released: <AsyncLease 'report' held"):
            del lock
            gc.collect()
        assert len(pump_here().waiting) == waiting_tags - 1
        await until(lambda: free(client, "report"))

    run(main())


def test_ended_tasks_are_not_kept(run: Run, client: redlatch.Client) -> None:
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


def test_aio_is_made_once_and_does_not_keep_its_client(server: Server) -> None:
    client = redlatch.connect(server.url)
    aio = client.aio
    assert client.aio is aio and "redis://" in repr(aio)
    gone = weakref.ref(client)
    del aio, client
    assert gone() is None
