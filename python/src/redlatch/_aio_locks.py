# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Locks by name, for asyncio."""

from __future__ import annotations

from asyncio import Future, Task
from collections.abc import Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Union

from . import _core
from ._advice import URL, made
from ._aio_base import AioBase
from ._aio_lease import AsyncLease, OnLost, cancels
from ._convert import NO_LIMIT, Name, Seconds, check_fence, to_bytes
from ._errors import AlreadyHeld, Error, NoMemory
from ._info import SemaphoreStats, read_stats
from ._kinds import All, Kind
from ._named_lock import NamedLock, NamedLocks, NamedRWLock, NamedSemaphore
from ._names import Names
from ._option_table import Keywords
from ._options import RWFormat
from ._pump import task_here
from ._wait import ACQUIRE_ALL, ACQUIRE_READ, ACQUIRE_WRITE, Refusal, Start

if TYPE_CHECKING:
    from typing_extensions import Unpack


class TaskLock(NamedLock[AsyncLease]):
    """A lock for tasks: how they acquire, and their blocks."""

    __slots__ = ("_aio", "_cancels")

    _TAKER = "task"

    def __init__(
        self, aio: AioBase, name: Name, timeout: Seconds, kind: Kind, on_lost: OnLost
    ) -> None:
        self._cancels = cancels(on_lost)
        super().__init__(aio._client, name, timeout, kind)
        self._aio = aio

    def _shape(self, state: str, said: str) -> str:
        """The form of repr() of the locks of asyncio."""
        kind = type(self)
        name = f"{kind.__module__}.{kind.__qualname__}"
        return f"<{name} object at {id(self):#x} {said} [{state}]>"

    @staticmethod
    def _is_gone(key: object) -> bool:
        return isinstance(key, Future) and key.done()

    @staticmethod
    def _shown(key: object) -> object:
        return key.get_name() if isinstance(key, Task) else 0

    def _take(
        self, task: Optional[Task[Any]], wait_ms: int
    ) -> Coroutine[Any, Any, Union[AsyncLease, Refusal]]:
        # The coroutine of the client, without the price of one more around it.
        kind = self._kind
        return self._aio._take(self._name, wait_ms, kind.options_of(task), kind.start)

    async def __aenter__(self) -> AsyncLease:
        task = task_here()
        if self._holds:
            self._may_take(task, False)
        try:
            lease = await self._take(task, self._wait_ms)
        except AlreadyHeld as error:
            lease = self._refusal(error)
        if not isinstance(lease, AsyncLease):
            raise self._not_acquired(lease)
        if self._cancels:
            await lease._watch_block(task)
        self._holds.add(task, lease, True)
        return lease

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        lease = self._holds.pop_block(task_here())
        if lease is None:
            return
        if lease._guard is not None and lease._leave_guard(exception):
            await lease._raise_end(exception)
        # AsyncLease.__aexit__(), without the price of one more coroutine.
        if lease._is_given_back:
            return
        try:
            await lease.release()
        except Error as error:
            lease._settle(error, exception)


class ReleasableTaskLock(TaskLock):
    """A lock for tasks that is acquired and released by calls, too."""

    __slots__ = ()

    async def release(self) -> None:
        """Release the latest lease of this task, or else one of another task, as asyncio.Lock does.

        With a reentrant lock, the other task must have the same named owner. Raises LockLost if the
        lease had ended before, NotHeld if there is nothing to release.
        """
        task = task_here()
        lease = self._holds.pop_latest(task) or self._of_others()
        try:
            await lease.release()
        except NoMemory:
            self._still_held(task, lease)
            raise


