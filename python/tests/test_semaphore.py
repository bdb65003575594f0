# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a semaphore never has more permits out than its limit, for threads and tasks, and leaves
nothing behind.

Method: one server, clients of this process, most tests in both worlds (both.py). The rules one by
one are in tests/conformance.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import pytest
import redlatch
from redlatch.testing import expire
from support.servers import Server
from support.wait import wait_until

from .both import Both, free, raises, until
from .conftest import Forking, Run, Starter

LIMIT, CALLERS = 3, 64
ONE_TRY: Any = {"blocking": False}


class Inside:
    """Counts who is inside."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now = self.most = 0

    def __enter__(self) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.now -= 1


async def lease_of(pool: redlatch.AsyncSemaphore, permits: int = 1) -> redlatch.AsyncLease:
    lease = await pool.acquire(permits, timeout=30)
    assert lease is not None
    return lease


# ---- permits -------------------------------------------------------------------------------------


def test_no_more_are_inside_than_permits(both: Both, client: redlatch.Client) -> None:
    inside = Inside()

    async def main() -> None:
        pool = both.of(client).semaphore("pool", LIMIT)

        async def work() -> None:
            for _ in range(3):
                async with pool as lease:
                    with inside:
                        assert lease.permits == 1
                        await asyncio.sleep(0)

        await both.together(work, CALLERS)
        stats = await pool.stats()
        assert stats == redlatch.SemaphoreStats(used=0, limit=LIMIT, cap=None, waiting=0)

    both.run(main())
    assert 1 <= inside.most <= LIMIT


def test_leases_have_their_permits(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        pool = both.of(client).semaphore("report", LIMIT)
        two = await lease_of(pool, 2)
        assert two.permits == 2 and not pool.locked()
        assert await pool.acquire(2, **ONE_TRY) is None
        assert await pool.acquire(2, timeout=0) is None
        async with pool as one:
            assert pool.locked() and one.permits == 1 and one.fence > two.fence
            with pytest.raises(redlatch.NotAcquired) as caught:
                await both.of(client).semaphore("report", LIMIT, timeout=0).__aenter__()
            assert caught.value.status is redlatch.Status.BUSY
            info = client.inspect("report")
            assert (info.used, info.limit, info.cap) == (3, 3, -1)
            assert sorted(holder.permits for holder in info.holders) == [1, 2]
        async with two:
            assert (await pool.stats()).used == 2
        async with both.of(client).lock("report") as lease:
            assert lease.permits == 1
        assert free(client)

    both.run(main())


def test_a_wait_of_the_object_and_of_the_call(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        async with both.of(client).semaphore("report", 1, timeout=0.02) as lease:
            pool = both.of(client).semaphore("report", 1, timeout=0.02)
            assert await pool.acquire() is None
            with pytest.raises(redlatch.NotAcquired) as caught:
                await pool.__aenter__()
            assert caught.value.status is redlatch.Status.TIMEOUT
            waiting = both.begin(lambda: pool.acquire(timeout=-1, ttl=600))
            await until(lambda: client.inspect("report").waiting == 1)
            await lease.release()
            granted = await waiting
            assert granted is not None
            await until(lambda: granted.remaining > 500)  # A pushed grant is provisional at first.
            await granted.release()
        assert free(client)

    both.run(main())


def test_each_lease_ends_alone(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        pool = both.of(client).semaphore("report", LIMIT)
        async with pool as outer, pool as inner:
            assert outer.token != inner.token and inner.hold_count == 1
            await outer.extend(600)
            assert outer.remaining > 500 > inner.remaining
            client.force_release("report", inner.token)
            await raises(redlatch.LockLost, inner.extend(30))
            assert inner.lost and outer.held
            outer.check()
            await raises(redlatch.LockLost, inner.release())
        for call in (outer.upgrade(), outer.downgrade(), outer.release()):
            await raises(redlatch.Error, call)
        assert free(client)

    both.run(main())


def test_any_thread_or_task_may_release_a_lease(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        lease = await lease_of(both.of(client).semaphore("report", LIMIT), 2)
        assert await both.elsewhere(lease.release) is True
        assert not lease.held and free(client)

    both.run(main())


def test_loss_is_reported_at_the_end_of_the_block(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        pool = both.of(client).semaphore("report", LIMIT)
        with pytest.raises(redlatch.LockLost):
            async with pool as lease:
                expire(client, "report")
                await raises(redlatch.LockLost, lease.extend(30))
        assert free(client)

    both.run(main())


def test_a_lease_changes_hands_with_its_permits(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        # Of the options of an acquisition an attach takes those that it has.
        pool = both.of(client).semaphore("report", LIMIT, confirm=True)
        lease = await lease_of(pool, 2)
        token = await lease.detach()
        await raises(redlatch.NotHeld, pool.attach(token))
        await raises(redlatch.NotHeld, both.of(client).attach("report", token))
        await raises(redlatch.Invalid, pool.attach(token, 2, fence=1 << 70), "fence must be")
        taken = await pool.attach(token, 2, fence=lease.fence, ttl=600)
        assert taken.permits == 2 and taken.fence == lease.fence and taken.remaining > 500
        assert (await pool.stats()).used == 2
        await taken.release()
        assert free(client)

    both.run(main())


def test_an_operators_cap_counts(both: Both, client: redlatch.Client, server: Server) -> None:
    async def main() -> None:
        pool = both.of(client).semaphore("report", LIMIT, timeout=0)
        server.cmd("SET", "{report}:rl1:sc", "1", "PX", "60000")
        async with pool:
            assert await pool.stats() == redlatch.SemaphoreStats(1, 1, 1, 0)
            assert pool.locked() and await pool.acquire() is None
        server.cmd("SET", "{report}:rl1:sc", "9", "PX", "60000")
        assert await pool.stats() == redlatch.SemaphoreStats(0, LIMIT, 9, 0)

    both.run(main())


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "permits", "said"),
    [
        (0, 1, "option 'limit' must be 1 to 1000000 (got 0)"),
        (1_000_001, 1, "option 'limit' must be 1 to 1000000 (got 1000001)"),
        (True, 1, "limit must be an int from 1 (got True)"),
        ("3", 1, "limit must be an int from 1 (got '3')"),
        (3, 0, "option 'permits' must be 1 to 1000000 (got 0)"),
        (3, -1, "option 'permits' must be 1 to 1000000 (got -1)"),
        (3, 4, "option 'permits' must be 1 to 3, the limit (got 4)"),
        (3, 1.0, "permits must be an int from 1 (got 1.0)"),
        (3, None, "permits must be an int from 1 (got None)"),
        (3, True, "permits must be an int from 1 (got True; one try is blocking=False)"),
        (3, False, "permits must be an int from 1 (got False; one try is blocking=False)"),
    ],
)
def test_bad_numbers_are_invalid(
    both: Both, client: redlatch.Client, limit: int, permits: int, said: str
) -> None:
    async def main() -> None:
        with pytest.raises(redlatch.Invalid) as error:
            await both.of(client).semaphore("pool", limit).acquire(permits)
        assert said in str(error.value)

    both.run(main())


def test_other_mistakes_are_named(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        aio: Any = both.of(client)
        await raises(redlatch.Invalid, aio.semaphore("", 3).acquire(), "name")
        for keyword in ("owner", "reentrant", "format", "permits"):
            with pytest.raises(TypeError, match=f"unexpected keyword argument '{keyword}'"):
                aio.semaphore("pool", 3, **{keyword: 1})
        pool = aio.semaphore("pool", 3)
        await raises(redlatch.Invalid, pool.acquire(ttl=0), "option 'ttl'")
        for huge in (1 << 70, 10**5000):
            with pytest.raises(redlatch.Invalid, match="option 'limit' must be 1 to 1000000"):
                aio.semaphore("pool", huge)
            await raises(redlatch.Invalid, pool.acquire(huge), "option 'permits'")
        await raises(redlatch.Invalid, pool.acquire(blocking=False, timeout=1), "timeout must not")
        await raises(TypeError, pool.acquire(blocking_timeout=1), "the time to wait is `timeout`")
        assert not hasattr(client.semaphore("pool", 3), "release")

    both.run(main())


def test_repr(client: redlatch.Client) -> None:
    assert repr(client.semaphore("pool", 3)) == "<Semaphore 'pool' limit=3>"
    assert repr(client.aio.semaphore(b"pool", 3)) == "<AsyncSemaphore 'pool' limit=3>"


def test_a_redlock_has_no_semaphore() -> None:
    redlock = redlatch.Redlock(["redis://127.0.0.1:1"])
    for made in (redlock, redlock.aio):
        with pytest.raises(redlatch.Unsupported, match="two permits on three nodes"):
            made.semaphore("pool", 2)


# ---- interruptions, closed clients, forks --------------------------------------------------------


def test_a_cancelled_task_leaves_nothing_behind(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        pool = client.aio.semaphore("report", 2)
        async with pool:
            waits = [asyncio.ensure_future(pool.acquire(2)) for _ in range(2)]
            await until(lambda: client.inspect("report").waiting == 2)
            for wait in waits:
                wait.cancel()
                await raises(asyncio.CancelledError, wait)
            await until(lambda: client.inspect("report").waiting == 0)
        await until(lambda: free(client))

    run(main())


def test_a_loss_cancels_the_task_of_a_block(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        with pytest.raises(redlatch.LockLost):
            async with client.aio.semaphore("report", 2, on_lost="cancel"):
                expire(client, "report")
                await asyncio.sleep(30)

    run(main())


def test_ctrl_c_ends_a_wait(client: redlatch.Client, script: Starter) -> None:
    with client.semaphore("report", 1):
        waiter = script(
            """
