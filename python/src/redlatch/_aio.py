# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Locks for asyncio: Client.aio, and what it makes."""

from __future__ import annotations

import asyncio
import sys
import weakref
from asyncio import CancelledError, Future, Task, current_task
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Optional, Union

from . import _core
from ._convert import NO_LIMIT, Name, Seconds, to_bytes, to_ms, to_wait_ms
from ._errors import Error, error_of, invalid
from ._lease import LeaseBase
from ._holds import Hold
from ._lock import LockBase
from ._log import pass_on_log
from ._options import make_options
from ._pump import pump_here, pump_of
from ._status import Status
from ._wait import PENDING, raise_unless_ok, refusal_of

if TYPE_CHECKING:
    from ._client import Client

OnLost = Literal["ignore", "cancel"]

_OK = int(Status.OK)
_FORKED = int(Status.E_FORKED)

_acquire = _core.acquire_watched
_release = _core.release_watched
_status_of = _core.request_status
_take_lease = _core.request_take_lease


class AsyncLease(LeaseBase):
    """One hold of a lock: any task that has this object may release it, in any event loop.

    As an asynchronous context manager it releases itself at the end of the block. Everything but
    release(), extend() and wait_lost() is local and does not wait.
    """

    __slots__ = ("_end",)

    def __init__(self, handle: _core.Lease, client: _core.Client, name: bytes) -> None:
        # Of LeaseBase, without the price of a call.
        self._handle = handle
        self._client = client
        self._name = name
        self._is_given_back = False
        self._end: Optional[tuple[int, Future[None]]] = None

    async def release(self) -> None:
        """Give the lock back; the next waiter has it at once.

        Raises LockLost if it had ended before, NotHeld if it was given back before. After
        OutcomeUnknown, and when the wait is cancelled, the release goes on in the background.
        """
        self._is_given_back = True
        pump = pump_here()
        pump.last_tag = tag = pump.last_tag + 1
        request = _release(self._handle, pump.queue, tag)
        # Pump.finish(), without the price of one more coroutine.
        if request is None:
            raise error_of(Status.E_NO_MEMORY)
        status = _status_of(request)
        if status == PENDING:
            pump.waiting[tag] = future = pump.loop.create_future()
            try:
                await future
            except BaseException:
                pump.drop(request, tag)
                raise
            status = _status_of(request)
        if status != _OK:
            raise_unless_ok(request)

    async def extend(self, ttl: float) -> None:
        """Let the lease last `ttl` seconds from now; renewal uses it from then on."""
        ttl_ms = to_ms(ttl, "ttl")
        pump = pump_here()
        tag = pump.next_tag()
        started = _core.extend_watched(self._handle, ttl_ms, pump.queue, tag)
        raise_unless_ok(await pump.finish(started, tag))

    async def wait_lost(self, timeout: Seconds = NO_LIMIT) -> bool:
        """Wait until it stops being held, for `timeout` seconds at most; whether it is lost."""
        wait_ms = to_wait_ms(timeout)
        if wait_ms != 0:
            limit = None if wait_ms < 0 else wait_ms / 1000
            await asyncio.wait([self._watch()], timeout=limit)
        status = _core.lease_wait_lost(self._handle, 0)
        pass_on_log()
        if status < 0 and status != Status.E_LOST:
            raise error_of(status)
        return status == Status.E_LOST

    async def __aenter__(self) -> AsyncLease:
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if self._is_given_back:
            return
        try:
            await self.release()
        except Error as error:
            self._settle(error, exception)

    async def _raise_end(self, cause: Optional[BaseException]) -> None:
        """Raise what release() says of a hold that has ended."""
        try:
            await self.release()
        except Error as error:
            raise error from cause

    def _watch(self) -> Future[None]:
        """What is done when it is not held any more. The library tells one place of it."""
        pump = pump_here()
        if self._end is not None:
            end = self._end[1]
            if end.get_loop() is pump.loop:
                return end
            if not end.get_loop().is_closed():
                raise invalid(
                    f"{self!r} is waited for in another event loop: allowed is one loop for the"
                    ' wait_lost() and on_lost="cancel" of a lease'
                )
        tag = pump.next_tag()
        status = _core.lease_watch(self._handle, pump.queue, tag)
        if status != _OK:
            raise error_of(status)
        end = pump.expect(tag)
        self._end = (tag, end)
        return end

    def __del__(self, *_: Any) -> None:
        end = getattr(self, "_end", None)
        if end is None and getattr(self, "_is_given_back", True):
            return  # As nearly always, without the price of another call.
        super().__del__()
        if end is not None and not end[1].done():
            # A lease that is collected tells nobody.
            pump = pump_of(end[1].get_loop())
            if pump is not None:
                pump.waiting.pop(end[0], None)


