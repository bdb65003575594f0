# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Servers, actors and proxies that end with their test."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from conformance.runners import PREPARE
from support.history import History
from support.resp import Connection
from support.servers import Server, available_kinds

from .actor import Actor
from .network import Namespaces, Network, namespaces
from .proxy import FaultProxy

# Keys of the test's own making that are not ours, by their prefix, may stay for ever.
FOREIGN = "foreign:"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without the tests of what the kind of server cannot do, by `needs`."""

    def is_possible(item: pytest.Item) -> bool:
        return all(mark.args[0] for mark in item.iter_markers("needs"))

    config.hook.pytest_deselected(items=[item for item in items if not is_possible(item)])
    items[:] = [item for item in items if is_possible(item)]


@pytest.fixture(autouse=True)
def judged(request: pytest.FixtureRequest) -> Iterator[None]:
    """The history of every test is judged, but where the test itself breaks what is promised, or
    where others than our processes use the lock, or several servers one name: `not_judged`."""
    if request.node.get_closest_marker("not_judged"):
        yield
        return
    history: History = request.getfixturevalue("history")
    yield
    if not history.is_judged:
        history.judge()


@pytest.fixture(params=available_kinds())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server of the test's own, of each kind. Nothing that is left there may live for ever."""
    with Server(request.param) as running:
        yield running
        _check_leftovers(running)


@pytest.fixture(scope="session", params=available_kinds())
def shared_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server for tests that leave it alone and use keys of their own."""
    with Server(request.param) as running:
        yield running
        _check_leftovers(running)


@pytest.fixture
def one_server() -> Iterator[Server]:
    """Likewise, of one kind: for tests that take long, or do not depend on it."""
    with Server(available_kinds()[0]) as running:
        yield running
        _check_leftovers(running)


@pytest.fixture
def network() -> Iterator[Network]:
    """Five nodes, of all kinds, and two hosts."""
    with Network() as running:
        yield running
        for node in running.nodes:
            _check_leftovers(node)


@pytest.fixture
def spaces() -> Iterator[Namespaces]:
    """Three nodes, and two hosts."""
    with namespaces(3) as made:
        yield made


@pytest.fixture(scope="session")
def runner_command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The program in C of tests/conformance: it knows every kind of lock."""
    return PREPARE["c"](tmp_path_factory.mktemp("runners"))


@pytest.fixture
def spawn() -> Iterator[Callable[[str], Actor]]:
    """Start an actor with a client of this URL; all of them are killed at the end."""
    actors: list[Actor] = []

    def start(url: str) -> Actor:
        actor = Actor(url)
        actors.append(actor)
        return actor

    yield start
    for actor in actors:
        actor.close()


@pytest.fixture
def proxy(shared_server: Server) -> Iterator[FaultProxy]:
    with FaultProxy(shared_server.port) as running:
        yield running


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A lock name of the test's own."""
    return re.sub(r"\W+", "-", request.node.name)


def aux_key(name: str, suffix: str) -> str:
    """A key beside the lock `name`, which has no brace: `q` the queue, `f` the fence."""
    return f"{{{name}}}:rl1:{suffix}"


def queue_length(server: Server, name: str, suffix: str = "q") -> int:
    """How many stand in the server's queue for this lock; `sq` is that of a semaphore."""
    with server.connect() as connection:
        return int(connection.cmd("ZCARD", aux_key(name, suffix)))


def queued_tokens(server: Server, name: str, suffix: str = "q") -> list[str]:
    """Who stands in the server's queue for this lock, first in line first."""
    with server.connect() as connection:
        members = connection.cmd("ZRANGE", aux_key(name, suffix), 0, -1)
    return [member[:32].decode() for member in members]


def enqueue_dead(connection: Connection, queue: str, count: int, ticket: int = 0) -> None:
    """Put waiters behind this ticket that receive no messages."""
    text = """
    for i = 1, ARGV[1] do
      redis.call('ZADD', KEYS[1], ARGV[2] + i,
        string.format('dead%017dA%010xx030009999999999999', i, i))
    end
    return redis.call('PEXPIRE', KEYS[1], 600000)
    """
    connection.cmd("EVAL", text, 1, queue, count, ticket)


def client_ids(server: Server) -> list[str]:
    """Connections of redlatch, as the server numbers them."""
    with server.connect() as connection:
        lines = connection.cmd("CLIENT", "LIST").decode().splitlines()
    return [line.split()[0].removeprefix("id=") for line in lines if " name=redlatch " in line]


def channels(server: Server) -> list[bytes]:
    """Those that clients have subscribed to, of both kinds."""
    with server.connect() as connection:
        replies = connection.pipe([["PUBSUB", "SHARDCHANNELS"], ["PUBSUB", "CHANNELS"]])
    found = [channel for reply in replies if isinstance(reply, list) for channel in reply]
    return [channel for channel in found if channel != b"__sentinel__:hello"]


def subscriber_count(server: Server) -> int:
    """Connected clients that can be notified. On a cluster each has two channels of one name."""
    return len(set(channels(server)))


def kill_connections(server: Server) -> int:
    with server.connect() as connection:
        return sum(connection.cmd("CLIENT", "KILL", "ID", i) for i in client_ids(server))


def immortal_keys(connection: Connection) -> list[str]:
    keys = [key.decode() for key in connection.cmd("KEYS", "*")]
    return [
        key for key in keys if not key.startswith(FOREIGN) and connection.cmd("PTTL", key) == -1
    ]


def _check_leftovers(server: Server) -> None:
    if not server.is_running:
        return
    server.resume()  # a test that failed may have left it stopped
    with server.connect() as connection:
        if isinstance(connection.pipe([["PING"]])[0], str):
            assert not immortal_keys(connection), "keys without expiry"
