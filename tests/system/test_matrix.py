# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: each feature of a lock works on each version of a server that users run.

Method: a smoke on the versions for which the other tests are not run (support/servers.py): two
processes that take turns, the command, and credentials that change. `scripts/test --all` runs three
whole folders there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import redlatch
from support.servers import OTHERS, Server, find_binary, has_sharded_channels
from support.wait import wait_until

from .actor import Spawn
from .plays import (
    HASH,
    HASH_RW,
    RENEWED_TTL_MS,
    SPACE,
    await_renewal,
    cli,
    finding,
    play_everything,
    play_hand_off,
    play_listing,
    play_readers_and_renewal,
)


@pytest.fixture(params=OTHERS)
def kind(request: pytest.FixtureRequest) -> str:
    if find_binary(request.param) is None:
        pytest.skip(f"no {request.param}: run scripts/setup --for system")
    return str(request.param)


@pytest.fixture
def server(kind: str) -> Iterator[Server]:
    with Server(kind) as running:
        yield running


def test_it_is_the_version_of_its_name(server: Server) -> None:
    with server.connect() as connection:
        info = connection.cmd("INFO", "server").decode()
    name, version = server.kind.split("-")
    assert re.search(rf"^{name}_version:{re.escape(version)}\.", info, re.MULTILINE), info


@pytest.mark.parametrize("protocol", [3, 2])
def test_locks(kind: str, server: Server, spawn: Spawn, name: str, protocol: int) -> None:
    url = f"{server.url}?namespace={SPACE}&protocol={protocol}"
    one, two = spawn(url), spawn(url)
    assert play_everything(server, one, two, name).is_by_message
    if protocol == 2:
        return
    play_readers_and_renewal(one, two, name)
    play_readers_and_renewal(one, two, f"{name}-rw", format=HASH_RW)
    for form in (HASH, HASH_RW):
        play_hand_off(one, two, f"{name}-{form}", form)
    play_listing(one, url, f"{name}-listed")
    assert cli(url, "run", f"{name}-run", "--", "true").returncode == 0
    assert finding(url, "handover")["level"] == "ok"
    channels = "sharded" if has_sharded_channels(kind) else "plain"
    assert channels in finding(url, "channels")["seen"]


def test_redlock(kind: str, spawn: Spawn, name: str) -> None:
    with ExitStack() as stack:
        nodes = [stack.enter_context(Server(kind)) for _ in range(3)]
        one, two = spawn(""), spawn("")
        for actor in (one, two):
            urls = " ".join(node.url for node in nodes)
            actor.ok("redlock_open", urls=urls, options="restart_guard=off")
        one.ok("acquire", redlock=0, name=name, wait=10_000, ttl_ms=RENEWED_TTL_MS)
        assert two.call("acquire", redlock=0, name=name, wait=0).status == "RL_BUSY"
        nodes[0].kill()
        for _ in range(2):  # by the others; an answer of the first may have come before
            await_renewal(one)
        waiting = two.begin("acquire", redlock=0, name=name, wait=20_000)
        one.ok("release")
        assert waiting.get().status == "RL_OK"
        two.ok("release")


@pytest.mark.not_judged  # the holder is this process, which writes no record
def test_a_lease_outlives_its_password(server: Server, name: str) -> None:
    """Method: each answer is another password, good for a second."""
    passwords: list[str] = []

    def rotate() -> redlatch.Credentials:
        passwords.append(f"S3cret{len(passwords)}")
        rules = ("reset", "on", f">{passwords[-1]}", "~*", "&*", "+@all")
        with server.connect() as connection:
            connection.cmd("ACL", "SETUSER", "app", *rules)
        return redlatch.Credentials("app", passwords[-1], 1.0)

    def connections() -> set[str]:
        with server.connect() as connection:
            clients = connection.cmd("CLIENT", "LIST").decode()
        return set(re.findall(r"^id=(\d+) .*user=app ", clients, re.MULTILINE))

    with redlatch.connect(server.url, credentials=rotate) as client:
        with client.lock(name, ttl=5) as lease:
            before = connections()
            wait_until(lambda: len(passwords) >= 3)
            lease.extend(5)
            assert connections() == before != set()
