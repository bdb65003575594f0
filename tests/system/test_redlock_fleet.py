# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: no two of a fleet of clients believe at once that they have a lock on five nodes, while a
minority of the nodes fails in all ways, one after the other; and they get on with it.

Method: processes on two hosts; one history of all of them, judged by both checkers.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from support.history import History

from .network import Network

TTL_MS = 1500
GUARD_S = 2
FAULT_S = 8


class Weather:
    """Faults by a seed, of two nodes at most, or of three for some clients. Each is over before the
    next begins, but for nodes that came back and have no vote yet."""

    def __init__(self, network: Network, seed: int) -> None:
        self._network = network
        self._random = random.Random(seed)
        self.done: list[str] = []

    def blow(self, seconds: float) -> None:
        kinds = (self._hang, self._kill, self._cut, self._forget)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            nodes = self._random.sample(range(5), 3)
            self._random.choice(kinds)(nodes[: self._random.choice((1, 2))], nodes[2])
            self._pause(0.4)

    def _pause(self, longest: float) -> None:
        time.sleep(self._random.uniform(longest / 20, longest))

    def _hang(self, nodes: list[int], _: int) -> None:
        self.done.append(f"hang {len(nodes)}")
        for node in nodes:
            self._network.nodes[node].pause()
        self._pause(1.0)
        for node in nodes:
            self._network.nodes[node].resume()

    def _kill(self, nodes: list[int], _: int) -> None:
        self.done.append("kill")
        self._network.nodes[nodes[0]].kill()
        self._pause(1.0)
        self._network.nodes[nodes[0]].start()

    def _cut(self, nodes: list[int], _: int) -> None:
        ways = self._random.choice(({}, {"requests": False}, {"replies": False}))
        hosts = self._random.choice(((0,), (1,), (0, 1)))
        self.done.append(f"cut {len(nodes)} from {len(hosts)}")
        for host in hosts:
            self._network.cut(host, *nodes, **ways)
        self._pause(1.0)
        self._network.heal()

    def _forget(self, nodes: list[int], third: int) -> None:
        """Who is cut off from two nodes may have the votes of just three: one of them forgets."""
        self.done.append(f"forget beside {len(nodes)}")
        self._network.cut(self._random.choice((0, 1)), *nodes)
        time.sleep(0.5)  # who had it before has given it back
        self._network.nodes[third].restart()
        self._pause(0.4)
        self._network.heal()


@pytest.mark.parametrize("seed, fenced", [(1, "yes"), (2, "no")])
def test_histories_over_five_nodes(
    network: Network,
    name: str,
    seed: int,
    fenced: str,
    history: History,
    figure: Callable[[str], None],
) -> None:
    """Goal: exclusion and fences hold through all of it, and everybody is served when it is over.
    Method: eight processes on two hosts take one lock over and over; a guard of 2 s, a lease of
    1.5 s; faults by a seed."""
    options = {"restart_guard": f"{GUARD_S}s", "fenced": fenced}
    actors = [network.actor(i % 2, **options) for i in range(8)]
    for actor in actors:
        actor.ok("redlock_connect", wait=20_000)
    running = [
        actor.begin(
            "loop",
            redlock=0,
            name=name,
            wait=20_000,
            hold_us=200_000,
            ttl_ms=TTL_MS,
            ms=(FAULT_S + 4) * 1000,
            seed=seed * 100 + number,
            patient=1,
        )
        for number, actor in enumerate(actors)
    ]
    weather = Weather(network, seed)
    weather.blow(FAULT_S)
    calm = time.monotonic_ns() + (GUARD_S + 2) * 1_000_000_000
    replies = [pending.get(120) for pending in running]
    assert {reply.status for reply in replies} == {"RL_OK"}, replies
    counts = [reply.number("count") for reply in replies]
    done = weather.done
    figure(f"{sum(counts)} grants through {len(done)} faults: {', '.join(done)}")
    assert min(counts) > 0
    history.judge(calm_ns=calm, serve_ms=TTL_MS + 1000)
