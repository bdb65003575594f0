# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Short plays of everything that a lock does, for tests on servers and users of many kinds."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from support.build import ROOT, built
from support.servers import Server, has_sharded_channels
from support.wait import wait_until

from .actor import FREE, Actor
from .conftest import aux_key

HASH, HASH_RW = 2, 3  # RL_FORMAT_*
SECRET = "open-sesame"
SPACE = "app:"
# A waiter that is not notified polls at least each 250 ms; one that is, each 15 s.
POLL_S = 0.25
MESSAGE_S = 5.0
QUIET_S = 1.0
# Renewed each second. A busy machine is late by less than the two seconds that remain.
RENEWED_TTL_MS = 3000


def minimal_rules(kind: str, user: str, *options: str) -> list[str]:
    """What tools/acl.py prints for this kind of server, as the words of one command."""
    tool = ROOT / "tools" / "acl.py"
    plain = [] if has_sharded_channels(kind) else ["--plain"]
    done = subprocess.run(
        [sys.executable, str(tool), user, SECRET, SPACE, *plain, *options],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return shlex.split(done.stdout)


def add_user(server: Server, user: str, *changes: str) -> str:
    """Make a user with the minimal rights and `changes`. The URL for a client of that user."""
    with server.connect() as connection:
        connection.cmd(*minimal_rules(server.kind, user), *changes)
    return server.url.replace("://", f"://{user}:{SECRET}@") + f"?namespace={SPACE}"


def own_queue(server: Server, name: str) -> int:
    with server.connect() as connection:
        return int(connection.cmd("ZCARD", SPACE + aux_key(SPACE + name, "q")))


def cli(url: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(built("cli/redlatch")), "-u", url, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def finding(url: str, name: str) -> dict[str, Any]:
    """A row of `redlatch doctor`."""
    report = json.loads(cli(url, "doctor", "-o", "json").stdout)
    [found] = [each for each in report["checks"] if each["id"] == name]
    return dict(found)


@dataclass(frozen=True)
class HandOff:
    """How a waiter got the lock, and how many scripts ran in QUIET_S before."""

    seconds: float
    scripts: int

    @property
    def is_by_message(self) -> bool:
        return self.scripts < QUIET_S / POLL_S and self.seconds < MESSAGE_S


def scripts_within(server: Server, seconds: float) -> int:
    before = server.script_count()
    time.sleep(seconds)
    return server.script_count() - before


def play_everything(server: Server, one: Actor, two: Actor, name: str) -> HandOff:
    """Each call of the library once, between two clients."""
    one.ok("connect")
    one.ok("acquire", name=name, wait=0, label="work", ttl_ms=3000)
    assert two.call("acquire", name=name, wait=0).status == "RL_BUSY"
    assert two.call("acquire", name=name, wait=50).status == "RL_TIMEOUT"
    wait_until(lambda: own_queue(server, name) == 0)
    waiting = two.begin("acquire", thread=1, lease=1, name=name, wait=-1)
    wait_until(lambda: own_queue(server, name) == 1)
    one.ok("extend", ttl_ms=30_000)
    seen = two.ok("inspect", name=name)
    assert seen["label"] == "work" and seen["waiting"] == "1"
    scripts = scripts_within(server, QUIET_S)
    released = one.ok("release").began
    reply = waiting.get()
    assert reply.status == "RL_OK"
    token = two.ok("look", lease=1)["token"]
    two.ok("detach", lease=1)
    one.ok("attach", name=name, token=token)
    two.ok("force", name=name)
    assert one.call("release").status == "RL_E_LOST"
    two.ok("start", name=name, wait=-1)
    two.ok("wait", wait=5000)
    two.ok("free_request")
    one.ok("acquire", name=name, wait=5000)
    one.ok("release")
    return HandOff(reply.ended - released, scripts)


def await_renewal(*actors: Actor) -> None:
    """Wait until the lease of each actor has lasted longer than it did a moment before."""
    left = {actor: actor.ok("look").number("remaining") for actor in actors}

    def are_renewed() -> bool:
        for actor, before in list(left.items()):
            left[actor] = actor.ok("look").number("remaining")
            if left[actor] > before:
                del left[actor]
        return not left

    wait_until(are_renewed)


def play_readers_and_renewal(one: Actor, two: Actor, name: str, **options: int) -> None:
    """Two readers whose leases are renewed, and a writer behind them."""
    for reader in (one, two):
        reader.ok("acquire", name=name, wait=0, read=1, ttl_ms=RENEWED_TTL_MS, **options)
    waiting = two.begin("acquire", thread=1, lease=1, name=name, wait=-1, **options)
    await_renewal(one, two)
    for reader in (one, two):
        reader.ok("release")
    assert waiting.get().status == "RL_OK"
    two.ok("release", lease=1)
    assert two.ok("inspect", name=name).number("state") == FREE


def play_hand_off(one: Actor, two: Actor, name: str, form: int) -> None:
    """A hand-off in a format of Redisson, whose scripts also look for its waiters."""
    one.ok("acquire", name=name, wait=0, format=form)
    waiting = two.begin("acquire", name=name, wait=-1, format=form)
    one.ok("release")
    assert waiting.get().status == "RL_OK"
    two.ok("release")


def play_listing(one: Actor, url: str, name: str) -> None:
    one.ok("acquire", name=name, wait=0)
    listed = cli(url, "ls")
    assert [line.split("\t")[0] for line in listed.stdout.splitlines()] == [name], listed
    one.ok("release")
