# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: in asyncio, locks are what its users expect of `async with` and of asyncio.Lock.

Method: one server, clients of this process, each test in each kind of event loop that is there.
What a lock means is tested in tests/conformance, through asyncio as well.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest
import redlatch
from redlatch._pump import pump_here
from redlatch.testing import expire
from support.servers import Server

from .conftest import Run


def free(client: redlatch.Client, name: str) -> bool:
    """Nobody holds it, nobody waits."""
    info = client.inspect(name)
    return info.is_free and info.waiting == 0


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


async def waiting(client: redlatch.Client, name: str, count: int = 1) -> None:
    await until(lambda: client.inspect(name).waiting == count)


async def lease_of(client: redlatch.Client, name: str, **options: Any) -> redlatch.AsyncLease:
    lease = await client.aio.acquire(name, **options)
    assert lease is not None
    return lease


async def raises(kind: type[BaseException], call: Awaitable[object]) -> BaseException:
    with pytest.raises(kind) as caught:
        await call
    return caught.value


# ---- blocks --------------------------------------------------------------------------------------


def test_block_holds_the_lock(run: Run, client: redlatch.Client, other: redlatch.Client) -> None:
    async def main() -> None:
        async with client.aio.lock("report", ttl=30, timeout=5) as lease:
            assert isinstance(lease, redlatch.AsyncLease)
            assert lease.fence > 0 and 25 < lease.remaining <= 30
            assert lease.held and not lease.lost
            lease.check()
            assert await other.aio.acquire("report", timeout=0) is None
            assert other.acquire("report", timeout=0) is None
            assert lease.name == "report" and len(lease.token) == 32
        assert not lease.held and not lease.lost and lease.remaining == 0.0
        async with other.aio.lock("report") as later:
            assert later.fence > lease.fence

    run(main())


