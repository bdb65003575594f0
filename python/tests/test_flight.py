# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: of all callers that want a value, one computes it, and the others get it or its failure.

Method: one server, clients of this process and of others, most tests in both worlds (both.py). A
function computes until the server shows the callers that it is about.
"""

from __future__ import annotations

import asyncio
import pickle
import signal
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import redlatch
from redlatch.testing import expire
from support.servers import Server
from support.wait import wait_until

from .both import Both, free, raises, until
from .conftest import Forking, Run, Starter

CALLERS = 64
MOST = 64 * 1024
LONG = timedelta(hours=1)
KEY = "price"


def fly(
    both: Both, client: redlatch.Client, f: Callable[[], Any], ttl: Any = LONG, **options: Any
) -> Awaitable[Any]:
    """single_flight() in both worlds."""
    if not both.has_tasks or asyncio.iscoroutinefunction(f):
        return both.of(client).single_flight(KEY, ttl, f, **options)

    async def in_task() -> Any:
        return f()

    return client.aio.single_flight(KEY, ttl, in_task, **options)


def value_of(result: Any) -> Callable[[], Any]:
    def f() -> Any:
        if isinstance(result, BaseException):
            raise result
        return result

    return f


def when(both: Both, condition: Callable[[], bool], f: Callable[[], Any]) -> Callable[[], Any]:
    """`f` as soon as the condition is met, for fly()."""

    async def in_task() -> Any:
        await until(condition)
        return f()

    def in_thread() -> Any:
        wait_until(condition)
        return f()

    return in_task if both.has_tasks else in_thread


def failing(
    both: Both, kind: type[Exception], call: Callable[[], Awaitable[Any]], said: str = ""
) -> Awaitable[list[Any]]:
    """Elsewhere: what was raised, in a list, because an error that is a result is raised there."""

    async def work() -> list[Any]:
        return [await raises(kind, call(), said)]

    return both.begin(work)


def is_computed(client: redlatch.Client, waiting: int = 0) -> Callable[[], bool]:
    """True while a caller computes, and so many clients wait for the value."""

    def look() -> bool:
        info = client.inspect(KEY)
        return not info.is_free and info.waiting == waiting

    return look


def never() -> bytes:
    raise AssertionError("computed although another caller does")


# ---- values --------------------------------------------------------------------------------------


def test_a_value_is_returned_within_its_ttl(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        assert await fly(both, client, value_of(b"one")) == b"one"
        assert free(client, KEY)
        assert await fly(both, client, never) == b"one"

    both.run(main())


def test_it_is_computed_again_afterwards(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        values = iter(range(1000))
        seen = {await fly(both, client, lambda: b"%d" % next(values), 0.1)}
        while len(seen) == 1:
            seen.add(await fly(both, client, lambda: b"%d" % next(values), 0.1))
        assert seen == {b"0", b"1"}

    both.run(main())


@pytest.mark.parametrize("value", [b"", b"\0a\xff\n", b"x" * MOST])
def test_any_bytes(
    both: Both, client: redlatch.Client, other: redlatch.Client, value: bytes
) -> None:
    async def main() -> None:
        assert await fly(both, client, value_of(value)) == value
        assert await fly(both, other, never) == value

    both.run(main())


def test_one_of_many_callers_computes(both: Both, client: redlatch.Client) -> None:
    calls: list[object] = []
    values: list[bytes] = []

    def compute() -> bytes:
        calls.append(None)
        return b"one"

    async def main() -> None:
        f = when(both, is_computed(client, waiting=1), compute)

        async def call() -> None:
            values.append(await fly(both, client, f))

        await both.together(call, CALLERS)

    both.run(main())
    assert len(calls) == 1 and values == [b"one"] * CALLERS


SCRIPT = """
client = redlatch.connect(url)
def f():
    print("computes")
    return input().encode()
