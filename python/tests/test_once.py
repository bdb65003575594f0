# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a decorated function succeeds once in a period, for threads, tasks and processes, and a
run that ends in any other way counts as failed.

Method: one server, clients of this process and of others, most tests in both worlds (both.py). The
marks on the server say how a run has ended.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import signal
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Optional

import pytest
import redlatch
from redlatch.testing import expire
from support.servers import Server
from support.wait import wait_until

from .both import Both, free, raises, until
from .conftest import Forking, Run, Starter

CALLERS = 64
LONG = timedelta(hours=1)


def decorated(
    both: Both, client: redlatch.Client, name: Any, function: Callable[..., Any], **options: Any
) -> Callable[..., Awaitable[Any]]:
    """`function` as a job, whose calls are awaited in both worlds."""
    options.setdefault("every", LONG)
    if both.has_tasks:

        @functools.wraps(function)
        async def in_task(*arguments: Any, **keywords: Any) -> Any:
            return function(*arguments, **keywords)

        return client.aio.once(name, **options)(in_task)
    run = client.once(name, **options)(function)

    async def call(*arguments: Any, **keywords: Any) -> Any:
        return run(*arguments, **keywords)

    return call


Marks = Callable[..., dict[str, tuple[bool, int]]]


@pytest.fixture
def marks(server: Server) -> Marks:
    """Of each key of a job: whether a run has succeeded, and the number of runs."""

    def read(name: str = "report") -> dict[str, tuple[bool, int]]:
        found = [text.decode() for text in server.cmd("HGETALL", f"{{{name}}}:rl1:o")]
        fields = [mark.split() for mark in found[1::2]]
        return {key: (one[0] == "d", int(one[2])) for key, one in zip(found[::2], fields)}

    return read


def failing(error: Optional[BaseException]) -> Callable[[], str]:
    def run() -> str:
        if error is not None:
            raise error
        return "ran"

    return run


# ---- periods -------------------------------------------------------------------------------------


def test_a_success_is_remembered(both: Both, client: redlatch.Client, marks: Marks) -> None:
    async def main() -> None:
        job = decorated(both, client, "report", lambda: "ran", every=1000)
        assert await job() == "ran"
        assert marks() == {"": (True, 1)} and free(client)
        assert await job() is None and free(client)

    both.run(main())


def test_inspections_show_what_is_remembered(client: redlatch.Client) -> None:
    client.once("plain", every=1000)(failing(None))()
    [mark] = client.inspect("plain").marks
    assert (mark.key, mark.is_done, mark.tries) == ("", True, 1)
    assert mark.remaining is not None and 800 < mark.remaining <= 900
    client.once("named", every=1000, key="mon")(failing(None))()
    [mark] = client.inspect("named").marks
    assert mark.key == "mon" and mark.remaining is not None and 900 < mark.remaining <= 1000


def test_it_runs_again_in_the_next_period(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        job = decorated(both, client, "report", lambda: "ran", every=0.4)
        begun = time.monotonic()
        assert await job() == "ran"
        while await job() is None:
            await asyncio.sleep(0.002)
        assert time.monotonic() - begun >= 0.35

    both.run(main())


def test_a_key_names_the_period(both: Both, client: redlatch.Client, marks: Marks) -> None:
    async def main() -> None:
        def report(day: str) -> str:
            return day

        job = decorated(both, client, "report", report, every=1000, key="{day}")
        assert [await job(day) for day in ("mon", "tue", "mon")] == ["mon", "tue", None]
        assert marks() == {"mon": (True, 1), "tue": (True, 1)}

    both.run(main())


# ---- failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ValueError, redlatch.NotAcquired, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_one_try_fewer(
    both: Both, client: redlatch.Client, kind: type[BaseException], marks: Marks
) -> None:
    error = kind("no", redlatch.Status.BUSY) if kind is redlatch.NotAcquired else kind("no")

    async def main() -> None:
        # That of a run that may be skipped is not taken for a busy lock.
        job = decorated(both, client, "report", failing(error), tries=2, skip_if_busy=True)
        for tries in (1, 2):
            assert await raises(kind, job()) is error
            assert marks() == {"": (False, tries)} and free(client)
        assert await job() is None
        assert not hasattr(error, "__notes__")

    both.run(main())


def test_a_success_after_a_failure(both: Both, client: redlatch.Client, marks: Marks) -> None:
    async def main() -> None:
        await raises(ValueError, decorated(both, client, "report", failing(ValueError()))())
        job = decorated(both, client, "report", failing(None))
        assert [await job(), await job()] == ["ran", None]
        assert marks() == {"": (True, 2)}

    both.run(main())


