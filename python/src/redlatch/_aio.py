# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Locks for asyncio: Client.aio and Redlock.aio, and how they acquire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Callable, Optional, Union, overload

from . import _core
from ._advice import made
from ._aio_lease import AsyncLease, OnLost, new_guards
from ._aio_locks import AsyncLock, AsyncRLock, AsyncRWLock
from ._convert import ANY_HOLDER, NO_LIMIT, Name, Seconds, check_fence, to_bytes, to_wait_ms
from ._errors import NotHeld, error_of
from ._force import TRIES, check_arguments, token_of
from ._info import Finding, LockInfo, read_findings, read_info
from ._option_table import Keywords, LockKeywords, RedlockKeywords
from ._options import RWFormat, check_owner, make_options, make_redlock_options
from ._pump import Pump, Start, pump_here
from ._status import Status
from ._wait import PENDING, Refusal, raise_unless_ok, refusal_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._base import Base
    from ._client import Client

_FORKED = int(Status.E_FORKED)

_status_of = _core.request_status
_take_lease = _core.request_take_lease


def _info_of(request: _core.Request) -> _core.Info:
    info = _core.request_take_info(request)
    if info is None:
        raise error_of(Status.E_NO_MEMORY)
    return info


class AioBase:
    """The parts that both kinds share.

    A wait uses no thread. Cancel the task to end it, also by asyncio.timeout(): a lock that was
    granted meanwhile is released.
    """

    __slots__ = ("_client", "__weakref__")

    def __init__(self, client: Base) -> None:
        self._client = client

    def _watch_log(self, pump: Pump) -> None:
        self._client._log_pump = pump.number
        pump.watch_log(self._client._handle)

    async def connect(self, *, wait: Seconds = 0) -> None:
        """Reach the server now, as redlatch.connect() does: for a client made with wait=None.

        A Redlock reaches most of its nodes, as Redlock.connect() does.
        """
        wait_ms = to_wait_ms(wait, "wait")
        await self._ask(
            lambda handle, queue, tag: _core.client_connect_watched(handle, wait_ms, queue, tag)
        )

    async def check(self, *, wait: Seconds = 0) -> tuple[Finding, ...]:
        """Check each server now for what endangers locks there. As Client.check()."""
        wait_ms = to_wait_ms(wait, "wait")
        request, _ = await self._ask(
            lambda handle, queue, tag: _core.client_check_watched(handle, wait_ms, queue, tag)
        )
        return read_findings(_info_of(request))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._client!r}>"

    async def _ask(
        self, start: Callable[[_core.Client, _core.Queue, int], Optional[_core.Request]]
    ) -> tuple[_core.Request, _core.Client]:
        """The finished request of `start`, if it succeeded, and the handle that made it."""
        handle = self._client._handle
        pump = pump_here()
        if self._client._log_pump != pump.number:
            self._watch_log(pump)
        while True:
            tag = pump.next_tag()
            request = await pump.finish(start(handle, pump.queue, tag), tag)
            if _status_of(request) != _FORKED:
                raise_unless_ok(request)
                return request, handle
            handle = self._client._reopen(handle)
            self._watch_log(pump)

    async def _take(
        self,
        name: bytes,
        wait_ms: int,
        options: Optional[_core.AcquireOptions],
        start: Start = _core.acquire_watched,
    ) -> Union[AsyncLease, Refusal]:
        """Acquire: a lease, or a refusal (BUSY or TIMEOUT)."""
        handle = self._client._handle
        pump = pump_here()
        if self._client._log_pump != pump.number:
            self._watch_log(pump)
        while True:
            pump.last_tag = tag = pump.last_tag + 1
            request = start(handle, name, wait_ms, options, pump.queue, tag)
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
                return AsyncLease(lease, handle)
            if _status_of(request) != _FORKED:
                return refusal_of(request)
            handle = self._client._reopen(handle)
            self._watch_log(pump)


class Aio(AioBase):
    """The methods of a client for asyncio, in any number of event loops: Client.aio.

    A wait uses no thread. Cancel the task to end it, also by asyncio.timeout(): a lock that was
    granted meanwhile is released.
    """

    __slots__ = ()

    _client: Client

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
        guards, options = new_guards(on_lost), make_options(**keywords)
        name_bytes, wait_ms = to_bytes(name, "name"), to_wait_ms(timeout)
        return made(AsyncLock, self._client, name_bytes, wait_ms, options, self, guards)

    async def acquire(
        self, name: Name, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[LockKeywords]
    ) -> Optional[AsyncLease]:
        """Acquire the lock `name` and return a lease; None if not acquired within `timeout`.

        The keywords are those of Client.lock().
        """
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
        guards, named = new_guards(on_lost), None if owner is None else check_owner(owner)
        name_bytes, wait_ms = to_bytes(name, "name"), to_wait_ms(timeout)
        return made(
            AsyncRLock, self._client, name_bytes, wait_ms, named, keywords, self, guards
        )

    def rwlock(
        self, name: Name, *, owner: Optional[Name] = None, format: RWFormat = "string"
    ) -> AsyncRWLock:
        """Return the read-write lock `name`. Sends nothing. As Client.rwlock()."""
        named = None if owner is None else check_owner(owner)
        return made(AsyncRWLock, self._client, to_bytes(name, "name"), named, format, self)

    async def attach(
        self, name: Name, token: Name, *, fence: int = 0, **keywords: Unpack[RedlockKeywords]
    ) -> AsyncLease:
        """Take over a lease that was detached. As Client.attach().

        If the task is cancelled after the call was sent, the lease is detached again in the
        background.
        """
        name_bytes, token_bytes = to_bytes(name, "name"), to_bytes(token, "token")
        number, options = check_fence(fence), make_redlock_options(**keywords)
        request, handle = await self._ask(
            lambda handle, queue, tag: _core.lease_attach_watched(
                handle, name_bytes, token_bytes, number, options, queue, tag
            )
        )
        lease = _take_lease(request)
        if lease is None:
            raise error_of(Status.E_NO_MEMORY)
        return AsyncLease(lease, handle)

    # ---- looking and operating ----

    async def inspect(self, name: Name) -> LockInfo:
        """Return a snapshot of the lock `name`, as the server has it. Changes nothing."""
        return await self._inspect(to_bytes(name, "name"))

    async def _inspect(self, name: bytes) -> LockInfo:
        request, _ = await self._ask(
            lambda handle, queue, tag: _core.inspect_watched(handle, name, queue, tag)
        )
        return read_info(_info_of(request))

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

    async def list(self, pattern: Name = "") -> AsyncIterator[LockInfo]:
        """Iterate over the locks that redlatch clients hold, by `async for`. As Client.list()."""
        locks = self._client._open_list(to_bytes(pattern, "pattern"))
        pump = pump_here()
        while True:
            tag = pump.next_tag()
            started = _core.list_next_watched(locks, pump.queue, tag)
            request = await pump.finish(started, tag)
            if _status_of(request) == Status.END:
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
        guards, options = new_guards(on_lost), make_redlock_options(**keywords)
        name_bytes, wait_ms = to_bytes(name, "name"), to_wait_ms(timeout)
        return made(AsyncLock, self._client, name_bytes, wait_ms, options, self, guards)

    async def acquire(
        self, name: Name, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[RedlockKeywords]
    ) -> Optional[AsyncLease]:
        """Acquire the lock `name` and return a lease; None if not acquired within `timeout`.

        The keywords are those of Redlock.lock().
        """
        options = make_redlock_options(**keywords)
        got = await self._take(to_bytes(name, "name"), to_wait_ms(timeout), options)
        return got if isinstance(got, AsyncLease) else None
