# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: no two of a crowd of clients believe at once that they hold a lock, through failovers of
all kinds; all are served again afterwards.

Method: holders and waiters in processes of their own, some on the side of the primary that is cut
off; one history of all of them, judged by both checkers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest
from support.history import History
from support.sentinel import NEVER_MS, SentinelGroup
from support.servers import Server
from support.wait import wait_until

from .actor import HELD, Actor, Spawn
from .crowd import LOCKS, PROCESSES, SERVE_MS, Crowd
from .network import Namespaces
from .test_partitions import PartedGroup

Figure = Callable[[str], None]

IS_LONG = bool(os.environ.get("REDLATCH_TEST_LONG"))
ROUNDS = ("kill", "stop", "failover") * 10 if IS_LONG else ("kill", "stop")
PARTITIONS = 10 if IS_LONG else 1
TTL_MS = 6000  # longer than a failover takes
# On a busy machine the primary may not run for a second or two. A failover for that is no fault of
# ours, and loses what was granted meanwhile, because nothing was settled.
PATIENT_MS = 3000
CROWD = {"ttl_ms": TTL_MS, "patient": 1}


def settle(group: SentinelGroup) -> Server:
    """The primary, which grants nothing more for a while, when its replicas have all that it has
    granted: the rest is not promised."""
    group.cmd(group.primary, "CLIENT", "PAUSE", 10_000, "WRITE")
    group.await_same()
    return group.primary


def fail_over(group: SentinelGroup, how: str, *, is_settled: bool = True) -> float:
    """One failover; the old primary comes back. The sentinels' time."""
    old = settle(group) if is_settled else group.primary
    began = time.monotonic()
    if how == "failover":
        group.failover()
        return time.monotonic() - began
    if how == "kill":
        old.kill()
    else:
        old.pause()
    group.await_switch(old)
    took = time.monotonic() - began
    if how == "kill":
        group.rejoin(old)
    else:
        old.resume()
    return took


def judge(
    history: History,
    crowd: Crowd,
    times: list[float],
    figure: Figure,
    what: str,
    check: Callable[[], None] = lambda: None,
) -> None:
    """When the crowd has ended, and `check` has nothing against it; all that could be held at the
    last failover is over by then."""
    calm_ns = time.monotonic_ns() + int((TTL_MS + 1000) * 1e6)
    count = crowd.finish()
    check()
    shown = ", ".join(f"{took:.1f}" for took in times)
    figure(f"{what}: {count} grants to 200 threads; the sentinels took {shown} s")
    assert count > LOCKS  # hand-overs too
    history.judge(calm_ns=calm_ns, serve_ms=SERVE_MS)


