# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Snapshots of locks and servers, as values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from functools import cache
from typing import Any, Optional

from . import _core
from ._convert import to_text
from ._mode import READ, UPGRADE, HoldMode, WaitMode

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@cache
def _constant(name: str) -> int:
    return _core.constant(f"RL_{name}".encode(), 0)


_WAIT_MODES: dict[int, WaitMode] = {READ: "read", UPGRADE: "upgrade"}


class LockState(Enum):
    """The state of a lock."""

    FREE = _constant("STATE_FREE")
    """It has no holder."""
    HELD = _constant("STATE_HELD")
    """A redlatch client holds it."""
    FOREIGN = _constant("STATE_FOREIGN")
    """Another lock library holds it."""
    NO_LOCK = _constant("STATE_NO_LOCK")
    """The key has another type, which LockInfo.type names."""


@dataclass(frozen=True)
class Holder:
    """A holder of a lock: a reader, a writer, or one acquisition of an owner.

    Its times come from the server's clock; do not compare them with the local clock.
    """

    # ---- Holder: made of info_fields.def by tools/gen_info.py ----
    token: str
    """The token, or the value of a foreign key."""
    who: str
    """Host name and process id, or the option holder; empty if not known: the holder has not
    waited, and has held for less than half a second, or the ACL user may not write it."""
    label: str
    """The option label of the acquisition; empty without one."""
    since: Optional[datetime]
    """When it was granted, joined the queue, or when the last run began or succeeded; None if not
    known."""
    remaining: Optional[float]
    """Seconds until the lease, or the period, ends on the server; None for a key without expiry."""
    mode: HoldMode
    """Read, write, or upgrade: a reader that waits to write; write for every lock that is not a
    read-write lock."""
    permits: int
    """Permits of a semaphore that it has; 0 for every other lock."""
    candidate: str
    """Id of the candidate, from the option id; empty without one."""
    recallable: int
    """1 if its client may only retain the lock, for no caller, and gives it up when another one
    asks: the server cannot tell; else 0."""
    # ---- end of Holder ----


@dataclass(frozen=True)
class Waiter:
    """A waiter for a lock."""

    # ---- Waiter: made of info_fields.def by tools/gen_info.py ----
    token: str
    """The token, or the value of a foreign key."""
    who: str
    """Host name and process id, or the option holder; empty if not known: the holder has not
    waited, and has held for less than half a second, or the ACL user may not write it."""
    since: Optional[datetime]
    """When it was granted, joined the queue, or when the last run began or succeeded; None if not
    known."""
    mode: WaitMode
    """Read, write, or upgrade: a reader that waits to write; write for every lock that is not a
    read-write lock."""
    candidate: str
    """Id of the candidate, from the option id; empty without one."""
    # ---- end of Waiter ----


@dataclass(frozen=True)
class Mark:
    """A period of once in which a run has begun, and that has not ended."""

    # ---- Mark: made of info_fields.def by tools/gen_info.py ----
    since: Optional[datetime]
    """When it was granted, joined the queue, or when the last run began or succeeded; None if not
    known."""
    remaining: Optional[float]
    """Seconds until the lease, or the period, ends on the server; None for a key without expiry."""
    key: str
    """The text that names the period; empty without one."""
    done: int
    """1 if a run of the period has succeeded; else 0."""
    tries: int
    """Number of runs of the period."""
    # ---- end of Mark ----

    @property
    def is_done(self) -> bool:
        """True after a run of the period has succeeded."""
        return self.done != 0


@dataclass(frozen=True)
class LockInfo:
    """A snapshot of a lock.

    Its times come from the server's clock; do not compare them with the local clock. A free lock
    has None as `remaining`.
    """

    # ---- LockInfo: made of info_fields.def by tools/gen_info.py ----
    name: str
    """Name of the lock."""
    state: LockState
    """The state."""
    fence: int
    """The last fence that the server granted; 0 if not known; the holder's is up to 31 higher after
    hand-offs in its client."""
    waiting: int
    """Number of waiters, also those that are not listed."""
    type: str
    """Type of the key; 'none' if the lock is free."""
    server_time: datetime
    """The server's clock at the time of the snapshot; only to be shown."""
    remaining: Optional[float]
    """Seconds until the lease, or the period, ends on the server; None for a key without expiry."""
    holders: tuple[Holder, ...]
    """Readers, a writer, or acquisitions of an owner."""
    waiters: tuple[Waiter, ...]
    """The waiters, in the order of the queue."""
    hold_count: int
    """Number of readers, or of leases of the owner, also those that are not listed."""
    owner: str
    """Owner of a reentrant lock; empty if it is free or of another kind."""
    used: int
    """Permits of a semaphore that are out; 0 for every other lock."""
    limit: int
    """The limit of the caller that got permits last; 0 if none are out."""
    cap: int
    """The limit that an operator has set for all callers; -1 without one."""
    cap_remaining: Optional[float]
    """Seconds until the cap ends; None without an end of its own."""
    marks: tuple[Mark, ...]
    """The periods of once in which a run has begun, in no order."""
    # ---- end of LockInfo ----

    @property
    def holder(self) -> Optional[Holder]:
        """The holder; the first one of several; None if the lock is free."""
        return self.holders[0] if self.holders else None

    @property
    def mode(self) -> Optional[HoldMode]:
        """The mode of the holder; None if the lock is free."""
        return self.holders[0].mode if self.holders else None

    @property
    def is_free(self) -> bool:
        """True if the lock has no holder."""
        return self.state is LockState.FREE


