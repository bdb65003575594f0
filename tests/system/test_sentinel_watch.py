# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: all clients leave an old primary at the first news from any sentinel, so that none of them
gets a lock there that another one gets at the new primary.

Method: real groups whose old primary stays writable; clients that are connected to it, beside new
ones that ask the sentinels; the sentinels' announcements, with their times.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from support.sentinel import NAME, NEVER_MS, Sentinel, SentinelGroup
from support.wait import wait_until

from .actor import Actor, Spawn
from .conftest import client_ids
from .network import Namespaces

Figure = Callable[[str], None]

# Of clients that leave at the first news. Those that waited for a late sentinel stayed for
# WATCHED_S; on a busy machine a process may not run for some tenths of a second.
SLACK_S = 1.0
WATCHED_S = 3.0
TTL_MS = 2000
HOLD_S = 0.01


class Announcements:
    """When a sentinel says first that another server is, or becomes, the primary."""

    CHANNELS = ("+promoted-slave", "+switch-master")

    def __init__(self, sentinels: list[Sentinel]) -> None:
        self._stack = contextlib.ExitStack()
        self._connections = [self._stack.enter_context(one.connect()) for one in sentinels]
        for connection in self._connections:
            for channel in self.CHANNELS:
                connection.cmd("SUBSCRIBE", channel)

    def first(self, limit: float = 30.0) -> tuple[float, int]:
        """The time, and the port of the new primary."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            for connection in self._connections:
                message = connection.push(0.001)
                if message and message[0] == b"message":
                    is_switch = message[1] == b"+switch-master"
                    return time.monotonic(), int(message[2].split()[4 if is_switch else 3])
        raise AssertionError("no sentinel announces a new primary")

    def close(self) -> None:
        self._stack.close()


@dataclass(frozen=True)
class Hold:
    """A time in which a client believed that it had the lock."""

    client: int
    began: float
    ended: float


class Holders:
    """Threads that take one lock over and over: with one client, or each time with a new one."""

    def __init__(self, actors: list[Actor], url: str, name: str, newcomers: int) -> None:
        self.holds: list[Hold] = []
        self._url, self._name = url, name
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number, actor, number < newcomers))
            for number, actor in enumerate(actors)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, number: int, actor: Actor, is_newcomer: bool) -> None:
        while not self._stop.is_set():
            if is_newcomer:
                actor.ok("open", url=self._url)
            got = actor.call("acquire", name=self._name, wait=100, ttl_ms=TTL_MS)
            if got.status == "RL_OK":
                time.sleep(HOLD_S)
                done = actor.call("release")
                self.holds.append(Hold(number, got.ended, done.began))
            if is_newcomer:
                actor.ok("close")

    def stop(self) -> list[Hold]:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        return self.holds


def overlaps(holds: list[Hold]) -> Iterator[float]:
    """The ends of the times in which two had the lock."""
    holds = sorted(holds, key=lambda hold: hold.began)
    for i, hold in enumerate(holds):
        for other in itertools.takewhile(lambda it: it.began < hold.ended, holds[i + 1 :]):
            yield min(hold.ended, other.ended)


def fail_over(group: SentinelGroup, leader: Sentinel) -> float:
    """A planned failover by this sentinel, which announces the new primary last: when the other
    replicas follow it, and they are stopped for a while. The time of the first announcement."""
    old = group.primary
    with contextlib.closing(Announcements(group.sentinels)) as announcements:
        leader.ask("FAILOVER", NAME)
        first, port = announcements.first()
    others = [one for one in group.servers if one is not old and group.port(one) != port]
    for server in others:
        server.pause()
    time.sleep(WATCHED_S if others else SLACK_S)
    for server in others:
        server.resume()
    new = group.await_switch(old)
    # The sentinels would do it 8 s later.
    group.cmd(old, "REPLICAOF", new.host, group.port(new))
    return first


@pytest.mark.not_judged  # before the first announcement two may hold it: that is measured
@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_a_planned_failover_gives_no_lock_twice(
    spawn: Spawn, name: str, figure: Figure, replicas: int
) -> None:
    """Goal: no lock has two holders after the first announcement of any sentinel. Method: each
    sentinel leads a failover once, while the old primary stays writable."""
    with SentinelGroup(replicas=replicas, down_after_ms=NEVER_MS) as group:
        for number, leader in enumerate(group.sentinels):
            group.await_ready()
            actors = [spawn("") for _ in range(4)]
            for actor in actors[2:]:
                actor.ok("open", url=group.url())
            holders = Holders(actors, group.url(), name, newcomers=2)
            wait_until(lambda: len(holders.holds) > 20)
            try:
                first = fail_over(group, leader)
            finally:
                holds = holders.stop()
            late = [end - first for end in overlaps(holds)]
            figure(f"{replicas} replicas, sentinel {number} leads: {len(holds)} holds, "
                   f"{len(late)} twice, the last {max(late, default=0):.3f} s after the first "
                   "news")  # fmt: skip
            assert len([end for end in late if end > SLACK_S]) == 0, (number, late)


# ---- a sentinel that is cut off ----


@pytest.mark.not_judged  # see above
def test_a_sentinel_that_is_cut_off_keeps_no_client(
    spaces: Namespaces, name: str, figure: Figure
) -> None:
    """Goal: a sentinel that hears nothing of a failover does not keep clients at the old primary.
    Method: the first node, with the old primary, is cut off from the others, but not from the
    clients. It is replaced, and takes writes as before."""
    with SentinelGroup(places=spaces.places()) as group:
        stayer, newcomer = spaces.actor(0, group.url()), spaces.actor(1)
        stayer.ok("acquire", name="other", wait=0, ttl_ms=TTL_MS)
        stayer.ok("release")
        old = group.primary
        assert old is group.servers[0] and len(client_ids(old)) == 1
        spaces.part_nodes([0])
        others = group.sentinels[1:]
        wait_until(lambda: {one.primary() for one in others} != {(old.host, old.port)})
        wait_until(lambda: len({one.primary() for one in others}) == 1)
        named = time.monotonic()
        newcomer.ok("open", url=group.url())
        held = newcomer.ok("acquire", name=name, wait=30_000, ttl_ms=60_000)
        believed = []
        while time.monotonic() < max(named, held.ended) + WATCHED_S:
            reply = stayer.call("acquire", name=name, wait=0, ttl_ms=TTL_MS)
            if reply.status == "RL_OK":
                believed.append(reply.ended - held.ended)
                stayer.ok("release")
            time.sleep(0.02)
        figure(f"a sentinel that is cut off: {len(believed)} double grants, the last "
               f"{max(believed, default=0):.3f} s after the new primary has granted")  # fmt: skip
        assert [late for late in believed if late > SLACK_S] == []
        assert client_ids(old) == []
        newcomer.ok("release")
        spaces.heal()
