# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a lock on most of five servers is a lock, whatever happens to the other ones.

Method: nodes and clients in network namespaces of their own; nodes that stop, die, are cut off and
come back empty.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from support.wait import SLACK_S, wait_until

from .actor import HELD, LOST, Actor, Reply
from .network import Network

CLIENT_SIZE = 22  # of a token, its beginning: whose it is
NODE_LIMIT_S = 0.05  # The longest that it is by itself.


def acquire(actor: Actor, name: str, **arguments: int) -> Reply:
    return actor.call("acquire", redlock=0, name=name, **arguments)


def take(actor: Actor, name: str, wait: int = 10_000, **arguments: int) -> Reply:
    """It waits: on a busy machine a round can be too short for the nodes."""
    reply = acquire(actor, name, wait=wait, **arguments)
    assert reply.status == "RL_OK", reply
    return reply


def release_and_free(actor: Actor) -> None:
    actor.ok("release")
    actor.ok("free")


def vote_count(network: Network, name: str, token: str) -> int:
    """Those of this token, or of all that begin with this."""
    return sum(bool(held and held.startswith(token)) for held in network.holders(name))


def is_free(network: Network, name: str) -> bool:
    return network.holders(name) == [None] * len(network.nodes)


# ---- a minority fails ----


@pytest.mark.parametrize("lost", ["both", "requests", "replies"])
def test_minority_cut_off(network: Network, name: str, lost: str) -> None:
    """Goal: two nodes that cannot be reached, or cannot answer, do not matter to who holds and who
    asks; what they granted unheard is undone when they can be.
    Method: partitions of one host's packets, in both directions or one."""
    ways = {"requests": lost != "replies", "replies": lost != "requests"}
    actor, other = network.actor(0), network.actor(1)
    take(actor, name, ttl_ms=1000)
    network.cut(0, 0, 1, **ways)
    time.sleep(1.2)
    assert actor.ok("look").number("state") == HELD
    assert acquire(other, name, wait=0).status == "RL_BUSY"
    release_and_free(actor)
    assert take(actor, name, wait=2000).seconds < 2.0
    assert acquire(other, name, wait=0).status == "RL_BUSY"
    actor.ok("release")
    network.heal()
    wait_until(lambda: is_free(network, name), 15)
    take(other, name)


# ---- a majority fails ----


FAULTS = ["hung", "killed", "cut"]


def strike(network: Network, fault: str) -> None:
    """The first three nodes go, of five; `cut` for the first host only."""
    if fault == "cut":
        network.cut(0, 0, 1, 2)
    for node in network.nodes[:3]:
        if fault == "hung":
            node.pause()
        elif fault == "killed":
            node.kill()


def bring_back(network: Network, fault: str) -> None:
    network.heal()
    for node in network.nodes[:3]:
        if fault == "hung":
            node.resume()
        elif fault == "killed":
            node.start()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("is_connected", [True, False], ids=["connected", "new"])
def test_acquire_fails_without_a_majority(
    network: Network, name: str, fault: str, is_connected: bool, figure: Callable[[str], None]
) -> None:
    """Goal: with three of five nodes gone an acquire ends within one node time limit, names them,
    and leaves no key anywhere, also on those that come back, long before its lease would be over.
    Method: SIGSTOP, SIGKILL, packets dropped; then all come back."""
    actor = network.actor(0)
    if is_connected:
        actor.ok("redlock_connect", wait=5000)
        take(actor, name)
        release_and_free(actor)
        wait_until(lambda: is_free(network, name))
    strike(network, fault)
    reply = acquire(actor, name, wait=0)
    figure(f"three {fault}: refused after {reply.seconds * 1000:.1f} ms")
    assert reply.status == "RL_E_UNAVAILABLE", reply
    for i in range(3):
        assert network.url(0, i).removeprefix("redis://") in reply.message, reply
    # One that never was connected is waited for until it cannot be any more.
    assert reply.seconds < (NODE_LIMIT_S if is_connected else 2.0) + SLACK_S
    wait_until(lambda: is_free(network, name))
    reply = acquire(actor, name, wait=300)
    assert reply.status in ("RL_TIMEOUT", "RL_E_UNAVAILABLE"), reply
    assert 0.3 <= reply.seconds < 0.3 + SLACK_S
    bring_back(network, fault)
    wait_until(lambda: is_free(network, name), 10)
    time.sleep(0.1)
    assert is_free(network, name), "an acquire came late"
    take(actor, name, wait=10_000)


