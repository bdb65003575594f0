# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Elections for asyncio: election(), leader() and observe() of Client.aio."""

from __future__ import annotations

from asyncio import Task
from collections.abc import AsyncIterator
from typing import Any, Optional, Union

from . import _core
from ._advice import URL, made
from ._aio_base import AioBase
from ._aio_lease import AsyncLease, OnLost, cancels
from ._aio_locks import TaskLock
from ._candidacy import (
    NOTHING_SEEN,
    Candidacy,
    Leader,
    NamedElection,
    TermBase,
    leader_of,
    participants_of,
)
from ._convert import NO_LIMIT, Name, Seconds, to_text
from ._holds import Holds
from ._info import LockInfo, read_info, read_position
from ._wait import Refusal, info_of


class AsyncTerm(TermBase, AsyncLease):
    """A term of a leader: the lease of an election's lock.

    It is renewed in the background until it is resigned or lost. Any task may use and resign it, in
    any event loop. Methods without `await` ask the local clock, not the server.
    """

    __slots__ = ("_id",)

    def __init__(self, lease: AsyncLease, id: str) -> None:
        super().__init__(lease._handle, lease._client)
        self._id = id
        self._take_over(lease)

    async def resign(self) -> None:
        """End the term; the next candidate leads at once. As release()."""
        await self.release()


class AsyncCampaign(TaskLock):
    """A campaign for a term, made by AsyncElection.term(), for `async with`. As Campaign."""

    __slots__ = ("_candidacy",)

    _MADE_BY = f"client.aio.election(name).term(), where client = redlatch.connect({URL!r})"

    def __init__(
        self,
        aio: AioBase,
        name: Name,
        timeout: Seconds,
        candidacy: Candidacy,
        on_lost: OnLost,
        holds: Holds[AsyncLease],
    ) -> None:
        super().__init__(aio, name, timeout, candidacy, on_lost)
        self._candidacy = candidacy
        self._holds = holds  # of the election, as in Campaign

    async def _take(
        self, task: Optional[Task[Any]], wait_ms: int
    ) -> Union[AsyncLease, Refusal]:
        id = to_text(self._candidacy.id)
        got = await super()._take(task, wait_ms)
        return AsyncTerm(got, id) if isinstance(got, AsyncLease) else got

    async def __aenter__(self) -> AsyncTerm:
        term = await super().__aenter__()
        assert isinstance(term, AsyncTerm)
        return term


class AsyncElection(NamedElection):
    """An election by its name, with one candidate, made by client.aio.election().

    As Election, with tasks in the place of threads.
    """

    __slots__ = ("_aio", "_on_lost", "_holds")

    _MADE_BY = f"client.aio.election(name), where client = redlatch.connect({URL!r})"

    def __init__(
        self, aio: AioBase, name: Name, candidacy: Candidacy, on_lost: OnLost
    ) -> None:
        cancels(on_lost)  # A mistake shows now.
        super().__init__(aio._client, name, candidacy)
        self._aio = aio
        self._on_lost: OnLost = on_lost
        self._holds: Holds[AsyncLease] = Holds()

    def term(self, timeout: Seconds = NO_LIMIT) -> AsyncCampaign:
        """Return a campaign for a term, for `async with`. As Election.term()."""
        return made(
            AsyncCampaign,
            self._aio,
            self._name,
            timeout,
            self._candidacy,
            self._on_lost,
            self._holds,
        )

    async def leader(self) -> Optional[Leader]:
        """Return the leader of the election; None without one. Changes nothing."""
        return leader_of(await ask_leader(self._aio, self._name))

    async def participants(self) -> list[str]:
        """Return the ids of the leader and the waiters. As Election.participants()."""
        return participants_of(await ask_leader(self._aio, self._name))


async def ask_leader(aio: AioBase, name: bytes) -> LockInfo:
    """The lock of an election, as the server has it."""
    request, _ = await aio._ask(
        lambda handle, queue, tag: _core.leader_watched(handle, name, queue, tag)
    )
    return read_info(info_of(request))


class AsyncObserved(AsyncIterator[Optional[Leader]]):
    """The leaders of an election, made by client.aio.observe().

    A step that was cancelled, by asyncio.wait_for() for example, can be repeated.
    """

    __slots__ = ("_aio", "_name", "_seen")

    def __init__(self, aio: AioBase, name: bytes) -> None:
        self._aio = aio
        self._name = name
        self._seen = NOTHING_SEEN

    async def __anext__(self) -> Optional[Leader]:
        request, _ = await self._aio._ask(
            lambda handle, queue, tag: _core.leader_watch_watched(
                handle, self._name, self._seen, NO_LIMIT, queue, tag
            )
        )
        info = info_of(request)
        self._seen = read_position(info)
        return leader_of(read_info(info))
