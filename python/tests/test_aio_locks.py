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
from collections.abc import Awaitable
from typing import Any

import pytest
import redlatch
from redlatch.testing import expire

from .conftest import Run
from .test_aio import free, raises, until

Tasks = list["asyncio.Task[Any]"]


async def waiting(client: redlatch.Client, *modes: str) -> None:
    await until(lambda: tuple(w.mode for w in client.inspect("report").waiters) == modes)


async def in_task(call: Awaitable[Any]) -> Any:
    """In a task of its own."""

    async def body() -> Any:
        return await call

    return await asyncio.ensure_future(body())


async def read_of(client: redlatch.Client) -> redlatch.AsyncLease:
    lease = await client.aio.rwlock("report").acquire_read(timeout=30)
    assert lease is not None
    return lease


async def write_of(client: redlatch.Client) -> redlatch.AsyncLease:
    lease = await client.aio.rwlock("report").acquire_write(timeout=30)
    assert lease is not None
    return lease


# ---- reentrant -----------------------------------------------------------------------------------


def test_blocks_nest_in_one_task(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        lock = client.aio.rlock("report", ttl=30, timeout=5)
        async with lock as outer:
            assert isinstance(outer, redlatch.AsyncLease) and outer.hold_count == 1
            async with lock as inner, client.aio.rlock("report", timeout=0) as third:
                assert (inner.hold_count, third.hold_count) == (2, 3)
                assert inner.fence == outer.fence > 0 and inner.token != outer.token
                assert await third.release() is False
            assert not inner.held and outer.held and lock.locked()
            # Another task, a thread, another client.
            assert await in_task(lock.acquire(timeout=0)) is None
            assert await in_task(lock.acquire(timeout=0.2)) is None
            assert client.rlock("report").acquire(timeout=0) is None
            assert await other.aio.rlock("report").acquire(timeout=0) is None
            with pytest.raises(redlatch.NotAcquired, match="'report'.*0.2 s"):
                await other.aio.rlock("report", timeout=0.2).__aenter__()
        assert not lock.locked() and not lock._holds
        assert free(client, "report")

    run(main())


def test_shape_of_an_rlock(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.rlock("report")
        assert not lock.locked() and lock.lease is None
        first = await lock.acquire()
        second = await lock.acquire(blocking=False)
        assert first is not None and second is not None and lock.lease is second
        assert isinstance(await raises(RuntimeError, in_task(lock.release())), redlatch.NotHeld)
        await lock.release()
        assert first.held and not second.held and lock.lease is first
        assert await first.release() is True
        await raises(redlatch.NotHeld, lock.release())
        for arguments in ((False, 1), (True, -2), (True, float("nan"))):
            await raises(ValueError, lock.acquire(*arguments))
        assert repr(lock).startswith("<redlatch.AsyncRLock object at 0x")
        assert repr(lock).endswith(" 'report' not held here owner=0 count=0 [unlocked]>")
        async with lock, lock:
            task = asyncio.current_task()
            assert task is not None
            assert " 'report' held fence=" in repr(lock)
            assert repr(lock).endswith(f"s owner={task.get_name()!r} count=2 [locked]>")
        assert free(client, "report")

    run(main())


def test_owner_passes_the_queue(run: Run, client: redlatch.Client, other: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.rlock("report")
        async with lock:
            task = asyncio.ensure_future(lock.acquire(timeout=30))
            await waiting(other, "write")
            async with lock as inner:
                assert inner.hold_count == 2
            await waiting(other, "write")
            assert not task.done()
        lease = await task
        assert lease is not None and lease.hold_count == 1
        await lease.release()
        async with lock:
            pass
        # Of what has ended nothing is kept.
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


def test_task_that_ended_is_no_owner_any_more(run: Run, client: redlatch.Client) -> None:
    # The identity of a task comes again; what it held must not.
    async def main() -> None:
        lease = await in_task(client.aio.rlock("report").acquire())
        for _ in range(20):
            assert await in_task(client.aio.rlock("report").acquire(timeout=0)) is None
        await lease.release()

    run(main())


def test_named_owner_is_shared(run: Run, client: redlatch.Client, other: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.rlock("report", owner="job")
        async with lock:
            assert client.inspect("report").owner == "job"
            with other.rlock("report", owner="job", timeout=0) as theirs:
                assert theirs.hold_count == 2
            assert await in_task(lock.acquire(timeout=0)) is not None
            await in_task(lock.release())
            assert client.inspect("report").hold_count == 1
            await raises(redlatch.NotHeld, in_task(lock.release()))
        assert free(client, "report")

    run(main())
    with pytest.raises(redlatch.Invalid, match="owner of 0 bytes"):
        client.aio.rlock("report", owner="")


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
        with pytest.raises(redlatch.Invalid, match='"ignore" and "cancel"'):
            client.aio.rlock("report", on_lost="panic")  # type: ignore[arg-type]

    run(main())


def test_cancelled_wait_leaves_nothing_behind(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        held = await other.aio.rlock("report").acquire()
        assert held is not None
        lock = client.aio.rlock("report")
        task = asyncio.ensure_future(lock.acquire())
        await waiting(other, "write")
        task.cancel()
        await raises(asyncio.CancelledError, task)
        await waiting(other)
        await held.release()
        assert free(other, "report") and not lock._holds

    run(main())


# ---- read-write ----------------------------------------------------------------------------------


def test_readers_are_together_and_a_writer_alone(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        lock, theirs = client.aio.rwlock("report"), other.aio.rwlock("report")
        assert lock.name == "report" and not lock.locked()
        assert repr(lock) == "<AsyncRWLock 'report'>"
        async with lock.write(ttl=30, timeout=5) as writer:
            assert isinstance(writer, redlatch.AsyncLease) and writer.mode == "write"
            assert 25 < writer.remaining <= 30
            assert await theirs.acquire_read(timeout=0) is None
            assert await theirs.acquire_write(timeout=0.2) is None
            with pytest.raises(redlatch.NotAcquired, match="'report'.*0.2 s"):
                await theirs.read(timeout=0.2).__aenter__()
        async with lock.read(ttl=5) as reader, theirs.read(timeout=0) as second:
            assert reader.mode == second.mode == "read" and reader.fence > writer.fence
            assert reader.remaining <= 5
            assert await theirs.acquire_write(timeout=0) is None
            assert client.inspect("report").hold_count == 2
        async with theirs.write(timeout=0) as later:
            assert later.fence > reader.fence
        assert free(client, "report")

    run(main())


def test_reader_waits_behind_a_writer(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        reader = await read_of(client)
        tasks: Tasks = [asyncio.ensure_future(write_of(other))]
        await waiting(client, "write")
        tasks += [asyncio.ensure_future(read_of(one)) for one in (client, other)]
        await waiting(client, "write", "read", "read")
        await reader.release()
        writer = await tasks[0]
        await waiting(client, "read", "read")
        await writer.release()
        for lease in await asyncio.gather(*tasks[1:]):
            assert lease.mode == "read" and await lease.release() is True
        assert free(client, "report")

    run(main())


def test_tasks_share_a_side(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.rwlock("report")
        reading, writing = lock.read(), lock.write()
        inside: list[str] = []
        seen: list[set[str]] = []
        all_in = asyncio.Event()
        count = 0

        async def work() -> None:
            nonlocal count
            async with reading:
                count += 1
                if count == 5:
                    all_in.set()  # All of them are in at a time.
                await all_in.wait()
            for _ in range(5):
                for side, word in ((reading, "r"), (writing, "w")):
                    async with side:
                        inside.append(word)
                        await asyncio.sleep(0)
                        seen.append(set(inside))
                        inside.remove(word)

        await asyncio.gather(*(work() for _ in range(5)))
        assert len(seen) == 50 and {"r", "w"} not in seen
        assert not reading._holds and not writing._holds

    run(main())


def test_task_in_a_block_is_told_of_misuse(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        lock = client.aio.rwlock("report")
        async with lock.read():
            writer = asyncio.ensure_future(write_of(other))
            await waiting(client, "write")
            # Behind the writer, who waits for this task, it would wait for ever.
            async with lock.read(timeout=30):
                assert not writer.done()
            await raises(redlatch.AlreadyHeld, lock.write().__aenter__())
            await raises(redlatch.NotAcquired, lock.write(timeout=0).__aenter__())
            await raises(redlatch.NotAcquired, in_task(lock.write(timeout=0.2).__aenter__()))
        await (await writer).release()
        named = client.aio.rwlock("report", owner="job")
        lease = await named.acquire_write()
        assert lease is not None
        for call in (named.acquire_read(timeout=0), named.write(timeout=0).__aenter__()):
            await raises(redlatch.AlreadyHeld, call)
        await lease.release()

    run(main())


def test_format_of_redisson(run: Run, client: redlatch.Client, other: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.rwlock("report", format="hash-rw")
        async with lock.read(), lock.read():
            info = other.inspect("report")
            assert (info.type, info.mode, len(info.holders)) == ("hash", "read", 2)
            assert await other.aio.acquire("report", timeout=0, format="hash-rw") is None
            assert await other.aio.rwlock("report").acquire_read(timeout=0) is None
        lease = await lock.acquire_write()
        assert lease is not None
        assert other.rwlock("report", format="hash-rw").acquire_read(timeout=0) is None
        await lease.release()
        assert free(client, "report")
        with pytest.raises(redlatch.Invalid, match="format='hash'"):
            client.aio.rwlock("report", format="hash")  # type: ignore[arg-type]

    run(main())


def test_loss_cancels_a_reader(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.rwlock("report")
        for side in (lock.read(on_lost="cancel"), lock.write(on_lost="cancel")):
            with pytest.raises(redlatch.LockLost) as caught:
                async with side:
                    expire(client, "report")
                    await asyncio.sleep(3600)
            assert isinstance(caught.value.__cause__, asyncio.CancelledError)
        with pytest.raises(redlatch.Invalid, match='"ignore" and "cancel"'):
            lock.read(on_lost="panic")  # type: ignore[arg-type]

    run(main())


def test_up_and_down(run: Run, client: redlatch.Client, other: redlatch.Client) -> None:
    async def main() -> None:
        first = await read_of(client)
        fence = first.fence
        assert await first.upgrade(timeout=0) is True
        assert first.mode == "write" and first.fence > fence
        reading = asyncio.ensure_future(read_of(other))
        await waiting(client, "read")
        await first.downgrade()
        second = await reading
        assert first.mode == "read"
        assert await first.upgrade(timeout=0) is False
        assert await first.upgrade(timeout=0.2) is False
        upgrading = asyncio.ensure_future(first.upgrade(timeout=30))
        await waiting(client, "upgrade")
        await raises(redlatch.Deadlock, second.upgrade())
        assert second.held and not upgrading.done()
        await second.release()
        assert await upgrading is True
        await first.downgrade()
        expire(client, "report")
        for call in (first.upgrade(), first.downgrade()):
            await raises(redlatch.LockLost, call)
        await raises(redlatch.Invalid, first.upgrade(timeout=-3))

    run(main())


def test_cancelled_upgrade_reads_on(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        first, second = await read_of(client), await read_of(other)
        task = asyncio.ensure_future(first.upgrade())
        await waiting(client, "upgrade")
        task.cancel()
        await raises(asyncio.CancelledError, task)
        await waiting(client)
        assert first.mode == "read" and first.held
        assert await (await read_of(other)).release() is True
        await first.release()
        assert await second.upgrade(timeout=0) is True
        await second.release()
        assert free(client, "report")

    run(main())
