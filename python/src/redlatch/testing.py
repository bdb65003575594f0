# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Helpers for tests of programs that use locks: cause the loss of a lock on demand.

    def test_stops_when_the_lock_is_lost(redlatch_client):
        with pytest.raises(redlatch.LockLost):
            with redlatch_client.lock("report") as lease:
                redlatch.testing.steal(redlatch_client, "report")
                lease.check()
"""

from __future__ import annotations

import gc

from . import _core
from ._advice import made
from ._aio_lease import AsyncLease
from ._client import Client
from ._convert import Name, Seconds, shown
from ._errors import new_error
from ._info import LockInfo, LockState
from ._lease import Lease
from ._option_table import Format

__all__ = ["assert_free", "assert_locked", "expire", "steal"]


def expire(client: Client, name: Name, *, any: bool = False) -> None:
    """End all leases of the lock `name` now, as if its holder had been cut off for too long.

    any  True: also locks of other libraries, which raise WrongType otherwise

    The next waiter gets the lock. Leases of this process are lost at once; a holder in another
    process finds out at its next renewal, within a third of its ttl. Raises NotHeld if the lock is
    free.
    """
    info = client.inspect(name)
    holders = info.holders
    if len(holders) == 1 and (any or info.state is LockState.HELD):
        # By its token, so that a later holder is spared.
        client.force_release(name, holders[0].token)
    else:
        client.force_release(name, any=any)
    _notice({holder.token for holder in holders})


def steal(
    client: Client, name: Name, ttl: Seconds = None, *, any: bool = False
) -> Lease:
    """Take the lock `name` away from its holder. Return the lease of another client.

    Waits behind the queue of the lock. Otherwise as expire().
    """
    thief = made(Client, client._url, client._options)
    info = client.inspect(name)
    if not info.is_free:
        expire(client, name, any=any)
    lease = thief.acquire(name, ttl=ttl, format=_format_of(info))
    assert lease is not None
    return lease


def assert_locked(client: Client, name: Name) -> LockInfo:
    """Fail if the lock `name` is free. Return a snapshot of it."""
    info = client.inspect(name)
    assert not info.is_free, f"lock {shown(info.name)} is free (expected: held)"
    return info


def assert_free(client: Client, name: Name) -> LockInfo:
    """Fail if the lock `name` is held. Return a snapshot of it."""
    info = client.inspect(name)
    who = f" by {info.holder.who or info.holder.token}" if info.holder else ""
    assert info.is_free, f"lock {shown(info.name)} is held{who} (expected: free)"
    return info


def _format_of(info: LockInfo) -> Format:
    if info.type != "hash":
        return "string"
    return "hash" if info.owner else "hash-rw"


def _notice(tokens: set[str]) -> None:
    """Let the leases with `tokens` ask the server, so that they find out about the new holder."""
    for found in gc.get_objects():
        if issubclass(type(found), (Lease, AsyncLease)) and found.held and found.token in tokens:
            _core.extend(found._handle, max(round(found.remaining * 1000), 1000), new_error())