def test_a_crowd_and_failovers(spawn: Spawn, history: History, figure: Figure) -> None:
    """Goal: 200 threads over 20 names; kill, stop and resume, request. Method: one after the other,
    while all go on; each is there again within seconds."""
    with SentinelGroup(down_after_ms=PATIENT_MS) as group:
        actors = [spawn(group.url()) for _ in range(PROCESSES)]
        crowd = Crowd(actors, 22_000 * len(ROUNDS) // 2 + 2_000, **CROWD)
        times = []
        epoch = group.epoch
        for how in ROUNDS:
            # One that was resumed is a replica after 10 s. Until then a sentinel may choose it for
            # the next primary, with what it had: its failover, and no promise of ours.
            group.await_ready()
            assert_undisturbed(group, epoch, history)
            times.append(fail_over(group, how))
            epoch = group.epoch

        def check() -> None:
            assert_undisturbed(group, epoch, history)

        judge(history, crowd, times, figure, "failovers", check)


def assert_undisturbed(group: SentinelGroup, epoch: int, history: History) -> None:
    """No failover since that of `epoch`. After another one the history says nothing of us."""
    if group.epoch == epoch:
        return
    history.is_judged = True
    said = [line for line in group.sentinels[0].log().splitlines() if " mymaster " in line]
    raise AssertionError("\n".join(["a failover that the test did not ask for", *said]))


# ---- grants that replicas confirm ----


def test_a_crowd_whose_grants_are_confirmed(
    spawn: Spawn, history: History, figure: Figure
) -> None:
    """Goal: the same with min_replicas, though the primary dies in the middle of its grants.
    Method: one replica, so that it has all that was confirmed; nothing waits for the rest."""
    with SentinelGroup(replicas=1) as group:
        actors = [spawn(group.url()) for _ in range(PROCESSES)]
        # Nothing is granted until the old primary is a replica: 10 s after it was resumed.
        crowd = Crowd(actors, 22_000 * len(ROUNDS) // 2 + 2_000, min_replicas=1, **CROWD)
        times = []
        for how in ROUNDS:
            group.await_ready()
            times.append(fail_over(group, how, is_settled=False))
        group.await_ready()
        judge(history, crowd, times, figure, "failovers, confirmed grants")


GRANT_ROUNDS = 30 if IS_LONG else 4
GRANT_TTL_MS = 30_000  # far longer than a failover, so that nothing runs out


@pytest.mark.parametrize("min_replicas", [1])
def test_a_confirmed_grant_is_given_once(spawn: Spawn, figure: Figure, min_replicas: int) -> None:
    """Goal: a grant that the replica has confirmed is the only one through the failover.
    Method: 20 callers, the primary is killed after the first answer or after the last one; another
    client then tries every name."""
    with SentinelGroup(replicas=1, down_after_ms=NEVER_MS) as group:
        holder, other = (spawn(group.url()) for _ in range(2))
        confirmed = 0
        for number in range(GRANT_ROUNDS):
            group.await_ready()
            for actor in (holder, other):
                actor.ok("connect", wait=30_000)
            old = group.primary
            asked = [
                holder.begin(
                    "acquire", thread=i, lease=i, name=f"once-{number}-{i}", wait=0,
                    ttl_ms=GRANT_TTL_MS, min_replicas=min_replicas, sync_timeout="2s",
                )
                for i in range(20)
            ]  # fmt: skip
            enough = any if number % 2 else all
            wait_until(lambda: enough(pending.is_done for pending in asked))
            old.kill()
            held = [i for i, pending in enumerate(asked) if pending.get().status == "RL_OK"]
            group.failover()
            for i in held:
                assert try_until_answered(other, f"once-{number}-{i}") == "RL_BUSY", (number, i)
                assert holder.ok("look", lease=i).number("state") == HELD
            for i in held:
                holder.ok("release", lease=i)
            confirmed += len(held)
            group.rejoin(old)
        figure(f"{confirmed} confirmed grants, {GRANT_ROUNDS} failovers: none given twice")
        assert confirmed >= 20 * (GRANT_ROUNDS // 2)


def try_until_answered(actor: Actor, name: str) -> str:
    """One try; the status that a server has answered."""

    def answered() -> str:
        status = actor.call("acquire", lease=30, name=name, wait=0, ttl_ms=1000).status
        return status if status in ("RL_OK", "RL_BUSY") else ""

    return wait_until(answered)


# ---- partitions ----


@pytest.mark.parametrize("min_replicas", [0, 1])
def test_a_crowd_and_partitions(
    spaces: Namespaces, history: History, figure: Figure, min_replicas: int
) -> None:
    """Goal: the same where the primary is cut off from all, and comes back as another's replica."""
    with PartedGroup(spaces, PATIENT_MS) as group:
        actors = [spaces.actor(1, group.url()) for _ in range(PROCESSES)]
        crowd = Crowd(actors, 16_000 * PARTITIONS, min_replicas=min_replicas, **CROWD)
        times = []
        for number in range(PARTITIONS):
            if number:
                group.await_ready()
            old = settle(group)
            began = time.monotonic()
            spaces.part([group.servers.index(old)], [])
            group.successor(old)
            times.append(time.monotonic() - began)
            spaces.heal()
        judge(history, crowd, times, figure, "partitions")
