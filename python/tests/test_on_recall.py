# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a callback of on_recall() that fails, or that has a wrong type, is reported where its kind
of program looks for that; tasks can wait for a recall; Redlocks and forked children have none.

Method: as test_recall.py.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
import redlatch
from support.servers import Server
from support.wait import wait_until

from .both import Both, free, raises, until
from .conftest import Forking, Run
from .test_recall import Ears


# ---- callbacks -----------------------------------------------------------------------------------


def test_an_exception_is_logged(
    client: redlatch.Client, other: redlatch.Client, caplog: pytest.LogCaptureFixture
) -> None:
    called = threading.Event()

    def fail() -> None:
        raise SystemExit("no")

    with client.lock("report") as lease, caplog.at_level(logging.ERROR, "redlatch"):
        lease.on_recall(fail)
        lease.on_recall(called.set)
        assert other.recall("report") == 1
        wait_until(called.is_set)
        [record] = caplog.records
        assert record.getMessage() == "on_recall() of 'report': the callback raised"
        assert record.exc_info is not None and str(record.exc_info[1]) == "no"


def test_an_exception_reaches_the_handler_of_the_loop(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    def fail() -> None:
        raise ValueError("no")

    async def main() -> None:
        seen: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: seen.append(context["exception"])
        )
        async with client.aio.lock("report") as lease:
            lease.on_recall(fail)
            ears = Ears(lease)
            assert await other.aio.recall("report", "x") == 1
            await ears.hear("x")
        assert [str(error) for error in seen] == ["no"]

    run(main())


def test_what_is_no_callback_is_refused(both: Both, client: redlatch.Client) -> None:
    async def late() -> None:
        pass

    async def main() -> None:
        async with both.of(client).lock("report") as lease:
            one: Any
            for one, got in ((None, "NoneType"), (late, "an async function")):
                with pytest.raises(TypeError, match=rf"is not async \(got {got}\)"):
                    lease.on_recall(one)

    both.run(main())


def test_a_redlock_has_no_recalls(both: Both, server: Server) -> None:
    async def main(redlock: redlatch.Redlock) -> None:
        of: Any = both.of(redlock)  # type: ignore[arg-type]
        async with of.lock("report") as lease:
            with pytest.raises(redlatch.Unsupported, match="a recall is not possible with a Redl"):
                lease.on_recall(print)
            with pytest.raises(redlatch.Unsupported, match="a recall is not possible with a Redl"):
                await of.recall("report")
            with pytest.raises(redlatch.Unsupported, match="an election is not possible"):
                await of.resign("report", "x")

    with redlatch.Redlock([server.url], restart_guard=False) as redlock:
        both.run(main(redlock))


def test_a_forked_child_hears_its_own_recalls(forking: Forking) -> None:
    forking(
        """
client, called = redlatch.connect(url), []
lease = client.acquire("report")
lease.on_recall(lambda: called.append("parent"))
def hear(lease, name):
    lease.on_recall(lambda: called.append(name))
    assert client.recall(lease.name, "x") == 1
    while name not in called:
        time.sleep(0.002)
def child():
    assert (lease.recall_count, lease.recall_reason) == (0, "")
    raises(redlatch.Forked, lambda: lease.on_recall(print))
    with client.lock("own") as own:
        hear(own, "child")
    assert called[-1] == "child"
in_child(child)
hear(lease, "again")
assert called == ["parent", "again"] and lease.recall_reason == "x"
lease.release()
in_child(child)
"""
    )


# ---- tasks ---------------------------------------------------------------------------------------


def test_a_task_waits_for_a_recall(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        async with client.aio.lock("report") as lease:
            assert await lease.wait_recalled(0) is await lease.wait_recalled(0.01) is False
            waits = [asyncio.ensure_future(lease.wait_recalled()) for _ in range(3)]
            cancelled = waits.pop()
            await asyncio.sleep(0)
            cancelled.cancel()
            assert await other.aio.recall("report", "x") == 1
            assert await asyncio.gather(*waits) == [True, True]
            assert await lease.wait_recalled(0) is True and lease.recall_reason == "x"
            await raises(asyncio.CancelledError, cancelled)
        async with client.aio.lock("report") as lease:
            wait = asyncio.ensure_future(lease.wait_recalled(1000))
            await asyncio.sleep(0)
            await lease.release()
            assert await wait is False

    run(main())


def test_a_wait_for_a_recall_keeps_no_lease(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        lease = await client.aio.acquire("report")
        assert lease is not None and not await lease.wait_recalled(0.001)
        with pytest.warns(ResourceWarning, match="never released"):
            del lease
            gc.collect()
        await until(lambda: free(other))

    run(main())


def test_a_callback_has_the_context_of_its_registration(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    job: ContextVar[str] = ContextVar("job")
    seen: list[str] = []

    async def main() -> None:
        async with client.aio.lock("report") as lease:
            for name in "ab":
                job.set(name)
                lease.on_recall(lambda: seen.append(job.get()))
            job.set("c")
            assert await other.aio.recall("report") == 1
            await until(lambda: seen == ["a", "b"])

    run(main())


def test_recalls_of_a_lease_are_for_one_loop(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    leases: list[redlatch.AsyncLease] = []

    async def refused() -> None:
        for call in (lambda: leases[0].on_recall(print), leases[0].wait_recalled):
            with pytest.raises(redlatch.Invalid, match=r"on_recall\(\) and .* in one event loop"):
                await of_any(call)

    async def first() -> None:
        lease = await client.aio.acquire("report")
        assert lease is not None
        leases.append(lease)
        lease.on_recall(print)
        await asyncio.to_thread(asyncio.run, refused())

    async def second() -> None:
        [lease] = leases
        ears = Ears(lease)
        assert await other.aio.recall("report", "x") == 1
        await ears.hear("x")
        await lease.release()

    run(first())
    run(second())


async def of_any(call: Callable[[], Any]) -> None:
    answer = call()
    if answer is not None:
        await answer
