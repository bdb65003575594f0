# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Servers and processes with lock libraries, which serve all tests; each test has its own lock."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.servers import Server, available_kinds
from support.wait import wait_until

from .peer import Peer, Pending, Side

TTL_MS = 30_000

# What comes as a message, or with the next of some looks, is there by then; it is far from a lease.
SOON_S = 5.0


class Farm:
    """Processes, one of each language, and one more for what is going to be killed."""

    def __init__(self) -> None:
        self._peers: dict[str, Peer] = {}
        self._extra: list[Peer] = []
        self._clients: dict[tuple[Peer, str], str] = {}
        self._numbers = itertools.count(1)

    def peer(self, language: str) -> Peer:
        if language not in self._peers:
            self._peers[language] = Peer(language)
        return self._peers[language]

    def new_peer(self, language: str) -> Peer:
        self._extra.append(Peer(language))
        return self._extra[-1]

    def client(self, peer: Peer, **arguments: Any) -> str:
        """The number of a client that was opened with these arguments, once."""
        key = peer, repr(sorted(arguments.items()))
        if key not in self._clients:
            name = str(next(self._numbers))
            peer.ok("open", client=name, **arguments)
            self._clients[key] = name
        return self._clients[key]

    def close_extra(self) -> None:
        for peer in self._extra:
            peer.close()
        self._extra.clear()

    def close(self) -> None:
        self.close_extra()
        for peer in self._peers.values():
            peer.close()


@pytest.fixture(scope="session", params=available_kinds())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(request.param) as running:
        yield running


@pytest.fixture(scope="session")
def one_server() -> Iterator[Server]:
    """Of one kind: for tests that take long, or do not depend on it."""
    with Server(available_kinds()[0]) as running:
        yield running


@pytest.fixture(scope="session")
def all_processes() -> Iterator[Farm]:
    farm = Farm()
    yield farm
    farm.close()


@pytest.fixture
def processes(all_processes: Farm) -> Iterator[Farm]:
    yield all_processes
    all_processes.close_extra()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A lock name of the test's own."""
    return re.sub(r"\W+", "-", request.node.name)


@pytest.fixture
def counter(tmp_path: Path) -> Path:
    """The file that the members of crowds count in, which loses a count when two do so at once."""
    path = tmp_path / "counter"
    path.write_text("0", encoding="ascii")
    return path


def count_attempts(server: Server) -> int:
    """How often anybody has asked the server for anything that could be a lock, or sleeps there."""
    with server.connect() as connection:
        stats = connection.cmd("INFO", "commandstats").decode()
        sleeping = connection.cmd("INFO", "clients").decode()
    calls = re.findall(r"cmdstat_(?:set|eval|evalsha):calls=(\d+)", stats)
    # One that sleeps counts for the two looks that show that another one waits.
    return sum(map(int, calls)) + 2 * int(sleeping.split("blocked_clients:")[1].split()[0])


def ours_of(processes: Farm, server: Server, name: str, *, namespace: str = "") -> Side:
    peer = processes.peer("python")
    client = processes.client(peer, kind="redlatch", url=server.url, namespace=namespace)
    return Side(peer, client, name, TTL_MS)


def queue_length(ours: Side) -> int:
    """How many stand in the server's queue for this lock of ours."""
    return int(ours.ok("look", owner="look")["waiting"])


def compete(
    theirs: Side, ours: list[Side], said: dict[str, Any], half: dict[str, Any], *, queued: int
) -> list[int]:
    """How often each side of ours, and theirs at last, took the lock in crowds that begin behind a
    holder of theirs: `queued` of ours wait for it first, at least one of each client, so that each
    client has seen the holder, and no turn is from before that."""
    assert theirs.tries(owner="first")
    crowd = theirs.begin("crowd", owner="crowd", **said)
    running = [side.begin("crowd", owner="crowd", **half) for side in ours]
    wait_until(lambda: queue_length(ours[0]) >= queued)
    theirs.release(owner="first")
    replies = [pending.get(120) for pending in (*running, crowd)]
    assert not any(reply.error for reply in replies), replies
    return [sum(reply.value) for reply in replies]


def is_in_soon(pending: Pending, since: float, limit: float = SOON_S) -> bool:
    """Whether it gets the lock, in the time after a release or a death."""
    reply = pending.get()
    assert not reply.error, reply
    assert 0 < reply.ended - since < limit, reply
    return bool(reply.value)
