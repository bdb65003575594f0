# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: names, options and servers that cannot be used with a cluster are refused by a message that
says what to do, within the limit of connecting, and nothing is left behind.

Method: a real cluster, also one with a password or with a node at another host, and a server that
is not in cluster mode; nodes of the test's own that send their clients to each other.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest
from support.cluster import NEVER_MS, Cluster, Place
from support.servers import Server, available_kinds
from support.wait import wait_until

from .actor import HELD, Spawn
from .conftest import aux_key, client_ids
from .fake_cluster import FakeCluster
from .plays import cli
from .test_cluster import names_at
from .test_sentinel_refusals import LIMITS, SLACK_S, check_refused


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
        name = next(names_at(cluster, third, "third"))
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
                done = cli(url, "run", "-n", name, "--", "true")
                assert done.returncode == 77 and "secret" not in done.stderr, done
            for number in range(10):  # at all of the nodes
                actor.ok("acquire", name=f"{name}-{number}", wait=0, ttl_ms=1000)
                actor.ok("release")
            for connection in connections:
                assert b" name=redlatch " in connection.cmd("CLIENT", "LIST")
        finally:
            for connection in connections:
                connection.cmd("CONFIG", "SET", "requirepass", "")


def test_a_move_to_a_host_that_is_not_allowed(spawn: Spawn, name: str) -> None:
    """Goal: MOVED to a host that `cluster_hosts` does not contain is not followed. The lease stays
    until it would have ended; callers read the reason. Method: a node at another address of the
    loopback device."""
    places = {1: Place(host="127.0.0.2")}
    with Cluster(nodes=2, replicas=0, node_timeout_ms=NEVER_MS, places=places) as cluster:
        first, second = cluster.servers
        one = next(names_at(cluster, first, name))
        address = f"{first.host}:{first.port}"
        limits = "&".join(f"{key}={value}" for key, value in LIMITS.items())
        url = f"redis+cluster://{address}?cluster_hosts=127.0.0.1&{limits}"
        actor, other = spawn(url), spawn(url)
        actor.ok("acquire", name=one, wait=0, ttl_ms=60_000)
        other.ok("connect")
        cluster.move_slot(cluster.slot_of(one), second)
        for wait in (0, 300):
            reply = other.call("acquire", name=one, wait=wait)
            assert reply.status == "RL_E_UNAVAILABLE", reply
            assert "cluster_hosts must name all nodes" in reply.message, reply
            assert "got a node at '127.0.0.2'" in reply.message, reply
            assert reply.seconds < 2 + SLACK_S, reply
        assert actor.ok("look").number("state") == HELD
        assert client_ids(second) == []
        # Where it is allowed again, the lease is renewed and released.
        cluster.move_slot(cluster.slot_of(one), first)
        actor.ok("release", limit=20)
        wait_until(lambda: first.cmd("EXISTS", one) == 0)


def test_addresses_of_two_clusters(cluster: Cluster, spawn: Spawn, name: str) -> None:
    """Goal: the client uses the locks of one cluster, that of the first node that answers, and not
    those of both. Method: the URL names a node of each."""
    with Cluster(nodes=1, replicas=0, node_timeout_ms=NEVER_MS) as another:
        stranger, node = another.servers[0], cluster.servers[0]
        url = f"redis+cluster://127.0.0.1:{node.port},127.0.0.1:{stranger.port}"
        actor = spawn(url)
        for number in range(6):
            one = f"{name}-{number}"
            actor.ok("acquire", name=one, wait=0, ttl_ms=60_000)
            assert cluster.owner_of(one).cmd("EXISTS", one) == 1
            actor.ok("release")
        assert stranger.cmd("DBSIZE") == 0 and client_ids(stranger) == []


# ---- nodes that send their clients to each other ----

LOOPS = {
    "to each other": lambda cluster: lambda node: cluster.addresses[1 - node],
    "to a host that is not allowed": lambda _: lambda _: "10.255.255.1:6379",
}
# Five redirects at once in each second, then with pauses of 20 to 500 ms.
REDIRECTS_IN_A_SECOND = 16


@pytest.mark.not_judged  # the servers are not real
@pytest.mark.parametrize("loop", LOOPS)
def test_redirects_without_end(spawn: Spawn, name: str, loop: str) -> None:
    """Goal: redirects are followed at a bounded rate; a wait ends in time, and a try within the
    limits of connecting and of a command; memory and descriptors do not grow. Method: nodes that
    answer every script with MOVED, and deny it in the map."""
    with FakeCluster(2) as cluster:
        url = f"{cluster.url}?cluster_hosts=127.0.0.1&connect_timeout=500ms&command_timeout=500ms"
        cluster.moved_to = LOOPS[loop](cluster)
        actor = spawn(url)
        for node in range(2):  # all is open then
            actor.call("acquire", name=cluster.name_at(node), wait=300)
        descriptors, threads = actor.descriptor_count, actor.thread_count
        memory_kib, began = actor.memory_kib, time.monotonic()
        redirects, reads = cluster.redirects, cluster.map_reads
        for number, wait in enumerate((0, 1000, 0, 300), 1):
            reply = actor.call("acquire", name=f"{name}-{number}", wait=wait)
            if reply.status != "RL_E_OUTCOME_UNKNOWN":  # no answer yet to the last command
                assert reply.status == "RL_E_UNAVAILABLE", reply
                assert "redirected" in reply.message or "not connected" in reply.message, reply
            assert reply.seconds < (wait / 1000 or 1.0) + SLACK_S, reply
        actor.call("force", name=f"{name}-9")
        seconds = time.monotonic() - began
        # A cleanup of each lock is still under way.
        bound = REDIRECTS_IN_A_SECOND * (seconds + 1) * 6
        assert cluster.redirects - redirects < bound
        assert cluster.map_reads - reads < bound
        assert actor.memory_kib - memory_kib < 1024
        assert actor.thread_count == threads
        wait_until(lambda: actor.descriptor_count <= descriptors)  # one more reads the slots
        actor.call("shutdown")
        actor.call("close")


# ---- the command ----


def test_exit_codes_of_the_command(cluster: Cluster, name: str) -> None:
    """Goal: each refusal has the exit code of its status, and the message of the library."""
    url = cluster.url(**LIMITS)
    node = cluster.servers[0]
    address = f"redis+cluster://{node.host}:{node.port}"
    with Server(cluster.kind) as alone, FakeCluster(2) as looping:
        looping.moved_to = lambda number: looping.addresses[1 - number]
        limits = "connect_timeout=500ms&command_timeout=500ms"
        rows = [
            (url, "a}b", 64, "hash tag such as"),
            (f"{address}/3", name, 64, "db must be 0 on a cluster"),
            (f"redis+cluster://127.0.0.1:{alone.port}", name, 78, "not in cluster mode"),
            (f"{address}?cluster_hosts=10.0.0.1", name, 69, "cluster_hosts must name all nodes"),
            (f"{looping.url}?{limits}", name, 69, "redirected"),
        ]
        for where, lock, code, words in rows:
            for waiting in (["-n"], ["-w", "300ms"]):
                done = cli(where, "run", *waiting, lock, "--", "true")
                assert done.returncode == code and words in done.stderr, (where, done)
