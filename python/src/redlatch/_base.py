# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The parts that Client and Redlock share: the handle, and its life in forked processes."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, Union

from . import _core
from ._advice import Unique
from ._convert import Name, Seconds, to_bytes, to_ms, to_text, to_wait_ms
from ._credentials import Provider, provide
from ._errors import Error, Forked, error_of, new_error, raise_of
from ._holds import new_number
from ._hub import pump_here
from ._info import Finding, NodeInfo, SemaphoreStats, read_findings, read_nodes
from ._lease import Lease
from ._log import pass_on_log
from ._options import option_text, set_option
from ._status import Status
from ._wait import ACQUIRE, Call, Refusal, Start, finished, raise_unless_ok, refusal_of

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")

_FORKED = int(Status.E_FORKED)
_CONNECT = Call(_core.client_connect, _core.client_connect_watched, _core.request_status)
_CHECK = Call(_core.client_check, _core.client_check_watched, _core.request_take_info)
# An attempt to connect cannot be interrupted, but its wait can end between two of these.
_CONNECT_SLICE_S = 0.5


class _Fork:
    """A lock that a child does not inherit from a thread that is not there."""

    lock = threading.Lock()

    @classmethod
    def forget(cls) -> None:
        cls.lock = threading.Lock()


os.register_at_fork(after_in_child=_Fork.forget)


# client_open() of _core, or redlock_open().
Opener = Callable[[bytes, Optional[_core.ClientOptions], _core.Error], Optional[_core.Client]]


def _none() -> None:
    return None


