# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Locks for asyncio: Client.aio and Redlock.aio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Callable, NoReturn, Optional, TypeVar, overload

from . import _core
from ._advice import made
from ._aio_base import AioBase
from ._aio_election import AsyncElection, AsyncObserved, ask_leader
from ._aio_lease import AsyncLease, OnLost
from ._aio_locks import AsyncLock, AsyncLocks, AsyncRLock, AsyncRWLock, AsyncSemaphore
from ._candidacy import Candidacy, Leader, leader_of, no_election
from ._convert import (
    ANY_HOLDER,
    NO_LIMIT,
    Duration,
    Name,
    Seconds,
    check_fence,
    to_bytes,
    to_wait_ms,
)
from ._errors import NotHeld, error_of
from ._flight import Flight, fly_async, no_flight
from ._force import TRIES, check_arguments, token_of
from ._info import LockInfo, read_info
from ._kinds import All, Mutex, Owner, Permits, Reentrant, no_semaphore
from ._names import NameAndMode, Names, no_names
from ._once import Terms, decorated_async, no_once
from ._option_table import Keywords, LockKeywords, RedlockKeywords
from ._options import RWFormat, make_options, make_redlock_options
from ._pump import pump_here
from ._recall import no_recall
from ._status import Status
from ._wait import info_of, raise_unless_ok

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._once import P

T = TypeVar("T")