@dataclass(frozen=True)
class SemaphoreStats:
    """The numbers of a semaphore at one moment."""

    used: int
    """Permits that are out."""
    limit: int
    """The limit that counts for this object: the smaller one of its own and the cap."""
    cap: Optional[int]
    """The limit that an operator has set for all callers; None without one."""
    waiting: int
    """Number of waiters."""


class NodeState(Enum):
    """The state of a server of a client, as last known."""

    UNKNOWN = _constant("NODE_UNKNOWN")
    """No attempt to connect has ended yet."""
    UP = _constant("NODE_UP")
    """Connected; the server of a Redlock may vote."""
    POLLED = _constant("NODE_POLLED")
    """Connected, but waiters poll, which is slower: a right is missing, or there is a proxy."""
    NO_VOTE = _constant("NODE_NO_VOTE")
    """A server of a Redlock that is connected, but has no vote now."""
    AWAY = _constant("NODE_AWAY")
    """Not connected."""


class NodeRole(Enum):
    """The role of a server."""

    UNKNOWN = _constant("ROLE_UNKNOWN")
    PRIMARY = _constant("ROLE_PRIMARY")
    REPLICA = _constant("ROLE_REPLICA")
    CLUSTER_MEMBER = _constant("ROLE_CLUSTER_MEMBER")


class Level(Enum):
    """The severity of a finding."""

    UNKNOWN = _constant("LEVEL_UNKNOWN")
    """The check had no result: a right is missing, or no answer came."""
    OK = _constant("LEVEL_OK")
    WARN = _constant("LEVEL_WARN")
    """Locks may be lost, or are slower."""
    FAIL = _constant("LEVEL_FAIL")
    """A lock may have two holders, or cannot be acquired."""


@dataclass(frozen=True)
class Finding:
    """A result of a check of a server."""

    # ---- Finding: made of info_fields.def by tools/gen_info.py ----
    address: str
    """Address of the server, without secrets."""
    id: str
    """Name of the check, such as eviction; docs/health.md has the list."""
    level: Level
    """The severity."""
    seen: str
    """The value that was found, in words."""
    advice: str
    """A remedy; empty if none is needed."""
    # ---- end of Finding ----

    @property
    def is_bad(self) -> bool:
        """True if the level is WARN or FAIL."""
        return self.level in (Level.WARN, Level.FAIL)


@dataclass(frozen=True)
class NodeInfo:
    """A server of a client, as last known."""

    # ---- NodeInfo: made of info_fields.def by tools/gen_info.py ----
    address: str
    """Address of the server, without secrets."""
    state: NodeState
    """The state."""
    reason: str
    """Why it is polled, has no vote or is away; else empty."""
    role: NodeRole
    """Role, as the server reports it."""
    version: str
    """Name and version, such as Valkey 8.0.1; empty if not known."""
    clock_difference: Optional[float]
    """Seconds by which its clock was ahead of the local clock, as last measured; None if not
    known."""
    findings: tuple[Finding, ...]
    """The findings of its last check; empty before the first."""
    # ---- end of NodeInfo ----

    @property
    def votes(self) -> bool:
        """True if it is connected and, in a Redlock, may vote."""
        return self.state in (NodeState.UP, NodeState.POLLED)


class _Row:
    """A row of a part of an rl_info."""

    def __init__(self, info: _core.Info, part: str, index: int) -> None:
        self._at = info, _constant(f"PART_{part}"), index

    def has(self, field: str) -> bool:
        return _core.info_has(*self._at, _constant(f"FIELD_{field}")) != 0

    def number(self, field: str) -> int:
        return _core.info_number(*self._at, _constant(f"FIELD_{field}"))

    def text(self, field: str) -> str:
        return to_text(_core.info_text(*self._at, _constant(f"FIELD_{field}")))

    def time(self, field: str) -> Optional[datetime]:
        ms = self.number(field)
        try:
            return _EPOCH + timedelta(milliseconds=ms) if ms > 0 else None
        except OverflowError:  # No clock says so, but a broken server might.
            return None

    def now(self, field: str) -> datetime:
        return self.time(field) or _EPOCH

    def remaining(self, field: str) -> Optional[float]:
        ms = self.number(field)
        return ms / 1000 if ms >= 0 else None

    def clock(self, field: str) -> Optional[float]:
        return self.number(field) / 1000 if self.has(field) else None

    def hold_mode(self, field: str) -> HoldMode:
        return "read" if self.number(field) == READ else "write"

    def wait_mode(self, field: str) -> WaitMode:
        return _WAIT_MODES.get(self.number(field), "write")


