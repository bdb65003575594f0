# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The calls that wait for a server, how threads and greenlets wait, and the results."""

from __future__ import annotations

import threading
from typing import Any, Callable, Generic, NamedTuple, Optional, TypeVar

from . import _core
from ._errors import error_of, new_error
from ._hub import pump_here
from ._log import LOG_SLICE_S, pass_on_log
from ._status import Status

T = TypeVar("T")

# The main thread is where Python runs signal handlers. A signal interrupts its wait; one that comes
# just before the wait begins does not, and is seen when this is over.
SLICE_MS = 250
LOG_SLICE_MS = LOG_SLICE_S * 1000

BUSY = int(Status.BUSY)
TIMEOUT = int(Status.TIMEOUT)
PENDING = int(Status.PENDING)
INTERRUPTED = int(Status.INTERRUPTED)


def slice_ms() -> int:
    """The longest wait of this thread at a time."""
    is_main = threading.get_ident() == threading.main_thread().ident
    return SLICE_MS if is_main else LOG_SLICE_MS


class Call(Generic[T]):
    """A call of the C ABI that limits its time itself.

    blocking  (.., err): the form for threads
    watched   (.., queue, tag): the form for greenlets
    take      reads the answer from the request of `watched`
    """

    __slots__ = ("_blocking", "_watched", "_take")

    def __init__(
        self,
        blocking: Callable[..., Optional[T]],
        watched: Callable[..., Optional[_core.Request]],
        take: Callable[[_core.Request], Optional[T]],
    ) -> None:
        self._blocking = blocking
        self._watched = watched
        self._take = take

    def __call__(self, client: _core.Client, *arguments: Any) -> T:
        """The answer; an error is raised."""
        pump = pump_here()
        if pump is None:
            err = new_error()
            answer = self._blocking(*arguments, err)
            status = _core.error_status(err)
            pass_on_log(client)
            if status < 0:
                raise error_of(status, _core.error_message(err))
        else:
            request = pump.finish(self._watched, arguments, client)
            status = _core.request_status(request)
            if status < 0:
                raise error_of(status, _core.request_message(request))
            answer = self._take(request)
        if answer is None:
            raise error_of(Status.E_NO_MEMORY)
        return answer


class Start(NamedTuple):
    """A call of the C ABI that may wait for long.

    driven   (.., drive_ms): the form for threads, which then wait in finish()
    watched  (.., queue, tag): the form for greenlets
    """

    driven: Callable[..., Optional[_core.Request]]
    watched: Callable[..., Optional[_core.Request]]


ACQUIRE = Start(_core.acquire_start, _core.acquire_watched)
ACQUIRE_READ = Start(_core.rw_acquire_read_start, _core.rw_acquire_read_watched)
ACQUIRE_WRITE = Start(_core.rw_acquire_write_start, _core.rw_acquire_write_watched)
ACQUIRE_ALL = Start(_core.acquire_all_start, _core.acquire_all_watched)
UPGRADE = Start(_core.rw_upgrade_start, _core.rw_upgrade_watched)


def finished(start: Start, client: _core.Client, *arguments: Any) -> _core.Request:
    """The finished request of `start`."""
    pump = pump_here()
    if pump is not None:
        return pump.finish(start.watched, arguments, client)
    request = start.driven(*arguments, SLICE_MS)
    if request is None:
        raise error_of(Status.E_NO_MEMORY)
    finish(request, client)
    return request


def finish(request: _core.Request, client: _core.Client) -> None:
    """Wait for the request of `client`, which limits its time itself.

    If the wait ends early, for example by an exception of a signal handler, the request is
    cancelled: no caller would take its grant.
    """
    try:
        status = _core.request_status(request)
        if status == PENDING:
            limit_ms = slice_ms()
            while status in (PENDING, INTERRUPTED):
                status = _core.request_wait(request, limit_ms)
                pass_on_log(client)
        pass_on_log(client)
    except BaseException:
        _core.request_free(request)
        raise


def raise_unless_ok(request: _core.Request) -> None:
    status = _core.request_status(request)
    if status != 0:
        raise error_of(status, _core.request_message(request))


def info_of(request: _core.Request) -> _core.Info:
    info = _core.request_take_info(request)
    if info is None:
        raise error_of(Status.E_NO_MEMORY)
    return info


class Refusal(NamedTuple):
    """The reason of an acquire or upgrade without success: BUSY or TIMEOUT."""

    status: Status
    message: str


def refusal_of(request: _core.Request) -> Refusal:
    """The refusal of a request. Raises any status other than BUSY and TIMEOUT."""
    status = _core.request_status(request)
    if status in (BUSY, TIMEOUT):
        return Refusal(Status(status), _core.request_message(request))
    raise error_of(status, _core.request_message(request))
