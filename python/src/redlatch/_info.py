# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Snapshots of locks and servers, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Optional

from . import _core
from ._convert import to_text
from ._mode import READ, UPGRADE, HoldMode, WaitMode

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _constant(name: str) -> int:
    return _core.constant(f"RL_{name}".encode(), 0)


_LOCK, _HOLDER, _WAITER = map(_constant, ("PART_LOCK", "PART_HOLDER", "PART_WAITER"))
_STATE = _constant("FIELD_STATE")
_REMAINING_MS = _constant("FIELD_REMAINING_MS")
_FENCE = _constant("FIELD_FENCE")
_WAITING = _constant("FIELD_WAITING")
_SERVER_MS = _constant("FIELD_SERVER_MS")
_SINCE_MS = _constant("FIELD_SINCE_MS")
_TYPE = _constant("FIELD_TYPE")
_NAME = _constant("FIELD_NAME")
_TOKEN = _constant("FIELD_TOKEN")
_HOLDER_NAME = _constant("FIELD_HOLDER")
_LABEL = _constant("FIELD_LABEL")
_HOLDING = _constant("FIELD_HOLDING")
_MODE = _constant("FIELD_MODE")
_NODE = _constant("PART_NODE")
_ADDRESS = _constant("FIELD_ADDRESS")
_REASON = _constant("FIELD_REASON")
_ROLE = _constant("FIELD_ROLE")
_VERSION = _constant("FIELD_VERSION")
_CLOCK_MS = _constant("FIELD_CLOCK_MS")
_OWNER = _constant("FIELD_OWNER")
_FINDING = _constant("PART_FINDING")
_LEVEL = _constant("FIELD_LEVEL")
_NODE_ROW = _constant("FIELD_NODE")
_ID = _constant("FIELD_ID")
_SEEN = _constant("FIELD_SEEN")
_ADVICE = _constant("FIELD_ADVICE")
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

    token: str
    """The token, or the value of a foreign key."""
    who: str
    """Host name and process id, or the option `holder`; "" if not known."""
    label: str
    """The option `label` of the acquisition; "" without one."""
    since: Optional[datetime]
    """When it was granted; None if not known."""
    remaining: Optional[float]
    """Seconds until the lease ends on the server; None: the key has no expiry."""
    mode: HoldMode
    """"read"; or "write", also for every lock that is not a read-write lock."""


@dataclass(frozen=True)
class Waiter:
    """A waiter for a lock."""

    token: str
    who: str
    """Host name and process id, or the option `holder`; "" if not known."""
    since: Optional[datetime]
    """When it joined the queue; None if not known."""
    mode: WaitMode
    """"read", "write", or "upgrade": a reader that waits to write."""


@dataclass(frozen=True)
class LockInfo:
    """A snapshot of a lock.

    Its times come from the server's clock; do not compare them with the local clock.
    """

    name: str
    """The name of the lock."""
    state: LockState
    fence: int
    """The last fence that the server granted; 0 if not known."""
    waiting: int
    """Number of waiters, including those that `waiters` leaves out."""
    type: str
    """Type of the key; "none" if the lock is free."""
    server_time: datetime
    """The server's clock at the time of the snapshot."""
    remaining: Optional[float]
    """Seconds until the lease ends on the server; None: free, or a key without expiry."""
    holders: tuple[Holder, ...]
    waiters: tuple[Waiter, ...]
    """The waiters, in the order of the queue."""
    hold_count: int
    """Number of readers, or of leases of the owner, including those that `holders` leaves out."""
    owner: str
    """Owner of a reentrant lock; "" if the lock is free or of another kind."""

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

    address: str
    """Address of the server, without secrets."""
    id: str
    """The check, such as "eviction"."""
    level: Level
    seen: str
    """The value that was found."""
    advice: str
    """A remedy; "" if none is needed."""

    @property
    def is_bad(self) -> bool:
        """True if the level is WARN or FAIL."""
        return self.level in (Level.WARN, Level.FAIL)


@dataclass(frozen=True)
class NodeInfo:
    """A server of a client, as last known."""

    address: str
    """Address, without secrets."""
    state: NodeState
    reason: str
    """The reason of POLLED, NO_VOTE and AWAY; else ""."""
    role: NodeRole
    version: str
    """Name and version, such as "Valkey 8.0.1"; "" if not known."""
    clock_difference: Optional[float]
    """Seconds that its clock was ahead of the local clock, as last measured; None if not known."""
    findings: tuple[Finding, ...]
    """The findings of its last check; empty before the first."""

    @property
    def votes(self) -> bool:
        """True if it is connected and, in a Redlock, may vote."""
        return self.state in (NodeState.UP, NodeState.POLLED)