@pytest.mark.parametrize("fault", FAULTS)
def test_holder_is_notified_in_time(network: Network, name: str, fault: str) -> None:
    """Goal: who loses most nodes is told before anybody else can have the lock, and no later than
    its lease, whatever the other nodes confirm; who still has most nodes gets it.
    Method: three nodes go while it is held; another client that can reach them waits meanwhile."""
    holder, other = network.actor(0), network.actor(1)
    take(holder, name, ttl_ms=1500)
    holder.ok("look")
    waiting = other.begin("acquire", redlock=0, name=name, wait=20_000)
    strike(network, fault)
    gone_at = time.monotonic()
    while (look := holder.call("look")).number("state") == HELD:
        assert look.began + look.number("remaining") / 1000 < gone_at + 1.5, look
        time.sleep(0.005)
    told = holder.call("wait_lost", wait=10_000)
    assert told.number("state") == LOST and told.ended - gone_at < 1.5 + SLACK_S, told
    look = holder.call("look")
    assert look.number("state") == LOST and look.number("remaining") == 0
    if fault != "cut":
        time.sleep(0.3)
        assert not waiting.is_done
        bring_back(network, fault)
    assert waiting.get().status == "RL_OK"


def test_neither_side_of_a_split_network_shares(network: Network, name: str) -> None:
    """Goal: of two hosts that each reach some nodes, only one that reaches most gets the lock.
    Method: one reaches 0 1, the other 2 3 4; then both 2, and each two of its own."""
    left, right = network.actor(0), network.actor(1)
    for actor in (left, right):
        actor.ok("redlock_connect", wait=5000)
    network.cut(0, 2, 3, 4)
    network.cut(1, 0, 1)
    assert acquire(left, name, wait=0).status == "RL_E_UNAVAILABLE"
    take(right, name, wait=1000)
    release_and_free(right)
    network.heal()
    for actor in (left, right):
        actor.ok("redlock_connect", wait=10_000)
    network.cut(0, 3, 4)
    network.cut(1, 0, 1)
    for first, second in ((left, right), (right, left)):
        take(first, name, wait=5000)
        reply = acquire(second, name, wait=0)
        assert reply.status in ("RL_BUSY", "RL_E_UNAVAILABLE"), reply
        release_and_free(first)


# ---- nodes that forget ----


def give_and_forget(network: Network, name: str, guard: str) -> tuple[Actor, Actor]:
    """One has the votes of 0 1 2, and cannot hear any more that 2 starts again, empty. The other
    reaches 2 3 4."""
    holder = network.actor(0, restart_guard=guard)
    other = network.actor(1, restart_guard=guard)
    for actor in (holder, other):
        actor.ok("redlock_connect", wait=20_000)
    network.cut(0, 3, 4)
    network.cut(1, 0, 1)
    take(holder, name, wait=10_000, ttl_ms=1900)
    network.cut(0, 0, 1, 2)
    network.nodes[2].restart()
    return holder, other


@pytest.mark.not_judged
def test_without_the_guard_a_node_that_forgot_breaks_it(
    network: Network, name: str, history: object
) -> None:
    """Goal: the fault that the guard is for is one: this is what the next test would see.
    Method: a node that has voted starts again empty; both clients ask who holds."""
    holder, other = give_and_forget(network, name, "off")
    take(other, name, wait=1000)
    assert holder.ok("look").number("state") == HELD
    assert other.ok("look").number("state") == HELD


def test_a_node_that_forgot_does_not_vote_yet(network: Network, name: str) -> None:
    """Goal: a node that started again has no vote until every lease that it may have forgotten is
    over.
    Method: as above, with a guard of 2 s; the other one asks all the time."""
    holder, other = give_and_forget(network, name, "2s")
    waiting = other.begin("acquire", redlock=0, name=name, wait=20_000, ttl_ms=1900)
    while not waiting.is_done:
        looked = holder.call("look")
        if looked.number("state") != HELD:
            break
        time.sleep(0.01)
    assert looked.number("state") == LOST, "the other one got it while it was held"
    reply = waiting.get()
    assert reply.status == "RL_OK" and reply.ended > looked.began, reply


