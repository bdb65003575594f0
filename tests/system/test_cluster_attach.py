# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a lease is handed to another process across a move of its slot, and a large cluster costs a
client what it uses.

Method: a real cluster whose slots move between detach and attach; 30 nodes of the test's own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.cluster import NEVER_MS, Cluster, moves_of
from support.servers import available_kinds
from support.wait import wait_until

from .actor import HELD, Spawn
from .fake_cluster import FakeCluster


KIND = available_kinds()[-1]
TTL_MS = 60_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(KIND, nodes=2, replicas=0, node_timeout_ms=NEVER_MS) as running:
        yield running


@pytest.mark.parametrize("move", moves_of(KIND))
def test_detach_move_and_attach(cluster: Cluster, spawn: Spawn, name: str, move: str) -> None:
    """Goal: the token keeps the lock at the new node; the client that attaches with it renews and
    releases there. Method: a client that knows the old map, and one that knows none."""
    first, second = spawn(cluster.url()), spawn(cluster.url())
    for client in (first, second):  # both have connections, and the map before the move
        client.ok("acquire", name=name, wait=0, ttl_ms=TTL_MS)
        client.ok("release")
        client.ok("free")
    for attaching in (second, spawn(cluster.url())):
        first.ok("acquire", name=name, wait=0, ttl_ms=TTL_MS)
        token = first.ok("look")["token"]
        first.ok("detach")
        slot = cluster.slot_of(name)
        to = cluster.others(slot)[0]
        cluster.move_slot(slot, to, move)
        attaching.ok("attach", name=name, token=token)
        assert to.cmd("GET", name).decode() == token
        assert first.call("acquire", lease=1, name=name, wait=0).status == "RL_BUSY"
        cluster.move_slot(slot, cluster.others(slot)[0], move)
        attaching.ok("extend", ttl_ms=TTL_MS)
        assert attaching.ok("look").number("state") == HELD
        attaching.ok("release")
        wait_until(lambda: cluster.owner(slot).cmd("EXISTS", name) == 0)


@pytest.mark.not_judged  # the servers are not real
def test_thirty_nodes_of_which_one_is_used(spawn: Spawn) -> None:
    """Goal: one connection to the node that is used, one for a moment to the node of the URL, and
    the threads of a client with one node. Method: the nodes count their connections."""
    threads = []
    for count in (1, 30):
        with FakeCluster(count) as cluster:
            used = count // 2
            actor = spawn(cluster.url)
            for number in range(5):
                one = cluster.name_at(used)
                actor.ok("acquire", lease=number, name="{" + one + "}" + str(number), wait=0,
                         ttl_ms=600_000)  # fmt: skip
            opened = [node.connection_count for node in cluster.nodes]
            threads.append(actor.thread_count)
            assert opened[used] == (1 if count > 1 else 2) and opened[0] <= 2, opened
            assert sum(opened) == 2 and cluster.map_reads == 1, opened
            actor.kill()
    assert threads[0] == threads[1], threads
