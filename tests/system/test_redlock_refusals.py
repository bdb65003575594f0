# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: nodes that are no independent servers, and settings that cannot be honest, are refused by a
message that names the node.

Method: real servers that are replicas, members of a cluster, the same one twice, or deny something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from support.cluster import NEVER_MS, Cluster
from support.servers import Server, available_kinds
from support.wait import wait_until

from .actor import Actor

Open = Callable[..., Actor]

CLIENT_SIZE = 22  # of a token, its beginning: whose it is


@pytest.fixture(scope="module")
def servers() -> Iterator[list[Server]]:
    """Three nodes that stay as they are."""
    kinds = available_kinds()
    with ExitStack() as stack:
        yield [stack.enter_context(Server(kinds[i % len(kinds)])) for i in range(3)]


@pytest.fixture
def open_redlock(spawn: Callable[[str], Actor]) -> Open:
    """An actor with a Redlock over these URLs, without a guard unless one is asked for."""

    def start(urls: list[str], **options: str) -> Actor:
        actor = spawn("")
        said = {"restart_guard": "off", **options}
        words = ",".join(f"{name}={value}" for name, value in said.items())
        actor.ok("redlock_open", urls=" ".join(urls), options=words)
        return actor

    return start


def urls_of(servers: list[Server]) -> list[str]:
    return [server.url for server in servers]


def address(url: str) -> str:
    return url.rpartition("/")[2] if not url.startswith("unix") else url.removeprefix("unix://")


def check_refused(actor: Actor, name: str, status: str, *words: str) -> None:
    """Connecting, a try, a wait and another try all say so, at once."""
    calls = (("redlock_connect", 0), ("acquire", 0), ("acquire", 5000), ("acquire", 0))
    for command, wait in calls:
        reply = actor.call(command, redlock=0, name=name, wait=wait, ttl_ms=1000)
        assert reply.status == status, reply
        for word in words:
            assert word in reply.message, (word, reply.message)
        assert reply.seconds < 3.0, reply


# ---- what the nodes are ----


def test_two_urls_of_one_server(servers: list[Server], open_redlock: Open, name: str) -> None:
    """Goal: a server has one vote, by whatever name it is called."""
    one, two, _ = servers
    for second in (one.unix_url, f"redis://localhost:{one.port}"):
        actor = open_redlock([one.url, two.url, second], restart_guard="2s")
        check_refused(actor, name, "RL_E_INVALID", address(second), address(one.url))


def log_of(actor: Actor, word: str) -> list[str]:
    return [line for line in actor.ok("log", redlock=0)["lines"].splitlines() if word in line]


def test_replica(servers: list[Server], open_redlock: Open, name: str) -> None:
    """Goal: a replica of another node has no vote, which is said once, and the others go on; also
    when one of them hangs there is none for it. Promoted, it votes again.
    Method: three nodes and a replica of the first of them, new clients each time."""
    with Server(servers[0].kind) as replica, replica.connect() as connection:
        connection.cmd("REPLICAOF", "127.0.0.1", servers[0].port)
        wait_until(lambda: b"master_link_status:up" in connection.cmd("INFO", "replication"))
        for guard in ("2s", "off"):
            actor = open_redlock([*urls_of(servers[:2]), replica.url], restart_guard=guard)
            for wait in (20_000, 0):
                actor.ok("acquire", redlock=0, name=name, wait=wait, ttl_ms=1000)
                nodes = actor.ok("redlock_nodes", redlock=0)["value"]
                assert f"{address(replica.url)}: is a replica" in nodes
                actor.ok("release")
                actor.ok("free")
            lines = log_of(actor, "is a replica")
            assert len(lines) == 1 and address(replica.url) in lines[0], lines
            assert lines[0].startswith("warning "), lines
        servers[1].pause()
        try:
            reply = actor.call("acquire", redlock=0, name=name, wait=0, ttl_ms=1000)
            assert reply.status == "RL_E_UNAVAILABLE", reply
            for server in (servers[1], replica):
                assert address(server.url) in reply.message, reply
        finally:
            servers[1].resume()
        connection.cmd("REPLICAOF", "NO", "ONE")
        actor.ok("acquire", redlock=0, name=name, wait=5000, ttl_ms=1000)
        wait_until(lambda: log_of(actor, f"{address(replica.url)} may vote again"))
        client = actor.ok("look")["token"][:CLIENT_SIZE].encode()
        wait_until(lambda: (connection.cmd("GET", name) or b"").startswith(client))
        actor.ok("release")


def test_members_of_one_cluster(open_redlock: Open, name: str) -> None:
    """Goal: members of a cluster are not independent, and are told from servers that are."""
    with Cluster("redis", replicas=0, node_timeout_ms=NEVER_MS) as cluster:
        for guard in ("2s", "off"):
            actor = open_redlock([node.url for node in cluster.servers], restart_guard=guard)
            check_refused(actor, name, "RL_E_UNSUPPORTED", "127.0.0.1:", "cluster")


USER = "&* ~* +@all"


def limited(server: Server, *rules: str) -> str:
    """The URL for a user who may not do everything."""
    with server.connect() as connection:
        connection.cmd("ACL", "SETUSER", "limited", "reset", "on", ">pw", *USER.split(), *rules)
    return f"redis://limited:pw@127.0.0.1:{server.port}"


def test_info_is_forbidden(servers: list[Server], open_redlock: Open, name: str) -> None:
    """Goal: a node that may not say when it started is refused unless there is no guard."""
    urls = [*urls_of(servers[:2]), limited(servers[2], "-info")]
    actor = open_redlock(urls, restart_guard="2s")
    words = (address(servers[2].url), "restart_guard")
    for wait in (0, 5000):
        reply = actor.call("acquire", redlock=0, name=name, wait=wait, ttl_ms=1000)
        assert reply.status == "RL_E_DENIED", reply
        assert all(word.lower() in reply.message.lower() for word in (*words, "info")), reply
        assert "pw" not in reply.message
    actor = open_redlock(urls)
    actor.ok("acquire", redlock=0, name=name, wait=10_000, ttl_ms=1000)
    token = actor.ok("look")["token"].encode()
    with servers[2].connect() as connection:
        wait_until(lambda: connection.cmd("GET", name) == token)
    actor.ok("release")


def test_wrong_password_at_one_node(servers: list[Server], open_redlock: Open, name: str) -> None:
    """Goal: a node that does not know the user is a mistake, not a failure, though two would do."""
    good = limited(servers[2])
    bad = good.replace(":pw@", ":wrong-one@")
    for guard in ("2s", "off"):
        actor = open_redlock([*urls_of(servers[:2]), bad], restart_guard=guard)
        for wait in (0, 5000):
            reply = actor.call("acquire", redlock=0, name=name, wait=wait, ttl_ms=1000)
            assert reply.status == "RL_E_DENIED", reply
            assert address(servers[2].url) in reply.message and "wrong-one" not in reply.message
            assert reply.seconds < 3.0
    actor = open_redlock([*urls_of(servers[:2]), good])
    actor.ok("acquire", redlock=0, name=name, wait=10_000)
