# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: on a cluster, Redisson's locks and ours exclude each other on the same key, each is woken
by the other's release, and both stay so while the slot of the key moves.

Method: the real Redisson in cluster mode, which publishes to sharded channels; a real cluster
without replicas; reentrant locks, and read-write locks in Redisson's format.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.cluster import NEVER_MS, Cluster, Node, moves_of
from support.servers import available_kinds
from support.wait import wait_until

from .conftest import SOON_S, TTL_MS, Farm
from .peer import Pending, Reply, Side

RUN_MS = 2500
MEMBERS = 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(available_kinds()[-1], replicas=0, node_timeout_ms=NEVER_MS) as running:
        yield running


class Pair:
    """Both sides of one lock: a reentrant lock, or a read-write lock that is written."""

    def __init__(self, processes: Farm, cluster: Cluster, name: str, lock: str) -> None:
        self.cluster = cluster
        self.name = name
        node = cluster.servers[0]
        url = f"redis://{node.host}:{node.port}"
        java, python = processes.peer("java"), processes.peer("python")
        client = processes.client(java, url=url, cluster=1)
        kind = {"rlock": "rlock", "rw": "write"}[lock]
        self.theirs = Side(java, client, name, TTL_MS, kind=kind)
        said = {"kind": {"rlock": "redlatch-hash", "rw": "redlatch-rw"}[lock]}
        client = processes.client(python, url=cluster.url(), **said)
        if lock == "rlock":
            self.ours = Side(python, client, name, TTL_MS, options={"owner": "ours"})
            self.crowd = Side(python, client, name, TTL_MS)  # each thread is an owner
        else:
            self.ours = self.crowd = Side(python, client, name, TTL_MS, kind=kind)

    @property
    def slot(self) -> int:
        return self.cluster.slot_of(self.name)

    @property
    def node(self) -> Node:
        return self.cluster.owner(self.slot)

    def of(self, who: str) -> tuple[Side, Side]:
        """The holder, and the other one."""
        return (self.theirs, self.ours) if who == "theirs" else (self.ours, self.theirs)

    @property
    def subscribed(self) -> int:
        """How many channels of the lock have a subscriber at its node."""
        channels = self.node.cmd("PUBSUB", "SHARDCHANNELS", f"*{self.name}*")
        return len(channels)

    @property
    def queued(self) -> int:
        return int(self.ours.ok("look", owner="look")["waiting"])

    def waits(self, side: Side) -> Pending:
        """One that waits, and is known to: ours in our queue, theirs on their channel."""
        pending = side.waits(owner="waiter")
        wait_until(lambda: self.queued == 1 if side is self.ours else self.subscribed > 0)
        return pending


@pytest.fixture(params=["rlock", "rw"])
def pair(
    request: pytest.FixtureRequest, processes: Farm, cluster: Cluster, name: str
) -> Iterator[Pair]:
    yield Pair(processes, cluster, name, request.param)
    for slot in cluster.moving:  # of a test that failed
        cluster.move_keys(slot)
        cluster.finish_classic(slot)


sides = pytest.mark.parametrize("who", ["theirs", "ours"])


def is_in_soon(pending: Pending, since: float) -> bool:
    reply = pending.get()
    assert not reply.error, reply
    assert reply.ended - since < SOON_S, reply
    return reply.value is True


@sides
def test_each_keeps_the_other_out_and_wakes_it(pair: Pair, who: str) -> None:
    """Method: a try and a waiter of the other side, in both directions; the lease is far longer
    than the wait for the release, and Redisson does not poll."""
    holder, other = pair.of(who)
    assert holder.tries()
    assert not other.tries(owner="try")
    waiting = pair.waits(other)
    assert not waiting.is_done
    released = holder.release()
    assert is_in_soon(waiting, released)
    assert not holder.tries(owner="try")
    other.release(owner="waiter")
    assert holder.tries()
    holder.release()


def release_after_move(side: Side) -> float:
    """As Side.release(). Redisson may not know yet which node has the slot, and says so."""

    def answer() -> Reply | None:
        reply = side.call("release", owner="main")
        return None if "hasn't been discovered yet" in reply.error else reply

    reply = wait_until(answer)
    assert not reply.error, reply
    return reply.began


@sides
def test_a_holder_keeps_the_other_out_while_the_slot_moves(pair: Pair, who: str) -> None:
    """Goal: the lock stays with its holder, and its waiter of ours gets it with the release at the
    new node. Method: each kind of move; the classic one stops with the key of the lock at the
    target and others at the source. No waiter of theirs: the move ends its subscription, and it
    tries again when the lease would end."""
    holder, other = pair.of(who)
    for move in moves_of(pair.cluster.kind):
        to = pair.cluster.others(pair.slot)[0]
        assert holder.tries()
        waiting = pair.waits(other) if other is pair.ours else None
        if move == "atomic":
            pair.cluster.move_slot(pair.slot, to, "atomic")
        else:
            pair.cluster.begin_classic(pair.slot, to)
            pair.cluster.move_keys(pair.slot, [pair.name])
            reply = other.call("acquire", owner="try", wait_ms=0)
            assert reply.error or not reply.value, reply
            pair.cluster.move_keys(pair.slot)
            pair.cluster.finish_classic(pair.slot)
        assert not other.tries(owner="try")
        assert waiting is None or not waiting.is_done
        released = release_after_move(holder)
        if waiting:
            assert is_in_soon(waiting, released)
        else:
            wait_until(lambda: other.tries(owner="waiter"))
        assert not holder.tries(owner="try")
        other.release(owner="waiter")
        wait_until(lambda: holder.tries())
        holder.release()


def crowd_of_both_while_the_slot_moves(
    pair: Pair, counter: Path, figure: Callable[[str], None]
) -> None:
    """Goal: no two are in at once, both sides are served. Method: both sides try and count in a
    file, which loses a count when two do so at once; the slot goes from node to node in one step,
    because a try in the middle of a classic move is an error on both sides."""
    assert "atomic" in moves_of(pair.cluster.kind)
    said = {"threads": MEMBERS, "run_ms": RUN_MS, "hold_ms": 2, "counter": str(counter)}
    running = [side.begin("crowd", owner="crowd", wait_ms=0, **said)
               for side in (pair.theirs, pair.crowd)]  # fmt: skip
    count = 0
    for to in itertools.cycle(pair.cluster.servers):
        if any(pending.is_done for pending in running):
            break
        if to is not pair.node:
            pair.cluster.move_slot(pair.slot, to, "atomic")
            count += 1
    replies = [pending.get(60) for pending in running]
    assert not any(reply.error for reply in replies), replies
    turns = [sum(reply.value) for reply in replies]
    figure(f"Redisson beside us on a cluster: {turns} turns, {count} moves")
    assert int(counter.read_text()) == sum(turns)
    assert min(turns) > 0 and count > 1


# Redisson gets a turn by chance among our tries, and on a busy machine none.
if os.environ.get("REDLATCH_TEST_LONG"):
    test_a_crowd_of_both_while_the_slot_moves = crowd_of_both_while_the_slot_moves
