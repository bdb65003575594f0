# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: event loops come and go, in any thread and process, tasks come by the thousand and are
cancelled at any moment; nothing is left behind, neither here nor on the server.

Method: one server; races are run often enough that all their outcomes are seen, which is checked;
what a process uses is read from /proc.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import random
import threading
from collections.abc import Callable

import pytest
import redlatch
from redlatch import _pump
from support.servers import Server
from support.wait import LIMIT, wait_until

from .both import free, raises, until
from .conftest import LOOPS, Forking, Run
from .test_aio import lease_of, waiting

LoopMaker = Callable[[], asyncio.AbstractEventLoop]


def thread_count() -> int:
    return len(os.listdir("/proc/self/task"))


def descriptor_count() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(params=LOOPS)
def new_loop(request: pytest.FixtureRequest) -> LoopMaker:
    return LOOPS[request.param]


# ---- races ---------------------------------------------------------------------------------------


def test_a_grant_that_crosses_a_cancellation_is_given_back(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    keys = [f"race-{i}" for i in range(50)]
    outcomes = {"granted": 0, "cancelled": 0}

    async def race(rng: random.Random, key: str) -> None:
        held = await lease_of(other, key)
        wait = asyncio.ensure_future(client.aio.acquire(key))
        await asyncio.sleep(rng.random() / 100)
        release = asyncio.ensure_future(held.release())
        if rng.random() < 0.5:
            await asyncio.sleep(rng.random() / 100)
        else:
            await release
        wait.cancel()
        try:
            lease = await wait
            assert lease is not None
            outcomes["granted"] += 1
            await lease.release()
        except asyncio.CancelledError:
            outcomes["cancelled"] += 1
        await release
        # Whatever the outcome, the lock is there for the next.
        await (await lease_of(other, key, timeout=20)).release()

    async def main() -> None:
        rng = random.Random(7)
        for _ in range(30):
            await asyncio.gather(*(race(rng, key) for key in keys))
        for key in keys:
            await until(lambda: free(other, key))
        assert not _pump.pump_here().waiting

    run(main())
    assert sum(outcomes.values()) == 1500
    assert min(outcomes.values()) > 50, outcomes


def test_tries_that_are_cancelled_at_once(run: Run, client: redlatch.Client) -> None:
    async def race(i: int) -> None:
        key = f"try-{i % 20}"
        task = asyncio.ensure_future(client.aio.acquire(key, timeout=i % 2))
        for _ in range(i % 7):
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            lease = await task
            if lease is not None:
                await lease.release()

    async def main() -> None:
        for i in range(0, 2000, 40):
            await asyncio.gather(*(race(i + k) for k in range(40)))
        for i in range(20):
            await until(lambda: free(client, f"try-{i}"))

    run(main())


# ---- many ----------------------------------------------------------------------------------------


def test_a_thousand_waiting_tasks_cost_no_thread_and_no_descriptor(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    threads = thread_count()
    served: list[int] = []

    async def work(i: int) -> None:
        async with client.aio.lock("report"):
            served.append(i)

    async def main() -> None:
        held = await lease_of(client, "report")
        descriptors = descriptor_count()
        tasks = [asyncio.ensure_future(work(i)) for i in range(1000)]
        await waiting(other, "report")
        assert thread_count() <= threads and descriptor_count() <= descriptors + 1
        await held.release()
        await asyncio.gather(*tasks)
        assert thread_count() <= threads

    run(main())
    assert served == list(range(1000))


def test_a_thousand_loops_leave_no_descriptor(
    new_loop: LoopMaker, client: redlatch.Client
) -> None:
    async def main() -> None:
        async with client.aio.lock("report"):
            pass

    def run_once() -> None:
        loop = new_loop()
        try:
            loop.run_until_complete(main())
        finally:
            loop.close()

    run_once()
    descriptors = descriptor_count()
    for _ in range(1000):
        run_once()
    assert descriptor_count() <= descriptors
    # Loops that are gone are forgotten when the next one comes.
    assert len(_pump._pumps) <= 2


def test_unclosed_loop_leaves_no_descriptor(client: redlatch.Client) -> None:
    def run_once() -> None:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(client.aio.connect())

    with pytest.warns(ResourceWarning, match="unclosed"):
        run_once()
        descriptors = descriptor_count()
        for _ in range(10):
            run_once()
        assert descriptor_count() <= descriptors


# ---- several loops -------------------------------------------------------------------------------


def test_loops_of_two_threads_share_a_client(
    new_loop: LoopMaker, client: redlatch.Client
) -> None:
    inside: list[int] = []
    seen: list[int] = []
    failures: list[BaseException] = []
    lock = client.aio.lock("report")

    async def work() -> None:
        for _ in range(10):
            async with lock:
                inside.append(1)
                seen.append(len(inside))
                await asyncio.sleep(0.0005)
                inside.pop()

    async def main() -> None:
        await asyncio.wait_for(asyncio.gather(*(work() for _ in range(10))), LIMIT)

    def in_thread() -> None:
        loop = new_loop()
        try:
            loop.run_until_complete(main())
        except BaseException as failure:
            failures.append(failure)
        finally:
            loop.close()

    threads = [threading.Thread(target=in_thread) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * LIMIT)
    assert failures == [] and seen == [1] * 200


def test_a_lease_may_be_released_in_another_loop(run: Run, client: redlatch.Client) -> None:
    lease: redlatch.AsyncLease = run(lease_of(client, "report"))
    assert run(lease.wait_lost(0.01)) is False
    run(lease.extend(60))
    # The loop that watched it is closed.
    assert run(lease.wait_lost(0.01)) is False
    run(lease.release())
    assert free(client, "report")


def test_a_lease_is_watched_by_one_loop(client: redlatch.Client) -> None:
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    lease = first.run_until_complete(lease_of(client, "report"))
    first.run_until_complete(lease.wait_lost(0.01))
    with pytest.raises(redlatch.Invalid, match="must be in one event loop"):
        second.run_until_complete(lease.wait_lost(0.01))
    second.run_until_complete(lease.release())
    for loop in (first, second):
        loop.close()


# ---- ends ----------------------------------------------------------------------------------------


def test_loop_that_is_closed_ends_its_waits(
    new_loop: LoopMaker, client: redlatch.Client, other: redlatch.Client
) -> None:
    held = other.acquire("report")
    assert held is not None
    loop = new_loop()
    loop.set_exception_handler(lambda *_: None)  # Which would hear of tasks that never ended.
    tasks = [loop.create_task(client.aio.acquire("report")) for _ in range(3)]
    loop.run_until_complete(asyncio.sleep(0))
    wait_until(lambda: other.inspect("report").waiting >= 1)
    descriptors = descriptor_count()
    loop.close()
    del loop, tasks
    wait_until(lambda: descriptor_count() < descriptors)
    wait_until(lambda: other.inspect("report").waiting == 0)
    held.release()
    assert free(other, "report")


def test_closing_the_client_ends_waits(
    run: Run, server: Server, other: redlatch.Client
) -> None:
    client = redlatch.connect(server.url)

    async def main() -> None:
        held = await lease_of(other, "report")
        mine = await lease_of(client, "mine")
        tasks = [asyncio.ensure_future(client.aio.acquire("report")) for _ in range(100)]
        losing = asyncio.ensure_future(mine.wait_lost())
        await waiting(other, "report")
        client.close()
        for task in tasks:
            await raises(redlatch.Closed, task)
        assert await losing is False
        for call in (client.aio.acquire("x"), client.aio.connect(), mine.release()):
            await raises(redlatch.Closed, call)
        await held.release()
        assert free(other, "report") and free(other, "mine")

    run(main())


def test_an_idle_loop_passes_the_log_on(
    run: Run, client: redlatch.Client, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        lease = await lease_of(client, "report", ttl=0.5)
        caplog.clear()
        server.kill()
        await until(lambda: "report" in caplog.text)
        assert lease.lost
        server.start()
        await raises(redlatch.LockLost, lease.release())

    with caplog.at_level(logging.INFO, "redlatch"):
        run(main())


# ---- forks ---------------------------------------------------------------------------------------

FORK = """
import asyncio, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: the process has threads
client = redlatch.connect(url)

async def raises(kind, call):
    try:
        await call
    except kind:
        return
    raise AssertionError(kind)

async def child(mine):
    for call in (mine.release(), mine.extend(9), mine.wait_lost(), mine.wait_lost(0)):
        await raises(redlatch.Forked, call)
    assert mine.lost and await client.aio.acquire("mine", timeout=0) is None
    async with client.aio.lock("other", on_lost="cancel") as lease:
        lease.check()
    await client.aio.connect()
    try:
        await asyncio.wait_for(client.aio.acquire("mine"), 0.05)
    except asyncio.TimeoutError:
        pass
    waits = [asyncio.ensure_future(client.aio.acquire("third")) for _ in range(10)]
    for wait in waits:
        await (await wait).release()

async def take():
    await (await client.aio.acquire("fifth")).release()

async def main():
    mine = await client.aio.acquire("mine")
    wait = asyncio.ensure_future(client.aio.acquire("mine"))
    await asyncio.sleep(0.01)
    for _ in range(5):
        in_child(lambda: asyncio.run(child(mine)))
    mine.check()
    await mine.release()
    await (await wait).release()

asyncio.run(main())
# A loop that did not run may go on in a child.
loop = asyncio.new_event_loop()
loop.run_until_complete(take())
in_child(lambda: loop.run_until_complete(asyncio.wait_for(take(), 20)))
loop.close()
"""


def test_child_of_a_process_with_a_running_loop(
    forking: Forking, client: redlatch.Client
) -> None:
    forking(FORK)
    assert free(client, "mine")
