# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""P7: a lock on most of five servers, next to other libraries'."""

from __future__ import annotations

import importlib.util
import json
import os
import select
import shutil
import signal
import subprocess

from machine import NODE_MODULES, build_go
from report import Metric, Row
from topics import Bench, Figures, Session, rows_of, say

NODES = 5
HUNG = 2
MOST = 3

_CYCLE = (
    (
        Metric("healthy p50 / raw", "both scripts to all, most have answered", at_most=1.7),
        lambda r: r["healthy_library_us"] / r["healthy_raw_us"],
    ),
    (
        Metric("healthy p50 / raw, all answered", "both scripts to all, all have answered"),
        lambda r: r["healthy_library_us"] / r["healthy_raw_all_us"],
    ),
    (
        Metric("two hung p50 / healthy", "healthy", at_most=1.2),
        lambda r: r["hung_library_us"] / r["healthy_library_us"],
    ),
    (Metric("two hung p50 / raw", "raw"), lambda r: r["hung_library_us"] / r["hung_raw_us"]),
    (Metric("healthy", unit="us"), lambda r: r["healthy_library_us"]),
    (Metric("two hung", unit="us"), lambda r: r["hung_library_us"]),
)
_REFUSAL = (
    # The node time limit of a lease of 30 s is 50 ms.
    (
        Metric("three hung: refused after", at_most=55, worst_counts=True, unit="ms"),
        lambda r: r["hung_refused_most_ms"],
    ),
    (
        Metric("three down: refused after", at_most=55, worst_counts=True, unit="ms"),
        lambda r: r["down_refused_most_ms"],
    ),
    (
        Metric("keys left", at_most=0, worst_counts=True, unit=""),
        lambda r: r["hung_left"] + r["down_left"],
    ),
)
_PEER = (
    (Metric("healthy, to ours", "ours"), lambda r: r["healthy_us"] / r["healthy_library_us"]),
    (Metric("two hung, to ours", "ours"), lambda r: r["hung_us"] / r["hung_library_us"]),
    (Metric("healthy", unit="us"), lambda r: r["healthy_us"]),
    (Metric("two hung", unit="us"), lambda r: r["hung_us"]),
    (Metric("three down: refused after", unit="ms"), lambda r: r["down_us"] / 1000),
)
# Both send one short script to each server and wait for most of them.
_SAME_WORK = (
    (
        Metric("ours to it, healthy", "its cycle", at_most=1.1),
        lambda r: r["healthy_library_us"] / r["healthy_us"],
    ),
)
# What a peer does not return from counts as this long: a lower bound.
GIVE_UP_S = 20.0
_PEERS = {"redsync": "quorum.go", "node redlock": "quorum.js", "pottery": "quorum.py"}


def _ports(session: Session) -> str:
    return ",".join(str(server.port) for server in session.servers)


def _has(program: str, bench: Bench) -> bool:
    """Without it, its rows are missing."""
    if program.endswith(".js"):
        return NODE_MODULES.is_dir() and shutil.which("node") is not None
    if program.endswith(".go"):
        return build_go(program, bench.build)
    return importlib.util.find_spec("pottery") is not None


class _Peer:
    """A program that does so many cycles as it is told; one that does not return is ended."""

    def __init__(self, session: Session, program: str) -> None:
        self._process = session.programs.start(
            program, {"ports": _ports(session)}, stdin=subprocess.PIPE
        )

    def __enter__(self) -> _Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def us(self, cycles: int) -> float:
        """p50 of a cycle, failed ones included."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{cycles}\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], GIVE_UP_S)
        if not ready:
            return GIVE_UP_S * 1e6
        return float(json.loads(self._process.stdout.readline())["p50_us"])


def _signal(session: Session, number: signal.Signals, count: int) -> None:
    for server in session.servers[:count]:
        os.kill(server.pid, number)


def _peer_once(session: Session, program: str, cycles: int) -> Figures:
    figures: Figures = {}
    with _Peer(session, program) as peer:
        peer.us(cycles // 4)
        figures["healthy_us"] = peer.us(cycles)
        _signal(session, signal.SIGSTOP, HUNG)
        figures["hung_us"] = peer.us(3)  # the first may still go well
        _signal(session, signal.SIGCONT, HUNG)
    with _Peer(session, program) as peer:
        peer.us(10)
        for server in session.servers[:MOST]:
            server.kill()
        figures["down_us"] = peer.us(1)
    for server in session.servers:
        server.kill()
        server.start()
    return session.keep(program, {"cycles": cycles}, dict(figures))[0]


def _ours(session: Session, bench: Bench, rounds: int, refusals: int) -> list[Figures]:
    return session.run(
        "quorum",
        ports=_ports(session),
        pids=",".join(str(server.pid) for server in session.servers),
        scripts=session.programs.scripts,
        rounds=rounds,
        cycles=int(bench.pick(400, 2000)),
        blocks=int(bench.pick(2, 10)),
        warmup=bench.pick(0.3, 1),
        hung=HUNG,
        refusals=refusals,
    )


def quorums(bench: Bench) -> list[Row]:
    case = f"{NODES} servers"
    say(f"P7 {case}")
    with bench.session("P7", case, servers=NODES) as session:
        *rounds, refusals = _ours(session, bench, int(bench.pick(5, 9)), 5)
    rows = rows_of("P7", case, rounds, _CYCLE) + rows_of("P7", case, [refusals], _REFUSAL)
    for name, program in _PEERS.items():
        if not _has(program, bench):
            continue
        say(f"P7 {name}")
        with bench.session("P7", name, servers=NODES) as session:
            figures = []
            for _ in range(int(bench.pick(2, 5))):
                (ours,) = _ours(session, bench, 1, 0)
                theirs = _peer_once(session, program, int(bench.pick(400, 2000)))
                figures.append({**ours, **theirs})
        rows += rows_of("P7", name, figures, _PEER)
        if name == "node redlock":
            rows += rows_of("P7", name, figures, _SAME_WORK)
    return rows
