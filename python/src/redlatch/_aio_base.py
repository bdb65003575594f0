# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The parts that both clients for asyncio share: how they ask, and how they acquire."""

from __future__ import annotations

from typing import Callable, Optional, Union

from . import _core
from ._aio_lease import AsyncLease
from ._base import Base
from ._convert import Name, Seconds, to_bytes, to_wait_ms
from ._errors import error_of
from ._info import Finding, read_findings
from ._pump import Pump, pump_here
from ._status import Status
from ._wait import ACQUIRE, PENDING, Refusal, Start, info_of, raise_unless_ok, refusal_of

_FORKED = int(Status.E_FORKED)

_status_of = _core.request_status
_take_lease = _core.request_take_lease


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
        return read_findings(info_of(request))

    async def _attach(
        self, name: bytes, token: bytes, fence: int, options: Optional[_core.AcquireOptions]
    ) -> AsyncLease:
        request, handle = await self._ask(
            lambda handle, queue, tag: _core.lease_attach_watched(
                handle, name, token, fence, options, queue, tag
            )
        )
        lease = _core.request_take_lease(request)
        if lease is None:
            raise error_of(Status.E_NO_MEMORY)
        return AsyncLease(lease, handle)

    async def _stats(self, name: bytes) -> _core.Info:
        request, _ = await self._ask(
            lambda handle, queue, tag: _core.semaphore_stats_watched(handle, name, queue, tag)
        )
        return info_of(request)

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
        name: Union[bytes, _core.Names],
        wait_ms: int,
        options: Optional[_core.AcquireOptions],
        start: Start = ACQUIRE,
    ) -> Union[AsyncLease, Refusal]:
        """Acquire: a lease, or a refusal (BUSY or TIMEOUT)."""
        handle = self._client._handle
        pump = pump_here()
        if self._client._log_pump != pump.number:
            self._watch_log(pump)
        while True:
            pump.last_tag = tag = pump.last_tag + 1
            request = start.watched(handle, name, wait_ms, options, pump.queue, tag)
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

    async def _acquire(
        self,
        name: Name,
        timeout: Seconds,
        options: Optional[_core.AcquireOptions],
        start: Start = ACQUIRE,
    ) -> Optional[AsyncLease]:
        """Acquire without a lock object: a lease, or None if not acquired in time."""
        got = await self._take(to_bytes(name, "name"), to_wait_ms(timeout), options, start)
        return got if isinstance(got, AsyncLease) else None
