# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a semaphore never has more permits out than its limit, for threads and tasks, and leaves
nothing behind. The rules one by one are in tests/conformance."""

from __future__ import annotations

import asyncio
import threading

import pytest
import redlatch
from support.wait import wait_until

from .conftest import Forking

LIMIT, CALLERS = 3, 64


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


def test_no_more_threads_are_inside_than_permits(client: redlatch.Client) -> None:
    pool, inside = client.semaphore("pool", LIMIT), Inside()

    def work() -> None:
        for _ in range(5):
            with pool as lease, inside:
                assert lease.permits == 1

    threads = [threading.Thread(target=work) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= inside.most <= LIMIT
    assert pool.stats() == redlatch.SemaphoreStats(used=0, limit=LIMIT, cap=None, waiting=0)


def test_no_more_tasks_are_inside_than_permits(client: redlatch.Client) -> None:
    inside = Inside()

    async def work(pool: redlatch.AsyncSemaphore) -> None:
        for _ in range(5):
            async with pool:
                with inside:
                    await asyncio.sleep(0)

    async def main() -> redlatch.SemaphoreStats:
        pool = client.aio.semaphore("pool", LIMIT)
        await asyncio.gather(*(work(pool) for _ in range(CALLERS)))
        return await pool.stats()

    assert asyncio.run(main()).used == 0
    assert 1 < inside.most <= LIMIT


def test_leases_have_their_permits(client: redlatch.Client) -> None:
    pool = client.semaphore("pool", LIMIT)
    two = pool.acquire(2)
    assert two is not None and two.permits == 2
    assert pool.acquire(2, blocking=False) is None and pool.acquire(2, timeout=0.01) is None
    wait_until(lambda: not pool.locked())  # The wait that timed out leaves the queue.
    with pool as one:
        assert pool.locked() and one.permits == 1 and one.fence > two.fence
        with pytest.raises(redlatch.NotAcquired), client.semaphore("pool", LIMIT, timeout=0):
            pass
        info = client.inspect("pool")
        assert (info.used, info.limit, info.cap) == (3, 3, -1)
        assert sorted(holder.permits for holder in info.holders) == [1, 2]
    with two:
        assert pool.stats().used == 2
    assert client.inspect("pool").is_free


def test_a_lease_changes_hands_with_its_permits(client: redlatch.Client) -> None:
    pool = client.semaphore("pool", LIMIT)
    lease = pool.acquire(2, ttl=20)
    assert lease is not None
    token = lease.detach()
    with pytest.raises(redlatch.NotHeld):
        pool.attach(token, 1)
    taken = pool.attach(token, 2, fence=lease.fence)
    assert taken.permits == 2 and pool.stats().used == 2
    taken.release()
    assert pool.stats().used == 0


def test_a_cancelled_task_leaves_nothing_behind(client: redlatch.Client) -> None:
    pool = client.semaphore("pool", 1)

    async def main() -> None:
        waiting = asyncio.ensure_future(client.aio.semaphore("pool", 1).acquire())
        while pool.stats().waiting == 0:
            await asyncio.sleep(0.002)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    with pool:
        asyncio.run(main())
        wait_until(lambda: pool.stats().waiting == 0)
    assert client.inspect("pool").is_free


@pytest.mark.parametrize(
    ("limit", "permits", "said"),
    [
        (0, 1, "option 'limit' must be 1 to 1000000 (got 0)"),
        (1_000_001, 1, "option 'limit' must be 1 to 1000000 (got 1000001)"),
        (True, 1, "limit must be an int from 1 (got True)"),
        (3, 0, "option 'permits' must be 1 to 1000000 (got 0)"),
        (3, -1, "option 'permits' must be 1 to 1000000 (got -1)"),
        (3, 4, "option 'permits' must be 1 to 3, the limit (got 4)"),
        (3, float("nan"), "permits must be an int from 1 (got nan)"),
        (3, True, "permits must be an int from 1 (got True; one try is blocking=False)"),
    ],
)
def test_bad_numbers_are_invalid(
    client: redlatch.Client, limit: int, permits: int, said: str
) -> None:
    with pytest.raises(redlatch.Invalid) as error:
        client.semaphore("pool", limit).acquire(permits)
    assert said in str(error.value)


def test_a_redlock_has_no_semaphore() -> None:
    redlock = redlatch.Redlock(["redis://127.0.0.1:1"])
    for made in (redlock, redlock.aio):
        with pytest.raises(redlatch.Unsupported, match="two permits on three nodes"):
            made.semaphore("pool", 2)


def test_a_child_acquires_permits_of_its_own(forking: Forking) -> None:
    forking(
        """
client = redlatch.connect(url)
pool = client.semaphore("pool", 2)
lease = pool.acquire()
def child():
    raises(redlatch.Forked, lease.check)
    with pool as own:
        assert own.permits == 1 and pool.stats().used == 2
in_child(child)
assert lease.held
lease.release()
"""
    )
