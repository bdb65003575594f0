# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: no two of a crowd of clients believe at once that they hold a lock, through failovers of
all kinds; all are served again afterwards.

Method: holders and waiters in processes of their own, some on the side of the primary that is cut
off; one history of all of them, judged by both checkers.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator

import pytest
from support.history import History
from support.sentinel import DOWN_AFTER_MS, NEVER_MS, Place, SentinelGroup
from support.servers import Server, available_kinds, has_replicas_for_scripts
from support.wait import wait_until

from .actor import HELD, Actor, Spawn
from .conftest import client_ids, queue_length, queued_tokens
from .network import Namespaces, can_have_namespaces, could_not_run

Figure = Callable[[str], None]

IS_LONG = bool(os.environ.get("REDLATCH_TEST_LONG"))
ROUNDS = ("kill", "stop", "failover") * 10 if IS_LONG else ("kill", "stop")
PARTITIONS = 10 if IS_LONG else 1
TTL_MS = 6000  # longer than a failover takes
# On a busy machine the primary may not run for a second or two. A failover for that is no fault of
# ours, and loses what was granted meanwhile, because nothing was settled.
PATIENT_MS = 3000
PROCESSES, THREADS = 4, 50  # 100 that may hold, and 100 that wait behind them
NAMES = ("even", "odd")  # with ten digits each: 20 locks
SERVE_MS = 8000


class Crowd:
    """Threads that take one of 20 locks over and over, until they are stopped."""

    def __init__(self, actors: list[Actor], ms: int, min_replicas: int = 0) -> None:
        self._running = [
            actor.begin(
                "loop",
                thread=thread,
                name=NAMES[thread % 2],
                keys=10,
                wait=60_000,
                hold_us=20_000,
                ttl_ms=TTL_MS,
                ms=ms,
                seed=number * THREADS + thread + 1,
                patient=1,
                looks=1,
                min_replicas=min_replicas,
            )
            for number, actor in enumerate(actors)
            for thread in range(THREADS)
        ]

    def finish(self) -> int:
        """How often a lock was taken."""
        replies = [pending.get(120) for pending in self._running]
        failed = [reply["message"] for reply in replies if reply.status != "RL_OK"]
        assert not failed, failed
        return sum(reply.number("count") for reply in replies)


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
    assert count > 500
    history.judge(calm_ns=calm_ns, serve_ms=SERVE_MS)


