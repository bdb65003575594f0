# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a lease that moves to a node whose clock is ahead is believed no longer than that node
keeps it: the client says that it is lost before another one gets the lock.

Method: two nodes, one with a clock of its own; leases without renewal, of writers and readers, and
both kinds of moves. The client has used both nodes, or connects to the second one because of the
move.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest
from conformance.runners import PREPARE, Runner
from support.clock import Clock
from support.cluster import NEVER_MS, Cluster, Place, moves_of
from support.servers import available_kinds
from support.wait import wait_until

AHEAD_S = 5.0
TTL_MS = 8000  # so a lease that was moved with absolute times ends after 3 s

KIND = available_kinds()[-1]
# The reader first: in a classic move its end alone is an absolute time.
MODES = {"read": "rw", "write": "rw", "mutex": "mutex"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The clock of the second node is ahead."""
    clock = Clock(tmp_path_factory.mktemp("clock") / "clock", AHEAD_S)
    places = {1: Place(env=clock.env)}
    with contextlib.closing(clock), Cluster(
        KIND, nodes=2, replicas=0, node_timeout_ms=NEVER_MS, places=places
    ) as running:
        seconds = [int(node.cmd("TIME")[0]) for node in running.servers]
        assert AHEAD_S - 1 <= seconds[1] - seconds[0] <= AHEAD_S + 1, seconds
        yield running


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Runner]]:
    """A client that knows every kind of lock, of this URL."""
    command = PREPARE["c"](tmp_path_factory.mktemp("runner"))
    running: list[Runner] = []

    def started(url: str) -> Runner:
        running.append(Runner(command))
        assert running[-1].call(f"- open url={url}") == "OK"
        return running[-1]

    yield started
    for runner in running:
        runner.kill()


def status(runner: Runner, line: str) -> str:
    return runner.call(line).split(" ")[0]


@pytest.mark.not_judged  # runners write no record
@pytest.mark.parametrize("is_connected", [True, False], ids=["connected", "first"])
@pytest.mark.parametrize("move", moves_of(KIND))
def test_a_lease_at_a_node_whose_clock_is_ahead(
    cluster: Cluster, start: Callable[[str], Runner], name: str, move: str, is_connected: bool
) -> None:
    """Goal: as above, for every lock whose slot moves. Method: another client tries to write until
    it may; then the first lease is asked. No lease is taken for lost at once."""
    source, target = cluster.servers
    holder, other = start(cluster.url()), start(cluster.url())
    there = next(f"t{i}" for i in range(100) if cluster.owner_of(f"t{i}") is target)
    for runner in (holder, other) if is_connected else (other,):
        assert status(runner, f"- lock id=t kind=mutex name={there}") == "OK"
        assert status(runner, "t acquire wait_ms=5000") == "OK"
        assert status(runner, "t release") == "OK"
    locks = {}
    for mode in MODES:
        names = (f"{name}-{mode}-{i}" for i in range(100))
        locks[mode] = next(one for one in names if cluster.owner_of(one) is source)
        kind = f"{MODES[mode]} ttl_ms={TTL_MS} renew=0"
        for runner in (holder, other):
            line = f"- lock id={mode} kind={kind} name={locks[mode]}"
            assert status(runner, line) == "OK", line
        verb = "acquire" if mode == "mutex" else f"acquire_{mode}"
        assert status(holder, f"{mode} {verb} wait_ms=0") == "OK"
    began = time.monotonic()
    for one in locks.values():
        cluster.move_slot(cluster.slot_of(one), target, move)
        assert "OK" in holder.call(f"- inspect name={one}")  # so it hears of the move
    for mode in locks:
        if time.monotonic() - began < TTL_MS / 1000 - AHEAD_S - 1:
            assert status(holder, f"{mode} check") == "OK", mode
    for mode in locks:
        wanted = "acquire" if mode == "mutex" else "acquire_write"
        wait_until(lambda: status(other, f"{mode} {wanted} wait_ms=0") == "OK")
        assert status(holder, f"{mode} check") == "E_LOST", mode
        assert status(other, f"{mode} release") == "OK", mode
