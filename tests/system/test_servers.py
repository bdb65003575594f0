# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: on a server with limits a lock works as docs/servers.md says: it hands off, its waiters
poll, or it is refused with a message that names the command.

Method: for each row of support/limits.py a real server whose commands are renamed away, or a proxy
before it, and a short run of everything; `redlatch doctor` says whether waiters are notified.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.build import built
from support.limits import HANDS_OFF, LIMITS, POLLS, REFUSED, Limit, without
from support.servers import Server, available_kinds
from support.wait import wait_until

from .actor import FREE, HELD, Actor
from .limited import KEY_RULES
from .proxy import FaultProxy
from .test_rights import POLL_S, SECRET, SPACE, minimal_rules, own_queue, play_everything

Spawn = Callable[[str], Actor]

HASH = 2  # RL_FORMAT_HASH
KINDS = available_kinds()
if not os.environ.get("REDLATCH_TEST_LONG"):
    KINDS = KINDS[-1:]  # the newest


class Limited:
    """A server with a limit, and the URL that clients use."""

    def __init__(self, server: Server, url: str, limit: Limit) -> None:
        self.server, self.limit = server, limit
        self.url = f"{url}?namespace={SPACE}" + (f"&{limit.query}" if limit.query else "")

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(built("cli/redlatch")), "-u", self.url, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def finding(self, name: str) -> dict[str, Any]:
        report = json.loads(self.cli("doctor", "-o", "json").stdout)
        [found] = [each for each in report["checks"] if each["id"] == name]
        return dict(found)


@pytest.fixture(
    params=[(kind, limit) for limit in LIMITS for kind in KINDS],
    ids=lambda it: f"{it[1].name}-{it[0]}",
)
def limited(request: pytest.FixtureRequest) -> Iterator[Limited]:
    kind, limit = request.param
    with Server(kind, limit.args) as server:
        if not limit.proxy:
            yield Limited(server, server.url, limit)
            return
        with FaultProxy(server.port) as proxy:
            proxy.rewrite = KEY_RULES[limit.proxy]()
            yield Limited(server, proxy.url, limit)


def test_a_lock_works_or_is_refused_by_name(limited: Limited, spawn: Spawn, name: str) -> None:
    limit = limited.limit
    if limit.result == REFUSED:
        reply = spawn(limited.url).call("acquire", name=name, wait=0)
        assert (reply.status, limit.message in reply.message) == (limit.status, True), reply
        return
    one, two = spawn(limited.url), spawn(limited.url)
    seconds = play_everything(limited.server, one, two, name)
    if limit.result == HANDS_OFF:
        assert seconds < POLL_S / 2
    play_readers_and_renewal(one, two, name)
    play_reentrant(one, two, f"{name}-hash")
    if limit.option:
        reply = one.call("acquire", name=name, wait=0, **{limit.option: 1})
        assert (reply.status, limit.message in reply.message) == (limit.status, True), reply
    one.ok("acquire", name=f"{name}-listed", wait=0)
    listed = limited.cli("ls")
    assert [line.split("\t")[0] for line in listed.stdout.splitlines()] == [f"{name}-listed"]
    one.ok("release")
    pushes, channels = limited.finding("pushes"), limited.finding("channels")
    assert pushes["level"] == ("warn" if limit.result == POLLS else "ok"), pushes
    assert limit.channels in channels["seen"]


def test_users_with_different_rights_choose_the_same_channels(spawn: Spawn, name: str) -> None:
    """Goal: on a server that names 7.0 and lacks SPUBLISH, the release of a user that may not
    subscribe reaches a waiter that may: the kind of channel depends on the server only.
    Method: the holder is the user without the right, whose own waiters poll."""
    with Server(KINDS[-1], without("SPUBLISH")) as server:
        rules = [rule for rule in minimal_rules("mute") if rule != "+spublish"]
        with server.connect() as connection:
            connection.cmd(*rules, "-subscribe", "-ssubscribe")
        url = f"{server.url}?namespace={SPACE}"
        mute = spawn(url.replace("://", f"://mute:{SECRET}@") + "&health=no")
        waiter = spawn(url)
        mute.ok("acquire", name=name, wait=0)
        waiting = waiter.begin("acquire", name=name, wait=-1)
        wait_until(lambda: own_queue(server, name) == 1)
        time.sleep(0.6)  # a waiter that polls does so less and less often
        released = mute.ok("release")
        assert waiting.get().ended - released.began < POLL_S / 2


def play_readers_and_renewal(one: Actor, two: Actor, name: str) -> None:
    """Two readers, a writer behind them, and a lease that outlives its ttl twice."""
    one.ok("acquire", name=name, wait=0, read=1, ttl_ms=300)
    two.ok("acquire", name=name, wait=0, read=1, ttl_ms=300)
    waiting = two.begin("acquire", thread=1, lease=1, name=name, wait=-1)
    assert two.call("wait_lost", wait=700).number("state") == HELD
    one.ok("release")
    two.ok("release")
    assert waiting.get().status == "RL_OK"
    two.ok("release", lease=1)
    assert two.ok("inspect", name=name).number("state") == FREE


def play_reentrant(one: Actor, two: Actor, name: str) -> None:
    """A hand-off in the hash format, whose scripts also look for the waiters of Redisson."""
    one.ok("acquire", name=name, wait=0, format=HASH)
    waiting = two.begin("acquire", name=name, wait=-1, format=HASH)
    one.ok("release")
    assert waiting.get().status == "RL_OK"
    two.ok("release")
