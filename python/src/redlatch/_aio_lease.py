# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The lease of asyncio, and the guards of blocks of `async with`."""

from __future__ import annotations

import asyncio
import sys
import weakref
from asyncio import CancelledError, Future, Task
from contextvars import Context, copy_context
from functools import partial
from types import TracebackType
from typing import Any, Literal, Optional

from . import _core
from ._convert import NO_LIMIT, Duration, Seconds, to_ms, to_wait_ms
from ._errors import Error, error_of, invalid
from ._lease import LOST, LeaseBase
from ._log import pass_on_log
from ._pump import pump_here, pump_of
from ._recall import Callback, check_callback, check_watch
from ._status import Status
from ._wait import PENDING, raise_unless_ok, refusal_of

OnLost = Literal["ignore", "cancel"]

_OK = int(Status.OK)

_release = _core.release_watched
_status_of = _core.request_status


class AsyncLease(LeaseBase):
    """One acquisition of a lock. It is renewed in the background until it is released or lost.

    Any task may use and release it, in any event loop. As an asynchronous context manager it is
    released at the end of the block. Methods without `await` ask the local clock, not the server.
    """

    __slots__ = ("_end", "_guard", "_recall")

    def __init__(self, handle: _core.Lease, client: _core.Client) -> None:
        # Of LeaseBase, without the price of a call.
        self._handle = handle
        self._client = client
        self._is_given_back = False
        self._end: Optional[tuple[int, Future[None]]] = None
        self._guard: Optional[Guard] = None
        self._recall: Optional[Recall] = None

    async def release(self) -> bool:
        """Release the lock; the next waiter gets it at once.

        Return False if the owner of a reentrant lock has other leases, else True. Waits for at most
        `command_timeout`. Raises

        - LockLost: the lease had ended before; others may have held the lock since;
        - NotHeld: it was released or detached before;
        - OutcomeUnknown: no answer came; the release continues in the background until the lease
          would have ended. It also continues if the task is cancelled;
        - NoMemory: nothing was sent; the lease is held as before.
        """
        pump = pump_here()
        pump.last_tag = tag = pump.last_tag + 1
        request = _release(self._handle, pump.queue, tag)
        # Pump.finish(), without the price of one more coroutine.
        if request is None:
            raise error_of(Status.E_NO_MEMORY)
        self._is_given_back = True
        status = _status_of(request)
        if status == PENDING:
            pump.waiting[tag] = future = pump.loop.create_future()
            try:
                await future
            except BaseException:
                pump.drop(request, tag)
                raise
            status = _status_of(request)
        if status < _OK:
            self._is_given_back = status != Status.E_NO_MEMORY
            raise_unless_ok(request)
        return status == _OK

    async def upgrade(self, timeout: Seconds = NO_LIMIT) -> bool:
        """Turn this reader into the writer, without a release in between. Return True if it did.

        As Lease.upgrade(). If the task is cancelled, the lease continues to read.
        """
        wait_ms = to_wait_ms(timeout)
        pump = pump_here()
        tag = pump.next_tag()
        started = _core.rw_upgrade_watched(self._handle, wait_ms, pump.queue, tag)
        request = await pump.finish(started, tag)
        return _status_of(request) == _OK or not refusal_of(request)

    async def downgrade(self) -> None:
        """Turn this writer into a reader, without a release in between.

        Readers that are next in the queue enter. Raises LockLost if the lease had ended.
        """
        pump = pump_here()
        tag = pump.next_tag()
        started = _core.rw_downgrade_watched(self._handle, pump.queue, tag)
        raise_unless_ok(await pump.finish(started, tag))

    async def extend(self, ttl: Duration) -> None:
        """Extend the lease to `ttl` seconds from now; later renewals use this ttl.

        A ttl below the remaining one shortens only the deadline of this process. Raises LockLost if
        the lease had ended.
        """
        ttl_ms = to_ms(ttl, "ttl")
        pump = pump_here()
        tag = pump.next_tag()
        started = _core.extend_watched(self._handle, ttl_ms, pump.queue, tag)
        raise_unless_ok(await pump.finish(started, tag))

    async def detach(self) -> str:
        """Hand the lease over to another process. Return the token, which attach() there takes
        once.

        As Lease.detach(). If the task is cancelled after the call was sent, the lease is no longer
        held here: see `held`.
        """
        pump = pump_here()
        tag = pump.next_tag()
        started = _core.lease_detach_watched(self._handle, pump.queue, tag)
        try:
            raise_unless_ok(await pump.finish(started, tag))
        finally:
            self._note_detached()
        return self.token

    async def wait_lost(self, timeout: Seconds = NO_LIMIT) -> bool:
        """Wait until the lease is no longer held. Return True if it is lost.

        False: it was released or detached, or it was still held after `timeout` seconds.
        """
        wait_ms = to_wait_ms(timeout)
        if wait_ms != 0:
            limit = None if wait_ms < 0 else wait_ms / 1000
            await asyncio.wait([self._watch()], timeout=limit)
        state = _core.lease_wait_lost(self._handle, 0)
        pass_on_log(self._client)
        if state < 0:
            raise error_of(state)
        return state == LOST

    def on_recall(self, callback: Callback) -> None:
        """Call `callback` when the holder is asked to finish; soon if it has been asked.

        As Lease.on_recall(), but the event loop calls it, with the context of this call, as
        loop.call_soon() does. An exception goes to the exception handler of the loop. All calls of
        one lease must be in one event loop, or Invalid is raised.
        """
        check_callback(callback)
        self._watch_recall().add(self, callback)

    async def wait_recalled(self, timeout: Seconds = NO_LIMIT) -> bool:
        """Wait until the holder is asked to finish. Return True if it was.

        False: the lease is no longer held, or there was no recall within `timeout` seconds.
        Unsupported and the event loop are as for on_recall().
        """
        wait_ms = to_wait_ms(timeout)
        recalled = self._watch_recall().future
        if wait_ms != 0 and not self.recall_count:
            limit = None if wait_ms < 0 else wait_ms / 1000
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait([recalled, self._watch()], timeout=limit, return_when=first)
        pass_on_log(self._client)
        return self.recall_count > 0

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

    def _take_place_of(self, released: LeaseBase) -> None:
        super()._take_place_of(released)
        assert isinstance(released, AsyncLease)
        self._guard = released._guard

    async def _watch_block(self, task: Optional[Task[Any]]) -> None:
        """Cancel the task when this lease of its block ends early. On failure release it."""
        assert task is not None  # who else could await
        self._leave_guard(None)  # that of the lease before this one
        try:
            self._guard = Guard(task, self)
        except BaseException as error:
            await self.__aexit__(None, error, None)
            raise

    def _leave_guard(self, exception: Optional[BaseException]) -> bool:
        """End the guard. True if it caused the CancelledError that ends the block."""
        guard, self._guard = self._guard, None
        return guard is not None and guard.leave(exception)

    async def _raise_end(self, cause: Optional[BaseException]) -> None:
        """Raise the error of release() for a lease that has ended."""
        try:
            await self.release()
        except Error as error:
            raise error from cause

    def _watch(self) -> Future[None]:
        """A future that is done when the lease is no longer held. One loop at a time."""
        pump = pump_here()
        if self._end is not None:
            end = self._end[1]
            if end.get_loop() is pump.loop:
                return end
            self._check_loop(end, "wait_lost() and on_lost='cancel'")
        tag = pump.next_tag()
        status = _core.lease_watch(self._handle, pump.queue, tag)
        if status != _OK:
            raise error_of(status)
        end = pump.expect(tag)
        self._end = (tag, end)
        return end

    def _watch_recall(self) -> Recall:
        """The recall of this lease. One loop at a time."""
        pump = pump_here()
        recall = self._recall
        if recall is not None:
            if recall.future.get_loop() is pump.loop:
                return recall
            self._check_loop(recall.future, "on_recall() and wait_recalled()")
        tag = pump.next_tag()
        check_watch(_core.lease_watch_recall(self._handle, pump.queue, tag))
        self._recall = recall = Recall(tag, pump.expect(tag), self)
        return recall

    def _check_loop(self, before: Future[None], calls: str) -> None:
        if not before.get_loop().is_closed():
            raise invalid(
                f"{calls} of a lease must be in one event loop (got another one for {self!r})"
            )

    def __del__(self, *_: Any) -> None:
        end = getattr(self, "_end", None)
        recall = getattr(self, "_recall", None)
        if end is None and recall is None and getattr(self, "_is_given_back", True):
            return  # As nearly always, without the price of another call.
        super().__del__()
        # A lease that is collected notifies no waiter.
        if end is not None:
            _forget(*end)
        if recall is not None:
            _forget(recall.tag, recall.future)