class AsyncLock(ReleasableTaskLock):
    """A lock by its name, made by lock() of Client.aio and Redlock.aio.

    Sends nothing until acquired. As an asynchronous context manager its value is the lease;
    NotAcquired is raised if the wait times out. Otherwise it has the shape of asyncio.Lock: tasks
    may share it, and any task may release it, except for a block of another task, as for Lock. A
    task that acquires it twice would wait for itself, which raises AlreadyHeld.
    """

    __slots__ = ()

    _MADE_BY = f"client.aio.lock(name), where client = redlatch.connect({URL!r})"

    @property
    def lease(self) -> Optional[AsyncLease]:
        """The lease by which this task holds the lock; None if it has no lease."""
        return self._holds.latest(task_here())

    async def acquire(
        self, blocking: bool = True, timeout: Seconds = None, **unknown: NoReturn
    ) -> bool:
        """Acquire the lock as asyncio.Lock does. Return True if it was acquired.

        blocking  False: one try
        timeout   seconds to wait in the queue; -1: no limit; None: the timeout of this lock object

        Raises AlreadyHeld if this task has the lock, Unavailable if the server could not be reached
        in time.
        """
        wait_ms, task = self._wait_of(blocking, timeout, unknown), task_here()
        if self._holds and not self._may_take(task, wait_ms == 0):
            return False
        lease = self._kept(task, await self._take(task, wait_ms))
        if self._cancels and lease is not None and lease._is_block:
            await lease._watch_block(task)
        return lease is not None


class AsyncRLock(ReleasableTaskLock):
    """A reentrant lock by its name, made by client.aio.rlock(). Sends nothing until acquired.

    The owner may acquire it again while it holds it: at once, past the queue. The owner is the
    task, unless a name was given. Each acquisition is an AsyncLease of its own, and the lock is
    free when the last one has ended. As an asynchronous context manager its value is the lease.
    """

    __slots__ = ()

    _MADE_BY = f"client.aio.rlock(name), where client = redlatch.connect({URL!r})"

    @property
    def lease(self) -> Optional[AsyncLease]:
        """The latest lease that this task acquired and did not release."""
        return self._holds.latest(task_here())

    async def acquire(
        self, blocking: bool = True, timeout: Seconds = None, **unknown: NoReturn
    ) -> Optional[AsyncLease]:
        """Acquire the lock, or acquire it again. Return a lease; None if not acquired in time.

        blocking  False: one try
        timeout   seconds to wait in the queue; -1: no limit; None: the timeout of this lock object
        """
        wait_ms, task = self._wait_of(blocking, timeout, unknown), task_here()
        if self._holds and not self._may_take(task, wait_ms == 0):
            return None
        return self._kept(task, await self._take(task, wait_ms))


class AsyncSemaphore(NamedSemaphore[AsyncLease], TaskLock):
    """A semaphore by its name, made by client.aio.semaphore(). Sends nothing until acquired.

    As Semaphore, with tasks in the place of threads, and `async with`. locked() blocks the event
    loop: await stats() there.
    """

    __slots__ = ()

    _MADE_BY = f"client.aio.semaphore(name, limit), where client = redlatch.connect({URL!r})"

    async def acquire(
        self,
        permits: int = 1,
        *,
        blocking: bool = True,
        timeout: Seconds = None,
        ttl: Seconds = None,
        **unknown: NoReturn,
    ) -> Optional[AsyncLease]:
        """Acquire `permits` permits together. Return a lease; None if not acquired in time.

        As Semaphore.acquire(). The lease belongs to no task: any task may release it.
        """
        options = self._permits.options_of_lease(permits, ttl)
        wait_ms = self._wait_of(blocking, timeout, unknown)
        got = await self._aio._take(self._name, wait_ms, options)
        return got if isinstance(got, AsyncLease) else None

    async def attach(
        self, token: Name, permits: int = 1, *, fence: int = 0, ttl: Seconds = None
    ) -> AsyncLease:
        """Take over a lease that was detached. As Semaphore.attach().

        If the task is cancelled after the call was sent, the lease is detached again in the
        background.
        """
        options = self._permits.options_of_attach(permits, ttl)
        token_bytes, fence_number = to_bytes(token, "token"), check_fence(fence)
        return await self._aio._attach(self._name, token_bytes, fence_number, options)

    async def stats(self) -> SemaphoreStats:
        """Return the numbers of the semaphore, as the server has them. Changes nothing."""
        return read_stats(await self._aio._stats(self._name), self._permits.limit)


