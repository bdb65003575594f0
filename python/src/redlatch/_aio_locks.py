# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Locks by name, for asyncio."""

from __future__ import annotations

from asyncio import Future, Task
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Union

from . import _core
from ._advice import URL, made, no_keywords
from ._aio_base import AioBase
from ._aio_lease import AsyncLease, Guard, Guards, OnLost, begin_block, end_block, new_guards
from ._base import Base
from ._convert import NO_LIMIT, Seconds, to_wait_ms
from ._errors import AlreadyHeld, Error
from ._holds import Hold, number_of
from ._lock import LockBase
from ._option_table import Keywords, LockKeywords
from ._options import RWFormat
from ._pump import Start, task_here
from ._rlock import RLockBase
from ._rwlock import RWLockBase, RWOwner, RWSideBase
from ._status import Status
from ._wait import Refusal

if TYPE_CHECKING:
    from typing_extensions import Unpack


def task_is_gone(key: object) -> bool:
    return isinstance(key, Future) and key.done()


def _this_task() -> Task[Any]:
    task = task_here()
    assert task is not None  # who else could await
    return task


class AsyncShape:
    """The form of repr() of the locks of asyncio."""

    __slots__ = ()

    def _shape(self, state: str, said: str) -> str:
        kind = type(self)
        name = f"{kind.__module__}.{kind.__qualname__}"
        return f"<{name} object at {id(self):#x} {said} [{state}]>"


class AsyncLock(AsyncShape, LockBase[AsyncLease]):
    """A lock by its name, made by lock() of Client.aio and Redlock.aio.

    Sends nothing until acquired. As an asynchronous context manager its value is the lease;
    NotAcquired is raised if the wait times out. Otherwise it has the shape of asyncio.Lock: tasks
    may share it, and any task may release it. A task that acquires it twice would wait for itself,
    which raises AlreadyHeld.
    """

    __slots__ = ("_aio", "_guards")

    _MADE_BY = f"client.aio.lock(name), where client = redlatch.connect({URL!r})"
    _TAKER = "task"

    def __init__(
        self,
        client: Base,
        name: bytes,
        wait_ms: int,
        options: Optional[_core.AcquireOptions],
        aio: AioBase,
        guards: Guards,
    ) -> None:
        super().__init__(client, name, wait_ms, options)
        self._aio = aio
        self._guards = guards

    _is_gone = staticmethod(task_is_gone)

    @property
    def lease(self) -> Optional[AsyncLease]:
        """The lease by which this task holds the lock; None if it has no lease."""
        return self._lease_of(task_here())

    async def acquire(
        self, blocking: bool = True, timeout: Seconds = None, **unknown: NoReturn
    ) -> bool:
        """Acquire the lock as asyncio.Lock does. Return True if it was acquired.

        blocking  False: one try
        timeout   seconds to wait in the queue; -1: no limit; None: the timeout of this lock object

        Raises AlreadyHeld if this task has the lock, Unavailable if the server could not be reached
        in time.
        """
        if unknown:
            no_keywords(unknown)
        wait_ms = self._wait_of(blocking, timeout)
        key = task_here()
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
        """Release the lease of this task, else that of another task, as asyncio.Lock does.

        Raises LockLost if the lease had ended before, NotHeld if there is nothing to release.
        """
        await self._to_release(task_here()).release()

    async def __aenter__(self) -> AsyncLease:
        task = task_here()
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
                self._guards[got] = Guard(task, got)
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
        hold = self._pop_block(task_here())
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


class AsyncRLock(AsyncShape, RLockBase[AsyncLease]):
    """A reentrant lock by its name, made by client.aio.rlock(). Sends nothing until acquired.

    The owner may acquire it again while it holds it: at once, past the queue. The owner is the
    task, unless a name was given. Each acquisition is an AsyncLease of its own, and the lock is
    free when the last one has ended. As an asynchronous context manager its value is the lease.
    """

    __slots__ = ("_aio", "_guards")

    _MADE_BY = f"client.aio.rlock(name), where client = redlatch.connect({URL!r})"

    def __init__(
        self,
        client: Base,
        name: bytes,
        wait_ms: int,
        owner: Optional[bytes],
        keywords: Keywords,
        aio: AioBase,
        guards: Guards,
    ) -> None:
        super().__init__(client, name, wait_ms, owner, keywords)
        self._aio = aio
        self._guards = guards

    _is_gone = staticmethod(task_is_gone)

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
        if unknown:
            no_keywords(unknown)
        task = _this_task()
        got = await self._take(task, self._wait_of(blocking, timeout))
        if not isinstance(got, AsyncLease):
            return None
        self._holds.add(task, got, False)
        return got

    async def release(self) -> None:
        """Release the latest acquisition of this task by this object.

        With a named owner any task of the owner may release. Raises NotHeld if there is nothing to
        release, LockLost if the lease had ended before.
        """
        await self._to_release(task_here()).release()

    async def __aenter__(self) -> AsyncLease:
        task = _this_task()
        got = await self._take(task, self._wait_ms)
        if not isinstance(got, AsyncLease):
            raise self._not_acquired(got)
        return await begin_block(self._holds, self._guards, task, got)

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await end_block(self._holds, self._guards, exception)

    @staticmethod
    def _shown(key: object) -> object:
        return key.get_name() if isinstance(key, Task) else 0

    async def _take(self, task: Task[Any], wait_ms: int) -> Union[AsyncLease, Refusal]:
        if self._holds:
            self._sweep()
        return await self._aio._take(self._name, wait_ms, self._options_of(number_of(task)))