def test_a_loss_is_not_a_success(both: Both, client: redlatch.Client, marks: Marks) -> None:
    async def main() -> None:
        await raises(
            redlatch.LockLost,
            decorated(both, client, "report", lambda: expire(client, "report"))(),
        )
        assert marks() == {"": (False, 1)}

    both.run(main())


def test_the_failure_of_the_function_wins(both: Both, client: redlatch.Client) -> None:
    error = ValueError("no")

    def run() -> None:
        expire(client, "report")
        raise error

    async def main() -> None:
        assert await raises(ValueError, decorated(both, client, "report", run)()) is error
        assert "redlatch: " in str(error.__notes__)

    both.run(main())


def test_a_process_that_dies_has_failed(
    client: redlatch.Client, script: Starter, marks: Marks
) -> None:
    dying = script(
        """
@redlatch.connect(url).once("report", every=3600, ttl=0.5)
def report():
    print("runs")
    input()
report()
"""
    )
    assert dying.read() == "runs"
    dying.process.kill()
    job = client.once("report", every=LONG)(failing(None))
    assert job() == "ran" and marks() == {"": (True, 2)}


# ---- several callers -----------------------------------------------------------------------------


def test_one_of_many_callers_runs(both: Both, client: redlatch.Client, marks: Marks) -> None:
    runs: list[str] = []
    results: list[object] = []

    def report() -> str:
        runs.append("ran")
        return "ran"

    async def main() -> None:
        job = decorated(both, client, "report", report)

        async def call() -> None:
            results.append(await job())

        await both.together(call, CALLERS)

    both.run(main())
    assert runs == ["ran"] and marks() == {"": (True, 1)}
    assert results.count("ran") == 1 and results.count(None) == CALLERS - 1


RUNNER = """
@redlatch.connect(url).once("report", every=3600)
def report():
    print("runs")
    return input()
print(report())
"""


def test_another_process_waits_for_the_run(client: redlatch.Client, script: Starter) -> None:
    first = script(RUNNER)
    assert first.read() == "runs"
    second = script(RUNNER)
    wait_until(lambda: client.inspect("report").waiting == 1)
    first.write("ran")
    assert first.read() == "ran" and second.read() == "None"
    assert first.end() == second.end() == ("", "")


def test_another_process_runs_after_a_failure(
    client: redlatch.Client, script: Starter, marks: Marks
) -> None:
    first = script(RUNNER.replace("input()", "1 / int(input())"))
    assert first.read() == "runs"
    second = script(RUNNER)
    wait_until(lambda: client.inspect("report").waiting == 1)
    first.write("0")
    assert second.read() == "runs" and "ZeroDivisionError" in first.end()[1]
    second.write("ran")
    assert second.read() == "ran" and second.end() == ("", "")
    assert marks() == {"": (True, 2)}


def test_a_busy_job_may_be_skipped(
    both: Both, client: redlatch.Client, caplog: pytest.LogCaptureFixture, marks: Marks
) -> None:
    async def main() -> None:
        async with both.of(client).lock("report"):
            job = decorated(both, client, "report", failing(None), skip_if_busy=True)
            assert await job() is None
            late = decorated(both, client, "report", failing(None), timeout=0.02)
            assert (await raises(redlatch.NotAcquired, late())).status is redlatch.Status.TIMEOUT
            tried = decorated(both, client, "report", failing(None), timeout=0)
            assert (await raises(redlatch.NotAcquired, tried())).status is redlatch.Status.BUSY
        assert marks() == {}

    with caplog.at_level(logging.INFO, "redlatch"):
        both.run(main())
    assert "run() is skipped: lock 'report' is busy" in caplog.text


