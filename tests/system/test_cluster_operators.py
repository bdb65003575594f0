# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a move of a slot that an operator ends wrongly gives a lock away, as docs/guarantees.md
says; then no call hangs or fails in another way, the first holder hears of it with its next
renewal, and the lock can be used again.

Method: real clusters, and SETSLOT in the order in which it must not be sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.cluster import NEVER_MS, Cluster
from support.servers import available_kinds
from support.wait import wait_until

from .actor import HELD, LOST, Spawn
from .conftest import aux_key


TTL_MS = 3000  # a renewal comes after a third of it
LONG_TTL_MS = 120_000
WAIT_MS = 30_000


@pytest.fixture(scope="module", params=available_kinds())
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(request.param, nodes=2, replicas=0, node_timeout_ms=NEVER_MS) as running:
        yield running


def move_lock_key_and_break_off(cluster: Cluster, name: str) -> None:
    slot = cluster.slot_of(name)
    cluster.begin_classic(slot, cluster.others(slot)[0])
    cluster.move_keys(slot)
    cluster.break_off(slot)


def claim_before_the_keys(cluster: Cluster, name: str) -> None:
    slot = cluster.slot_of(name)
    cluster.begin_classic(slot, cluster.others(slot)[0])
    cluster.claim_early(slot)


@pytest.mark.not_judged  # two clients hold the lock for a while: that is what is shown
@pytest.mark.parametrize("do", [move_lock_key_and_break_off, claim_before_the_keys])
def test_a_lock_that_an_operator_gives_away(
    cluster: Cluster, spawn: Spawn, name: str, do: Callable[[Cluster, str], None]
) -> None:
    """Goal: another client gets the lock at once; the first holder reports its lease as lost with
    its next renewal, and touches nothing of the new holder. A waiter is served in its time, though
    its place may be gone. Method: a holder, a waiter, another client."""
    holder, waiter, other = (spawn(cluster.url()) for _ in range(3))
    holder.ok("acquire", name=name, wait=WAIT_MS, ttl_ms=TTL_MS)
    do(cluster, name)
    other.ok("acquire", name=name, wait=WAIT_MS, ttl_ms=LONG_TTL_MS)
    token = other.ok("look")["token"]
    pending = waiter.begin("acquire", name=name, wait=WAIT_MS, ttl_ms=TTL_MS)
    node = cluster.owner_of(name)
    wait_until(lambda: node.cmd("ZCARD", aux_key(name, "q")) == 1)
    wait_until(lambda: holder.call("look").number("state") == LOST, TTL_MS / 1000)
    assert holder.call("release").status == "RL_E_LOST"
    assert node.cmd("GET", name).decode() == token
    assert other.ok("look").number("state") == HELD and not pending.is_done
    other.ok("release")
    assert pending.get().status == "RL_OK"
    waiter.ok("release")
    wait_until(lambda: node.cmd("EXISTS", name) == 0)


@pytest.mark.not_judged  # two clients hold the lock for a while: that is what is shown
@pytest.mark.parametrize("do", [move_lock_key_and_break_off, claim_before_the_keys])
def test_a_lock_that_is_given_away_while_it_is_released(
    cluster: Cluster, spawn: Spawn, name: str, do: Callable[[Cluster, str], None]
) -> None:
    """Goal: a release whose keys are elsewhere ends within the command timeout, and the lock is
    free. Method: the lease is long, so no renewal is sent between."""
    actor, other = spawn(cluster.url()), spawn(cluster.url())
    actor.ok("acquire", name=name, wait=WAIT_MS, ttl_ms=LONG_TTL_MS)
    do(cluster, name)
    reply = actor.call("release")
    assert reply.status in ("RL_OK", "RL_E_LOST"), reply
    other.ok("acquire", name=name, wait=WAIT_MS, ttl_ms=TTL_MS)
    other.ok("release")


def test_a_move_that_is_broken_off_before_a_key_has_moved(
    cluster: Cluster, spawn: Spawn, name: str
) -> None:
    """Goal: that is harmless. Method: STABLE at both nodes, between two renewals."""
    holder, other = spawn(cluster.url()), spawn(cluster.url())
    holder.ok("acquire", name=name, wait=WAIT_MS, ttl_ms=TTL_MS)
    slot = cluster.slot_of(name)
    source = cluster.owner(slot)
    cluster.begin_classic(slot, cluster.others(slot)[0])
    assert other.call("acquire", name=name, wait=100).status != "RL_OK"
    cluster.break_off(slot)
    assert other.call("acquire", name=name, wait=0).status == "RL_BUSY"
    wait_until(lambda: source.cmd("PTTL", name) > TTL_MS - 300)
    assert holder.ok("look").number("state") == HELD
    holder.ok("release")
