# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what a lock has beside its lease and its queue, the replicas that confirm it, Redisson's
keys and the channel of a waiter, survives the move of a slot; a check asks all primaries.

Method: one real cluster with replicas; slots are moved by hand, also with a stop in the middle.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from support.cluster import NEVER_MS, Cluster, moves_of, slot_of
from support.servers import available_kinds, has_sharded_channels
from support.wait import wait_until

from .actor import Pending, Spawn
from .conftest import aux_key, channels, queue_length
from .fake_cluster import FakeCluster
from .plays import cli
from .test_cluster import Clients, count_of_error, names_at, value


KIND = available_kinds()[-1]
LONG_TTL_MS = 120_000  # so that only a release frees the lock within a test
WAIT_MS = 30_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two primaries, each with a replica. No node is ever taken for dead."""
    with Cluster(KIND, nodes=2, replicas=1, node_timeout_ms=NEVER_MS) as running:
        yield running


def test_replicas_confirm_a_lock_whose_slot_moves(
    cluster: Cluster, spawn: Spawn, name: str
) -> None:
    """Goal: a redirect on the connection for WAIT fails no acquire: the replicas of the new node
    confirm it. Method: WAIT for two replicas, where there is one, blocks that connection while the
    slot of a second lock moves; a classic move stands still until the extension there was refused.
    """
    source = cluster.primaries[0]
    actor = spawn(cluster.url())
    names = names_at(cluster, source, name)
    for kind in moves_of(cluster.kind):
        first, moved = next(names), next(names)
        slot = cluster.slot_of(moved)
        target = cluster.others(slot)[0]
        def begin(lease: int, one: str, replicas: int, limit: str) -> Pending:
            return actor.begin(
                "acquire", thread=lease, lease=lease, name=one, wait=WAIT_MS,
                ttl_ms=LONG_TTL_MS, min_replicas=replicas, sync_timeout=limit,
            )  # fmt: skip

        blocking = begin(1, first, 2, "3s")
        wait_until(lambda: b"cmd=wait" in source.cmd("CLIENT", "LIST"))
        pending = begin(2, moved, 1, "25s")
        wait_until(lambda: value(source, moved) is not None)
        if kind == "classic":
            refused = count_of_error(source, "ASK")
            cluster.begin_classic(slot, target)
            cluster.move_keys(slot)
            assert blocking.get().status == "RL_E_NOT_REPLICATED"
            wait_until(lambda: count_of_error(source, "ASK") > refused)
            cluster.finish_classic(slot)
        else:
            cluster.move_slot(slot, target, kind)
            assert blocking.get().status == "RL_E_NOT_REPLICATED"
        reply = pending.get()
        assert reply.status == "RL_OK", reply
        follower = cluster.replicas_of(target)[0]
        with follower.connect() as connection:
            assert connection.pipe([["READONLY"], ["EXISTS", moved]])[1] == 1
        actor.ok("release", thread=2, lease=2)


def reader_key_count(cluster: Cluster, name: str) -> int:
    """Keys by which Redisson sees a reader, at both nodes."""
    pattern = f"{{{name}}}:*:rwlock_timeout:1"
    return sum(len(node.cmd("KEYS", pattern)) for node in cluster.primaries)


@pytest.mark.not_judged  # runners write no record
def test_a_hash_rw_lease_outlives_a_move_that_stands_still(
    cluster: Cluster, runner_command: list[str], name: str
) -> None:
    """Goal: reader and writer keep the lock for three times their ttl, and Redisson sees the reader
    all the time; no other client gets the lock. Method: no key, K, the readers' keys or all of them
    have moved."""
    ttl_ms = 3000
    locks = [(mode, half) for mode in ("read", "write") for half in ("none", "K", "R", "all")]
    with Clients(runner_command, cluster.url(), 2) as clients:
        names = {}
        for number, (mode, half) in enumerate(locks):
            one = names[number] = f"{name}-{mode}-{half}"
            for client in (0, 1):
                kind = f"rw owner=o{client} format=3 ttl_ms={ttl_ms}"
                clients.say(client, f"- lock id=m{number} kind={kind} name={one}", "OK")
            clients.say(0, f"m{number} acquire_{mode} wait_ms=0", "OK")
            slot = cluster.slot_of(one)
            cluster.begin_classic(slot, cluster.others(slot)[0])
            if half == "K":
                cluster.move_keys(slot, [one])
            elif half == "all":
                cluster.move_keys(slot)
            elif half == "R" and mode == "read":
                source = cluster.owner(slot)
                theirs = source.cmd("KEYS", f"{{{one}}}:*:rwlock_timeout:1")
                cluster.move_keys(slot, [aux_key(one, "mr"), *theirs])
        end = time.monotonic() + 3 * ttl_ms / 1000
        while time.monotonic() < end:
            for number, (mode, _) in enumerate(locks):
                clients.say(0, f"m{number} check", "OK")
                assert reader_key_count(cluster, names[number]) == (mode == "read")
                clients.say(1, f"m{number} acquire_write wait_ms=50", "TIMEOUT")
        for number in names:
            slot = cluster.slot_of(names[number])
            cluster.move_keys(slot)
            cluster.finish_classic(slot)
            clients.say(1, f"m{number} acquire_write wait_ms=0", "BUSY")
            clients.say(0, f"m{number} release", "OK")
            clients.say(1, f"m{number} acquire_write wait_ms=30000", "OK")
            clients.say(1, f"m{number} release", "OK")
        clients.end()


def test_a_check_asks_all_primaries(cluster: Cluster) -> None:
    """Goal: the findings are those of each primary, by its address, with the state of the cluster;
    one that does not answer is a row of its own. Method: `doctor`; a setting of one primary."""

    def doctor() -> list[list[str]]:
        done = cli(cluster.url(connect_timeout="1s"), "-o", "tsv", "doctor")
        return [line.split("\t") for line in done.stdout.splitlines()]

    second = cluster.primaries[1]
    second.cmd("CONFIG", "SET", "timeout", 1000)
    found = doctor()
    for node in cluster.primaries:
        address = f"{node.host}:{node.port}"
        mine = {row[1]: row for row in found if any(address in cell for cell in row)}
        assert {"reachable", "role", "cluster", "lock", "handover"} <= set(mine), (address, found)
        assert mine["idle-timeout"][0] == ("warn" if node is second else "ok"), mine
    second.cmd("CONFIG", "SET", "timeout", 0)


# Of a waiter whose lock or channel has moved: the head of a queue looks each second.
SOON = 5.0
WITH_A_SLOT = ["lock", "channel"] if has_sharded_channels(KIND) else ["lock"]


@pytest.mark.parametrize("what", WITH_A_SLOT)
def test_a_waiter_that_no_message_reaches_is_granted_soon(
    cluster: Cluster, spawn: Spawn, name: str, what: str
) -> None:
    """Goal: a release behind the move of the slot of a waiter's channel, or of its lock, reaches it
    long before it would look for the end of the holder's lease. Method: the slot moves when the
    waiter has been in the queue for a while, and the holder releases at once."""
    kind = moves_of(cluster.kind)[-1]
    source = cluster.primaries[0]
    one = next(names_at(cluster, source, name))
    holder, waiter = spawn(cluster.url()), spawn(cluster.url())
    holder.ok("acquire", name=one, wait=WAIT_MS, ttl_ms=LONG_TTL_MS)
    known = set(channels(source))
    pending = waiter.begin("acquire", name=one, wait=WAIT_MS, ttl_ms=LONG_TTL_MS)
    wait_until(lambda: queue_length(source, one) == 1)
    mine = set(channels(source)) - known
    assert len(mine) == 1
    # Its question for the name of the holder, after a second, finds a move by chance.
    asked = source.script_count()
    wait_until(lambda: source.script_count() > asked)
    slot = slot_of(mine.pop() if what == "channel" else one)
    cluster.move_slot(slot, cluster.others(slot)[0], kind)
    begun = time.monotonic()
    holder.ok("release")
    assert pending.get().status == "RL_OK"
    assert time.monotonic() - begun < SOON
    waiter.ok("release")


def test_a_channel_whose_slot_leaves_while_the_client_connects(spawn: Spawn) -> None:
    """Goal: the client subscribes anew. Method: a node of the test's own, which ends the first
    subscription together with the answer that opens the connection."""
    with FakeCluster(1) as cluster:
        cluster.channels_to_end = 1
        actor = spawn(cluster.url)
        actor.ok("acquire", name=cluster.name_at(0), wait=WAIT_MS, ttl_ms=LONG_TTL_MS)
        wait_until(lambda: cluster.channels == 2)