# ---- readers: made of info_fields.def by tools/gen_info.py ----
def _read_lock(row: _Row, **rest: Any) -> LockInfo:
    return LockInfo(
        name=row.text("NAME"),
        state=LockState(row.number("STATE")),
        type=row.text("TYPE"),
        remaining=row.remaining("REMAINING_MS"),
        fence=row.number("FENCE"),
        owner=row.text("OWNER"),
        hold_count=row.number("HOLDING"),
        waiting=row.number("WAITING"),
        used=row.number("USED"),
        limit=row.number("LIMIT"),
        cap=row.number("CAP"),
        cap_remaining=row.remaining("CAP_REMAINING_MS"),
        server_time=row.now("SERVER_MS"),
        **rest,
    )


def _read_holder(row: _Row, **rest: Any) -> Holder:
    return Holder(
        token=row.text("TOKEN"),
        who=row.text("HOLDER"),
        permits=row.number("PERMITS"),
        label=row.text("LABEL"),
        candidate=row.text("CANDIDATE"),
        recallable=row.number("RECALLABLE"),
        mode=row.hold_mode("MODE"),
        since=row.time("SINCE_MS"),
        remaining=row.remaining("REMAINING_MS"),
        **rest,
    )


def _read_waiter(row: _Row, **rest: Any) -> Waiter:
    return Waiter(
        token=row.text("TOKEN"),
        who=row.text("HOLDER"),
        candidate=row.text("CANDIDATE"),
        mode=row.wait_mode("MODE"),
        since=row.time("SINCE_MS"),
        **rest,
    )


def _read_mark(row: _Row, **rest: Any) -> Mark:
    return Mark(
        since=row.time("SINCE_MS"),
        remaining=row.remaining("REMAINING_MS"),
        key=row.text("KEY"),
        done=row.number("DONE"),
        tries=row.number("TRIES"),
        **rest,
    )


def _read_node(row: _Row, **rest: Any) -> NodeInfo:
    return NodeInfo(
        address=row.text("ADDRESS"),
        state=NodeState(row.number("STATE")),
        reason=row.text("REASON"),
        role=NodeRole(row.number("ROLE")),
        version=row.text("VERSION"),
        clock_difference=row.clock("CLOCK_MS"),
        **rest,
    )


def _read_finding(row: _Row, **rest: Any) -> Finding:
    return Finding(
        address=row.text("ADDRESS"),
        id=row.text("ID"),
        level=Level(row.number("LEVEL")),
        seen=row.text("SEEN"),
        advice=row.text("ADVICE"),
        **rest,
    )
# ---- end of readers ----


def _rows(info: _core.Info, part: str) -> list[_Row]:
    count = _core.info_count(info, _constant(f"PART_{part}"))
    return [_Row(info, part, index) for index in range(count)]


def read_stats(info: _core.Info, limit: int) -> SemaphoreStats:
    """The numbers for an object with this limit."""
    row = _Row(info, "LOCK", 0)
    cap = row.number("CAP")
    return SemaphoreStats(
        used=row.number("USED"),
        limit=limit if cap < 0 else min(limit, cap),
        cap=None if cap < 0 else cap,
        waiting=row.number("WAITING"),
    )


def read_info(info: _core.Info) -> LockInfo:
    """The LockInfo of an rl_info."""
    made = _read_lock(
        _Row(info, "LOCK", 0),
        holders=tuple(map(_read_holder, _rows(info, "HOLDER"))),
        waiters=tuple(map(_read_waiter, _rows(info, "WAITER"))),
        marks=tuple(map(_read_mark, _rows(info, "MARK"))),
    )
    return replace(made, remaining=None) if made.is_free else made


def read_position(info: _core.Info) -> int:
    """The position of an answer about a leader, for the next question."""
    return _Row(info, "LOCK", 0).number("POSITION")


def read_nodes(info: _core.Info) -> tuple[NodeInfo, ...]:
    found = _rows(info, "FINDING")
    return tuple(
        _read_node(
            node, findings=tuple(_read_finding(row) for row in found if row.number("NODE") == at)
        )
        for at, node in enumerate(_rows(info, "NODE"))
    )


def read_findings(info: _core.Info) -> tuple[Finding, ...]:
    return tuple(map(_read_finding, _rows(info, "FINDING")))