class Aio(AioBase):
    """The methods of a client for asyncio, in any number of event loops: Client.aio.

    A wait uses no thread. Cancel the task to end it, also by asyncio.timeout(): a lock that was
    granted meanwhile is released.
    """

    __slots__ = ()

    def lock(
        self,
        name: Name,
        *,
        timeout: Seconds = NO_LIMIT,
        on_lost: OnLost = "ignore",
        **keywords: Unpack[LockKeywords],
    ) -> AsyncLock:
        """Return the lock `name`, for `async with` and in the shape of asyncio.Lock. Sends nothing.

        timeout  seconds to wait in the queue; -1 or None: no limit; 0: one try
        on_lost  "cancel": if the lock is lost, or the client is closed, the task in the block is
                 cancelled, and the block ends with LockLost or Closed. "ignore": the block raises
                 these at its end

        The other keywords are those of Client.lock().
        """
        kind = Mutex(make_options(**keywords))
        return made(AsyncLock, self, name, timeout, kind, on_lost)

    async def acquire(
        self, name: Name, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[LockKeywords]
    ) -> Optional[AsyncLease]:
        """Acquire the lock `name` and return a lease; None if not acquired within `timeout`.

        The keywords are those of Client.lock().
        """
        # AioBase._acquire(), without the price of one more coroutine.
        options = make_options(**keywords)
        got = await self._take(to_bytes(name, "name"), to_wait_ms(timeout), options)
        return got if isinstance(got, AsyncLease) else None

    def rlock(
        self,
        name: Name,
        *,
        owner: Optional[Name] = None,
        timeout: Seconds = NO_LIMIT,
        on_lost: OnLost = "ignore",
        **keywords: Unpack[Keywords],
    ) -> AsyncRLock:
        """Return the reentrant lock `name`, for `async with`. Sends nothing.

        owner  as for Client.rlock(); None: this task of this client

        The other keywords are those of lock().
        """
        kind = Reentrant(Owner(owner, self._client._number), keywords)
        return made(AsyncRLock, self, name, timeout, kind, on_lost)

    def rwlock(
        self, name: Name, *, owner: Optional[Name] = None, format: RWFormat = "string"
    ) -> AsyncRWLock:
        """Return the read-write lock `name`. Sends nothing. As Client.rwlock()."""
        return made(AsyncRWLock, self, name, owner, format)

    def semaphore(
        self,
        name: Name,
        limit: int,
        *,
        timeout: Seconds = NO_LIMIT,
        on_lost: OnLost = "ignore",
        **keywords: Unpack[Keywords],
    ) -> AsyncSemaphore:
        """Return the semaphore `name`, for `async with`. Sends nothing.

        on_lost  as for lock(), of a block

        Otherwise as Client.semaphore().
        """
        return made(AsyncSemaphore, self, name, timeout, Permits(limit, keywords), on_lost)

    def lock_all(
        self,
        names: Iterable[NameAndMode],
        *,
        timeout: Seconds = NO_LIMIT,
        on_lost: OnLost = "ignore",
        **keywords: Unpack[Keywords],
    ) -> AsyncLocks:
        """Return all of `names` as one lock, for `async with`. Sends nothing.

        on_lost  as for lock(), of a block

        Otherwise as Client.lock_all().
        """
        return made(AsyncLocks, self, Names(names), timeout, All(keywords), on_lost)

    def lock_path(
        self,
        path: Name,
        *,
        timeout: Seconds = NO_LIMIT,
        on_lost: OnLost = "ignore",
        **keywords: Unpack[Keywords],
    ) -> AsyncLocks:
        """Return the path as one lock, for `async with`. Sends nothing. As Client.lock_path().

        on_lost  as for lock(), of a block
        """
        return made(AsyncLocks, self, Names.of_path(path), timeout, All(keywords), on_lost)

    def once(
        self,
        name: Name,
        *,
        every: Duration,
        key: Name = "",
        tries: int = 3,
        skip_if_busy: bool = False,
        timeout: Seconds = NO_LIMIT,
        on_lost: OnLost = "ignore",
        **keywords: Unpack[Keywords],
    ) -> Callable[
        [Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, Optional[T]]]
    ]:
        """Return a decorator: the async function runs once in a period, on one host.

        on_lost  as for lock(), of a run

        Otherwise as Client.once(). A run that is cancelled has failed.
        """
        terms = Terms(name, every, key, tries, skip_if_busy, timeout, keywords)
        return decorated_async(self, terms, on_lost)

    async def single_flight(
        self,
        key: Name,
        ttl: Duration,
        f: Callable[[], Awaitable[bytes]],
        *,
        timeout: Seconds = NO_LIMIT,
        lease_ttl: Seconds = None,
        max_hold: Seconds = None,
        label: Optional[Name] = None,
    ) -> bytes:
        """Return the value of `key`. One caller on all hosts computes it; the others wait for it.

        f  an async function, or another one that returns an awaitable

        Otherwise as Client.single_flight(). If the task is cancelled while it waits, the others get
        the value all the same; while it computes, the next caller that waits computes.
        """
        flight = Flight(self._client, key, ttl, timeout, lease_ttl, max_hold, label)
        return await fly_async(self, flight, f)

    def election(
        self,
        name: Name,
        id: Optional[Name] = None,
        *,
        on_lost: OnLost = "cancel",
        **keywords: Unpack[Keywords],
    ) -> AsyncElection:
        """Return the election `name`, in which this program is a candidate. Sends nothing.

        on_lost  as for lock(), of a term. Without a choice the task is cancelled

        Otherwise as Client.election().
        """
        return made(AsyncElection, self, name, Candidacy(id, keywords), on_lost)

    async def leader(self, name: Name) -> Optional[Leader]:
        """Return the leader of the election `name`; None without one. Changes nothing."""
        return leader_of(await ask_leader(self, to_bytes(name, "name")))

    def observe(self, name: Name) -> AsyncIterator[Optional[Leader]]:
        """Iterate by `async for` over the leaders of the election `name`. As Client.observe().

        A step that was cancelled can be repeated.
        """
        return AsyncObserved(self, to_bytes(name, "name"))

    async def attach(
        self, name: Name, token: Name, *, fence: int = 0, **keywords: Unpack[RedlockKeywords]
    ) -> AsyncLease:
        """Take over a lease that was detached. As Client.attach().

        If the task is cancelled after the call was sent, the lease is detached again in the
        background.
        """
        name_bytes, token_bytes = to_bytes(name, "name"), to_bytes(token, "token")
        number, options = check_fence(fence), make_redlock_options(**keywords)
        return await self._attach(name_bytes, token_bytes, number, options)

    # ---- looking and operating ----

    async def inspect(self, name: Name) -> LockInfo:
        """Return a snapshot of the lock `name`, as the server has it. Changes nothing."""
        return await self._inspect(to_bytes(name, "name"))

    async def _inspect(self, name: bytes) -> LockInfo:
        request, _ = await self._ask(
            lambda handle, queue, tag: _core.inspect_watched(handle, name, queue, tag)
        )
        return read_info(info_of(request))

    @overload
    async def force_release(self, name: Name, *, any: bool = False) -> None: ...

    @overload
    async def force_release(self, name: Name, token: Name) -> None: ...

    async def force_release(
        self, name: Name, token: Any = ANY_HOLDER, *, any: bool = False
    ) -> None:
        """Remove all holders of the lock `name`, or only the holder with `token`. For operators.

        As Client.force_release(). Cancelling the task does not undo a call that was sent.
        """
        check_arguments(token, any)
        name_bytes = to_bytes(name, "name")
        if token is not ANY_HOLDER:
            await self._force(name_bytes, to_bytes(token, "token"))
            return
        for _ in range(0 if any else TRIES):
            found = token_of(await self._inspect(name_bytes))
            if found is None:
                break
            try:
                return await self._force(name_bytes, found)
            except NotHeld:
                pass  # It has another holder by now, or no holder.
        await self._ask(
            lambda handle, queue, tag: _core.force_release_any_watched(
                handle, name_bytes, queue, tag
            )
        )

    async def _force(self, name: bytes, token: bytes) -> None:
        await self._ask(
            lambda handle, queue, tag: _core.force_release_watched(
                handle, name, token, queue, tag
            )
        )

    async def recall(self, name: Name, reason: Name = "") -> int:
        """Ask the holders of the lock `name` to finish. As Client.recall()."""
        name_bytes, text = to_bytes(name, "name"), to_bytes(reason, "reason")
        request, _ = await self._ask(
            lambda handle, queue, tag: _core.recall_watched(handle, name_bytes, text, queue, tag)
        )
        return _core.recall_heard(request)

    async def resign(self, name: Name, reason: Name = "") -> int:
        """Ask the leader of the election `name` to resign. As Client.resign()."""
        return await self.recall(name, reason)

    async def once_forget(self, name: Name) -> None:
        """Forget the runs of the job `name`, of all its periods. As Client.once_forget()."""
        name_bytes = to_bytes(name, "name")
        await self._ask(
            lambda handle, queue, tag: _core.once_forget_watched(handle, name_bytes, queue, tag)
        )

    async def list(self, pattern: Name = "") -> AsyncIterator[LockInfo]:
        """Iterate over the locks that redlatch clients hold, by `async for`. As Client.list()."""
        text = to_bytes(pattern, "pattern")
        locks = self._client._call(lambda handle, err: _core.list_open(handle, text, err))
        pump = pump_here()
        while True:
            tag = pump.next_tag()
            started = _core.list_next_watched(locks, pump.queue, tag)
            request = await pump.finish(started, tag)
            if _core.request_status(request) == Status.END:
                return
            raise_unless_ok(request)
            info = _core.list_info(locks)
            assert info is not None
            yield read_info(info)


