# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: on a server with limits a lock works as docs/servers.md says: it hands off, its waiters
poll, or it is refused with a message that names the command.

Method: for each row of support/limits.py a real server whose commands are renamed away, or a proxy
before it, and a short run of everything; `redlatch doctor` says whether waiters are notified.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from support.limits import HANDS_OFF, POLLS, REFUSED, ROWS, Limit, without
from support.servers import Server, available_kinds, has_sharded_channels
from support.wait import wait_until

from .actor import Spawn
from .limited import LimitedServer
from .plays import (
    HASH,
    HASH_RW,
    QUIET_S,
    SECRET,
    SPACE,
    HandOff,
    finding,
    minimal_rules,
    own_queue,
    play_everything,
    play_hand_off,
    play_listing,
    play_readers_and_renewal,
    scripts_within,
)


KINDS = available_kinds()
if not os.environ.get("REDLATCH_TEST_LONG"):
    KINDS = KINDS[-1:]  # the newest


def is_possible(kind: str, limit: Limit) -> bool:
    return has_sharded_channels(kind) or not limit.names_sharded_channels


@pytest.fixture(
    params=[(kind, limit) for limit in ROWS for kind in KINDS if is_possible(kind, limit)],
    ids=lambda it: f"{it[1].name}-{it[0]}",
)
def limited(request: pytest.FixtureRequest) -> Iterator[LimitedServer]:
    with LimitedServer(*request.param) as server:
        yield server


def test_a_lock_works_or_is_refused_by_name(
    limited: LimitedServer, spawn: Spawn, name: str
) -> None:
    limit, url = limited.limit, limited.url
    url += ("&" if "?" in url else "?") + f"namespace={SPACE}"
    if limit.result == REFUSED:
        reply = spawn(url).call("acquire", name=name, wait=0)
        assert (reply.status, limit.message in reply.message) == (limit.status, True), reply
        return
    one, two = spawn(url), spawn(url)
    hand_off = play_everything(limited, one, two, name)
    if limit.result == HANDS_OFF:
        assert hand_off.is_by_message, hand_off
    play_readers_and_renewal(one, two, name)
    play_hand_off(one, two, f"{name}-hash", HASH)
    play_hand_off(one, two, f"{name}-hash-rw", HASH_RW)
    if limit.proxy == "undeclared":
        reply = one.call("acquire", name=f"{name}-rw", wait=0, read=1, format=HASH_RW, ttl_ms=300)
        assert reply.status == "RL_E_SERVER" and "undeclared key" in reply.message, reply
    else:
        play_readers_and_renewal(one, two, f"{name}-rw", format=HASH_RW)
    if limit.option:
        reply = one.call("acquire", name=name, wait=0, **{limit.option: 1})
        assert (reply.status, limit.message in reply.message) == (limit.status, True), reply
    play_listing(one, url, f"{name}-listed")
    pushes, channels = finding(url, "pushes"), finding(url, "channels")
    assert pushes["level"] == ("warn" if limit.result == POLLS else "ok"), pushes
    if limit.result == POLLS:
        assert limit.message in pushes["seen"], pushes
    expected = limit.channels if has_sharded_channels(limited.kind) else "plain"
    assert expected in channels["seen"]


def test_users_with_different_rights_choose_the_same_channels(spawn: Spawn, name: str) -> None:
    """Goal: on a server that names 7.0 and lacks SPUBLISH, the release of a user that may not
    subscribe reaches a waiter that may: the kind of channel depends on the server only.
    Method: the holder is the user without the right, whose own waiters poll."""
    with Server("redis", without("SPUBLISH")) as server:
        rules = [rule for rule in minimal_rules(server.kind, "mute") if rule != "+spublish"]
        with server.connect() as connection:
            connection.cmd(*rules, "-subscribe", "-ssubscribe")
        url = f"{server.url}?namespace={SPACE}"
        mute = spawn(url.replace("://", f"://mute:{SECRET}@") + "&health=no")
        waiter = spawn(url)
        mute.ok("acquire", name=name, wait=0)
        waiting = waiter.begin("acquire", name=name, wait=-1)
        wait_until(lambda: own_queue(server, name) == 1)
        scripts = scripts_within(server, QUIET_S)
        released = mute.ok("release")
        assert HandOff(waiting.get().ended - released.began, scripts).is_by_message