print(client.single_flight("price", 3600, f, lease_ttl=0.5))
"""


def test_processes_share_it(client: redlatch.Client, script: Starter) -> None:
    first = script(SCRIPT)
    assert first.read() == "computes"
    second = script(SCRIPT)
    wait_until(is_computed(client, waiting=1))
    first.write("one")
    assert first.read() == second.read() == "b'one'"
    assert first.end() == second.end() == ("", "")


# ---- failures ------------------------------------------------------------------------------------


class Refused(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (Refused("n\u00f6"), "Refused", "n\u00f6"),
        (KeyError("a\ud800"), "KeyError", "'a\\ud800'"),
        (ValueError(), "ValueError", ""),
        (redlatch.Closed("shut", redlatch.Status.E_CLOSED), "Closed", "shut"),
        (TimeoutError("x" * 5000), "TimeoutError", "x" * 1024),
    ],
)
def test_a_failure_reaches_those_that_wait(
    both: Both,
    client: redlatch.Client,
    other: redlatch.Client,
    error: Exception,
    kind: str,
    text: str,
) -> None:
    async def main() -> None:
        f = when(both, is_computed(client, waiting=2), value_of(error))
        computing = failing(both, type(error), lambda: fly(both, client, f))
        await until(is_computed(client))
        waiting = [
            failing(both, redlatch.SingleFlightError, partial(fly, both, one, never))
            for one in (client, other)
        ]
        assert await computing == [error] and not hasattr(error, "__notes__")
        for [told] in [await one for one in waiting]:
            assert (told.type, told.text, told.status) == (kind, text, redlatch.Status.OK)
            assert str(told) == f"'price' was not computed: {kind}" + (f": {text}" if text else "")
        # A caller that comes later computes.
        assert await fly(both, other, value_of(b"one")) == b"one"

    both.run(main())


def test_failures_can_be_pickled(client: redlatch.Client, other: redlatch.Client) -> None:
    error = redlatch.SingleFlightError("no", redlatch.Status.OK)
    error.type, error.text = "Refused", "no"
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.type, copy.text, str(copy)) == ("Refused", "no", "no")


def test_an_error_without_a_text(client: redlatch.Client) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    with pytest.raises(Mute):
        client.single_flight(KEY, LONG, value_of(Mute()))
    assert free(client, KEY)


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ("text", "str"),
        (None, "NoneType"),
        (bytearray(b"one"), "bytearray"),
        (b"x" * (MOST + 1), "65537"),
    ],
)
def test_other_values_are_refused(
    both: Both, client: redlatch.Client, other: redlatch.Client, value: Any, got: str
) -> None:
    said = f"() must return bytes, at most 65536 of them (got {got})"

    async def main() -> None:
        f = when(both, is_computed(client, waiting=1), lambda: value)
        computing = failing(both, redlatch.Invalid, lambda: fly(both, client, f), said)
        await until(is_computed(client))
        told = await raises(redlatch.SingleFlightError, fly(both, other, never), said)
        assert told.type == "Invalid"
        await computing
        assert await fly(both, client, value_of(b"one")) == b"one"

    both.run(main())


def test_a_loss_is_not_a_value(both: Both, client: redlatch.Client) -> None:
    def f() -> bytes:
        expire(client, KEY)
        return b"one"

    async def main() -> None:
        await raises(redlatch.LockLost, fly(both, client, f))
        assert await fly(both, client, value_of(b"two")) == b"two"

    both.run(main())


def test_the_failure_of_the_function_wins(both: Both, client: redlatch.Client) -> None:
    error = Refused()

    def f() -> bytes:
        expire(client, KEY)
        raise error

    async def main() -> None:
        assert await raises(Refused, fly(both, client, f)) is error
        assert "redlatch: " in str(error.__notes__)

    both.run(main())


def test_a_value_that_cannot_be_stored(
    both: Both, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    def f() -> bytes:
        server.pause()
        return b"one"

    async def main() -> None:
        with redlatch.connect(server.url, command_timeout=0.2) as client:
            assert await fly(both, client, f) == b"one"
            server.resume()

    both.run(main())
    assert "release of 'price'" in caplog.text


# ---- ends ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_caller_tells_no_failure(
    both: Both, client: redlatch.Client, kind: type[BaseException]
) -> None:
    error = kind("no")

    async def main() -> None:
        assert await raises(kind, fly(both, client, value_of(error))) is error
        assert free(client, KEY) and not hasattr(error, "__notes__")

    both.run(main())


def test_the_next_one_computes_after_ctrl_c(client: redlatch.Client, script: Starter) -> None:
    first = script(SCRIPT)
    assert first.read() == "computes"
    second = script(SCRIPT)
    wait_until(is_computed(client, waiting=1))
    first.process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in first.end()[1]
    assert second.read() == "computes"
    second.write("two")
    assert second.read() == "b'two'" and second.end() == ("", "")


def test_the_next_one_computes_after_a_death(client: redlatch.Client, script: Starter) -> None:
    first = script(SCRIPT)
    assert first.read() == "computes"
    second = script(SCRIPT)
    wait_until(is_computed(client, waiting=1))
    first.process.kill()
    assert second.read() == "computes"
    second.write("two")
    assert second.read() == "b'two'" and second.end() == ("", "")
    assert client.single_flight(KEY, LONG, never) == b"two"


def test_a_cancelled_caller_lets_the_next_one_compute(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        async def endless() -> bytes:
            await asyncio.Event().wait()
            return b""

        async def two() -> bytes:
            return b"two"

        computing = asyncio.ensure_future(client.aio.single_flight(KEY, LONG, endless))
        await until(is_computed(client))
        waiting = [
            asyncio.ensure_future(one.aio.single_flight(KEY, LONG, two)) for one in (client, other)
        ]
        await until(is_computed(client, waiting=2))
        computing.cancel()
        await raises(asyncio.CancelledError, computing)
        assert [await one for one in waiting] == [b"two", b"two"]

    run(main())


def test_a_cancelled_waiter_disturbs_no_other(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        go = asyncio.Event()

        async def one() -> bytes:
            await go.wait()
            return b"one"

        computing = asyncio.ensure_future(client.aio.single_flight(KEY, LONG, one))
        await until(is_computed(client))
        waiting = [
            asyncio.ensure_future(of.aio.single_flight(KEY, LONG, one))
            for of in (client, client, other)
        ]
        await until(is_computed(client, waiting=2))
        for cancelled in (waiting.pop(0), waiting.pop()):
            cancelled.cancel()
            await raises(asyncio.CancelledError, cancelled)
        await until(is_computed(client, waiting=1))
        go.set()
        assert await computing == await waiting[0] == b"one"

    run(main())


def test_a_caller_that_waits_too_long(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    late: list[object] = []

    async def main() -> None:
        f = when(both, lambda: len(late) == 2, value_of(b"one"))
        computing = both.begin(lambda: fly(both, client, f))
        await until(is_computed(client))
        for one in (client, other):
            call = fly(both, one, never, timeout=0.02)
            error = await raises(redlatch.NotAcquired, call)
            assert error.status is redlatch.Status.TIMEOUT
            late.append(error)
        assert await computing == b"one"

    both.run(main())


def test_a_closed_client(both: Both, client: redlatch.Client, other: redlatch.Client) -> None:
    async def main() -> None:
        f = when(both, is_computed(client, waiting=1), other.close)
        computing = failing(both, redlatch.Error, lambda: fly(both, other, f))
        await until(is_computed(client))
        assert await fly(both, client, value_of(b"one")) == b"one"
        await computing
        await raises(redlatch.Closed, fly(both, other, never))

    both.run(main())


# ---- inside itself -------------------------------------------------------------------------------


def test_a_call_inside_itself_is_refused(both: Both, client: redlatch.Client) -> None:
    errors: list[redlatch.AlreadyHeld] = []

    async def in_task() -> bytes:
        inner = asyncio.ensure_future(fly(both, client, never))
        for call in (fly(both, client, never), inner):
            errors.append(await raises(redlatch.AlreadyHeld, call, "would wait for itself"))
        return await client.aio.single_flight("inner", LONG, one)

    async def one() -> bytes:
        return b"one"

    def in_thread() -> bytes:
        with pytest.raises(redlatch.AlreadyHeld, match="would wait for itself") as caught:
            client.single_flight("price", LONG, never)
        errors.append(caught.value)
        return client.single_flight("inner", LONG, value_of(b"one"))

    async def main() -> None:
        assert await fly(both, client, in_task if both.has_tasks else in_thread) == b"one"
        assert len(errors) == (2 if both.has_tasks else 1)
        assert await fly(both, client, never) == b"one"

    both.run(main())


def test_a_task_that_outlasts_the_flight_is_outside(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        over = asyncio.Event()

        async def later() -> bytes:
            await over.wait()
            return await client.aio.single_flight(KEY, LONG, one)

        async def one() -> bytes:
            return b"one"

        async def starting() -> bytes:
            left.append(asyncio.ensure_future(later()))
            return b"two"

        left: list[asyncio.Task[bytes]] = []
        assert await client.aio.single_flight(KEY, LONG, starting) == b"two"
        over.set()
        assert await left[0] == b"two"

    run(main())


def test_a_child_does_not_end_the_flight_of_its_parent(
    client: redlatch.Client, forking: Forking
) -> None:
    forking(
        """
