# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: clusters work as a test asks. Method: real slot moves and failovers of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .cluster import Cluster, moves_of, slot_of
from .resp import RespError
from .servers import available_kinds


@pytest.fixture(scope="module", params=available_kinds())
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(request.param) as running:
        yield running


def test_a_slot_is_that_of_the_servers(cluster: Cluster) -> None:
    for key in ("a", "", "foo{bar}", "{}a", "a{", "a}b", "{{x}}", "\u00fc"):
        assert cluster.primaries[0].cmd("CLUSTER", "KEYSLOT", key) == slot_of(key)


def test_every_slot_has_a_primary_with_a_replica(cluster: Cluster) -> None:
    assert len(cluster.primaries) == 3
    assert sum(len(part) for node in cluster.primaries for part in node.views()[0].slots) == 16384
    assert all(len(cluster.replicas_of(node)) == 1 for node in cluster.primaries)


@pytest.mark.parametrize("kind", ["classic", "atomic"])
def test_a_slot_moves_with_its_keys(cluster: Cluster, kind: str) -> None:
    slot = cluster.slot_of("moved")
    source, to = cluster.owner(slot), cluster.others(slot)[0]
    if kind not in moves_of(cluster.kind):
        with pytest.raises(RespError):
            cluster.move_slot(slot, to, kind)
        return
    source.cmd("SET", "moved", 1)
    cluster.move_slot(slot, to, kind)
    assert cluster.owner(slot) is to and to.cmd("GET", "moved") == b"1"
    with pytest.raises(RespError, match=f"MOVED {slot} 127.0.0.1:{to.port}"):
        source.cmd("GET", "moved")
    cluster.move_slot(slot, source, kind)
    assert source.cmd("DEL", "moved") == 1


def test_a_classic_move_can_be_watched_in_the_middle(cluster: Cluster) -> None:
    slot = cluster.slot_of("{m}1")
    source, to = cluster.owner(slot), cluster.others(slot)[0]
    source.cmd("MSET", "{m}1", 1, "{m}2", 2)
    cluster.begin_classic(slot, to)
    cluster.move_keys(slot, ["{m}1"])
    with pytest.raises(RespError, match="ASK"):
        source.cmd("GET", "{m}1")
    with pytest.raises(RespError, match="TRYAGAIN"):
        source.cmd("MGET", "{m}1", "{m}2")
    assert cluster.owner(slot) is source
    cluster.move_keys(slot)
    cluster.finish_classic(slot)
    assert to.cmd("MGET", "{m}1", "{m}2") == [b"1", b"2"]


@pytest.mark.parametrize("how", ["planned", "kill"])
def test_a_replica_takes_over(cluster: Cluster, how: str) -> None:
    slot = cluster.slot_of(how)
    old = cluster.owner(slot)
    with old.connect() as connection:
        connection.cmd("SET", how, 1)
        assert connection.cmd("WAIT", 1, 10_000) == 1
    new = cluster.failover(old, how)
    assert new is not old and cluster.owner(slot) is new and new.cmd("GET", how) == b"1"


def test_a_node_that_stops_is_resumed(cluster: Cluster) -> None:
    node = cluster.running[0]
    cluster.stop(node)
    assert node not in cluster.running
    cluster.resume(node)
    assert node.cmd("PING") == "PONG"