class _Guard:
    """Cancels the task of a block when its lease ends early, as asyncio.timeout() does in time."""

    __slots__ = ("_task", "_lease", "_end", "_cancel_count", "_has_cancelled", "_is_over")

    def __init__(self, task: Task[Any], lease: AsyncLease) -> None:
        self._task = task
        # The loop keeps this object: a lease that is forgotten must be collected all the same.
        self._lease = weakref.ref(lease)
        self._cancel_count = _cancel_count(task)
        self._has_cancelled = False
        self._is_over = False
        self._end = lease._watch()
        self._end.add_done_callback(self._on_end)

    def _on_end(self, _: Future[None]) -> None:
        lease = self._lease()
        # It is lost, or its client is closed.
        if not self._is_over and lease is not None and not lease._is_given_back:
            self._has_cancelled = True
            self._task.cancel()

    def leave(self, exception: Optional[BaseException]) -> bool:
        """The block is over: whether it ends by a CancelledError that is ours."""
        self._is_over = True
        self._end.remove_done_callback(self._on_end)
        if not self._has_cancelled:
            return False
        if sys.version_info >= (3, 11) and self._task.uncancel() > self._cancel_count:
            return False  # Somebody else wants the task to end, too.
        return isinstance(exception, CancelledError)


def _cancel_count(task: Task[Any]) -> int:
    """How many have cancelled the task. Before 3.11 nobody can tell."""
    if sys.version_info >= (3, 11):
        return task.cancelling()
    return 0


class AsyncLock(LockBase[AsyncLease]):
    """A lock by its name, for asyncio. Made by client.aio.lock(); nothing is sent before it is
    acquired.

    As an asynchronous context manager its value is the lease, and NotAcquired is raised when
    `timeout` is over. Otherwise it has the shape of asyncio.Lock: many tasks may share it, and any
    of them may release it. One that takes it twice would wait for itself, which raises AlreadyHeld.
    """

    __slots__ = ("_aio", "_guards")

    _TAKER = "task"

    def __init__(
        self,
        client: Client,
        name: bytes,
        wait_ms: int,
        options: Optional[_core.AcquireOptions],
        aio: Aio,
        is_guarded: bool,
    ) -> None:
        super().__init__(client, name, wait_ms, options)
        self._aio = aio
        # Of the blocks, by their leases; None: a loss is told at the end of a block only.
        self._guards: Optional[dict[AsyncLease, _Guard]] = {} if is_guarded else None

    @staticmethod
    def _is_gone(key: object) -> bool:
        return isinstance(key, Future) and key.done()

    @property
    def lease(self) -> Optional[AsyncLease]:
        """The lease by which this task holds it."""
        return self._lease_of(current_task())

    async def acquire(self, blocking: bool = True, timeout: Seconds = None) -> bool:
        """Acquire as asyncio.Lock does: whether the lock is ours now.

        `timeout` is the wait in seconds, -1 for no limit; left out, it is that of the lock.
        """
        wait_ms = self._wait_of(blocking, timeout)
        key = current_task()
        if self._holds and not self._may_take(key, wait_ms, False):
            return False
        got = await self._aio._take(self._name, wait_ms, self._options)
        if not isinstance(got, AsyncLease):
            return False
        if self._holds:
            self._sweep()
        self._holds[key] = Hold(got, False)
        return True

    async def release(self) -> None:
        """Release what this task has taken, else what another has, as asyncio.Lock does.

        Raises LockLost if the lock was not ours until now, NotHeld if there is nothing to release.
        """
        await self._to_release(current_task()).release()

    async def __aenter__(self) -> AsyncLease:
        task = current_task()
        if self._holds:
            self._may_take(task, self._wait_ms, True)
        got = await self._aio._take(self._name, self._wait_ms, self._options)
        if not isinstance(got, AsyncLease):
            raise self._not_acquired(got)
        if self._holds:
            self._sweep()
        self._holds[task] = Hold(got, True)
        if self._guards is not None:
            assert task is not None  # who else could await
            try:
                self._guards[got] = _Guard(task, got)
            except BaseException as error:
                self._pop_block(task)
                await got.__aexit__(None, error, None)
                raise
        return got

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        hold = self._pop_block(current_task())
        if hold is None:
            return
        lease = hold.lease
        if self._guards:
            guard = self._guards.pop(lease, None)
            if guard is not None and guard.leave(exception):
                await lease._raise_end(exception)
        # AsyncLease.__aexit__(), without the price of one more coroutine.
        if lease._is_given_back:
            return
        try:
            await lease.release()
        except Error as error:
            lease._settle(error, exception)