client = redlatch.connect(url)
def f():
    if os.fork() == 0:
        return b"child"
    assert os.wait()[1] == 0
    return b"one"
try:
    assert client.single_flight("price", 3600, f) == b"one"
except redlatch.Forked:
    assert client.single_flight("child", 3600, lambda: b"two") == b"two"
    os._exit(0)
"""
    )
    assert client.single_flight("price", LONG, never) == b"one"
    assert client.single_flight("child", LONG, never) == b"two"


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ttl": 0.001}, "ttl must be 0.01 s to 7 days (got 0.001)"),
        ({"ttl": timedelta(days=8)}, "ttl must be 0.01 s to 7 days (got datetime.timedelta"),
        ({"lease_ttl": 0}, "lease_ttl must be 0.01 s to 7 days (got 0)"),
        ({"timeout": 0}, "timeout must be -1 (no limit), or above 0, for single_flight() (got 0)"),
        ({"max_hold": -1}, "option 'max_hold'"),
    ],
)
def test_bad_options_are_refused(
    both: Both, client: redlatch.Client, options: dict[str, Any], said: str
) -> None:
    async def main() -> None:
        await raises(redlatch.Invalid, fly(both, client, never, **options), said)

    both.run(main())


def test_other_mistakes_are_named(client: redlatch.Client) -> None:
    async def later() -> bytes:
        return b""

    def several() -> Any:
        yield

    fly_now: Any = client.single_flight
    for f, said in (
        (b"one", "single_flight.. takes a function .got b'one'"),
        (later, r"later\(\) is an async function: use client\.aio\.single_flight"),
        (several, "cannot take a generator function .got .*several"),
    ):
        with pytest.raises(TypeError, match=said):
            fly_now(KEY, LONG, f)
    with pytest.raises(TypeError, match="key must be str or bytes"):
        fly_now(1, LONG, never)

    async def main() -> None:
        fly_later: Any = client.aio.single_flight
        said = "must return an awaitable, as an async function does (got bytes)"
        await raises(TypeError, fly_later(KEY, LONG, lambda: b"one"), said)
        assert await fly_later(KEY, LONG, lambda: later()) == b""

    asyncio.run(main())


def test_the_options_are_those_of_the_lease(client: redlatch.Client) -> None:
    def f() -> bytes:
        [holder] = client.inspect(KEY).holders
        assert holder.remaining is not None and 4 < holder.remaining <= 5
        wait_until(lambda: client.inspect(KEY).holders[0].label == "it")
        return b"one"

    assert client.single_flight(KEY, LONG, f, lease_ttl=5, label="it") == b"one"

    def slow() -> bytes:
        wait_until(lambda: free(client, "slow"))
        return b"late"

    with pytest.raises(redlatch.LockLost):
        client.single_flight("slow", LONG, slow, max_hold=0.1)


def test_a_redlock_has_no_flights() -> None:
    redlock = redlatch.Redlock(["redis://127.0.0.1:1"])
    for made in (redlock, redlock.aio):
        with pytest.raises(redlatch.Unsupported, match="the nodes of a Redlock store no values"):
            made.single_flight(KEY, LONG, never)