class Base(Unique):
    """A handle that acquires locks. Any number of threads may use it.

    A forked process opens a handle of its own with the first call. The leases of the parent raise
    Forked there.
    """

    __slots__ = (
        "_opener",
        "_url",
        "_options",
        "_handle",
        "_is_closed",
        "_aio",
        "_number",
        "_log_pump",
        "_provider",
        "_end_provider",
        "__weakref__",
    )

    _IN_ANOTHER_PROCESS = (
        "open one there, as here (only a forked child may use the one of its parent)"
    )

    def __init__(
        self,
        opener: Opener,
        url: bytes,
        options: _core.ClientOptions,
        credentials: Optional[Provider] = None,
    ) -> None:
        self._provider = credentials
        self._end_provider: Callable[[], object] = _none
        self._opener = opener
        self._url = url
        self._options = options
        self._is_closed = False
        self._number = new_number()
        self._log_pump = 0  # the number of the event loop's pump that watches the log
        # Weak: a client that the program drops is collected at once, although its Aio refers to it.
        self._aio: Callable[[], Any] = _none
        self._handle = self._open()

    def close(self) -> None:
        """Release all held leases, and end all waits with Closed.

        Blocks for at most `command_timeout`. A second call does nothing.
        """
        self._is_closed = True
        pump = pump_here()
        try:
            if pump is None:
                _core.client_shutdown(self._handle)
            else:
                pump.call_in_thread(_core.client_shutdown, self._handle)
        except RuntimeError:  # The system has no thread left.
            _core.client_shutdown(self._handle)
        finally:
            self._end_provider()
        pass_on_log(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def option(self, name: str) -> str:
        """Return the value of an option, wherever it was set. Sends nothing.

        The name "url" gives the URL without secrets, with one line for each node of a Redlock.
        """
        return to_text(_core.client_option(self._handle, to_bytes(name, "name")))

    def info(self) -> tuple[NodeInfo, ...]:
        """Return the last known state of each server, in the order of the URLs. Sends nothing."""
        return read_nodes(self._call(_core.client_info))

    def check(self, wait: Seconds = 0) -> tuple[Finding, ...]:
        """Check each server now for what endangers locks there, such as eviction.

        wait  seconds to try to connect; 0 is one try. Each server of a Redlock gets one try

        The check acquires a lock of its own, which leaves no key behind. A server that refuses a
        question gives a finding of Level.UNKNOWN and no error. Raises Unavailable without a
        connection.
        """
        return read_findings(self._reach(wait, _CHECK))

    def __repr__(self) -> str:
        closed = " closed" if self._is_closed else ""
        return f"<{type(self).__name__} {self.option('url')!r}{closed}>"

    # ---- inside ----

    def _is_free(self, name: bytes) -> bool:
        """True if no other holder of the lock is known."""
        raise NotImplementedError

    # Of Client alone, whose locks they are for.

    def _attach(
        self, name: bytes, token: bytes, fence: int, options: Optional[_core.AcquireOptions]
    ) -> Lease:
        raise NotImplementedError

    def _stats(self, name: bytes, limit: int) -> SemaphoreStats:
        raise NotImplementedError

    def _open(self) -> _core.Client:
        err = new_error()
        handle = self._opener(self._url, self._options, err)
        if handle is None:
            raise_of(err)
            raise error_of(Status.E_INTERNAL)
        if self._provider is not None:
            self._end_provider = provide(handle, self._provider)
        return handle

    def _reopen(self, stale: _core.Client) -> _core.Client:
        """Replace the handle of the parent by one of this process, and return it."""
        with _Fork.lock:
            if self._handle is stale and not self._is_closed:
                self._handle = self._open()
        if self._is_closed:
            self.close()  # Another thread may have closed only the stale one meanwhile.
            raise error_of(Status.E_CLOSED)
        return self._handle

    def _connect(self, wait: Seconds) -> None:
        self._reach(wait, _CONNECT)

    def _reach(self, wait: Seconds, call: Call[T]) -> T:
        """Repeat `call`, with short waits for a connection, until it succeeds or `wait` ends."""
        wait_ms = to_wait_ms(wait, "wait")
        end = math.inf if wait_ms < 0 else time.monotonic() + wait_ms / 1000
        while True:
            left_ms = to_ms(max(min(end - time.monotonic(), _CONNECT_SLICE_S), 0), "wait")
            try:
                return self._ask(call, left_ms)
            except Error as error:
                # A server that loads its data says so, and will answer soon.
                if not error.status.retryable or time.monotonic() >= end:
                    raise

    def _ask(self, call: Callable[..., T], *arguments: Any) -> T:
        """The answer to a call of the client. A forked process gets a handle of its own first."""
        handle = self._handle
        while True:
            try:
                return call(handle, handle, *arguments)
            except Forked:
                pass
            handle = self._reopen(handle)

    def _finished(self, start: Start, *arguments: Any) -> _core.Request:
        """The same for a call that may wait for long: its finished request."""
        handle = self._handle
        while True:
            request = finished(start, handle, handle, *arguments)
            if _core.request_status(request) != _FORKED:
                raise_unless_ok(request)
                return request
            handle = self._reopen(handle)

    def _call(self, call: Callable[[_core.Client, _core.Error], Optional[T]]) -> T:
        """As _ask(), for a call that does not wait."""
        handle = self._handle
        while True:
            err = new_error()
            result = call(handle, err)
            if _core.error_status(err) != _FORKED:
                break
            handle = self._reopen(handle)
        pass_on_log(handle)
        raise_of(err)
        assert result is not None
        return result

    def _take(
        self,
        name: Union[bytes, _core.Names],
        wait_ms: int,
        options: Optional[_core.AcquireOptions],
        start: Start = ACQUIRE,
    ) -> Union[Lease, Refusal]:
        """Acquire: a lease, or a refusal (BUSY or TIMEOUT)."""
        handle = self._handle
        while True:
            request = finished(start, handle, handle, name, wait_ms, options)
            lease = _core.request_take_lease(request)
            if lease is not None:
                return Lease(lease, handle)
            if _core.request_status(request) != _FORKED:
                return refusal_of(request)
            handle = self._reopen(handle)

    def _acquire(
        self,
        name: Name,
        timeout: Seconds,
        options: Optional[_core.AcquireOptions],
        start: Start = ACQUIRE,
    ) -> Optional[Lease]:
        """Acquire without a lock object: a lease, or None if not acquired in time."""
        got = self._take(to_bytes(name, "name"), to_wait_ms(timeout), options, start)
        return got if isinstance(got, Lease) else None


def options_of(options: Mapping[str, object]) -> _core.ClientOptions:
    """The options that are not None."""
    made = _core.client_options_new()
    if made is None:
        raise error_of(Status.E_NO_MEMORY)
    for name, value in options.items():
        if value is not None:
            text = option_text(name, value)
            set_option(_core.client_options_set, made, name, value, text)
    return made


def options_from_env(options: Mapping[str, object]) -> _core.ClientOptions:
    """The same; the environment has the options that are not set."""
    made = options_of(options)
    err = new_error()
    _core.client_options_set_from_env(made, err)
    raise_of(err)
    return made
