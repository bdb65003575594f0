# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: locks and leases are what Python's users expect of `with` and of threading.Lock, RLock, and
of `async with` and asyncio.Lock: the same, with tasks in the place of threads.

Method: one server, clients of this process, each test for threads and in each kind of event loop
that is there (both.py). What a lock means is tested in tests/conformance, in both worlds as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import redlatch
from redlatch.testing import expire
from support.servers import Server

from .both import Both, free, raises, until, waiting, write_of


# ---- blocks --------------------------------------------------------------------------------------


def test_block_holds_the_lock(both: Both, client: redlatch.Client, other: redlatch.Client) -> None:
    async def main() -> None:
        async with both.of(client).lock("report", ttl=30, timeout=5) as lease:
            assert both.is_lease(lease)
            assert lease.fence > 0 and 25 < lease.remaining <= 30
            assert lease.held and not lease.lost
            lease.check()
            assert await both.of(other).acquire("report", timeout=0) is None
            assert other.acquire("report", timeout=0) is None
            assert lease.name == "report" and len(lease.token) == 32
        assert not lease.held and not lease.lost and lease.remaining == 0.0
        async with both.of(other).lock("report") as later:
            assert later.fence > lease.fence

    both.run(main())


def test_block_that_cannot_begin_raises_and_names_the_holder(
    both: Both, client: redlatch.Client, server: Server
) -> None:
    async def main() -> None:
        await until(lambda: client.inspect("report").holders[0].who == "web-1/4711")
        with pytest.raises(redlatch.NotAcquired, match="'report'.*0.3 s.*: web-1/4711") as caught:
            async with both.of(client).lock("report", timeout=0.3):
                pytest.fail("the block began")
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.status is redlatch.Status.TIMEOUT
        with pytest.raises(redlatch.NotAcquired, match="holder: web-1/4711") as caught:
            await both.of(client).lock("report", timeout=0).__aenter__()
        assert caught.value.status is redlatch.Status.BUSY

    with redlatch.connect(server.url, holder="web-1/4711") as holder, holder.lock("report"):
        both.run(main())