def test_held_lease_loses_the_vote_of_a_node_that_restarted(network: Network, name: str) -> None:
    """Goal: a lease does not count a node that forgot it, and asks it again when it may vote.
    Method: nodes start again, one after the other, while it is held; a guard of 2 s."""
    holder = network.actor(0, restart_guard="2s")
    take(holder, name, wait=20_000, ttl_ms=1000)
    token = holder.ok("look")["token"]
    wait_until(lambda: vote_count(network, name, token) == 5)
    restarted = time.monotonic()
    network.nodes[0].restart()
    while True:
        held = network.holders(name)[0]
        if time.monotonic() > restarted + 1.8:
            break
        assert held is None
        time.sleep(0.02)
    assert holder.ok("look").number("state") == HELD
    wait_until(lambda: vote_count(network, name, token[:CLIENT_SIZE]) == 5)
    for node in network.nodes[:3]:
        node.restart()
    told = holder.call("wait_lost", wait=5000)
    assert told.number("state") == LOST, told
    take(holder, name, lease=1, wait=20_000, ttl_ms=1000)


def forget(network: Network, name: str, *nodes: int) -> None:
    """Everything, or what a limit of memory might choose."""
    for node in nodes:
        with network.nodes[node].connect() as connection:
            connection.cmd("FLUSHALL") if node % 2 == 0 else connection.cmd("DEL", name)


@pytest.mark.not_judged
@pytest.mark.parametrize("count", [2, 3])
def test_no_more_may_forget_than_is_said(network: Network, name: str, count: int) -> None:
    """Goal: V + M - N is the number: with five votes another client is granted it when three forget
    at a time, and not when two do.
    Method: as above, at once after a renewal."""
    holder = network.actor(0)
    other = network.actor(1)
    other.ok("redlock_connect", wait=5000)
    take(holder, name, ttl_ms=30_000)
    token = holder.ok("look")["token"]
    wait_until(lambda: vote_count(network, name, token) == 5)
    forget(network, name, *range(count))
    reply = acquire(other, name, wait=0)
    assert reply.status == ("RL_OK" if count == 3 else "RL_BUSY"), reply
    assert holder.ok("look").number("state") == HELD


def test_a_vote_is_asked_for_no_more_when_it_is_released(network: Network, name: str) -> None:
    """Goal: what is asked for again is given back with the rest, whenever that is.
    Method: leases that end around their first renewal, while a node has forgotten them; a node that
    hangs just then; a shutdown."""
    holder = network.actor(0)
    for i in range(8):
        take(holder, name, wait=5000, ttl_ms=300)
        forget(network, name, i % 5)
        if i % 2:
            network.nodes[(i + 1) % 5].pause()
        time.sleep(0.08 + 0.01 * i)
        holder.ok("release")
        holder.ok("free")
        network.nodes[(i + 1) % 5].resume()
        wait_until(lambda: is_free(network, name))
        time.sleep(0.1)
        assert is_free(network, name), "an acquire came late"
    take(holder, name, wait=5000, ttl_ms=300)
    forget(network, name, 0, 1)
    time.sleep(0.1)
    holder.ok("redlock_shutdown")
    wait_until(lambda: is_free(network, name))


# ---- the votes are split ----


@pytest.mark.parametrize("count", [2, 10])
@pytest.mark.parametrize("down", [0, 1])
def test_split_votes_resolve(
    network: Network, name: str, count: int, down: int, figure: Callable[[str], None]
) -> None:
    """Goal: clients that ask at once do not keep each other from the lock.
    Method: all begin in one moment, forty times, from the first call to the first grant; with one
    node down two clients can have two votes each."""
    for node in network.nodes[:down]:
        node.kill()
    actors = [network.actor(i % 2) for i in range(count)]
    for actor in actors:
        actor.ok("redlock_connect", wait=5000)
    first, all_of_them = [], []
    for _ in range(40):
        pending = {
            actor: actor.begin("acquire", redlock=0, name=name, wait=60_000) for actor in actors
        }
        served: list[Reply] = []
        while pending:
            wait_until(lambda: any(one.is_done for one in pending.values()))
            actor = next(actor for actor, one in pending.items() if one.is_done)
            served.append(pending.pop(actor).get())
            assert served[-1].status == "RL_OK", served[-1]
            release_and_free(actor)
        began = min(reply.began for reply in served)
        first.append((served[0].ended - began) * 1000)
        all_of_them.append((served[-1].ended - began) * 1000)
    figure(
        f"{count} clients at once, {down} of five nodes down: ms to the first grant"
        f" {sorted(first)[20]:.1f}, {max(first):.1f} at most; to the last"
        f" {sorted(all_of_them)[20]:.1f}, {max(all_of_them):.1f} at most"
    )
    assert max(first) < 2000
