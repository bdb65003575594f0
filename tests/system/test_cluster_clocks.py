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
from collections.abc import Iterator

import pytest
from support.clock import Clock
from support.cluster import NEVER_MS, Cluster, Place, moves_of
from support.servers import available_kinds

from .test_cluster import Clients, names_at
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


@pytest.mark.not_judged  # runners write no record
@pytest.mark.parametrize("is_connected", [True, False], ids=["connected", "first"])
@pytest.mark.parametrize("move", moves_of(KIND))
def test_a_lease_at_a_node_whose_clock_is_ahead(
    cluster: Cluster, runner_command: list[str], name: str, move: str, is_connected: bool
) -> None:
    """Goal: as above, for every lock whose slot moves. Method: another client tries to write until
    it may; then the first lease is asked. No lease is taken for lost at once."""
    source, target = cluster.servers
    locks = {mode: next(names_at(cluster, source, f"{name}-{mode}")) for mode in MODES}
    with Clients(runner_command, cluster.url(), 2) as clients:
        for client in (0, 1) if is_connected else (1,):
            there = next(names_at(cluster, target, "t"))
            clients.say(client, f"- lock id=t kind=mutex name={there}", "OK")
            clients.say(client, "t acquire wait_ms=5000", "OK")
            clients.say(client, "t release", "OK")
        for mode, one in locks.items():
            kind = f"{MODES[mode]} ttl_ms={TTL_MS} renew=0"
            for client in (0, 1):
                clients.say(client, f"- lock id={mode} kind={kind} name={one}", "OK")
            verb = "acquire" if mode == "mutex" else f"acquire_{mode}"
            clients.say(0, f"{mode} {verb} wait_ms=0", "OK")
        began = time.monotonic()
        for one in locks.values():
            cluster.move_slot(cluster.slot_of(one), target, move)
            clients.say(0, f"- inspect name={one}", "OK")  # so it hears of the move
        for mode in locks:
            if time.monotonic() - began < TTL_MS / 1000 - AHEAD_S - 1:
                clients.say(0, f"{mode} check", "OK")
        for mode in locks:
            wanted = "acquire" if mode == "mutex" else "acquire_write"
            clients.until(1, f"{mode} {wanted} wait_ms=0", "OK")
            clients.say(0, f"{mode} check", "E_LOST")
            clients.say(1, f"{mode} release", "OK")
        clients.end()