def _forget(tag: int, future: Future[None]) -> None:
    """Expect the tag no more."""
    pump = None if future.done() else pump_of(future.get_loop())
    if pump is not None:
        pump.waiting.pop(tag, None)


class Recall:
    """The recall of a lease, and the callbacks that it causes."""

    __slots__ = ("tag", "future", "_calls")

    def __init__(self, tag: int, future: Future[None], lease: AsyncLease) -> None:
        self.tag = tag
        self.future = future
        self._calls: list[tuple[Callback, Context]] = []
        # The loop keeps the future: a lease that is forgotten must be collected all the same.
        future.add_done_callback(partial(_call_back, weakref.ref(lease)))

    def add(self, lease: AsyncLease, callback: Callback) -> None:
        self._calls.append((callback, copy_context()))
        if self.future.done():
            self.call_back(lease)

    def call_back(self, lease: AsyncLease) -> None:
        calls, self._calls = self._calls, []
        if lease.held:
            for callback, context in calls:
                self.future.get_loop().call_soon(callback, context=context)


def _call_back(lease: weakref.ref[AsyncLease], _: Future[None]) -> None:
    found = lease()
    if found is not None and found._recall is not None:
        found._recall.call_back(found)


class Guard:
    """Cancels the task of a block when its lease ends early, as asyncio.timeout() does for time."""

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
        if self._is_over or lease is None:
            return
        # It is lost, or its client is closed.
        if not lease._is_given_back and not lease._is_detached():
            self._has_cancelled = True
            self._task.cancel()

    def leave(self, exception: Optional[BaseException]) -> bool:
        """End the guard with its block. True if this guard caused the CancelledError in it."""
        self._is_over = True
        self._end.remove_done_callback(self._on_end)
        if not self._has_cancelled:
            return False
        if sys.version_info >= (3, 11) and self._task.uncancel() > self._cancel_count:
            return False  # Another caller cancelled the task, too.
        return isinstance(exception, CancelledError)


def _cancel_count(task: Task[Any]) -> int:
    """The number of pending cancellations of the task; 0 before Python 3.11, which has no count."""
    if sys.version_info >= (3, 11):
        return task.cancelling()
    return 0


def cancels(on_lost: OnLost) -> bool:
    """True if a loss cancels the task of a block. False: the end of the block reports it."""
    if on_lost not in ("ignore", "cancel"):
        raise invalid(f'on_lost must be "ignore" or "cancel" (got {on_lost!r})')
    return on_lost == "cancel"