class _Reader:
    """Rows and fields of one rl_info."""

    def __init__(self, info: _core.Info) -> None:
        self._info = info

    def rows(self, part: int) -> range:
        return range(_core.info_count(self._info, part))

    def number(self, part: int, row: int, field: int) -> int:
        return _core.info_number(self._info, part, row, field)

    def has(self, part: int, row: int, field: int) -> bool:
        return _core.info_has(self._info, part, row, field) != 0

    def text(self, part: int, row: int, field: int) -> str:
        return to_text(_core.info_text(self._info, part, row, field))

    def time(self, part: int, row: int, field: int) -> Optional[datetime]:
        ms = self.number(part, row, field)
        try:
            return _EPOCH + timedelta(milliseconds=ms) if ms > 0 else None
        except OverflowError:  # No clock says so, but a broken server might.
            return None

    def remaining(self, part: int, row: int) -> Optional[float]:
        ms = self.number(part, row, _REMAINING_MS)
        return ms / 1000 if ms >= 0 else None


def read_info(info: _core.Info) -> LockInfo:
    """The LockInfo of an rl_info."""
    reader = _Reader(info)
    holders = tuple(
        Holder(
            token=reader.text(_HOLDER, row, _TOKEN),
            who=reader.text(_HOLDER, row, _HOLDER_NAME),
            label=reader.text(_HOLDER, row, _LABEL),
            since=reader.time(_HOLDER, row, _SINCE_MS),
            remaining=reader.remaining(_HOLDER, row),
            mode="read" if reader.number(_HOLDER, row, _MODE) == READ else "write",
        )
        for row in reader.rows(_HOLDER)
    )
    waiters = tuple(
        Waiter(
            token=reader.text(_WAITER, row, _TOKEN),
            who=reader.text(_WAITER, row, _HOLDER_NAME),
            since=reader.time(_WAITER, row, _SINCE_MS),
            mode=_WAIT_MODES.get(reader.number(_WAITER, row, _MODE), "write"),
        )
        for row in reader.rows(_WAITER)
    )
    state = LockState(reader.number(_LOCK, 0, _STATE))
    return LockInfo(
        name=reader.text(_LOCK, 0, _NAME),
        state=state,
        fence=reader.number(_LOCK, 0, _FENCE),
        waiting=reader.number(_LOCK, 0, _WAITING),
        type=reader.text(_LOCK, 0, _TYPE),
        server_time=reader.time(_LOCK, 0, _SERVER_MS) or _EPOCH,
        remaining=None if state is LockState.FREE else reader.remaining(_LOCK, 0),
        holders=holders,
        waiters=waiters,
        hold_count=reader.number(_LOCK, 0, _HOLDING),
        owner=reader.text(_LOCK, 0, _OWNER),
    )


def read_nodes(info: _core.Info) -> tuple[NodeInfo, ...]:
    reader = _Reader(info)
    return tuple(_read_node(reader, row) for row in reader.rows(_NODE))


def read_findings(info: _core.Info) -> tuple[Finding, ...]:
    reader = _Reader(info)
    return tuple(_read_finding(reader, row) for row in reader.rows(_FINDING))


def _read_finding(reader: _Reader, row: int) -> Finding:
    return Finding(
        address=reader.text(_FINDING, row, _ADDRESS),
        id=reader.text(_FINDING, row, _ID),
        level=Level(reader.number(_FINDING, row, _LEVEL)),
        seen=reader.text(_FINDING, row, _SEEN),
        advice=reader.text(_FINDING, row, _ADVICE),
    )


def _read_node(reader: _Reader, row: int) -> NodeInfo:
    has_clock = reader.has(_NODE, row, _CLOCK_MS)
    return NodeInfo(
        address=reader.text(_NODE, row, _ADDRESS),
        state=NodeState(reader.number(_NODE, row, _STATE)),
        reason=reader.text(_NODE, row, _REASON),
        role=NodeRole(reader.number(_NODE, row, _ROLE)),
        version=reader.text(_NODE, row, _VERSION),
        clock_difference=reader.number(_NODE, row, _CLOCK_MS) / 1000 if has_clock else None,
        findings=tuple(
            _read_finding(reader, found)
            for found in reader.rows(_FINDING)
            if reader.number(_FINDING, found, _NODE_ROW) == row
        ),
    )
