# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""How a thread waits for a request, so that Ctrl-C ends the wait; what a request has answered."""

from __future__ import annotations

import threading
from typing import Callable, NamedTuple, Optional

from . import _core
from ._errors import error_of
from ._log import pass_on_log
from ._status import Status

# The main thread is where Python runs signal handlers. A signal interrupts its wait; one that comes
# just before the wait begins does not, and is seen when this is over.
SLICE_MS = 250
# Other threads wake up for the log: it may say that the thread waits for itself.
LOG_SLICE_MS = 5000

# acquire_start() of _core and its twins.
Start = Callable[
    [_core.Client, bytes, int, Optional[_core.AcquireOptions], int],
    Optional[_core.Request],
]

BUSY = int(Status.BUSY)
TIMEOUT = int(Status.TIMEOUT)
PENDING = int(Status.PENDING)
INTERRUPTED = int(Status.INTERRUPTED)


def slice_ms() -> int:
    """How long this thread may wait at a time."""
    is_main = threading.get_ident() == threading.main_thread().ident
    return SLICE_MS if is_main else LOG_SLICE_MS


def finish(request: _core.Request, client: _core.Client) -> int:
    """Wait for the request of `client`, which limits its time itself; its status.

    Whatever ends the wait early (a signal handler raised) ends the request too: nobody would take
    what it is granted.
    """
    try:
        status = _core.request_status(request)
        if status == PENDING:
            limit_ms = slice_ms()
            while status in (PENDING, INTERRUPTED):
                status = _core.request_wait(request, limit_ms)
                pass_on_log(client)
        pass_on_log(client)
        return status
    except BaseException:
        _core.request_free(request)
        raise


def raise_unless_ok(request: _core.Request) -> None:
    status = _core.request_status(request)
    if status != 0:
        raise error_of(status, _core.request_message(request))


class Refusal(NamedTuple):
    """Why an acquire or upgrade came to nothing: BUSY or TIMEOUT."""

    status: Status
    message: str


def refusal_of(request: _core.Request) -> Refusal:
    """All but BUSY and TIMEOUT is raised."""
    status = _core.request_status(request)
    if status in (BUSY, TIMEOUT):
        return Refusal(Status(status), _core.request_message(request))
    raise error_of(status, _core.request_message(request))
