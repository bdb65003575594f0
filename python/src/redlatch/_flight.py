# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Values that one caller computes and the others get: single_flight() of Client and Client.aio."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Callable, Optional

from . import _core
from ._aio_base import AioBase
from ._aio_lease import AsyncLease
from ._base import Base
from ._convert import Duration, Name, Seconds, shown, to_bytes, to_ms, to_text, to_wait_ms
from ._errors import Error, SingleFlightError, error_of, invalid
from ._lease import Lease, LeaseBase, ending
from ._once import is_any, title_of
from ._options import make_options
from ._pump import finished_here
from ._status import Status
from ._wait import Call, Start, finished, raise_unless_ok

_MIN_TTL_MS = _core.constant(b"RL_MIN_TTL_MS", 0)
_MAX_TTL_MS = _core.constant(b"RL_MAX_TTL_MS", 0)
_MAX_BYTES = _core.constant(b"RL_MAX_VALUE_BYTES", 0)
_START = Start(_core.flight_start, _core.flight_watched)
_STORE = Call(_core.flight_store, _core.flight_store_watched, _core.request_status)
_FAIL = Call(_core.flight_fail, _core.flight_fail_watched, _core.request_status)

Found = tuple[_core.Request, _core.Client]


def no_flight() -> Error:
    """Why a Redlock has none."""
    return error_of(
        Status.E_UNSUPPORTED,
        "single_flight() needs one server or cluster: the nodes of a Redlock store no values",
    )


# ---- what threads and tasks share ----------------------------------------------------------------


class Flight:
    """The arguments of a call of single_flight(), checked, and the lease with which it computes."""

    __slots__ = ("client", "name", "ttl_ms", "wait_ms", "options", "lease")

    def __init__(
        self,
        client: Base,
        key: Name,
        ttl: Duration,
        timeout: Seconds,
        lease_ttl: Seconds,
        max_hold: Seconds,
        label: Optional[Name],
    ) -> None:
        self.client = client
        self.name = to_bytes(key, "key")
        self.ttl_ms = _checked_ttl(ttl, "ttl")
        self.wait_ms = _checked_wait(timeout)
        if lease_ttl is not None:
            _checked_ttl(lease_ttl, "lease_ttl")
        self.options = make_options(ttl=lease_ttl, max_hold=max_hold, label=label)
        self.lease: Optional[LeaseBase] = None  # while it computes

    def is_outside(self, other: Flight) -> bool:
        """True if `other` would wait for this one."""
        # A forked child is not in the flight of its parent.
        return (
            self.client is other.client
            and self.name == other.name
            and self.lease is not None
            and self.lease._is_of_here()
        )

    def check_not_inside(self) -> None:
        """Raise AlreadyHeld if the call would wait for the flight that it is in."""
        if any(outer.is_outside(self) for outer in _around.get()):
            raise error_of(
                Status.E_ALREADY_HELD,
                f"single_flight({shown(to_text(self.name))}) was called by the function that"
                " computes its value, and would wait for itself",
            )

    @contextmanager
    def computing(self, lease: LeaseBase) -> Iterator[None]:
        """Note that the calls of this thread or task are inside this flight."""
        outer = _around.get()
        self.lease = lease
        _around.set((*outer, self))
        try:
            yield
        finally:
            # A task that was started inside may last longer, and has this flight in its context.
            self.lease = None
            _around.set(outer)


# The flights that this context is inside of, also those of a task that has started this one.
_around: ContextVar[tuple[Flight, ...]] = ContextVar("redlatch.flights", default=())


def _checked_ttl(ttl: Duration, what: str) -> int:
    ttl_ms = to_ms(ttl, what)
    if not _MIN_TTL_MS <= ttl_ms <= _MAX_TTL_MS:
        limits = f"{_MIN_TTL_MS / 1000} s to {_MAX_TTL_MS // (24 * 60 * 60 * 1000)} days"
        raise invalid(f"{what} must be {limits} (got {shown(ttl)})")
    return ttl_ms


def _checked_wait(timeout: Seconds) -> int:
    wait_ms = to_wait_ms(timeout)
    if wait_ms == 0:
        raise invalid(
            f"timeout must be -1 (no limit), or above 0, for single_flight() (got {timeout!r})"
        )
    return wait_ms


