# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""cluster: what a lock costs on a node of a cluster, compared with a server of its own."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from report import Metric, Row
from topics import Bench, Figures, Session, rows_of, say

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.cluster import Cluster  # noqa: E402

NODES = 3


@contextlib.contextmanager
def cluster_of(session: Session) -> Iterator[Cluster]:
    """Its nodes are of the same kind as the server of the session, and run on the same core."""
    kind = session.server.version().split()[0].lower()
    cores = os.sched_getaffinity(session.server.pid)
    with Cluster(kind, nodes=NODES, replicas=0) as cluster:
        for node in cluster.servers:
            os.sched_setaffinity(node.pid, cores)
        yield cluster


def compared(
    session: Session, program: str, name: str, rounds: int, asked: dict[str, object]
) -> list[Figures]:
    """Rounds on the server and on the node that has lock `name`, in turns."""
    found = []
    with cluster_of(session) as cluster:
        ports = {"server": session.server.port, "cluster": cluster.owner_of(name).port}
        for number in range(rounds):
            places = list(ports) if number % 2 == 0 else list(reversed(ports))
            both: Figures = {}
            for place in places:
                (figures,) = session.run(program, port=ports[place], **asked)
                both.update({f"{place}_{figure}": value for figure, value in figures.items()})
            found.append(both)
    return found


def _ratio(figure: str) -> Metric:
    return Metric(f"{figure} / one server", "one server", at_most=1.05)


def _commands(r: Figures) -> float:
    return (r["cluster_scripts"] - r["cluster_enqueues"]) / r["cluster_handoffs"]


def clusters(bench: Bench) -> list[Row]:
    rows = []
    case = "P1, one thread"
    say(f"cluster {case}")
    with bench.session("cluster", case) as session:
        rounds = compared(
            session,
            "uncontended",
            "{uncontended}",
            int(bench.pick(9, 21)),
            {
                "scripts": session.programs.scripts,
                "rounds": 1,
                "cycles": int(bench.pick(2000, 8000)),
                "blocks": 1,
                "warmup": 0.2,
                "only": "library",
            },
        )
    column = (_ratio("p50"), lambda r: r["cluster_library_p50_us"] / r["server_library_p50_us"])
    rows += rows_of("cluster", case, rounds, [column])
    for workers, processes in ((2, 1), (16, 1), (16, 4)):
        case = f"P3, {workers} workers, {processes} process{'es' if processes > 1 else ''}"
        say(f"cluster {case}")
        with bench.session("cluster", case) as session:
            rounds = compared(
                session,
                "handoff",
                "handoff",
                int(bench.pick(5, 15)),
                {
                    "kind": "lock",
                    "workers": workers,
                    "processes": processes,
                    "burst": 0,
                    "hold": 0.001,
                    "warmup": 0.1,
                    "seconds": bench.pick(0.6, 2),
                    "pings": 100,
                },
            )
        rows += rows_of(
            "cluster",
            case,
            rounds,
            [
                (_ratio("p50"), lambda r: r["cluster_p50_us"] / r["server_p50_us"]),
                (Metric("commands", at_most=1.1, unit="per hand-off"), _commands),
            ],
        )
    return rows
