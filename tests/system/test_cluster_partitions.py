# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a primary of a cluster that is cut off costs the clients on the greater side time, and
neither their lease nor their place; clients that are cut off with it overlap by the allowed lag at
most.

Method: three primaries and their replicas, each in a network of its own, parted and joined again;
the servers refuse writes without a replica.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest
from support.cluster import Cluster, Node, Place
from support.servers import available_kinds
from support.wait import wait_until

from .actor import HELD, Actor
from .conftest import client_ids, queue_length, queued_tokens
from .network import Namespaces, can_have_namespaces, could_not_run

Figure = Callable[[str], None]

LAG_S = 1  # min-replicas-max-lag of the servers
PRIMARIES, REPLICAS = 3, 2  # a new primary has one left
TTL_MS = 15_000  # longer than a failover takes, also on a busy machine
SHORT_TTL_MS = 3000
WAIT_MS = 60_000


@pytest.fixture
def spaces() -> Iterator[Namespaces]:
    """A network for each node, and for two hosts."""
    if not can_have_namespaces():
        could_not_run("partitions of clusters: need network namespaces")
        pytest.skip("network namespaces cannot be made here")
    spaces = Namespaces(PRIMARIES * (1 + REPLICAS), 2)
    with contextlib.closing(spaces):
        yield spaces


def cluster_in(spaces: Namespaces) -> Cluster:
    places = {
        number: Place(host=place.host, wrapper=place.wrapper)
        for number, place in enumerate(spaces.places())
    }
    lag = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", str(LAG_S)]
    return Cluster(
        available_kinds()[-1], nodes=PRIMARIES, replicas=REPLICAS, args=lag, places=places
    )


def actor_in(spaces: Namespaces, host: int, cluster: Cluster, stack: contextlib.ExitStack) -> Actor:
    actor = stack.enter_context(Actor(wrapper=spaces.wrapper(host)))
    actor.ok("open", url=cluster.url())
    return actor


def part(spaces: Namespaces, cluster: Cluster, node: Node, hosts: list[int]) -> None:
    spaces.part([cluster.servers.index(node)], hosts)


def await_replicas(cluster: Cluster, primary: Node) -> list[Node]:
    """Its replicas, when they have all that it has. Any of them may be elected."""

    def offset(node: Node, name: bytes) -> bytes:
        lines = node.cmd("INFO", "replication").splitlines()
        return next(line.partition(b":")[2] for line in lines if line.startswith(name))

    replicas = cluster.replicas_of(primary)
    for replica in replicas:
        wait_until(
            lambda replica=replica: offset(primary, b"master_repl_offset")
            == offset(replica, b"slave_repl_offset")
        )
    return replicas


def is_primary(node: Node) -> bool:
    return "master" in node.views()[0].flags


def test_a_primary_that_is_cut_off(spaces: Namespaces, name: str, figure: Figure) -> None:
    """Goal: clients of the greater side keep the lock and their places at the new primary; none of
    them comes back to the old one when the network is whole again."""
    with cluster_in(spaces) as cluster, contextlib.ExitStack() as stack:
        holder, waiter = (actor_in(spaces, 1, cluster, stack) for _ in range(2))
        held = holder.ok("acquire", name=name, wait=0, ttl_ms=TTL_MS)
        waiting = waiter.begin("acquire", name=name, wait=WAIT_MS, ttl_ms=TTL_MS)
        old = cluster.owner_of(name)
        wait_until(lambda: queue_length(old, name) == 1)
        places = queued_tokens(old, name)
        replicas = await_replicas(cluster, old)
        began = time.monotonic()
        part(spaces, cluster, old, [])
        new = wait_until(lambda: [replica for replica in replicas if is_primary(replica)])[0]
        promoted = time.monotonic() - began
        wait_until(lambda: len(queued_tokens(new, name)) == 1 and client_ids(new))
        figure(f"cluster, partition: a new primary after {promoted:.1f} s, clients there after "
               f"{time.monotonic() - began:.1f} s")  # fmt: skip
        assert holder.ok("look").number("state") == HELD
        assert len(places) == 1
        spaces.heal()
        wait_until(lambda: not is_primary(old))
        wait_until(lambda: client_ids(old) == [])
        holder.ok("release")
        reply = waiting.get()
        assert reply.status == "RL_OK" and reply.number("fence") > held.number("fence")
        waiter.ok("release")


@pytest.mark.not_judged  # two hold it for a while: that is what is measured
def test_a_client_that_is_cut_off_with_the_primary(
    spaces: Namespaces, name: str, figure: Figure
) -> None:
    """Goal: with min-replicas-to-write, the two sides overlap by the allowed lag at most.
    Method: the holder's host and the primary on one side, a waiter on the other."""
    with cluster_in(spaces) as cluster, contextlib.ExitStack() as stack:
        holder = actor_in(spaces, 0, cluster, stack)
        waiter = actor_in(spaces, 1, cluster, stack)
        holder.ok("acquire", name=name, wait=0, ttl_ms=SHORT_TTL_MS)
        waiting = waiter.begin("acquire", name=name, wait=WAIT_MS, ttl_ms=SHORT_TTL_MS)
        old = cluster.owner_of(name)
        wait_until(lambda: queue_length(old, name) == 1)
        await_replicas(cluster, old)
        began = time.monotonic()
        part(spaces, cluster, old, [0])
        lost = holder.ok("wait_lost", wait=WAIT_MS).ended
        granted = waiting.get(60)
        assert granted.status == "RL_OK", granted
        overlap = lost - granted.ended
        figure(f"cluster, partition: lost after {lost - began:.1f} s, granted on the other side "
               f"after {granted.ended - began:.1f} s")  # fmt: skip
        # Lag is counted in whole seconds, and looked at once in a second.
        assert overlap < LAG_S + 2
        waiter.ok("release")
        spaces.heal()
        holder.ok("acquire", lease=1, name=name, wait=WAIT_MS, ttl_ms=SHORT_TTL_MS)
        holder.ok("release", lease=1)
