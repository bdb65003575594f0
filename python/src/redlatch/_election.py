# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Elections for threads: Client.election(), leader() and observe()."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional, Union

from . import _core
from ._advice import URL, made
from ._base import Base
from ._candidacy import (
    NOTHING_SEEN,
    OBSERVE,
    Candidacy,
    Leader,
    NamedElection,
    TermBase,
    leader_of,
    participants_of,
)
from ._convert import NO_LIMIT, Name, Seconds, to_text
from ._holds import Holds, ThreadKey
from ._info import LockInfo, read_info, read_position
from ._lease import Lease
from ._lock import ThreadLock
from ._wait import Call, Refusal, info_of

_LEADER = Call(_core.leader, _core.leader_watched, _core.request_take_info)


class Term(TermBase, Lease):
    """A term of a leader: the lease of an election's lock.

    It is renewed in the background until it is resigned or lost. Any thread may use and resign it.
    is_leader(), `held`, `lost` and check() ask the local clock, not the server.
    """

    __slots__ = ("_id",)

    def __init__(self, lease: Lease, id: str) -> None:
        super().__init__(lease._handle, lease._client)
        self._id = id
        self._take_over(lease)

    def resign(self) -> None:
        """End the term; the next candidate leads at once. As release()."""
        self.release()


class Campaign(ThreadLock):
    """A campaign for a term, made by Election.term(), for `with`.

    The block begins when the candidate leads, and its end resigns. The value of the block is the
    Term. NotAcquired is raised if the wait times out, and any exception means that the block was
    not entered. A term that was lost raises LockLost at the end of the block.
    """

    __slots__ = ("_candidacy",)

    _MADE_BY = f"client.election(name).term(), where client = redlatch.connect({URL!r})"

    def __init__(
        self,
        client: Base,
        name: Name,
        timeout: Seconds,
        candidacy: Candidacy,
        holds: Holds[Lease],
    ) -> None:
        super().__init__(client, name, timeout, candidacy)
        self._candidacy = candidacy
        # Of the election: a thread that leads does not campaign against itself.
        self._holds = holds

    def _take(self, key: ThreadKey, wait_ms: int) -> Union[Lease, Refusal]:
        id = to_text(self._candidacy.id)
        got = super()._take(key, wait_ms)
        return Term(got, id) if isinstance(got, Lease) else got

    def __enter__(self) -> Term:
        term = super().__enter__()
        assert isinstance(term, Term)
        return term


class Election(NamedElection):
    """An election by its name, with one candidate, made by Client.election().

    Sends nothing until a term is wanted. Threads may share it: each of them campaigns for itself,
    with the same id. A thread that leads and campaigns again would wait for itself, which raises
    AlreadyHeld.
    """

    __slots__ = ("_holds",)

    _MADE_BY = f"client.election(name), where client = redlatch.connect({URL!r})"

    def __init__(self, client: Base, name: Name, candidacy: Candidacy) -> None:
        super().__init__(client, name, candidacy)
        self._holds: Holds[Lease] = Holds()

    def term(self, timeout: Seconds = NO_LIMIT) -> Campaign:
        """Return a campaign for a term, for `with`. Sends nothing before the block.

        timeout  seconds to wait in the queue of the candidates; -1 or None: no limit; 0: one try

        Each block is a term of its own, and the candidate waits behind the others again.
        """
        return made(Campaign, self._client, self._name, timeout, self._candidacy, self._holds)

    def leader(self) -> Optional[Leader]:
        """Return the leader of the election; None without one. Changes nothing."""
        return leader_of(ask_leader(self._client, self._name))

    def participants(self) -> list[str]:
        """Return the ids of the leader and then of the waiting candidates, in their order.

        At most the first 256 waiters are read. Changes nothing.
        """
        return participants_of(ask_leader(self._client, self._name))


def ask_leader(client: Base, name: bytes) -> LockInfo:
    """The lock of an election, as the server has it."""
    return read_info(client._ask(_LEADER, name))


class Observed(Iterator[Optional[Leader]]):
    """The leaders of an election, made by Client.observe().

    A step that was interrupted, by Ctrl-C for example, can be repeated. For one thread at a time.
    """

    __slots__ = ("_client", "_name", "_seen")

    def __init__(self, client: Base, name: bytes) -> None:
        self._client = client
        self._name = name
        self._seen = NOTHING_SEEN

    def __next__(self) -> Optional[Leader]:
        info = info_of(self._client._finished(OBSERVE, self._name, self._seen, NO_LIMIT))
        self._seen = read_position(info)
        return leader_of(read_info(info))
