# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: names, options and servers that cannot be used with a cluster are refused by a message that
says what to do, within the limit of connecting, and nothing is left behind.

Method: a real cluster, also one with a password, and a server that is not in cluster mode.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from support.cluster import NEVER_MS, Cluster
from support.servers import Server, available_kinds

from .actor import Actor
from .conftest import aux_key, client_ids
from .test_sentinel_refusals import LIMITS, check_refused

Spawn = Callable[[str], Actor]

SECRET = "server-secret"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """It stays as it is."""
    with Cluster(replicas=0, node_timeout_ms=NEVER_MS) as running:
        yield running


def test_a_name_whose_keys_cannot_share_a_slot(cluster: Cluster, spawn: Spawn) -> None:
    """Goal: refused before a command is sent. Method: names with and without a usable hash tag."""
    actor = spawn(cluster.url())
    for name in ("a}b", "{}a", "}"):
        reply = actor.call("acquire", name=name, wait=300)
        assert reply.status == "RL_E_INVALID", reply
        assert "hash tag such as '{a}'" in reply.message and f"'{name}'" in reply.message, reply
        assert cluster.owner_of(name).cmd("EXISTS", name) == 0
    for name in ("{a}b", "b{a}", "a{b", "{a}}"):
        actor.ok("acquire", name=name, wait=0, ttl_ms=1000)
        actor.ok("release")


def test_another_database(cluster: Cluster, spawn: Spawn) -> None:
    node = cluster.servers[0]
    url = f"redis+cluster://{node.host}:{node.port}/3?connect_timeout=1s"
    check_refused(spawn, url, "RL_E_INVALID", "db must be 0 on a cluster", "got 3")


@pytest.mark.parametrize("kind", available_kinds())
def test_a_server_without_cluster_mode(spawn: Spawn, kind: str) -> None:
    with Server(kind) as server:
        address = f"{server.host}:{server.port}"
        url = f"redis+cluster://{address}?connect_timeout=1s"
        words = (address, "not in cluster mode", f"redis://{address}")
        check_refused(spawn, url, "RL_E_UNSUPPORTED", *words)
        assert client_ids(server) == []


def test_addresses_that_nothing_reaches(spawn: Spawn) -> None:
    url = "redis+cluster://127.0.0.1:1,127.0.0.1:2?connect_timeout=1s"
    check_refused(spawn, url, "RL_E_UNAVAILABLE", "127.0.0.1:")


def test_nodes_that_hang(spawn: Spawn) -> None:
    """Goal: all nodes together do not take longer than the limit; the one that answers is reached.
    Method: SIGSTOP of two nodes, then of all."""
    with Cluster(replicas=0, node_timeout_ms=NEVER_MS) as cluster:
        first, second, third = cluster.servers
        name = next(key for key in map(str, range(1000)) if cluster.owner_of(key) is third)
        try:
            first.pause()
            second.pause()
            actor = spawn(cluster.url(connect_timeout="2s"))
            actor.ok("acquire", name=name, wait=10_000, ttl_ms=1000)
            actor.ok("release")
            third.pause()
            check_refused(spawn, cluster.url(**LIMITS), "RL_E_UNAVAILABLE", str(first.port))
        finally:
            for node in cluster.servers:
                node.resume()


def test_hosts_that_are_not_allowed(cluster: Cluster, spawn: Spawn, name: str) -> None:
    """Goal: a node at a host that `cluster_hosts` does not contain gets no connection."""
    url = cluster.url(cluster_hosts="10.0.0.1", **LIMITS)
    actor = spawn(url)
    reply = actor.call("acquire", name=name, wait=300)
    assert reply.status == "RL_E_UNAVAILABLE" and reply.seconds < 2.0, reply
    assert "cluster_hosts must name all nodes of the cluster (got a node at" in reply.message
    assert cluster.owner_of(name).cmd("EXISTS", name, aux_key(name, "f")) == 0
    allowed = spawn(cluster.url(cluster_hosts="10.0.0.1%2C127.0.0.1", **LIMITS))
    allowed.ok("acquire", name=name, wait=0, ttl_ms=1000)
    allowed.ok("release")


def test_a_wrong_password(cluster: Cluster, spawn: Spawn, name: str) -> None:
    """Goal: refused at once, and the password is in no message. Method: all nodes ask for one for a
    while; the test's own connections were made before."""
    actor = spawn(cluster.url(**LIMITS).replace("://", f"://:{SECRET}@"))
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(node.connect()) for node in cluster.servers]
        try:
            for connection in connections:
                connection.cmd("CONFIG", "SET", "requirepass", SECRET)
            for said in ("", ":wrong-secret@"):
                url = cluster.url(**LIMITS).replace("://", f"://{said}")
                check_refused(spawn, url, "RL_E_DENIED", "redis://127.0.0.1:")
            for number in range(10):  # at all of the nodes
                actor.ok("acquire", name=f"{name}-{number}", wait=0, ttl_ms=1000)
                actor.ok("release")
            for connection in connections:
                assert b" name=redlatch " in connection.cmd("CLIENT", "LIST")
        finally:
            for connection in connections:
                connection.cmd("CONFIG", "SET", "requirepass", "")
