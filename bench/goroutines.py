# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""P12: Go at 64 goroutines with keys of their own, and at one on the server's core, next to other
libraries of Go."""

from __future__ import annotations

from machine import build_go
from report import Metric, Row
from topics import Bench, Column, Figures, rows_of, say

_MANY = 64
_PEERS = {
    "redsync": "redsync",
    "redislock": "bsm/redislock",
    "rueidislock": "rueidislock, one key",
}


def _to(peer: str, figure: str, metric: Metric) -> Column:
    return (metric, lambda r: r[f"lock_{figure}"] / r[f"{peer}_{figure}"])


_TOGETHER: list[Column] = [
    _to("rueidislock", "per_s", Metric("rate / rueidislock", "rueidislock", at_least=1)),
    (Metric("rate / raw", "plain", at_least=1), lambda r: r["lock_per_s"] / r["plain_per_s"]),
    (
        Metric("`Do` rate / rueidislock", "rueidislock"),
        lambda r: r["do_per_s"] / r["rueidislock_per_s"],
    ),
    _to("rueidislock", "p99_us", Metric("p99 / rueidislock", "rueidislock", at_most=1)),
    _to("rueidislock", "cpu_us", Metric("CPU / rueidislock", "rueidislock")),
    (Metric("p99", unit="ms"), lambda r: r["lock_p99_us"] / 1000),
    (Metric("CPU", unit="us/cycle"), lambda r: r["lock_cpu_us"]),
    (Metric("rate", unit="cycles/s"), lambda r: r["lock_per_s"]),
    # Of the goroutine that had the fewest cycles, to what is its due.
    (
        Metric("fewest / mean", unit=""),
        lambda r: r["lock_fewest"] * _MANY / (r["lock_per_s"] * r["seconds"]),
    ),
]
_ALONE: list[Column] = [
    _to("redislock", "cpu_us", Metric("CPU / redislock", "bsm/redislock", at_most=1)),
    _to("redislock", "p50_us", Metric("p50 / redislock", "bsm/redislock", at_most=1)),
    (
        Metric("p50 / raw", "plain", at_most=1.6),
        lambda r: r["lock_p50_us"] / r["plain_p50_us"],
    ),
    (Metric("p50 / C ABI", "library"), lambda r: r["lock_p50_us"] / r["library_p50_us"]),
    (Metric("CPU", unit="us/cycle"), lambda r: r["lock_cpu_us"]),
    (Metric("p50", unit="us"), lambda r: r["lock_p50_us"]),
]


def _peer_together(name: str) -> list[Column]:
    return [
        (Metric("rate / raw", "plain"), lambda r: r[f"{name}_per_s"] / r["plain_per_s"]),
        (Metric("p99", unit="ms"), lambda r: r[f"{name}_p99_us"] / 1000),
        (Metric("CPU", unit="us/cycle"), lambda r: r[f"{name}_cpu_us"]),
        (Metric("rate", unit="cycles/s"), lambda r: r[f"{name}_per_s"]),
    ]


def _peer_alone(name: str) -> list[Column]:
    return [
        (Metric("p50 / raw", "plain"), lambda r: r[f"{name}_p50_us"] / r["plain_p50_us"]),
        (Metric("CPU", unit="us/cycle"), lambda r: r[f"{name}_cpu_us"]),
        (Metric("p50", unit="us"), lambda r: r[f"{name}_p50_us"]),
    ]


def _rounds(bench: Bench, case: str, count: int, pin: str | None) -> list[Figures]:
    """A floor in C and all libraries, which take turns within a round."""
    seconds = bench.pick(0.6, 2)
    asked = {"goroutines": count, "seconds": seconds, "blocks": 6, "warmup": bench.pick(0.2, 0.5)}
    rounds = []
    say(f"P12 {case}")
    with bench.session("P12", case, pin=pin) as session:
        scripts = {"scripts": session.programs.scripts, "rounds": 1}
        for number in range(int(bench.pick(5, 9))):
            if count == 1:
                cycles = {"cycles": int(bench.pick(800, 4000)), "blocks": 4, "warmup": 0.2}
                (floor,) = session.run("uncontended", **scripts, **cycles, only="plain")
                (ours,) = session.run("uncontended", **scripts, **cycles, only="library")
                floor |= ours
            else:
                together = {"threads": count, "seconds": bench.pick(0.3, 1), "only": "plain"}
                (floor,) = session.run("parallel", **scripts, **together)
            (found,) = session.run("goroutines.go", round=number, **asked)
            rounds.append({**floor, **found, "seconds": seconds})
    return rounds


def goroutines(bench: Bench) -> list[Row]:
    if not build_go("goroutines.go", bench.build):
        say("P12: nothing of Go, which is not there, or could not build what is measured")
        return []
    case = f"{_MANY} goroutines"
    rounds = _rounds(bench, case, _MANY, None)
    rows = rows_of("P12", case, rounds, _TOGETHER)
    for name, label in _PEERS.items():
        rows += rows_of("P12", label, rounds, _peer_together(name))
    case = "one goroutine, server and client on one core"
    rounds = _rounds(bench, case, 1, "one")
    rows += rows_of("P12", case, rounds, _ALONE)
    for name, label in _PEERS.items():
        rows += rows_of("P12", f"{label}, likewise", rounds, _peer_alone(name))
    return rows