def test_block_that_cannot_begin_raises(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        with pytest.raises(redlatch.NotAcquired, match="'report'.*0.05 s") as caught:
            async with client.aio.lock("report", timeout=0.05):
                pytest.fail("the block began")
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.status is redlatch.Status.TIMEOUT
        with pytest.raises(redlatch.NotAcquired) as caught:
            await client.aio.lock("report", timeout=0).__aenter__()
        assert caught.value.status is redlatch.Status.BUSY

    with other.lock("report"):
        run(main())


def test_loss_is_told_at_the_end_of_the_block(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        with pytest.raises(redlatch.LockLost):
            async with client.aio.lock("report") as lease:
                expire(other, "report")
                assert lease.lost
                with pytest.raises(redlatch.LockLost):
                    lease.check()
                theirs = await lease_of(other, "report", timeout=0)
        theirs.check()
        await theirs.release()

    run(main())


def test_exception_of_the_body_wins(run: Run, client: redlatch.Client) -> None:
    async def main(on_lost: Literal["ignore", "cancel"]) -> None:
        with pytest.raises(ZeroDivisionError) as caught:
            async with client.aio.lock("report", on_lost=on_lost):
                expire(client, "report")
                _ = 1 / 0
        (note,) = getattr(caught.value, "__notes__")
        assert note.startswith("redlatch: ")
        with pytest.raises(ZeroDivisionError) as caught:
            async with client.aio.lock("report", on_lost=on_lost):
                _ = 1 / 0
        assert not hasattr(caught.value, "__notes__")
        await asyncio.sleep(0)  # Where a cancellation that came too late would hit.
        assert free(client, "report")

    run(main("ignore"))
    run(main("cancel"))


def test_early_release_ends_a_block_well(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        async with client.aio.lock("report", on_lost="cancel") as lease:
            await lease.release()
            await asyncio.sleep(0.01)
            assert free(client, "report")
        lock = client.aio.lock("report")
        async with lock:
            await lock.release()
            assert not lock.locked()
            # What another task does with the same object is not ended by the end of this block.
            assert await asyncio.ensure_future(lock.acquire(timeout=5)) is True
        assert lock.locked()
        await lock.release()

    run(main())


def test_lease_releases_itself(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lease = await lease_of(client, "report", timeout=0)
        async with lease as same:
            assert same is lease
        assert free(client, "report")
        await raises(redlatch.NotHeld, lease.release())

    run(main())


def test_release_without_an_answer_is_no_failure_of_the_block(
    run: Run, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    client = redlatch.connect(server.url, timeout=0.5)

    async def block() -> None:
        async with client.aio.lock("report"):
            server.pause()

    async def call() -> None:
        lease = await lease_of(client, "report", timeout=20)
        server.pause()
        await raises(redlatch.OutcomeUnknown, lease.release())

    run(block())
    assert "release of 'report'" in caplog.text
    server.resume()
    run(call())


# ---- the shape of asyncio.Lock -------------------------------------------------------------------


def test_shape_of_a_lock(run: Run, client: redlatch.Client, other: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.lock("report")
        assert not lock.locked() and lock.lease is None
        assert await lock.acquire() is True
        assert lock.locked() and lock.lease is not None and lock.lease.fence > 0
        theirs = other.aio.lock("report", timeout=0.02)
        assert theirs.locked()
        assert await theirs.acquire(blocking=False) is False
        assert await theirs.acquire(timeout=0.03) is False
        assert await theirs.acquire() is False
        await lock.release()
        assert not lock.locked() and lock.lease is None
        assert isinstance(await raises(RuntimeError, lock.release()), redlatch.NotHeld)
        for arguments in ((False, 1), (True, -2), (True, float("nan"))):
            await raises(ValueError, lock.acquire(*arguments))

    run(main())


def test_taking_twice_in_one_task_is_told(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.lock("report")
        async with lock:
            for timeout in (-1, 5):
                await raises(redlatch.AlreadyHeld, lock.acquire(timeout=timeout))
            await raises(redlatch.AlreadyHeld, lock.__aenter__())
            # What does not wait cannot wait for itself.
            assert await lock.acquire(blocking=False) is False
            # Another object is another owner, and so is another task.
            assert await client.aio.lock("report").acquire(blocking=False) is False
            assert await asyncio.ensure_future(lock.acquire(timeout=0.02)) is False
        async with lock:
            pass

    run(main())


def test_tasks_share_a_lock(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.lock("report")
        inside: list[int] = []
        seen: list[int] = []

        async def work() -> None:
            for _ in range(10):
                async with lock:
                    inside.append(1)
                    seen.append(len(inside))
                    await asyncio.sleep(0)
                    inside.pop()

        await asyncio.gather(*(work() for _ in range(16)))
        assert seen == [1] * 160

    run(main())


def test_any_task_may_release(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.lock("report")
        assert await asyncio.ensure_future(lock.acquire()) is True
        assert lock.locked()
        await lock.release()
        assert free(client, "report")

    run(main())


def test_shared_lock_forgets_what_ended(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lock = client.aio.lock("report", ttl=60)

        async def take(how: str) -> weakref.ref[Any]:
            assert await lock.acquire()
            assert lock.lease is not None
            if how == "release":
                await lock.lease.release()
            else:
                if how == "detach":
                    await lock.lease.detach()
                expire(client, "report")
                await lock.lease.wait_lost()
            task = asyncio.current_task()
            assert task is not None
            return weakref.ref(task)

        for how in ("release", "detach", "lose"):
            tasks = [await asyncio.ensure_future(take(how)) for _ in range(5)]
            gc.collect()
            assert sum(task() is not None for task in tasks) <= 1
            assert len(lock._holds) == 1
        # What is lost is told to its task, as long as that is there.
        await take("lose")
        await asyncio.ensure_future(take("release"))
        await asyncio.ensure_future(take("release"))
        await raises(redlatch.LockLost, lock.release())
        # A block that has nothing more to release leaves the next one alone.
        async with lock as lease:
            await lease.release()
            await asyncio.ensure_future(lock.__aenter__())
        assert [hold.lease.held for hold in lock._holds.values()] == [True]
        await lock.__aexit__(None, None, None)
        assert free(client, "report")

    run(main())


# ---- operations ----------------------------------------------------------------------------------


def test_lease_in_short(run: Run, client: redlatch.Client, other: redlatch.Client) -> None:
    async def main() -> None:
        lease = await lease_of(client, "report", ttl=20, renew=False)
        assert lease.remaining <= 20
        assert await other.aio.acquire("report", timeout=0.02) is None
        await lease.extend(60)
        assert 55 < lease.remaining <= 60
        await raises(redlatch.Invalid, lease.extend(0))
        token = await lease.detach()
        await raises(redlatch.NotHeld, lease.release())
        await raises(redlatch.NotHeld, lease.detach())
        attached = other.attach("report", token)
        attached.release()
        assert repr(lease) == f"<AsyncLease 'report' detached fence={lease.fence}>"
        await raises(redlatch.Invalid, client.aio.acquire("x" * 1025))
        await raises(redlatch.Invalid, client.aio.acquire("report", timeout=-3))
        with pytest.raises(redlatch.Invalid, match='"ignore" and "cancel"'):
            client.aio.lock("report", on_lost="panic")  # type: ignore[arg-type]

    run(main())


def test_waiting_for_a_loss(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lease = await lease_of(client, "report", ttl=0.5, renew=False)
        assert await lease.wait_lost(timeout=0) is False
        assert await lease.wait_lost(timeout=0.01) is False
        assert all(await asyncio.gather(lease.wait_lost(), lease.wait_lost(30)))
        assert lease.lost
        assert await lease.wait_lost() is True
        for call in (lease.release(), lease.extend(1)):
            await raises(redlatch.LockLost, call)
        lease = await lease_of(client, "report")
        # Who gives up waiting does not keep the others from it.
        await raises(asyncio.TimeoutError, asyncio.wait_for(lease.wait_lost(), 0.01))
        watching = asyncio.ensure_future(lease.wait_lost())
        await asyncio.sleep(0)
        await lease.release()
        assert await watching is False

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


def test_cancelled_release_goes_on(run: Run, server: Server, client: redlatch.Client) -> None:
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


# ---- a lock that is lost -------------------------------------------------------------------------


def lose_by_force(client: redlatch.Client) -> None:
    expire(client, "report")


def lose_by_time(client: redlatch.Client) -> None:
    pass  # max_hold ends it.


@pytest.mark.parametrize("lose", [lose_by_force, lose_by_time])
def test_loss_cancels_the_block(
    run: Run, client: redlatch.Client, lose: Callable[[redlatch.Client], None]
) -> None:
    max_hold = 0.3 if lose is lose_by_time else None

    async def main() -> None:
        with pytest.raises(redlatch.LockLost) as caught:
            async with client.aio.lock("report", max_hold=max_hold, on_lost="cancel"):
                lose(client)
                await asyncio.sleep(3600)
        assert isinstance(caught.value.__cause__, asyncio.CancelledError)
        if sys.version_info >= (3, 11):
            task = asyncio.current_task()
            assert task is not None and task.cancelling() == 0
        await asyncio.sleep(0)
        async with client.aio.lock("report", on_lost="cancel"):
            await asyncio.sleep(0)

    run(main())


def test_loss_that_the_body_swallows_is_told_at_the_end(
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
def test_what_is_given_back_early_cancels_nothing(
    run: Run, client: redlatch.Client, how: str
) -> None:
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


def test_forgotten_lease_is_released_and_told(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        lease = await lease_of(client, "report")
        watched = await lease_of(client, "watched")
        await watched.wait_lost(0.01)
        with pytest.warns(ResourceWarning, match="never released: <AsyncLease '.*' held"):
            del lease, watched
            gc.collect()
        await until(lambda: free(client, "report") and free(client, "watched"))

    run(main())


def test_forgotten_guarded_lease_is_released_and_told(run: Run, client: redlatch.Client) -> None:
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


def test_aio_is_made_once_and_does_not_keep_its_client(server: Server) -> None:
    client = redlatch.connect(server.url)
    aio = client.aio
    assert client.aio is aio and "redis://" in repr(aio)
    gone = weakref.ref(client)
    del aio, client
    assert gone() is None
