# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: groups of servers with sentinels work as a test asks.
Method: real failovers; an owner that is killed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from .program import is_alive
from .resp import RespError
from .sentinel import DOWN_AFTER_MS, NEVER_MS, Access, Replicated, SentinelGroup
from .servers import available_kinds
from .test_support import said_before_it_was_killed
from .tls import Authority
from .wait import wait_until


@pytest.mark.parametrize("kind", available_kinds())
def test_replicas_have_what_the_primary_has(kind: str) -> None:
    with Replicated(kind, replicas=2) as group:
        with group.connect(group.primary) as connection:
            connection.cmd("SET", "a", 1)
            assert connection.cmd("WAIT", 2, 10_000) == 2
            group.replicas[0].pause()
            connection.cmd("SET", "a", 2)
            assert connection.cmd("WAIT", 2, 50) == 1
            group.replicas[0].resume()
            assert connection.cmd("WAIT", 2, 10_000) == 2
        assert [group.cmd(replica, "GET", "a") for replica in group.replicas] == [b"2", b"2"]


@pytest.mark.parametrize("kind", available_kinds())
def test_the_sentinels_replace_a_primary(kind: str) -> None:
    with SentinelGroup(kind) as group:
        old = group.primary
        with group.connect(old) as connection:
            connection.cmd("SET", "a", 1)
            # It waits for what was written by its own connection.
            assert connection.cmd("WAIT", 2, 10_000) == 2
        old.kill()
        new = group.await_switch(old)
        assert group.primary is new and group.cmd(new, "GET", "a") == b"1"
        group.rejoin(old)
        group.await_ready()
        assert group.failover() is not new


def test_unplanned_failover_is_seen() -> None:
    """Method: the primary does not run for a while, as on a busy machine."""
    for down_after_ms, is_replaced in ((DOWN_AFTER_MS, True), (4000, False)):
        with SentinelGroup(down_after_ms=down_after_ms) as group:
            old, before = group.primary, group.epoch
            old.pause()
            if is_replaced:
                group.await_switch(old)
            else:
                time.sleep(2)
            old.resume()
            assert (group.epoch != before) == is_replaced


def test_servers_and_sentinels_ask_for_different_passwords(tmp_path: Path) -> None:
    server, sentinel = Access("server-secret", "app"), Access("sentinel-secret", "ops")
    certificate = Authority(tmp_path).certificate("IP:127.0.0.1")
    group = SentinelGroup(
        down_after_ms=NEVER_MS, access=server, sentinel_access=sentinel, tls=certificate
    )
    with group:
        for one in (*group.servers, *group.sentinels):
            with one.connect() as connection, pytest.raises(RespError, match="NOAUTH"):
                connection.cmd("PING")
        assert group.url().startswith("rediss-sentinel://127.0.0.1:")
        old = group.primary
        assert group.failover() is not old


def test_no_sentinel_outlives_a_killed_owner() -> None:
    words = said_before_it_was_killed(
        "from support.sentinel import NEVER_MS, SentinelGroup\n"
        "group = SentinelGroup(down_after_ms=NEVER_MS).__enter__()\n"
        "print(*(one.pid for one in (*group.servers, *group.sentinels)), flush=True)\n"
    )
    pids = [int(word) for word in words]
    assert len(pids) == 6
    wait_until(lambda: not any(map(is_alive, pids)))