class AsyncRWSide(AsyncShape, RWSideBase[AsyncLease]):
    """One side of a read-write lock, made by AsyncRWLock.read() and .write(), for `async with`.

    The value of the block is the lease. NotAcquired is raised if the wait times out. Tasks may
    share it, and nest its blocks.
    """

    __slots__ = ("_aio", "_guards", "_start")

    _MADE_BY = "client.aio.rwlock(name).read() and .write()"

    def __init__(
        self,
        client: Base,
        name: bytes,
        wait_ms: int,
        owner: RWOwner,
        keywords: LockKeywords,
        aio: AioBase,
        guards: Guards,
        start: Start,
    ) -> None:
        super().__init__(client, name, wait_ms, owner, keywords)
        self._aio = aio
        self._guards = guards
        self._start = start

    async def __aenter__(self) -> AsyncLease:
        task = _this_task()
        options = self._options_of(number_of(task))
        try:
            got = await self._aio._take(self._name, self._wait_ms, options, self._start)
        except AlreadyHeld as error:
            raise self._refused(error) from None
        if not isinstance(got, AsyncLease):
            raise self._not_acquired(got)
        return await begin_block(self._holds, self._guards, task, got)

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await end_block(self._holds, self._guards, exception)


class AsyncRWLock(RWLockBase):
    """A read-write lock by its name, made by client.aio.rwlock(): many readers, or one writer.

    Tasks may share it. Otherwise it is as RWLock, with tasks in the place of threads.
    """

    __slots__ = ("_aio",)

    _MADE_BY = f"client.aio.rwlock(name), where client = redlatch.connect({URL!r})"

    def __init__(
        self, client: Base, name: bytes, owner: Optional[bytes], format: RWFormat, aio: AioBase
    ) -> None:
        super().__init__(client, name, owner, format)
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
        return self._side(_core.rw_acquire_read_watched, timeout, on_lost, keywords)

    def write(
        self,
        *,
        timeout: Seconds = NO_LIMIT,
        on_lost: OnLost = "ignore",
        **keywords: Unpack[Keywords],
    ) -> AsyncRWSide:
        """Return the write side, for `async with`: the block writes, alone. Otherwise as read()."""
        return self._side(_core.rw_acquire_write_watched, timeout, on_lost, keywords)

    async def acquire_read(
        self, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[Keywords]
    ) -> Optional[AsyncLease]:
        """Acquire the lock to read and return a lease; None if not acquired within `timeout`.

        The lease belongs to no task unless an owner was named: any task may release it. The
        keywords are those of Client.lock().
        """
        return await self._acquire(_core.rw_acquire_read_watched, timeout, keywords)

    async def acquire_write(
        self, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[Keywords]
    ) -> Optional[AsyncLease]:
        """Acquire the lock to write. Otherwise as acquire_read()."""
        return await self._acquire(_core.rw_acquire_write_watched, timeout, keywords)

    def _side(
        self, start: Start, timeout: Seconds, on_lost: OnLost, keywords: Keywords
    ) -> AsyncRWSide:
        guards, wait_ms = new_guards(on_lost), to_wait_ms(timeout)
        name, owner, said = self._name, self._owner, self._with_format(keywords)
        return made(
            AsyncRWSide, self._client, name, wait_ms, owner, said, self._aio, guards, start
        )

    async def _acquire(
        self, start: Start, timeout: Seconds, keywords: Keywords
    ) -> Optional[AsyncLease]:
        options, wait_ms = self._options_of(keywords), to_wait_ms(timeout)
        got = await self._aio._take(self._name, wait_ms, options, start)
        return got if isinstance(got, AsyncLease) else None
