# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a primary of sentinels or of a cluster that is cut off costs the clients on the greater
side time, and neither their lease nor their place; clients that are cut off with it overlap by the
allowed lag at most.

Method: nodes in networks of their own, parted and joined again; the servers refuse writes without
a replica.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from support.cluster import Cluster, Node, Place
from support.sentinel import DOWN_AFTER_MS, SentinelGroup
from support.servers import Server, available_kinds, has_replicas_for_scripts
from support.wait import wait_until

from .actor import HELD
from .conftest import client_ids, queue_length, queued_tokens
from .network import Namespaces, namespaces

Figure = Callable[[str], None]

LAG_S = 1  # min-replicas-max-lag of the servers
LAG = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", str(LAG_S)]
SHORT_TTL_MS = 3000
WAIT_MS = 60_000


class PartedGroup(SentinelGroup):
    """Three nodes, each with a server and a sentinel."""

    NODES = 3
    TTL_MS = 30_000  # far longer than a failover, so that nothing runs out

    def __init__(self, spaces: Namespaces, down_after_ms: int = DOWN_AFTER_MS) -> None:
        super().__init__(places=spaces.places(), args=LAG, down_after_ms=down_after_ms)

    def owner_of(self, _: str) -> Server:
        return self.primary

    def settle(self, _: Server) -> None:
        self.await_same()

    def successor(self, cut_off: Server) -> Server:
        """The primary that the sentinels on the other side name."""
        others = [one for one in self.sentinels if one.host != cut_off.host]

        def named() -> list[Server]:
            said = {one.primary() for one in others}
            return [s for s in self.servers if s is not cut_off and said == {(s.host, s.port)}]

        return wait_until(named)[0]

    def is_replica(self, server: Server) -> bool:
        return self.replication(server)["role"] == "slave"


class PartedCluster(Cluster):
    """Three primaries with two replicas each: a new primary has one left."""

    NODES = 9
    TTL_MS = 15_000  # longer than a failover takes, also on a busy machine

    def __init__(self, spaces: Namespaces) -> None:
        places = [Place(host=place.host, wrapper=place.wrapper) for place in spaces.places()]
        super().__init__(
            available_kinds()[-1], replicas=2, args=LAG, places=dict(enumerate(places))
        )
        self._candidates: list[Node] = []

    def settle(self, primary: Node) -> None:
        """Until its replicas have all that it has. Any of them may be elected."""

        def offset(node: Node, name: bytes) -> bytes:
            lines = node.cmd("INFO", "replication").splitlines()
            return next(line.partition(b":")[2] for line in lines if line.startswith(name))

        self._candidates = self.replicas_of(primary)
        for one in self._candidates:
            wait_until(
                lambda one=one: offset(primary, b"master_repl_offset")
                == offset(one, b"slave_repl_offset")
            )

    def successor(self, _: Server) -> Server:
        return wait_until(lambda: [one for one in self._candidates if not self.is_replica(one)])[0]

    def is_replica(self, node: Node) -> bool:
        return "master" not in node.views()[0].flags


Parted = PartedGroup | PartedCluster
SETS: dict[str, type[Parted]] = {"sentinel": PartedGroup, "cluster": PartedCluster}


@pytest.fixture
def networks(kind: str) -> Iterator[Namespaces]:
    with namespaces(SETS[kind].NODES) as spaces:
        yield spaces


def part(networks: Namespaces, nodes: Parted, server: Server, hosts: list[int]) -> None:
    networks.part([nodes.servers.index(server)], hosts)


@pytest.mark.parametrize("kind", SETS)
def test_a_primary_that_is_cut_off(
    networks: Namespaces, kind: str, name: str, figure: Figure
) -> None:
    """Goal: clients of the greater side keep the lock and their places at the new primary; none of
    them comes back to the old one when the network is whole again.
    Method: the node of the primary is cut off from all others."""
    with SETS[kind](networks) as nodes:
        holder, waiter = (networks.actor(1, nodes.url()) for _ in range(2))
        held = holder.ok("acquire", name=name, wait=0, ttl_ms=nodes.TTL_MS)
        waiting = waiter.begin("acquire", name=name, wait=WAIT_MS, ttl_ms=nodes.TTL_MS)
        old = nodes.owner_of(name)
        wait_until(lambda: queue_length(old, name) == 1)
        places = queued_tokens(old, name)
        nodes.settle(old)
        began = time.monotonic()
        part(networks, nodes, old, [])
        new = nodes.successor(old)
        promoted = time.monotonic() - began
        if kind == "sentinel":
            wait_until(lambda: queued_tokens(new, name) == places)
        else:  # a waiter has another token at another node
            wait_until(lambda: len(queued_tokens(new, name)) == 1 and client_ids(new))
        figure(f"{kind}, partition: a new primary after {promoted:.1f} s, clients there after "
               f"{time.monotonic() - began:.1f} s")  # fmt: skip
        assert holder.ok("look").number("state") == HELD
        networks.heal()
        wait_until(lambda: nodes.is_replica(old))
        if kind == "sentinel":
            assert client_ids(old) == []
        wait_until(lambda: client_ids(old) == [])
        holder.ok("release")
        reply = waiting.get()
        assert reply.status == "RL_OK" and reply.number("fence") > held.number("fence")
        waiter.ok("release")


KINDS = [
    pytest.param(
        "sentinel", marks=pytest.mark.needs(has_replicas_for_scripts(available_kinds()[0]))
    ),
    "cluster",
]


@pytest.mark.not_judged  # two hold it for a while: that is what is measured
@pytest.mark.parametrize("kind", KINDS)
def test_a_client_that_is_cut_off_with_the_primary(
    networks: Namespaces, kind: str, name: str, figure: Figure
) -> None:
    """Goal: with min-replicas-to-write, the two sides overlap by the allowed lag at most.
    Method: the holder's host and the primary's node on one side, a waiter on the other."""
    with SETS[kind](networks) as nodes:
        holder, waiter = (networks.actor(host, nodes.url()) for host in (0, 1))
        holder.ok("acquire", name=name, wait=0, ttl_ms=SHORT_TTL_MS)
        waiting = waiter.begin("acquire", name=name, wait=WAIT_MS, ttl_ms=SHORT_TTL_MS)
        old = nodes.owner_of(name)
        wait_until(lambda: queue_length(old, name) == 1)
        nodes.settle(old)
        began = time.monotonic()
        part(networks, nodes, old, [0])
        lost = holder.ok("wait_lost", wait=WAIT_MS).ended
        granted = waiting.get(60)
        assert granted.status == "RL_OK", granted
        overlap = lost - granted.ended
        figure(f"{kind}, partition: lost after {lost - began:.1f} s, granted on the other side "
               f"after {granted.ended - began:.1f} s")  # fmt: skip
        # Lag is counted in whole seconds, and looked at once in a second.
        assert overlap < LAG_S + 2
        waiter.ok("release")
        networks.heal()
        holder.ok("acquire", lease=1, name=name, wait=WAIT_MS, ttl_ms=SHORT_TTL_MS)
        holder.ok("release", lease=1)
