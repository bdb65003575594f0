# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Locks that processes on many hosts share, over Redis or Valkey servers.

    import redlatch

    client = redlatch.connect("redis://localhost:6379")
    with client.lock("report", ttl=30, timeout=5) as lease:
        write(fence=lease.fence)  # and let the resource refuse a lower one
"""

from __future__ import annotations

from . import _core
from ._aio import Aio, RedlockAio
from ._aio_election import AsyncCampaign, AsyncElection, AsyncTerm
from ._aio_lease import AsyncLease
from ._aio_locks import AsyncLock, AsyncLocks, AsyncRLock, AsyncRWLock, AsyncRWSide, AsyncSemaphore
from ._candidacy import Leader
from ._client import Client, connect, from_env
from ._credentials import Credentials
from ._election import Campaign, Election, Term
from ._errors import (
    AlreadyHeld,
    Closed,
    Deadlock,
    Denied,
    Error,
    Forked,
    InternalError,
    Invalid,
    LockLost,
    NoMemory,
    NotAcquired,
    NotHeld,
    NotReplicated,
    OutcomeUnknown,
    ServerError,
    SingleFlightError,
    Unavailable,
    Unsupported,
    WrongType,
)
from ._info import (
    Finding,
    Holder,
    Level,
    LockInfo,
    LockState,
    NodeInfo,
    NodeRole,
    NodeState,
    SemaphoreStats,
    Mark,
    Waiter,
)
from ._lease import Lease, LostReason
from ._lock import Lock, Locks, RLock, RWLock, RWSide, Semaphore
from ._option_table import ClientOptions, RedlockOptions
from ._redlock import Redlock
from ._status import Status

__version__ = _core.version()

__all__ = [
    "Aio",
    "AlreadyHeld",
    "AsyncCampaign",
    "AsyncElection",
    "AsyncLease",
    "AsyncLock",
    "AsyncLocks",
    "AsyncRLock",
    "AsyncRWLock",
    "AsyncRWSide",
    "AsyncSemaphore",
    "AsyncTerm",
    "Campaign",
    "Client",
    "ClientOptions",
    "Closed",
    "Credentials",
    "Deadlock",
    "Denied",
    "Election",
    "Error",
    "Finding",
    "Forked",
    "Holder",
    "InternalError",
    "Invalid",
    "Leader",
    "Lease",
    "Level",
    "Lock",
    "Locks",
    "LockInfo",
    "LockLost",
    "LockState",
    "LostReason",
    "NoMemory",
    "NodeInfo",
    "NodeRole",
    "NodeState",
    "NotAcquired",
    "NotHeld",
    "NotReplicated",
    "OutcomeUnknown",
    "RLock",
    "RWLock",
    "RWSide",
    "Redlock",
    "RedlockAio",
    "RedlockOptions",
    "Semaphore",
    "SemaphoreStats",
    "ServerError",
    "SingleFlightError",
    "Status",
    "Term",
    "Unavailable",
    "Unsupported",
    "Mark",
    "Waiter",
    "WrongType",
    "connect",
    "from_env",
]

# As users name them, also in tracebacks.
for _name in __all__:
    globals()[_name].__module__ = __name__
del _name