class Aio:
    """What a client does in asyncio, in any number of event loops. It is Client.aio.

    A wait costs no thread. Waits end by cancelling their task, by asyncio.timeout() too: what was
    granted meanwhile is given back.
    """

    __slots__ = ("_client", "__weakref__")

    def __init__(self, client: Client) -> None:
        self._client = client

    def lock(
        self,
        name: Name,
        *,
        ttl: Optional[float] = None,
        timeout: Seconds = NO_LIMIT,
        renew: bool = True,
        max_hold: Optional[float] = None,
        confirm: bool = False,
        local_burst: Optional[int] = None,
        foreign_burst: Optional[int] = None,
        foreign_window: Optional[float] = None,
        label: Optional[Name] = None,
        on_lost: OnLost = "ignore",
    ) -> AsyncLock:
        """The lock `name`, for `async with` and in the shape of asyncio.Lock. Sends nothing.

        on_lost  "cancel": when the lock is lost, or the client is closed, the task in the block of
                 `async with` is cancelled, and the block ends with LockLost, or Closed; "ignore":
                 these come at its end

        The other keywords are those of Client.lock().
        """
        if on_lost not in ("ignore", "cancel"):
            raise invalid(f'on_lost={on_lost!r}: allowed are "ignore" and "cancel"')
        options = make_options(
            ttl, renew, max_hold, confirm, local_burst, foreign_burst, foreign_window, label
        )
        name_bytes, wait_ms = to_bytes(name, "name"), to_wait_ms(timeout)
        return AsyncLock(self._client, name_bytes, wait_ms, options, self, on_lost == "cancel")

    async def acquire(
        self,
        name: Name,
        *,
        ttl: Optional[float] = None,
        timeout: Seconds = NO_LIMIT,
        renew: bool = True,
        max_hold: Optional[float] = None,
        confirm: bool = False,
        local_burst: Optional[int] = None,
        foreign_burst: Optional[int] = None,
        foreign_window: Optional[float] = None,
        label: Optional[Name] = None,
    ) -> Optional[AsyncLease]:
        """Acquire `name`: a lease, or None when it is busy or the time is over.

        The keywords are those of Client.lock().
        """
        options = make_options(
            ttl, renew, max_hold, confirm, local_burst, foreign_burst, foreign_window, label
        )
        got = await self._take(to_bytes(name, "name"), to_wait_ms(timeout), options)
        return got if isinstance(got, AsyncLease) else None

    async def connect(self, *, wait: Seconds = 0) -> None:
        """Reach the server now, as redlatch.connect() does: for a client made with wait=None."""
        wait_ms = to_wait_ms(wait, "wait")
        handle = self._client._handle
        pump = pump_here()
        while True:
            tag = pump.next_tag()
            started = _core.client_connect_watched(handle, wait_ms, pump.queue, tag)
            request = await pump.finish(started, tag)
            if _status_of(request) != _FORKED:
                return raise_unless_ok(request)
            handle = self._client._reopen(handle)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._client!r}>"

    async def _take(
        self, name: bytes, wait_ms: int, options: Optional[_core.AcquireOptions]
    ) -> Union[AsyncLease, Status]:
        """Acquire: the lease, or BUSY or TIMEOUT."""
        handle = self._client._handle
        pump = pump_here()
        while True:
            pump.last_tag = tag = pump.last_tag + 1
            request = _acquire(handle, name, wait_ms, options, pump.queue, tag)
            # Pump.finish(), as in AsyncLease.release().
            if request is None:
                raise error_of(Status.E_NO_MEMORY)
            if _status_of(request) == PENDING:
                pump.waiting[tag] = future = pump.loop.create_future()
                try:
                    await future
                except BaseException:
                    pump.drop(request, tag)
                    raise
            lease = _take_lease(request)
            if lease is not None:
                return AsyncLease(lease, handle, name)
            if _status_of(request) != _FORKED:
                return refusal_of(request)
            handle = self._client._reopen(handle)
