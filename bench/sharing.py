# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""RW: readers and writers of one lock, next to the mutex."""

from __future__ import annotations

from machine import build_java, has_redisson
from report import Metric, Row
from topics import Bench, Figures, Session, rows_of, say

THREADS = 64
_REDISSON = (
    (Metric("rate / RReadWriteLock", "Redisson"), lambda r: r["mixed"] / r["redisson"]),
)
_CROWD = (
    (Metric("last reader / ping", "ping"), lambda r: r["last_us"] / r["ping_us"]),
    (Metric("first", unit="us"), lambda r: r["first_us"]),
    (Metric("last", unit="us"), lambda r: r["last_us"]),
    (Metric("last", unit="us a reader"), lambda r: r["last_us"] / r["readers"]),
    (Metric("commands", unit=""), lambda r: r["scripts"]),
)
_WRITER = (
    (Metric("p50 / the readers' hold", "hold"), lambda r: r["p50_us"] / r["hold_us"]),
    (Metric("p99 / the readers' hold", "hold"), lambda r: r["p99_us"] / r["hold_us"]),
    (Metric("reads beside it", unit="per s"), lambda r: r["reads_per_s"]),
)


def _mixed(
    session: Session, writes: int, hold_us: int, seconds: float, beside_redisson: bool
) -> Figures:
    """One round: the mix, and the same work with a mutex."""
    arguments = {"case": "mix", "threads": THREADS, "hold_us": hold_us, "seconds": seconds}
    mixed = session.run("readers", writes=writes, **arguments)[0]
    mutex = session.run("readers", writes=100, **arguments)[0]
    figures = {"mixed": mixed["per_s"], "mutex": mutex["per_s"]}
    if beside_redisson:
        redisson = session.run("RedissonMix.java", writes=writes, **arguments)[0]
        figures["redisson"] = redisson["per_s"]
    return figures


def sharing(bench: Bench) -> list[Row]:
    rows = []
    beside_redisson = has_redisson() and build_java(bench.build)
    rounds = int(bench.pick(3, 7))
    seconds = bench.pick(1, 4)
    for writes in (1, 10):
        for hold_us in (0, 1000):
            case = f"{THREADS} threads, {100 - writes}/{writes}, {hold_us / 1000:g} ms held"
            say(f"RW {case}")
            columns = (
                (Metric("rate / mutex", "mutex"), lambda r: r["mixed"] / r["mutex"]),
                (Metric("rate", unit="per s"), lambda r: r["mixed"]),
                *_REDISSON[:beside_redisson],
            )
            with bench.session("RW", case) as session:
                figures = [
                    _mixed(session, writes, hold_us, seconds, beside_redisson)
                    for _ in range(rounds)
                ]
            rows += rows_of("RW", case, figures, columns)
    for count in (100, 1000):
        case = f"{count:,} readers behind one writer"
        say(f"RW {case}")
        with bench.session("RW", case) as session:
            figures = [
                {"readers": count, **session.run("readers", case="crowd", readers=count)[0]}
                for _ in range(rounds)
            ]
        rows += rows_of("RW", case, figures, _CROWD)
    for threads in (8, THREADS):
        case = f"a writer beside {threads} threads that read all the time, 1 ms held"
        say(f"RW {case}")
        with bench.session("RW", case) as session:
            figures = [
                session.run(
                    "readers", case="writer", threads=threads, hold_us=1000, seconds=seconds
                )[0]
                for _ in range(rounds)
            ]
        rows += rows_of("RW", case, figures, _WRITER)
    return rows
