# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Semaphores: many who wait, many permits that are out, and many callers of each language."""

from __future__ import annotations

from bindings import Jvm, warm_up
from machine import build_go, build_java
from report import Metric, Row
from servertime import server_time
from topics import Bench, Column, Figures, busy_ping, ping, rows_of, say

_LIMIT = 10
_CALLERS = 64
_OUT = 10_000

_QUEUE: list[Column] = [
    (
        Metric("p50 / ping", "PING after a pause of 1 ms", at_most=5),
        lambda r: r["p50_us"] / ping(r),
    ),
    (Metric("p50 / busy ping", "PING back to back"), lambda r: r["p50_us"] / busy_ping(r)),
    (
        # Each turn has one ACQUIRE, which queues.
        Metric("commands", "one release", at_most=1.2, unit="per grant"),
        lambda r: r["scripts"] / r["turns"] - 1,
    ),
    (Metric("Jain", at_least=0.99, worst_counts=True, unit=""), lambda r: r["jain"]),
    (Metric("fewest turns", at_least=1, worst_counts=True, unit=""), lambda r: r["fewest_turns"]),
    (Metric("p50", unit="us"), lambda r: r["p50_us"]),
    (Metric("turns", unit="per s"), lambda r: r["turns"] / r["seconds"]),
]


def _queue(bench: Bench) -> list[Row]:
    rows = []
    for processes in (1, 4):
        case = f"1,000 waiters, {_LIMIT} permits, {processes} processes"
        seconds = bench.pick(5, 15)
        rounds = []
        with bench.session("permits", case) as session:
            for number in range(int(bench.pick(1, 3))):
                say(f"permits round {number + 1}: {case}")
                (found,) = session.run(
                    "handoff",
                    kind="permit",
                    limit=_LIMIT,
                    workers=1000,
                    processes=processes,
                    burst=0,
                    hold=0.001,
                    warmup=0.5,
                    seconds=seconds,
                    pings=int(bench.pick(100, 400)),
                )
                rounds.append({**found, "seconds": seconds})
        rows += rows_of("permits", case, rounds, _QUEUE)
    return rows


def _out(bench: Bench) -> list[Row]:
    case = f"{_OUT:,} permits out"
    say(f"permits {case}")
    rounds: list[Figures] = []
    with bench.session("permits", case) as session:
        for number in range(int(bench.pick(3, 9))):
            counts = (_LIMIT, _OUT) if number % 2 else (_OUT, _LIMIT)
            # Many: what it costs to get the permits of others is taken off.
            cycles = int(bench.pick(20_000, 40_000))
            rounds.append(
                {f"us_{count}": server_time(session, "permit", cycles, count) for count in counts}
            )
    columns: list[Column] = [
        (
            Metric(f"server time / {_LIMIT} out", at_most=2),
            lambda r: r[f"us_{_OUT}"] / r[f"us_{_LIMIT}"],
        ),
        (Metric(f"with {_LIMIT} out", unit="us/cycle"), lambda r: r[f"us_{_LIMIT}"]),
    ]
    return rows_of("permits", case, rounds, columns)


def _of_c(bench: Bench, seconds: float) -> list[Figures]:
    rounds = []
    with bench.session("permits", "C") as session:
        for _ in range(int(bench.pick(5, 9))):
            row: Figures = {}
            for only in ("library", "permit"):
                asked = {"threads": _CALLERS, "rounds": 1, "seconds": seconds, "only": only}
                row |= session.run("parallel", scripts=session.programs.scripts, **asked)[0]
            rounds.append({"mutex_per_s": row["library_per_s"], **row})
    return rounds


def _of_python(bench: Bench, seconds: float) -> list[Figures]:
    rounds = []
    with bench.session("permits", "Python") as session:
        for number in range(int(bench.pick(5, 9))):
            asked = {"tasks": _CALLERS, "connections": 1, "warmup": 0.2, "seconds": seconds}
            (row,) = session.run("tasks.py", round=number, only="acquire,permit", **asked)
            rounds.append({"mutex_per_s": row["acquire_per_s"], **row})
    return rounds


def _of_go(bench: Bench, seconds: float) -> list[Figures]:
    if not build_go("goroutines.go", bench.build):
        say("permits: nothing of Go, which is not there, or could not build what is measured")
        return []
    rounds = []
    with bench.session("permits", "Go") as session:
        for number in range(int(bench.pick(5, 9))):
            asked = {"goroutines": _CALLERS, "seconds": seconds, "blocks": 6, "warmup": 0.2}
            (row,) = session.run(
                "goroutines.go", round=number, libraries="lock,permit", **asked
            )
            rounds.append({"mutex_per_s": row["lock_per_s"], **row})
    return rounds


def _of_java(bench: Bench, seconds: float) -> list[Figures]:
    if not build_java(bench.build):
        say("permits: nothing of Java, which is not there, or could not build what is measured")
        return []
    rounds = []
    with bench.session("permits", "Java") as session:
        kinds = {"threads": _CALLERS, "kinds": "lock,permit"}
        with Jvm(session, "Parallel.java", **kinds) as program:
            warm_up([program], 5, 500, 2)
            for number in range(int(bench.pick(5, 9))):
                program.begin(number, int(seconds * 1000), 4)
                row = program.end()
                rounds.append({"mutex_per_s": row["lock_per_s"], **row})
    return rounds


def _callers(bench: Bench) -> list[Row]:
    columns: list[Column] = [
        (
            Metric("rate / mutex", at_least=0.9),
            lambda r: r["permit_per_s"] / r["mutex_per_s"],
        ),
        (Metric("rate", unit="cycles/s"), lambda r: r["permit_per_s"]),
    ]
    seconds = bench.pick(0.5, 1.5)
    rows = []
    languages = {"C": _of_c, "Python": _of_python, "Go": _of_go, "Java": _of_java}
    for language, measure in languages.items():
        say(f"permits {_CALLERS} callers of {language}")
        if rounds := measure(bench, seconds):
            rows += rows_of("permits", f"{_CALLERS} callers, {language}", rounds, columns)
    return rows


def permits(bench: Bench) -> list[Row]:
    return _queue(bench) + _out(bench) + _callers(bench)
