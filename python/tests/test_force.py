# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a forced release without a token removes locks of redlatch, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import pytest
import redlatch
from redlatch import LockInfo, _force
from redlatch.testing import expire, steal
from support.servers import Server

from .both import Both

# The command that makes each key.
OTHERS = {
    "a counter": ("SET", "report", "5"),
    "a session": ("SET", "report", "0f3a", "EX", "600"),
    "a lock of redis-py": ("SET", "report", "6ecf2c43d7b811ef8d3d0242ac120002", "PX", "600000"),
    "a queue": ("RPUSH", "report", "job"),
    "permits": ("HSET", "report", "a", "1", "b", "x"),
    "a semaphore": ("ZADD", "report", "1", "a"),
}


def force(both: Both, client: redlatch.Client, *arguments: Any, **keywords: Any) -> None:
    if both.has_tasks:
        both.run(client.aio.force_release(*arguments, **keywords))
    else:
        client.force_release(*arguments, **keywords)


@pytest.mark.parametrize("other", OTHERS)
def test_data_stay(both: Both, other: str, server: Server, client: redlatch.Client) -> None:
    with server.connect() as admin:
        admin.cmd(*OTHERS[other])
        kind = admin.cmd("TYPE", "report")
        with pytest.raises(redlatch.WrongType, match=f"'report' must .*got a {kind} .*any=True"):
            force(both, client, "report")
        for remove in (expire, steal):
            with pytest.raises(redlatch.WrongType):
                remove(client, "report")
        assert admin.cmd("EXISTS", "report") == 1


@pytest.mark.parametrize("other", ["a counter", "a session", "a lock of redis-py"])
def test_any_removes_strings(
    both: Both, other: str, server: Server, client: redlatch.Client
) -> None:
    with server.connect() as admin:
        admin.cmd(*OTHERS[other])
        force(both, client, "report", any=True)
        assert admin.cmd("EXISTS", "report") == 0
        admin.cmd(*OTHERS[other])
        expire(client, "report", any=True)
        assert admin.cmd("EXISTS", "report") == 0
        admin.cmd(*OTHERS[other])
        with steal(client, "report", any=True) as lease:
            assert lease.held


def test_locks_of_every_kind_are_removed(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    rwlock, rlock = other.rwlock("report"), other.rlock("report")
    hashed = other.rwlock("report", format="hash-rw")
    kinds: list[list[Callable[[], Optional[redlatch.Lease]]]] = [
        [lambda: other.acquire("report")],
        [lambda: other.acquire("report", format="hash")],
        [rwlock.acquire_read],
        [rwlock.acquire_read, rwlock.acquire_read],
        [rwlock.acquire_write],
        [hashed.acquire_read, hashed.acquire_read],
        [rlock.acquire, rlock.acquire],
    ]
    for takes in kinds:
        leases = [take() for take in takes]
        force(both, client, "report")
        assert client.inspect("report").is_free
        for lease in leases:
            assert lease is not None
            with pytest.raises(redlatch.LockLost):
                lease.release()
    with pytest.raises(redlatch.NotHeld, match="'report' is free"):
        force(both, client, "report")
    with pytest.raises(redlatch.NotHeld):
        force(both, client, "report", any=True)


def test_a_token_and_any_exclude_each_other(both: Both, client: redlatch.Client) -> None:
    with pytest.raises(TypeError, match="any=True must not be given with a token"):
        force(both, client, "report", "token", any=True)
    with pytest.raises(redlatch.Invalid, match="token must be that of a holder"):
        force(both, client, "report", "")
    with pytest.raises(TypeError, match="token"):
        force(both, client, "report", None)


def test_a_lock_that_is_handed_on_meanwhile_is_removed(
    client: redlatch.Client, other: redlatch.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = [other.acquire("report")]
    look = _force.token_of

    def look_and_hand_on(info: LockInfo) -> Any:
        found = look(info)
        assert leases[-1] is not None and leases[-1].release()
        leases.append(other.acquire("report"))
        return found

    monkeypatch.setattr("redlatch._client.token_of", look_and_hand_on)
    client.force_release("report")
    assert client.inspect("report").is_free and len(leases) == 4
    assert leases[-1] is not None
    with pytest.raises(redlatch.LockLost):
        leases[-1].release()