def _check_function(function: object) -> None:
    if not callable(function):
        raise TypeError(f"single_flight() takes a function (got {shown(function)})")
    if is_any(function, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        said = "single_flight() cannot take a generator function"
        raise TypeError(f"{said} (got {_called(function)})")


def _called(function: Callable[..., Any]) -> str:
    return f"{title_of(function)}()"


def _checked_value(value: object, function: Callable[..., Any]) -> bytes:
    got = None
    if not isinstance(value, bytes):
        got = type(value).__name__
    elif len(value) > _MAX_BYTES:
        got = f"{len(value)}"
    if got is not None:
        said = f"{_called(function)} must return bytes, at most {_MAX_BYTES} of them"
        raise invalid(f"{said} (got {got})")
    assert isinstance(value, bytes)
    return value


def _value_of(request: _core.Request, name: bytes) -> bytes:
    """The value that another caller has computed. Raises its failure."""
    value = _core.flight_value(request)
    if not _core.flight_has_failed(request):
        return value
    kind = _core.flight_failure_type(request).decode("utf-8", "replace")
    text = value.decode("utf-8", "replace")
    said = f"{kind}: {text}" if text else kind
    error = SingleFlightError(f"{shown(to_text(name))} was not computed: {said}", Status.OK)
    error.type, error.text = kind, text
    raise error


def _words_of(error: BaseException) -> tuple[bytes, bytes]:
    """The name of its type, and its text, for the callers that wait."""
    try:
        text = str(error)
    except Exception:
        text = ""  # The error itself is raised.
    return _utf8(type(error).__qualname__), _utf8(text)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


# ---- threads -------------------------------------------------------------------------------------


def fly(flight: Flight, function: Callable[[], bytes]) -> bytes:
    """Client.single_flight()."""
    _check_function(function)
    if is_any(function, inspect.iscoroutinefunction):
        raise TypeError(
            f"{_called(function)} is an async function: use client.aio.single_flight()"
        )
    flight.check_not_inside()
    request, handle = flight.client._ask(_start, flight.name, flight.wait_ms, flight.options)
    taken = _core.request_take_lease(request)
    if taken is None:
        return _value_of(request, flight.name)
    lease = Lease(taken, handle)
    value = _computed(flight, lease, function)
    with ending(lease):
        _STORE(handle, taken, value, flight.ttl_ms)
    return value


def _start(handle: _core.Client, *arguments: Any) -> Found:
    request = finished(_START, handle, *arguments)
    raise_unless_ok(request)
    return request, handle


def _computed(flight: Flight, lease: Lease, function: Callable[[], bytes]) -> bytes:
    try:
        with flight.computing(lease):
            return _checked_value(function(), function)
    except Exception as error:
        with ending(lease, error):
            _FAIL(lease._client, lease._handle, *_words_of(error))
        raise
    except BaseException as error:  # interrupted: the next caller computes
        lease._leave(error)
        raise


# ---- tasks ---------------------------------------------------------------------------------------


async def fly_async(
    aio: AioBase, flight: Flight, function: Callable[[], Awaitable[bytes]]
) -> bytes:
    """Client.aio.single_flight()."""
    _check_function(function)
    flight.check_not_inside()
    request, handle = await aio._ask(
        lambda handle, queue, tag: _core.flight_watched(
            handle, flight.name, flight.wait_ms, flight.options, queue, tag
        )
    )
    taken = _core.request_take_lease(request)
    if taken is None:
        return _value_of(request, flight.name)
    lease = AsyncLease(taken, handle)
    value = await _computed_async(flight, lease, function)
    with ending(lease):
        raise_unless_ok(
            await finished_here(_core.flight_store_watched, taken, value, flight.ttl_ms)
        )
    return value


async def _computed_async(
    flight: Flight, lease: AsyncLease, function: Callable[[], Awaitable[bytes]]
) -> bytes:
    try:
        with flight.computing(lease):
            return _checked_value(await _awaitable(function), function)
    except Exception as error:
        with ending(lease, error):
            words = _words_of(error)
            raise_unless_ok(
                await finished_here(_core.flight_fail_watched, lease._handle, *words)
            )
        raise
    except BaseException as error:  # cancelled: the next caller computes
        await lease.__aexit__(None, error, None)
        raise


def _awaitable(function: Callable[[], Awaitable[bytes]]) -> Awaitable[bytes]:
    made: object = function()
    if not inspect.isawaitable(made):
        raise TypeError(
            f"{_called(function)} must return an awaitable, as an async function does (got"
            f" {type(made).__name__}); for others use client.single_flight()"
        )
    return made