class RedlockAio(AioBase):
    """The methods of a Redlock for asyncio, in any number of event loops: Redlock.aio.

    A wait uses no thread. Cancel the task to end it, also by asyncio.timeout(): a lock that was
    granted meanwhile is released.
    """

    __slots__ = ()

    def semaphore(self, name: Name, limit: int, **keywords: object) -> NoReturn:
        """Raise Unsupported: two permits on three nodes could have three holders."""
        raise no_semaphore()

    def lock_all(self, names: Iterable[NameAndMode], **keywords: object) -> NoReturn:
        """Raise Unsupported: the nodes have no common order of waiters."""
        raise no_names()

    def lock_path(self, path: Name, **keywords: object) -> NoReturn:
        """Raise Unsupported: the nodes have no common order of waiters."""
        raise no_names()

    def once(self, name: Name, **keywords: object) -> NoReturn:
        """Raise Unsupported: the nodes do not remember runs."""
        raise no_once()

    def once_forget(self, name: Name) -> NoReturn:
        """Raise Unsupported: the nodes do not remember runs."""
        raise no_once()

    def single_flight(
        self, key: Name, ttl: Duration, f: Callable[[], object], **keywords: object
    ) -> NoReturn:
        """Raise Unsupported: the nodes store no values."""
        raise no_flight()

    def election(self, name: Name, id: Optional[Name] = None, **keywords: object) -> NoReturn:
        """Raise Unsupported: an election needs one server or cluster."""
        raise no_election()

    def leader(self, name: Name) -> NoReturn:
        """Raise Unsupported: an election needs one server or cluster."""
        raise no_election()

    def observe(self, name: Name) -> NoReturn:
        """Raise Unsupported: an election needs one server or cluster."""
        raise no_election()

    def recall(self, name: Name, reason: Name = "") -> NoReturn:
        """Raise Unsupported: a recall needs one server or cluster."""
        raise no_recall()

    def resign(self, name: Name, reason: Name = "") -> NoReturn:
        """Raise Unsupported: an election needs one server or cluster."""
        raise no_election()

    def lock(
        self,
        name: Name,
        *,
        timeout: Seconds = NO_LIMIT,
        on_lost: OnLost = "ignore",
        **keywords: Unpack[RedlockKeywords],
    ) -> AsyncLock:
        """Return the lock `name`, for `async with` and in the shape of asyncio.Lock. Sends nothing.

        on_lost  as for Client.aio.lock()

        The other keywords are those of Redlock.lock().
        """
        kind = Mutex(make_redlock_options(**keywords))
        return made(AsyncLock, self, name, timeout, kind, on_lost)

    async def acquire(
        self, name: Name, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[RedlockKeywords]
    ) -> Optional[AsyncLease]:
        """Acquire the lock `name` and return a lease; None if not acquired within `timeout`.

        The keywords are those of Redlock.lock().
        """
        # AioBase._acquire(), without the price of one more coroutine.
        options = make_redlock_options(**keywords)
        got = await self._take(to_bytes(name, "name"), to_wait_ms(timeout), options)
        return got if isinstance(got, AsyncLease) else None