class AsyncLocks(NamedLocks[AsyncLease], TaskLock):
    """Several names together, made by lock_all() and lock_path() of client.aio.

    As Locks, with tasks in the place of threads, and `async with`. locked() blocks the event loop.
    """

    __slots__ = ("_names",)

    _MADE_BY = f"client.aio.lock_all(names), where client = redlatch.connect({URL!r})"

    def __init__(
        self, aio: AioBase, names: Names, timeout: Seconds, kind: All, on_lost: OnLost
    ) -> None:
        self._names = names
        super().__init__(aio, names.bytes[0], timeout, kind, on_lost)

    async def _take(
        self, task: Optional[Task[Any]], wait_ms: int
    ) -> Union[AsyncLease, Refusal]:
        return await self._take_all(wait_ms, self._all.options_of(task))

    async def _take_all(
        self, wait_ms: int, options: Optional[_core.AcquireOptions]
    ) -> Union[AsyncLease, Refusal]:
        return self._named(
            await self._aio._take(self._names.handle, wait_ms, options, ACQUIRE_ALL)
        )

    async def acquire(
        self,
        *,
        blocking: bool = True,
        timeout: Seconds = None,
        ttl: Seconds = None,
        **unknown: NoReturn,
    ) -> Optional[AsyncLease]:
        """Acquire all names. Return a lease; None if not acquired in time.

        As Locks.acquire(). The lease belongs to no task: any task may release it.
        """
        wait_ms = self._wait_of(blocking, timeout, unknown)
        got = await self._take_all(wait_ms, self._all.options_of_lease(ttl))
        return got if isinstance(got, AsyncLease) else None


class AsyncRWSide(TaskLock):
    """One side of a read-write lock, made by AsyncRWLock.read() and .write(), for `async with`.

    The value of the block is the lease. NotAcquired is raised if the wait times out. Tasks may
    share it, and nest its blocks.
    """

    __slots__ = ()

    _MADE_BY = "client.aio.rwlock(name).read() and .write()"


class AsyncRWLock(NamedRWLock):
    """A read-write lock by its name, made by client.aio.rwlock(): many readers, or one writer.

    Tasks may share it. Otherwise it is as RWLock, with tasks in the place of threads.
    """

    __slots__ = ("_aio",)

    _MADE_BY = f"client.aio.rwlock(name), where client = redlatch.connect({URL!r})"

    def __init__(
        self, aio: AioBase, name: Name, owner: Optional[Name], format: RWFormat
    ) -> None:
        super().__init__(aio._client, name, owner, format)
        self._aio = aio

    def read(
        self,
        *,
        timeout: Seconds = NO_LIMIT,
        on_lost: OnLost = "ignore",
        **keywords: Unpack[Keywords],
    ) -> AsyncRWSide:
        """Return the read side, for `async with`: the block reads, together with other readers.

        The keywords are those of client.aio.lock(). Sends nothing.
        """
        return self._side(ACQUIRE_READ, timeout, on_lost, keywords)

    def write(
        self,
        *,
        timeout: Seconds = NO_LIMIT,
        on_lost: OnLost = "ignore",
        **keywords: Unpack[Keywords],
    ) -> AsyncRWSide:
        """Return the write side, for `async with`: the block writes, alone. Otherwise as read()."""
        return self._side(ACQUIRE_WRITE, timeout, on_lost, keywords)

    async def acquire_read(
        self, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[Keywords]
    ) -> Optional[AsyncLease]:
        """Acquire the lock to read and return a lease; None if not acquired within `timeout`.

        The lease belongs to no task unless an owner was named: any task may release it. The
        keywords are those of Client.lock().
        """
        return await self._acquire(ACQUIRE_READ, timeout, keywords)

    async def acquire_write(
        self, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[Keywords]
    ) -> Optional[AsyncLease]:
        """Acquire the lock to write. Otherwise as acquire_read()."""
        return await self._acquire(ACQUIRE_WRITE, timeout, keywords)

    def _side(
        self, start: Start, timeout: Seconds, on_lost: OnLost, keywords: Keywords
    ) -> AsyncRWSide:
        kind = self._kind(start, keywords)
        return made(AsyncRWSide, self._aio, self._name, timeout, kind, on_lost)

    async def _acquire(
        self, start: Start, timeout: Seconds, keywords: Keywords
    ) -> Optional[AsyncLease]:
        options = self._kind(start, keywords).options_of_lease()
        return await self._aio._acquire(self._name, timeout, options, start)
