# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: no two of a crowd of clients believe at once that they hold a lock, while slots move and
primaries are replaced; no call fails because of a move.

Method: 200 threads in four processes over 20 names; one history of all of them, judged by both
checkers.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

import pytest
from support.cluster import NEVER_MS, Cluster, Node, moves_of
from support.history import History
from support.servers import available_kinds, has_sharded_channels

from .actor import Spawn
from .conftest import queued_tokens
from .crowd import LOCKS, NAMES, PROCESSES, SERVE_MS, Crowd
from .test_cluster import names_at

Figure = Callable[[str], None]

IS_LONG = bool(os.environ.get("REDLATCH_TEST_LONG"))
MOVES = 1000 if IS_LONG else 100_000  # in CI as many as the time allows
MOVING_S = {"classic": 80.0, "atomic": 300.0} if IS_LONG else {"classic": 3.0, "atomic": 3.0}
FAILOVERS = ("planned", "kill", "stop") * (10 if IS_LONG else 1)
TTL_MS = 6000  # longer than a failover takes
MOST_CALLS = 1.1  # for a hand-off
MOST_CALLS_CONFIRMED = 3.1  # with plain channels: the waiter asks after each message


def script_calls(cluster: Cluster) -> int:
    return sum(node.script_count() for node in cluster.running)


CROWDS = [(kind, move) for kind in available_kinds() for move in moves_of(kind)]


@pytest.mark.parametrize(("kind", "move"), CROWDS, ids=["-".join(one) for one in CROWDS])
def test_a_crowd_and_slots_that_move(
    spawn: Spawn, history: History, figure: Figure, kind: str, move: str
) -> None:
    """Goal: no error to any caller, no overlap, places are kept, all are served, and a hand-off is
    one script call (three with plain channels: docs/guarantees.md). Method: one slot after the
    other is moved to another node, while all of the locks are in use; after each move it is noted
    who stands in the queue there. No lock is handed off inside a process."""
    choice = random.Random(1)
    with Cluster(kind, replicas=0, node_timeout_ms=NEVER_MS) as cluster:
        moving_s = MOVING_S[move]
        actors = [spawn(cluster.url()) for _ in range(PROCESSES)]
        crowd = Crowd(actors, int(moving_s * 1000), burst=0)
        began, count, moved = time.monotonic(), 0, 0
        while count < MOVES and time.monotonic() - began < moving_s - 1 and crowd.is_running:
            name = choice.choice(NAMES) + str(choice.randrange(10))
            slot = cluster.slot_of(name)
            to = choice.choice(cluster.others(slot))
            cluster.move_slot(slot, to, move)
            waiting = queued_tokens(to, name)
            history.record.queue(name, waiting)
            count += 1
            moved += len(waiting)
        calm_ns = time.monotonic_ns()
        grants = crowd.finish()
        # Each grant takes an acquire that queues, and each place that moves takes two calls: one
        # queues with the channel of the new node, one cancels. The rest counts for the hand-off.
        handoff = (script_calls(cluster) - grants - 2 * moved) / grants
        figure(f"cluster, {kind}, {move}: {grants} grants to 200 threads, {count} moves, "
               f"{handoff:.2f} script calls a hand-off")  # fmt: skip
        # How many fit into the time depends on the machine.
        assert count >= (MOVES if IS_LONG else 1)
        assert grants > LOCKS  # hand-overs too
        most = MOST_CALLS if has_sharded_channels(kind) else MOST_CALLS_CONFIRMED
        assert handoff <= most
    history.judge(is_fifo=True, calm_ns=calm_ns, serve_ms=SERVE_MS)


def settle(cluster: Cluster, primary: Node) -> None:
    """The primary grants nothing more for a while, and a replica has all that it has granted: the
    rest is not promised."""
    with primary.connect() as connection:
        connection.cmd("SET", next(names_at(cluster, primary, "settled")), 1, "PX", 1000)
        connection.cmd("CLIENT", "PAUSE", 10_000, "WRITE")
        replica = cluster.replicas_of(primary)[0]
        offset = int(_field(primary, "master_repl_offset"))
        while int(_field(replica, "slave_repl_offset")) < offset:
            time.sleep(0.002)


def _field(node: Node, name: str) -> str:
    lines: list[str] = node.cmd("INFO", "replication").decode().splitlines()
    return next(line.partition(":")[2] for line in lines if line.startswith(f"{name}:"))


def test_a_crowd_and_failovers(spawn: Spawn, history: History, figure: Figure) -> None:
    """Goal: no overlap, and all are served again. Method: a planned failover, a killed primary and
    a stopped one, one after the other; what was killed or stopped comes back as a replica."""
    kind = available_kinds()[-1]
    with Cluster(kind) as cluster:
        prober, *actors = (spawn(cluster.url()) for _ in range(1 + PROCESSES))
        ms = 2000 + 6000 * len(FAILOVERS)
        crowd = Crowd(actors, ms, ttl_ms=TTL_MS, patient=1)
        times, gaps = [], []
        for number, how in enumerate(FAILOVERS):
            old = cluster.owner_of(f"{NAMES[number % 2]}{number % 10}")
            if how != "planned":
                settle(cluster, old)
            probe = next(names_at(cluster, old, "probe"))
            began = time.monotonic()
            probing = prober.begin("acquire", name=probe, wait=60_000, ttl_ms=TTL_MS)
            cluster.failover(old, how)
            times.append(time.monotonic() - began)
            gaps.append(probing.get(60).ended - began)
            prober.ok("release")
            if how != "planned":
                cluster.rejoin(old)
        calm_ns = time.monotonic_ns() + int((TTL_MS + 1000) * 1e6)
        grants = crowd.finish()
        shown = ", ".join(
            f"{how} {gap:.1f} s ({took:.1f} s)" for how, took, gap in zip(FAILOVERS, times, gaps)
        )
        figure(f"cluster, {kind}: {grants} grants to 200 threads; time without a grant, next to "
               f"the cluster's own: {shown}")  # fmt: skip
        assert grants > LOCKS  # hand-overs too
    history.judge(calm_ns=calm_ns, serve_ms=SERVE_MS)
