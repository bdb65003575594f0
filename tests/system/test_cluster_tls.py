# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: with `rediss+cluster://` every node is reached over TLS only, the one that MOVED names as
well, and has to prove its host; user and password are kept.

Method: a real cluster whose nodes have certificates, of Redis, because the build of Valkey of these
tests has no TLS.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.cluster import NEVER_MS, Cluster, Node, Place
from support.tls import Authority
from support.wait import wait_until

from .actor import HELD, Spawn
from .conftest import client_ids
from .test_cluster import names_at
from .test_sentinel_refusals import LIMITS, check_refused


USER, SECRET = "locker", "server-secret"
TTL_MS = 6000


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def cluster(authority: Authority) -> Iterator[Cluster]:
    """The certificate of the last node is for another host."""
    good, bad = authority.certificate("IP:127.0.0.1"), authority.certificate("DNS:elsewhere")
    places = {number: Place(tls=bad if number == 2 else good) for number in range(3)}
    with Cluster("redis", replicas=0, node_timeout_ms=NEVER_MS, places=places) as running:
        for node in running.servers:
            node.cmd("ACL", "SETUSER", USER, "on", f">{SECRET}", "~*", "&*", "+@all")
        yield running


def url_of(cluster: Cluster, authority: Authority, **options: str) -> str:
    """Of the nodes that can prove their host."""
    ports = [node.tls_port for node in cluster.servers[:2]]
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    said = {"tls_ca": str(authority.ca), **LIMITS, **options}
    return f"rediss+cluster://{USER}:{SECRET}@{hosts}?" + "&".join(
        f"{key}={value}" for key, value in said.items()
    )


def connections(node: Node) -> list[dict[str, str]]:
    """Of redlatch, with what the server says of each."""
    lines = node.cmd("CLIENT", "LIST").decode().splitlines()
    fields = [dict(word.split("=", 1) for word in line.split()) for line in lines]
    return [one for one in fields if one["name"] == "redlatch"]


@pytest.mark.parametrize("options", [{}, {"protocol": "2"}], ids=["resp3", "resp2"])
def test_a_lease_and_a_waiter_move_over_tls(
    cluster: Cluster, authority: Authority, spawn: Spawn, name: str, options: dict[str, str]
) -> None:
    """Goal: the lease keeps its token at the node that MOVED names, its waiter gets the lock, and
    all connections are those of the user at the TLS port. Method: a move while both are there."""
    first, second, _ = cluster.servers
    one = next(names_at(cluster, first, name))
    holder, waiter = (spawn(url_of(cluster, authority, **options)) for _ in range(2))
    holder.ok("acquire", name=one, wait=0, ttl_ms=TTL_MS)
    token = holder.ok("look")["token"]
    pending = waiter.begin("acquire", name=one, wait=30_000, ttl_ms=TTL_MS)
    wait_until(lambda: len(client_ids(first)) >= 2)
    cluster.move_slot(cluster.slot_of(one), second)
    wait_until(lambda: second.cmd("PTTL", one) > TTL_MS - 1000)
    assert second.cmd("GET", one).decode() == token
    assert holder.ok("look").number("state") == HELD and not pending.is_done
    wait_until(lambda: len(client_ids(second)) >= 2)
    for node in (first, second):
        for said in connections(node):
            assert said["user"] == USER and said["laddr"].endswith(f":{node.tls_port}"), said
    holder.ok("release")
    assert pending.get().status == "RL_OK"
    waiter.ok("release")
    cluster.move_slot(cluster.slot_of(one), first)


def test_a_node_that_cannot_prove_its_host(
    cluster: Cluster, authority: Authority, spawn: Spawn, name: str
) -> None:
    """Goal: its locks are refused with the reason, others are served; a lock that moves there is
    not followed without proof, also by its lease. Method: a node with another's certificate."""
    first, _, bad = cluster.servers
    actor = spawn(url_of(cluster, authority))
    there, here = next(names_at(cluster, bad, name)), next(names_at(cluster, first, name))
    actor.ok("acquire", name=here, wait=0, ttl_ms=60_000)
    for wait in (0, 10_000):
        reply = actor.call("acquire", lease=1, name=there, wait=wait)
        assert reply.status == "RL_E_DENIED" and reply.seconds < 3, reply
        assert "not for '127.0.0.1'" in reply.message and str(bad.tls_port) in reply.message
        assert SECRET not in reply.message
    cluster.move_slot(cluster.slot_of(here), bad)
    other = spawn(url_of(cluster, authority))
    reply = other.call("acquire", name=here, wait=0)
    assert reply.status == "RL_E_DENIED" and "not for '127.0.0.1'" in reply.message, reply
    assert client_ids(bad) == []
    cluster.move_slot(cluster.slot_of(here), first)
    actor.ok("release", limit=20)
    wait_until(lambda: first.cmd("EXISTS", here) == 0)
    trusting = spawn(url_of(cluster, authority, tls_verify="ca"))
    trusting.ok("acquire", name=there, wait=0)
    trusting.ok("release")


def test_refused_connections(cluster: Cluster, authority: Authority, spawn: Spawn) -> None:
    """Goal: an unknown authority, a wrong password, and a port without TLS are refused at once."""
    url = url_of(cluster, authority)
    words = ("rediss://127.0.0.1:", "tls_ca")
    check_refused(spawn, url.replace(f"tls_ca={authority.ca}&", ""), "RL_E_DENIED", *words)
    wrong = url.replace(f":{SECRET}@", ":wrong-secret@")
    check_refused(spawn, wrong, "RL_E_DENIED", "rediss://127.0.0.1:")
    for node in cluster.servers:
        url = url.replace(f":{node.tls_port}", f":{node.port}")
    check_refused(spawn, url, "RL_E_UNAVAILABLE", "127.0.0.1:", limit_s=2.0)