def test_a_crowd_and_failovers(spawn: Spawn, history: History, figure: Figure) -> None:
    """Goal: 200 threads over 20 names; kill, stop and resume, request. Method: one after the other,
    while all go on; each is there again within seconds."""
    with SentinelGroup(down_after_ms=PATIENT_MS) as group:
        actors = [spawn(group.url()) for _ in range(PROCESSES)]
        crowd = Crowd(actors, ms=22_000 * len(ROUNDS) // 2 + 2_000)
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
        crowd = Crowd(actors, ms=22_000 * len(ROUNDS) // 2 + 2_000, min_replicas=1)
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

SOME_LAG_S = 1  # min-replicas-max-lag of the servers


@pytest.fixture
def spaces() -> Iterator[Namespaces]:
    """Three nodes, each with a server and a sentinel; two hosts."""
    if not can_have_namespaces():
        could_not_run("partitions of sentinels: need network namespaces")
        pytest.skip("network namespaces cannot be made here")
    spaces = Namespaces(3, 2)
    with contextlib.closing(spaces):
        yield spaces


def group_in(places: list[Place], down_after_ms: int = DOWN_AFTER_MS) -> SentinelGroup:
    lag = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", str(SOME_LAG_S)]
    return SentinelGroup(places=places, args=lag, down_after_ms=down_after_ms)


@pytest.mark.parametrize("min_replicas", [0, 1])
def test_a_crowd_and_partitions(
    spaces: Namespaces, history: History, figure: Figure, min_replicas: int
) -> None:
    """Goal: the same where the primary is cut off from all, and comes back as another's replica."""
    with group_in(spaces.places(), PATIENT_MS) as group, contextlib.ExitStack() as stack:
        actors = [actor_in(spaces, 1, group.url(), stack) for _ in range(PROCESSES)]
        crowd = Crowd(actors, ms=16_000 * PARTITIONS, min_replicas=min_replicas)
        times = []
        for number in range(PARTITIONS):
            if number:
                group.await_ready()
            old = settle(group)
            began = time.monotonic()
            spaces.part([group.servers.index(old)], [])
            outside(group, old)
            times.append(time.monotonic() - began)
            spaces.heal()
        judge(history, crowd, times, figure, "partitions")


def outside(group: SentinelGroup, cut_off: Server) -> Server:
    """The primary that the sentinels on the other side name."""
    others = [one for one in group.sentinels if one.host != cut_off.host]

    def named() -> list[Server]:
        said = {one.primary() for one in others}
        return [s for s in group.servers if s is not cut_off and said == {(s.host, s.port)}]

    return wait_until(named)[0]


def actor_in(spaces: Namespaces, host: int, url: str, stack: contextlib.ExitStack) -> Actor:
    actor = stack.enter_context(Actor(wrapper=spaces.wrapper(host)))
    actor.ok("open", url=url)
    return actor


def test_a_primary_that_is_cut_off(spaces: Namespaces, name: str, figure: Figure) -> None:
    """Goal: clients of the greater side keep the lock and their places at the new primary; none of
    them comes back to the old one when the network is whole again.
    Method: the node of the primary is cut off from all others."""
    with group_in(spaces.places()) as group, contextlib.ExitStack() as stack:
        holder, waiter = (actor_in(spaces, 1, group.url(), stack) for _ in range(2))
        held = holder.ok("acquire", name=name, wait=0, ttl_ms=GRANT_TTL_MS)
        waiting = waiter.begin("acquire", name=name, wait=60_000, ttl_ms=GRANT_TTL_MS)
        old = group.primary
        wait_until(lambda: queue_length(old, name) == 1)
        places = queued_tokens(old, name)
        group.await_same()
        began = time.monotonic()
        spaces.part([group.servers.index(old)], [])
        new = outside(group, old)
        named = time.monotonic() - began
        wait_until(lambda: queued_tokens(new, name) == places)
        figure(f"partition: a new primary named after {named:.1f} s, all there after "
               f"{time.monotonic() - began:.1f} s")  # fmt: skip
        assert holder.ok("look").number("state") == HELD
        spaces.heal()
        wait_until(lambda: group.replication(old)["role"] == "slave")
        assert client_ids(old) == []
        holder.ok("release")
        reply = waiting.get()
        assert reply.status == "RL_OK" and reply.number("fence") > held.number("fence")
        waiter.ok("release")


@pytest.mark.needs(has_replicas_for_scripts(available_kinds()[0]))
@pytest.mark.not_judged  # two hold it for a while: that is what is measured
def test_a_client_that_is_cut_off_with_the_primary(
    spaces: Namespaces, name: str, figure: Figure
) -> None:
    """Goal: with min-replicas-to-write, the two sides overlap by the allowed lag at most.
    Method: the holder's host and the primary's node on one side, a waiter on the other."""
    ttl_ms = 3000
    with group_in(spaces.places()) as group, contextlib.ExitStack() as stack:
        holder = actor_in(spaces, 0, group.url(), stack)
        waiter = actor_in(spaces, 1, group.url(), stack)
        holder.ok("acquire", name=name, wait=0, ttl_ms=ttl_ms)
        waiting = waiter.begin("acquire", name=name, wait=60_000, ttl_ms=ttl_ms)
        old = group.primary
        wait_until(lambda: queue_length(old, name) == 1)
        group.await_same()
        began = time.monotonic()
        spaces.part([group.servers.index(old)], [0])
        lost = holder.ok("wait_lost", wait=60_000).ended
        granted = waiting.get(60)
        assert granted.status == "RL_OK", granted
        overlap = lost - granted.ended
        figure(f"partition: lost after {lost - began:.1f} s, granted on the other side after "
               f"{granted.ended - began:.1f} s")  # fmt: skip
        # Lag is counted in whole seconds, and looked at once in a second.
        assert overlap < SOME_LAG_S + 2
        waiter.ok("release")
        spaces.heal()
        holder.ok("acquire", lease=1, name=name, wait=60_000, ttl_ms=ttl_ms)
        holder.ok("release", lease=1)
