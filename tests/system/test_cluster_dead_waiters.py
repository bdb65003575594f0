# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: waiters that were killed cost the next live one little time, also where the node that has
the lock now cannot reach the channels of the old one.

Method: one real cluster; a holder, many waiters that are killed, and a live one behind them. The
slot moves, or a replica takes over, and the holder releases.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from support.cluster import Cluster, moves_of
from support.servers import available_kinds, has_sharded_channels
from support.wait import wait_until

from .actor import Actor, Spawn
from .conftest import queue_length
from .test_cluster import names_at

Figure = Callable[[str], None]

KIND = available_kinds()[-1]
LONG_TTL_MS = 120_000  # so that only a release frees the lock within a test
WAIT_MS = 60_000
THREADS = 50  # of a process, each with a place of its own
# Far less than a provisional lease of 3 s for each of ten; the figure says what it was.
SOON = 15.0

pytestmark = pytest.mark.skipif(
    not has_sharded_channels(KIND), reason="with plain channels the queue is emptied at once"
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(KIND, nodes=2, replicas=1) as running:
        yield running


WAYS = [*moves_of(KIND), "planned"]


def kill(victims: list[Actor]) -> None:
    for victim in victims:
        victim.kill()


@pytest.mark.parametrize(("when", "count"), [("before", 10), ("behind", 10), ("before", 100)])
@pytest.mark.parametrize("way", WAYS)
def test_killed_waiters_in_front(
    cluster: Cluster, spawn: Spawn, name: str, figure: Figure, way: str, when: str, count: int
) -> None:
    """Goal: the live waiter has the lock soon after the release. Method: the waiters in front are
    killed before the lock changes its node, or right behind that."""
    source = cluster.primaries[0]
    one = next(names_at(cluster, source, name))
    slot = cluster.slot_of(one)
    holder, live, *victims = (spawn(cluster.url()) for _ in range(2 + -(-count // THREADS)))
    holder.ok("acquire", name=one, wait=WAIT_MS, ttl_ms=LONG_TTL_MS)
    for i in range(count):
        victims[i // THREADS].begin(
            "acquire", thread=i % THREADS, lease=i % THREADS, name=one, wait=WAIT_MS,
            ttl_ms=LONG_TTL_MS, burst=0,
        )  # fmt: skip
    wait_until(lambda: queue_length(source, one) == count)
    pending = live.begin("acquire", name=one, wait=WAIT_MS, ttl_ms=LONG_TTL_MS)
    wait_until(lambda: queue_length(source, one) == count + 1)
    if when == "before":
        kill(victims)
    if way == "planned":
        cluster.failover(source)
    else:
        cluster.move_slot(slot, cluster.others(slot)[0], way)
    if when == "behind":
        kill(victims)
    begun = time.monotonic()
    holder.ok("release")
    reply = pending.get(WAIT_MS / 1000 + 10)
    took = time.monotonic() - begun
    assert reply.status == "RL_OK", reply
    figure(f"{way}, {count} waiters killed {when}: {took:.2f} s until the next one has the lock")
    live.ok("release")
    assert took < SOON