def test_loss_is_reported_at_the_end_of_the_block(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        with pytest.raises(redlatch.LockLost):
            async with both.of(client).lock("report") as lease:
                expire(other, "report")
                assert lease.lost
                with pytest.raises(redlatch.LockLost):
                    lease.check()
                theirs = await both.of(other).acquire("report", timeout=0)
        assert theirs is not None
        theirs.check()
        await theirs.release()

    both.run(main())


def test_exception_of_the_body_wins(both: Both, client: redlatch.Client) -> None:
    async def main(**options: Any) -> None:
        aio = both.of(client)
        lock = aio.lock("report", **options)
        both_sides, nesting = aio.rwlock("report"), aio.rlock("report", **options)
        for block in (lock, nesting, both_sides.read(**options), both_sides.write(**options)):
            with pytest.raises(ZeroDivisionError) as caught:
                async with block:
                    expire(client, "report")
                    _ = 1 / 0
            (note,) = getattr(caught.value, "__notes__")
            assert note.startswith("redlatch: ")
        with pytest.raises(ZeroDivisionError) as caught:
            async with lock:
                _ = 1 / 0
        assert not hasattr(caught.value, "__notes__")
        await asyncio.sleep(0)  # Where a cancellation that came too late would hit.
        assert free(client)

    both.run(main())
    if both.has_tasks:
        both.run(main(on_lost="ignore"))
        both.run(main(on_lost="cancel"))


def test_early_release_ends_a_block_well(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        options: Any = {"on_lost": "cancel"} if both.has_tasks else {}
        async with both.of(client).lock("report", **options) as lease:
            await lease.release()
            await asyncio.sleep(0.01)
            assert free(client)
        lock = both.of(client).lock("report")
        async with lock:
            await lock.release()
            assert not lock.locked()
            # What is done elsewhere with the same object is not ended by the end of this block.
            assert await both.elsewhere(lambda: lock.acquire(timeout=5)) is True
        assert lock.locked()
        await lock.release()

    both.run(main())


def test_lease_releases_itself(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        lease = await both.of(client).acquire("report", timeout=0)
        assert lease is not None
        async with lease as same:
            assert same is lease
        assert free(client)
        await raises(redlatch.NotHeld, lease.release())

    both.run(main())


def test_release_without_an_answer_is_no_failure_of_the_block(
    both: Both, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    client = redlatch.connect(server.url, command_timeout=0.5)

    async def block() -> None:
        async with both.of(client).lock("report"):
            server.pause()

    async def call() -> None:
        lease = await both.of(client).acquire("report", timeout=20)
        assert lease is not None
        server.pause()
        await raises(redlatch.OutcomeUnknown, lease.release())

    both.run(block())
    assert "release of 'report'" in caplog.text
    server.resume()
    both.run(call())


# ---- the shape of Lock ---------------------------------------------------------------------------


def test_shape_of_a_lock(both: Both, client: redlatch.Client, other: redlatch.Client) -> None:
    async def main() -> None:
        lock = both.of(client).lock("report")
        assert not lock.locked() and lock.lease is None
        assert await lock.acquire() is True
        assert lock.locked() and lock.lease is not None and lock.lease.fence > 0
        theirs = both.of(other).lock("report", timeout=0.02)
        assert theirs.locked()
        assert await theirs.acquire(blocking=False) is False
        assert await theirs.acquire(timeout=0.03) is False
        assert await theirs.acquire() is False
        await lock.release()
        assert not lock.locked() and lock.lease is None
        assert isinstance(await raises(RuntimeError, lock.release()), redlatch.NotHeld)
        for arguments in ((False, 1), (True, -2), (True, float("nan"))):
            await raises(ValueError, lock.acquire(*arguments))

    both.run(main())


def test_second_acquire_by_the_owner_is_an_error(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = both.of(client).lock("report")
        async with lock:
            for timeout in (-1, 5):
                await raises(redlatch.AlreadyHeld, lock.acquire(timeout=timeout))
            await raises(redlatch.AlreadyHeld, lock.__aenter__())
            # What does not wait cannot wait for itself.
            assert await lock.acquire(blocking=False) is False
            # Another object is another owner, and so is another thread or task.
            assert await both.of(client).lock("report").acquire(blocking=False) is False
            assert await both.elsewhere(lambda: lock.acquire(timeout=0.2)) is False
        async with lock:
            pass

    both.run(main())


def test_lock_may_be_released_in_its_block_and_taken_again(
    both: Both, client: redlatch.Client
) -> None:
    async def main() -> None:
        lock = both.of(client).lock("report")
        async with lock:
            await lock.release()
            assert free(client)
            assert await lock.acquire(timeout=5) is True
        # As with threading.Lock, the block ends with a release.
        assert free(client)
        async with lock:
            await lock.release()
            async with lock:
                pass
            assert await lock.acquire(timeout=5) is True
            await lock.release()
            await both.elsewhere(lock.__aenter__)
        # Nothing was left to this block, which does not end the other one.
        assert lock.locked()
        await lock.__aexit__(None, None, None)
        assert free(client)

    both.run(main())


def test_a_lost_block_that_ends_elsewhere_keeps_no_other(
    both: Both, client: redlatch.Client
) -> None:
    """Goal: of two blocks that end in no taker of theirs, the lost one ends first."""

    async def main() -> None:
        lock = both.of(client).lock("report", ttl=60)
        lost = await both.elsewhere(lock.__aenter__)
        client.force_release("report")
        await raises(redlatch.LockLost, lost.extend(60))
        lease = await both.elsewhere(lock.__aenter__)
        await raises(redlatch.LockLost, lock.__aexit__(None, None, None))
        assert lease.held
        await lock.__aexit__(None, None, None)
        assert not lease.held and free(client)

    both.run(main())


def test_many_share_a_lock(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        for lock in (both.of(client).lock("report"), both.of(client).rlock("report")):
            inside: list[int] = []
            seen: list[int] = []

            async def work(lock: Any = lock, inside: Any = inside, seen: Any = seen) -> None:
                for _ in range(10):
                    async with lock:
                        inside.append(1)
                        seen.append(len(inside))
                        await asyncio.sleep(0)
                        inside.pop()

            await both.together(work, 16)
            assert seen == [1] * 160

    both.run(main())


def test_any_may_release(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = both.of(client).lock("report")
        assert await both.elsewhere(lock.acquire) is True
        assert lock.locked()
        await lock.release()
        assert free(client)

    both.run(main())


def test_shared_lock_forgets_what_ended(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        lock: Any = both.of(client).lock("report", ttl=60)

        async def take(how: str) -> None:
            assert await lock.acquire()
            lease = lock.lease
            if how == "release":
                await lease.release()
            else:
                if how == "detach":
                    await lease.detach()
                expire(client, "report")
                await lease.wait_lost()

        for how in ("release", "detach", "lose"):
            for _ in range(5):
                await both.elsewhere(lambda: take(how))
            assert len(lock._holds) == 1
        # What is lost is told where it was taken, as long as that is there.
        await take("lose")
        for _ in range(2):
            await both.elsewhere(lambda: take("release"))
        await raises(redlatch.LockLost, lock.release())
        # A block that has nothing more to release leaves the next one alone.
        async with lock as lease:
            await lease.release()
            await both.elsewhere(lock.__aenter__)
        assert [lease.held for lease in lock._holds.leases()] == [True]
        await lock.__aexit__(None, None, None)
        assert free(client)

    both.run(main())


def test_release_without_memory_can_be_repeated(
    both: Both, client: redlatch.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def without_memory(release: Callable[[], Awaitable[object]]) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(redlatch._lease._RELEASE, "_blocking", lambda *_: None)
            patch.setattr(redlatch._aio_lease, "_release", lambda *_: None)
            await raises(redlatch.NoMemory, release())

    async def main() -> None:
        aio = both.of(client)
        lease = await aio.acquire("report")
        assert lease is not None
        await without_memory(lease.release)
        assert lease.held
        await lease.release()
        assert free(client)
        lock: Any
        for lock in (aio.lock("report"), aio.rlock("report")):
            assert await lock.acquire()
            await without_memory(lock.release)
            await lock.release()
            assert free(client)
            async with lock:
                await without_memory(lock.release)
            assert free(client) and not lock._holds
            lease = await lock.__aenter__()
            await without_memory(partial(lock.__aexit__, None, None, None))
            await lease.release()
            assert free(client) and not lock._holds

    both.run(main())


# ---- leases --------------------------------------------------------------------------------------


def test_waiting_for_a_loss(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        lease = await both.of(client).acquire("report", ttl=0.5, renew=False)
        assert lease is not None and lease.remaining <= 0.5
        assert await lease.wait_lost(timeout=0) is False
        waits = [both.begin(lease.wait_lost), both.begin(lambda: lease.wait_lost(30))]
        assert [await wait for wait in waits] == [True, True] and lease.lost
        assert await lease.wait_lost() is True
        for call in (lease.release(), lease.extend(1), lease.detach()):
            await raises(redlatch.LockLost, call)
        with pytest.raises(redlatch.LockLost):
            lease.check()
        kept = await both.of(client).acquire("report", ttl=20, renew=False)
        assert kept is not None
        await kept.extend(60)
        assert 55 < kept.remaining <= 60
        await raises(redlatch.Invalid, kept.extend(0))
        if both.has_tasks:
            # Giving up a wait does not keep the others from theirs.
            await raises(asyncio.TimeoutError, asyncio.wait_for(kept.wait_lost(), 0.01))
        await raises(redlatch.Invalid, both.of(client).acquire("report", timeout=-3))
        watching = both.begin(kept.wait_lost)
        await kept.release()
        assert await watching is False

    both.run(main())


# ---- reentrant -----------------------------------------------------------------------------------


def test_blocks_nest(both: Both, client: redlatch.Client, other: redlatch.Client) -> None:
    async def main() -> None:
        lock = both.of(client).rlock("report", ttl=30, timeout=5)
        theirs = both.of(other).rlock("report")
        async with lock as outer:
            assert both.is_lease(outer) and outer.hold_count == 1
            async with lock as inner, both.of(client).rlock("report", timeout=0) as third:
                assert (inner.hold_count, third.hold_count) == (2, 3)
                assert inner.fence == outer.fence > 0 and inner.token != outer.token
                assert client.inspect("report").hold_count == 3
                assert await third.release() is False
            assert not inner.held and outer.held and lock.locked()
            outer.check()
            # Elsewhere, in a thread, another client.
            assert await both.elsewhere(lambda: lock.acquire(timeout=0)) is None
            assert await both.elsewhere(lambda: lock.acquire(timeout=0.2)) is None
            if both.has_tasks:
                assert client.rlock("report").acquire(timeout=0) is None
            assert await theirs.acquire(timeout=0) is None
            with pytest.raises(redlatch.NotAcquired, match="'report'.*0.2 s"):
                await both.of(other).rlock("report", timeout=0.2).__aenter__()
        assert not lock.locked() and not lock._holds
        assert free(client)
        async with theirs as later:
            assert later.fence > outer.fence

    both.run(main())


def test_shape_of_an_rlock(both: Both, client: redlatch.Client, other: redlatch.Client) -> None:
    async def main() -> None:
        lock, theirs = both.of(client).rlock("report"), both.of(other).rlock("report", timeout=0.2)
        assert not lock.locked() and lock.lease is None
        first = await lock.acquire()
        assert first is not None and lock.lease == first and first.held
        second = await lock.acquire(blocking=False)
        assert second is not None and lock.lease == second
        assert theirs.locked()
        assert await theirs.acquire(blocking=False) is None
        assert await theirs.acquire() is None
        # Elsewhere there is nothing to release, whatever is held here.
        await raises(redlatch.NotHeld, both.elsewhere(lock.release))
        await lock.release()
        assert first.held and not second.held and lock.lease == first
        assert await first.release() is True
        assert not lock.locked() and lock.lease is None
        assert isinstance(await raises(RuntimeError, lock.release()), redlatch.NotHeld)
        for arguments in ((False, 1), (True, -2), (True, float("nan"))):
            await raises(ValueError, lock.acquire(*arguments))
        assert free(client)

    both.run(main())


def test_ended_thread_or_task_is_no_owner(both: Both, client: redlatch.Client) -> None:
    # The identity of a thread or a task comes again; what it held must not.
    async def main() -> None:
        def taking() -> Any:
            return both.of(client).rlock("report").acquire(timeout=0)

        lease = await both.elsewhere(taking)
        for _ in range(20):
            assert await both.elsewhere(taking) is None
        await lease.release()

    both.run(main())


def test_named_owner_is_shared(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        lock = both.of(client).rlock("report", owner="job 7")
        async with lock:
            assert client.inspect("report").owner == "job 7"
            with other.rlock("report", owner=b"job 7", timeout=0) as theirs:
                assert theirs.hold_count == 2
            assert await both.elsewhere(lambda: lock.acquire(timeout=0)) is not None
            async with lock as again:
                assert again.hold_count == 3
            # Of the same owner any may release, but not the block that is here.
            await both.elsewhere(lock.release)
            assert client.inspect("report").hold_count == 1
            await raises(redlatch.NotHeld, both.elsewhere(lock.release))
            assert client.rlock("report", owner="job 8").acquire(timeout=0) is None
            assert client.rlock("report").acquire(timeout=0) is None
        assert free(client)
        with pytest.raises(redlatch.Invalid, match="'owner' must be 1 to 256 bytes"):
            both.of(client).rlock("report", owner="")

    both.run(main())


# ---- read-write ----------------------------------------------------------------------------------


def test_readers_are_together_and_a_writer_alone(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        lock, theirs = both.of(client).rwlock("report"), both.of(other).rwlock("report")
        assert lock.name == "report" and not lock.locked()
        async with lock.write(ttl=30, timeout=5) as writer:
            assert both.is_lease(writer) and writer.mode == "write"
            assert 25 < writer.remaining <= 30 and writer.hold_count == 1
            assert await theirs.acquire_read(timeout=0) is None and theirs.locked()
            caught = await raises(
                redlatch.NotAcquired, theirs.read(timeout=0.2).__aenter__(), "0.2 s"
            )
            assert caught.status is redlatch.Status.TIMEOUT
        async with lock.read(ttl=5) as reader, theirs.read(timeout=0) as second:
            assert reader.mode == second.mode == "read" and reader.remaining <= 5
            assert await theirs.acquire_write(timeout=0) is None
            caught = await raises(redlatch.NotAcquired, theirs.write(timeout=0).__aenter__())
            assert caught.status is redlatch.Status.BUSY
        assert free(client)

    both.run(main())


def test_many_share_a_side(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = both.of(client).rwlock("report")
        reading, writing = lock.read(), lock.write()
        inside: list[str] = []
        seen: list[set[str]] = []
        arrived: list[int] = []

        async def work() -> None:
            async with reading:
                arrived.append(1)
                await until(lambda: len(arrived) == 5)  # All of them are in at a time.
            for _ in range(5):
                for side, word in ((reading, "r"), (writing, "w")):
                    async with side:
                        inside.append(word)
                        await asyncio.sleep(0)
                        seen.append(set(inside))
                        inside.remove(word)

        await both.together(work, 5)
        assert len(seen) == 50 and {"r", "w"} not in seen
        assert not reading._holds and not writing._holds

    both.run(main())


def test_block_may_be_read_again(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        lock, theirs = both.of(client).rwlock("report"), both.of(other)
        async with lock.read():
            writer = both.begin(lambda: write_of(theirs))
            await waiting(client, "write")
            # Behind the writer, who waits for this block, it would wait for ever.
            async with lock.read(timeout=30) as inner:
                assert inner.mode == "read"
                await waiting(client, "write")
        await (await writer).release()

    both.run(main())


def test_misuse_is_an_error(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = both.of(client).rwlock("report")
        refused, held = redlatch.NotAcquired, redlatch.AlreadyHeld
        async with lock.read() as reader:
            await raises(redlatch.Invalid, reader.upgrade(timeout=-3), "timeout must be")
            await raises(held, lock.write().__aenter__(), "reads already: upgrade")
            # What does not wait cannot wait for itself.
            taker = "task" if both.has_tasks else "thread"
            said = f"lock 'report' is busy: held by this {taker}"
            error = await raises(refused, lock.write(timeout=0).__aenter__(), said)
            assert error.status is redlatch.Status.BUSY
            # Another object is another owner, and so is another thread or task.
            async with both.of(client).rwlock("report").read(timeout=0):
                pass
            await raises(refused, both.of(client).rwlock("report").write(timeout=0.2).__aenter__())
            await raises(refused, both.elsewhere(lock.write(timeout=0.2).__aenter__))
        async with lock.write():
            for side, said in ((lock.write(), "not reentrant"), (lock.read(), "downgrade")):
                await raises(held, side.__aenter__(), said)
        async with lock.write(timeout=0):
            pass
        named = both.of(client).rwlock("report", owner="job")
        lease = await named.acquire_write()
        assert lease is not None
        for call in (named.acquire_read(timeout=0), named.write(timeout=0).__aenter__()):
            await raises(held, call)
        await lease.release()

    both.run(main())