print("begun")
try:
    redlatch.connect(url).semaphore("report", 1).acquire()
except KeyboardInterrupt:
    print("interrupted")
input()
"""
        )
        assert waiter.read() == "begun"
        wait_until(lambda: client.inspect("report").waiting == 1)
        waiter.process.send_signal(signal.SIGINT)
        assert waiter.read() == "interrupted"
        wait_until(lambda: client.inspect("report").waiting == 0)
        waiter.write("")
        assert waiter.end() == ("", "")


def test_a_closed_client_ends_waits(both: Both, server: Server, client: redlatch.Client) -> None:
    async def main() -> None:
        closing = redlatch.connect(server.url)
        pool = both.of(closing).semaphore("report", 2)
        lease = await lease_of(pool, 2)
        waiting = both.begin(pool.acquire)
        await until(lambda: client.inspect("report").waiting == 1)
        closing.close()
        await raises(redlatch.Closed, waiting)
        for call in (pool.acquire(), pool.stats(), pool.attach(lease.token)):
            await raises(redlatch.Closed, call)
        assert not lease.held
        await until(lambda: free(client))

    both.run(main())


def test_a_child_acquires_permits_of_its_own(client: redlatch.Client, forking: Forking) -> None:
    forking(
        """
client = redlatch.connect(url)
pool = client.semaphore("report", 2)
lease = pool.acquire()
def child():
    for call in (lease.check, lease.release):
        raises(redlatch.Forked, call)
    with pool as own:
        assert own.permits == 1 and pool.stats().used == 2
in_child(child)
lease.check()
assert pool.stats().used == 1
lease.release()
"""
    )
    assert free(client)