def test_the_log_says_why_a_run_is_skipped(
    both: Both, client: redlatch.Client, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        job = decorated(both, client, "report", failing(None))
        await job()
        with caplog.at_level(logging.INFO, "redlatch"):
            await job()

    both.run(main())
    [said] = [one.getMessage() for one in caplog.records if "skipped" in one.getMessage()]
    assert "run() is skipped: a run of lock 'report' has succeeded in this period" in said


def test_a_run_inside_itself_is_refused(both: Both, client: redlatch.Client, marks: Marks) -> None:
    inner: list[Any] = []

    async def in_task() -> str:
        await raises(redlatch.AlreadyHeld, inner[0](), "in_task() was called inside its own run")
        return "ran"

    def in_thread() -> str:
        with pytest.raises(redlatch.AlreadyHeld, match="was called inside its own run"):
            inner[0]()
        return "ran"

    async def main() -> None:
        if both.has_tasks:
            inner.append(client.aio.once("report", every=LONG)(in_task))
            assert await inner[0]() == "ran"
        else:
            inner.append(client.once("report", every=LONG)(in_thread))
            assert inner[0]() == "ran"
        assert marks() == {"": (True, 1)}

    both.run(main())


# ---- forget --------------------------------------------------------------------------------------


def test_forgotten_runs(both: Both, client: redlatch.Client, marks: Marks) -> None:
    async def main() -> None:
        job = decorated(both, client, "report:{key}", lambda key: key, key="{key}")
        assert [await job("a"), await job("a")] == ["a", None]
        await both.of(client).once_forget("report:a")
        assert marks("report:a") == {} and await job("a") == "a"
        await both.of(client).once_forget(b"nothing")

    both.run(main())


def test_a_run_that_is_forgotten_meanwhile_is_not_remembered(client: redlatch.Client) -> None:
    @client.once("report", every=LONG)
    def report() -> str:
        client.once_forget("report")
        return "ran"

    assert [report(), report()] == ["ran", "ran"]


# ---- templates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("report", "report"),
        ("report:{day}", "report:mon"),
        ("{day}/{shift.number:03}/{more[0]}", "mon/007/x"),
        ("{day:>{width}}", "  mon"),
        ("{{report}}:{day}", "{report}:mon"),
        (b"{day}", "{day}"),
    ],
)
def test_names_have_the_arguments(
    both: Both, client: redlatch.Client, template: Any, name: str, server: Server
) -> None:
    def run(day: str, shift: Any, *more: str, width: int = 5) -> str:
        return "ran"

    async def main() -> None:
        job = decorated(both, client, template, run, key=template)
        assert await job("mon", shift, "x") == "ran"
        assert client.inspect(name).fence > 0
        [found] = server.cmd("KEYS", "*:rl1[:.]o")
        assert server.cmd("HKEYS", found) == [name.encode()]

    shift = SimpleNamespace(number=7)
    both.run(main())


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("report:{night}", "must have fields that are parameters of"),
        ("report:{}", "(got {} in 'report:{}'; a brace is written twice)"),
        ("report:{0}", "(got {0} in"),
        ("{day:{night}}", "(got {night} in"),
        ("report:{day", "must have braces in pairs"),
        ("report}", "must have braces in pairs"),
    ],
)
def test_bad_templates_are_refused_at_once(
    both: Both, client: redlatch.Client, template: str, said: str
) -> None:
    for where in ("name", "key"):
        name = template if where == "name" else "report"
        key = template if where == "key" else ""
        with pytest.raises(redlatch.Invalid) as caught:
            decorated(both, client, name, lambda day: day, key=key)
        assert said in str(caught.value) and str(caught.value).startswith(where)


def test_methods_know_their_object(client: redlatch.Client, marks: Marks) -> None:
    class Shop:
        name = "kiosk"

        @client.once("report:{self.name}", every=LONG)
        def report(self, day: str) -> str:
            """Sum up."""
            return day + self.name

    assert Shop().report("mon") == "monkiosk" and Shop().report(day="tue") is None
    assert marks("report:kiosk") == {"": (True, 1)}
    assert (Shop.report.__name__, Shop.report.__doc__) == ("report", "Sum up.")


