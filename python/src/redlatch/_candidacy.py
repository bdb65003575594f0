# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Elections: the parts that threads and tasks share."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from . import _core
from ._advice import Made, Unique
from ._base import Base
from ._convert import Name, shown, to_bytes, to_text
from ._errors import Error, error_of
from ._info import LockInfo
from ._kinds import Mutex
from ._lease import LeaseBase
from ._option_table import Keywords
from ._options import make_candidate_options
from ._status import Status
from ._wait import Start

OBSERVE = Start(_core.leader_watch_start, _core.leader_watch_watched)
# The position of an observer that has seen nothing.
NOTHING_SEEN = -1


def no_election() -> Error:
    """Why a Redlock has no elections."""
    return error_of(
        Status.E_UNSUPPORTED,
        "an election is not possible with a Redlock: use a client of one server",
    )


# ---- looking -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leader:
    """The leader of an election at one moment."""

    name: str
    """The name of the election."""
    id: str
    """The id of the candidate that leads."""
    term: int
    """The number of the term, which rises from leader to leader: the fence of its lease."""
    since: Optional[datetime]
    """When the term began, by the server's clock; None if not known."""


def leader_of(lock: LockInfo) -> Optional[Leader]:
    """The leader. None: the lock is free, or held by a holder that is no candidate."""
    holder = lock.holder
    if holder is None or not holder.candidate:
        return None
    return Leader(lock.name, holder.candidate, lock.fence, holder.since)


def participants_of(lock: LockInfo) -> list[str]:
    """The ids of the leader and of the waiting candidates."""
    leader = leader_of(lock)
    waiting = [waiter.candidate for waiter in lock.waiters if waiter.candidate]
    return waiting if leader is None else [leader.id, *waiting]


# ---- candidates ----------------------------------------------------------------------------------


def default_id() -> bytes:
    """The default id of a candidate."""
    return os.environb.get(b"POD_NAME") or os.fsencode(f"{socket.gethostname()}:{os.getpid()}")


class Candidacy(Mutex):
    """How a candidate acquires. The default id of a forked child is its own."""

    __slots__ = ("_id", "_keywords", "_last")

    def __init__(self, id: Optional[Name], keywords: Keywords) -> None:
        self._id = None if id is None else to_bytes(id, "id")
        self._keywords: dict[str, Any] = {**keywords}
        self._last = self._made(self.id)  # A mistake shows now.

    @property
    def id(self) -> bytes:
        return default_id() if self._id is None else self._id

    def options_of(self, key: object) -> _core.AcquireOptions:
        id = self.id
        last = self._last
        if last[0] != id:
            # One step: threads share this object, and none of them changes what is in there.
            self._last = last = self._made(id)
        return last[1]

    def _made(self, id: bytes) -> tuple[bytes, _core.AcquireOptions]:
        return id, make_candidate_options(id, self._keywords)


class NamedElection(Unique, metaclass=Made):
    """An election by its name, with one candidate."""

    __slots__ = ("_client", "_name", "_candidacy", "__weakref__")

    _MADE_BY: str
    _IN_ANOTHER_PROCESS = "send its name, and open a client and make the election there"

    def __init__(self, client: Base, name: Name, candidacy: Candidacy) -> None:
        self._client = client
        self._name = to_bytes(name, "name")
        self._candidacy = candidacy

    @property
    def name(self) -> str:
        """The name of the election, and of its lock."""
        return to_text(self._name)

    @property
    def id(self) -> str:
        """The id of this candidate."""
        return to_text(self._candidacy.id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {shown(self.name)} id={shown(self.id)}>"


class TermBase(LeaseBase):
    """The local facts about a term, beside those about its lease."""

    __slots__ = ()

    _id: str

    @property
    def id(self) -> str:
        """The id of the candidate that leads."""
        return self._id

    @property
    def term(self) -> int:
        """The number of the term, which rises from leader to leader: its fence."""
        return self.fence

    def is_leader(self) -> bool:
        """Return True while this candidate leads, by the local clock. Sends nothing.

        False comes before another candidate can lead. The check does not stop a thread that is
        paused between the check and its write: only a resource that refuses lower fences does.
        """
        return self.held

    def _take_over(self, lease: LeaseBase) -> None:
        """Become the only object of the lease."""
        lease._is_given_back = True