def test_a_call_with_wrong_arguments_begins_no_run(
    both: Both, client: redlatch.Client, marks: Marks
) -> None:
    async def main() -> None:
        def report(day: str) -> str:
            return day

        job: Any = decorated(both, client, "report", report)
        await raises(TypeError, job(), "report() missing a required argument: 'day'")
        await raises(TypeError, job("mon", night=1), "unexpected keyword argument 'night'")
        assert marks() == {}

    both.run(main())


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"every": 0.05}, "every must be 0.1 s to 366 days (got 0.05)"),
        ({"every": timedelta(days=367)}, "every must be 0.1 s to 366 days (got datetime.timedelta"),
        ({"tries": 0}, "tries must be 1 to 1000 (got 0)"),
        ({"tries": 1001}, "tries must be 1 to 1000 (got 1001)"),
        ({"tries": True}, "tries must be 1 to 1000 (got True)"),
        ({"tries": "3"}, "tries must be 1 to 1000 (got '3')"),
        ({"skip_if_busy": True, "timeout": 1}, "timeout must not be given with skip_if_busy"),
        ({"max_local_handoffs": 1}, "option 'max_local_handoffs' must be 0 for once() (got 1)"),
        ({"ttl": 0}, "option 'ttl'"),
    ],
)
def test_bad_options_are_refused_at_once(
    both: Both, client: redlatch.Client, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(redlatch.Invalid) as caught:
        decorated(both, client, "report", failing(None), **options)
    assert said in str(caught.value)


def test_the_limits_are_those_of_the_library(client: redlatch.Client, marks: Marks) -> None:
    for name, every, tries in (("a", timedelta(days=366), 1000), ("b", 0.1, 1)):
        assert client.once(name, every=every, tries=tries)(failing(None))() == "ran"
    job = client.once("report", every=LONG, key="{key}")(lambda key: key)
    assert job("k" * 256) and marks() == {"k" * 256: (True, 1)}
    with pytest.raises(redlatch.Invalid, match="key must be at most 256 bytes"):
        job("k" * 257)
    assert free(client)


def test_other_mistakes_are_named(client: redlatch.Client) -> None:
    once: Any = client.once
    for keyword in ("owner", "reentrant", "format", "permits"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{keyword}'"):
            once("report", every=LONG, **{keyword: 1})
    for bad in ({"name": 1}, {"name": "report", "key": 1}):
        with pytest.raises(TypeError, match="must be str or bytes"):
            once(**bad, every=LONG)(failing(None))
    with pytest.raises(TypeError, match="decorates a function .got 'report'"):
        once("report", every=LONG)("report")
    with pytest.raises(redlatch.Invalid, match="on_lost must be"):
        client.aio.once("report", every=LONG, on_lost="stop")  # type: ignore[arg-type]


def test_functions_of_the_other_world_are_refused(client: redlatch.Client) -> None:
    async def later() -> None: ...

    class Later:
        async def __call__(self) -> None: ...

    def now() -> None: ...

    def several() -> Any:
        yield

    async def several_later() -> Any:
        yield

    of_threads: Any = client.once("report", every=LONG)
    of_tasks: Any = client.aio.once("report", every=LONG)
    for one, title in ((later, "later"), (Later(), "Later"), (functools.partial(later), "partial")):
        said = rf"{title}\(\) is an async function: use client\.aio\.once\(\)"
        with pytest.raises(TypeError, match=said):
            of_threads(one)
        assert asyncio.iscoroutinefunction(of_tasks(one))
    with pytest.raises(TypeError, match=r"now\(\) must be an async function; .* client\.once\(\)"):
        of_tasks(now)
    for decorate in (of_threads, of_tasks):
        for one in (several, several_later):
            with pytest.raises(TypeError, match=r"generator function \(got .*several"):
                decorate(one)


def test_a_redlock_has_no_runs() -> None:
    redlock = redlatch.Redlock(["redis://127.0.0.1:1"])
    for made in (redlock, redlock.aio):
        with pytest.raises(redlatch.Unsupported, match="do not remember runs"):
            made.once("report", every=LONG)
        with pytest.raises(redlatch.Unsupported, match="do not remember runs"):
            made.once_forget("report")


# ---- tasks that end, closed clients, forks -------------------------------------------------------


def test_a_cancelled_run_has_failed(run: Run, client: redlatch.Client, marks: Marks) -> None:
    async def main() -> None:
        inside = asyncio.Event()

        @client.aio.once("report", every=LONG)
        async def report() -> None:
            inside.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(report())
        await inside.wait()
        waiting = asyncio.ensure_future(report())
        await until(lambda: client.inspect("report").waiting == 1)
        waiting.cancel()
        await raises(asyncio.CancelledError, waiting)
        task.cancel()
        await raises(asyncio.CancelledError, task)
        await until(lambda: free(client))
        assert marks() == {"": (False, 1)}

    run(main())


def test_a_loss_may_cancel_the_run(run: Run, client: redlatch.Client, marks: Marks) -> None:
    async def main() -> None:
        @client.aio.once("report", every=LONG, on_lost="cancel")
        async def report() -> None:
            expire(client, "report")
            await asyncio.Event().wait()

        await raises(redlatch.LockLost, report())
        assert marks() == {"": (False, 1)}

    run(main())


def test_ctrl_c_ends_a_run(client: redlatch.Client, script: Starter, marks: Marks) -> None:
    runner = script(RUNNER)
    assert runner.read() == "runs"
    runner.process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in runner.end()[1]
    wait_until(lambda: free(client))
    assert marks() == {"": (False, 1)}


def test_a_closed_client_notes_nothing(
    both: Both, client: redlatch.Client, other: redlatch.Client, marks: Marks
) -> None:
    async def main() -> None:
        job = decorated(both, other, "report", other.close)
        await raises(redlatch.Error, job())
        assert marks() == {"": (False, 1)} and free(client)
        await raises(redlatch.Closed, job())
        with pytest.raises(redlatch.Closed):
            other.once_forget("report")

    both.run(main())


def test_a_child_does_not_end_the_run_of_its_parent(
    client: redlatch.Client, forking: Forking, marks: Marks
) -> None:
    forking(
        """
client = redlatch.connect(url)
@client.once("report:{day}", every=3600)
def report(day):
    if day == "tue":
        return "ran"
    if os.fork() == 0:
        return "child"
    assert os.wait()[1] == 0
    return "ran"
try:
    assert report("mon") == "ran"
except redlatch.Forked:
    assert report("tue") == "ran"
    os._exit(0)
"""
    )
    assert marks("report:mon") == marks("report:tue") == {"": (True, 1)}
