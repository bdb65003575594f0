# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""P8: what the languages add to the C ABI, next to other libraries of theirs."""

from __future__ import annotations

import json
import statistics
import subprocess

from machine import build_go
from report import Metric, Row
from topics import Bench, Column, Figures, Session, rows_of, say

_PYTHON = (
    (
        Metric("p50 / C ABI", "library", at_most=1.35),
        lambda r: r["acquire_p50_us"] / r["library_p50_us"],
    ),
    (
        Metric("`with` or `Do` p50 / C ABI", "library"),
        lambda r: r["with_p50_us"] / r["library_p50_us"],
    ),
    (Metric("p50 / raw", "plain"), lambda r: r["acquire_p50_us"] / r["plain_p50_us"]),
    (Metric("CPU / C ABI", "library"), lambda r: r["acquire_cpu_us"] / r["library_cpu_us"]),
    (Metric("p50", unit="us"), lambda r: r["acquire_p50_us"]),
)
_REDIS_PY = (
    (Metric("p50 / ours", "ours"), lambda r: r["redis_py_p50_us"] / r["acquire_p50_us"]),
    (Metric("p50 / raw", "plain"), lambda r: r["redis_py_p50_us"] / r["plain_p50_us"]),
    (Metric("CPU / C ABI", "library"), lambda r: r["redis_py_cpu_us"] / r["library_cpu_us"]),
    (Metric("p50", unit="us"), lambda r: r["redis_py_p50_us"]),
)
_GO = (
    (
        Metric("p50 / C ABI", "library", at_most=1.25),
        lambda r: r["lock_p50_us"] / r["library_p50_us"],
    ),
    (
        Metric("`with` or `Do` p50 / C ABI", "library"),
        lambda r: r["do_p50_us"] / r["library_p50_us"],
    ),
    (Metric("p50 / raw", "plain"), lambda r: r["lock_p50_us"] / r["plain_p50_us"]),
    (Metric("CPU / C ABI", "library"), lambda r: r["lock_cpu_us"] / r["library_cpu_us"]),
    (Metric("p50", unit="us"), lambda r: r["lock_p50_us"]),
    (Metric("allocations", unit="per cycle"), lambda r: r["lock_allocs"]),
    (Metric("allocated", unit="bytes/cycle"), lambda r: r["lock_bytes"]),
)
# As bench/go/locks names them, and what they sleep at most before they look again.
_PEERS = {
    "redsync": ("redsync", 0.25),
    "redislock": ("bsm/redislock", 0.1),
    "rueidislock": ("rueidislock, one key", 0.0),
}


# What does not return counts as this long: a lower bound.
GIVE_UP_S = 30.0


def _peer(name: str) -> list[Column]:
    return [
        (Metric("p50 / ours", "ours"), lambda r: r[f"{name}_p50_us"] / r["lock_p50_us"]),
        (Metric("p50 / raw", "plain"), lambda r: r[f"{name}_p50_us"] / r["plain_p50_us"]),
        (Metric("CPU / C ABI", "library"), lambda r: r[f"{name}_cpu_us"] / r["library_cpu_us"]),
        (Metric("p50", unit="us"), lambda r: r[f"{name}_p50_us"]),
        (Metric("allocations", unit="per cycle"), lambda r: r[f"{name}_allocs"]),
        (Metric("allocated", unit="bytes/cycle"), lambda r: r[f"{name}_bytes"]),
    ]


def _beside_the_abi(bench: Bench, case: str, program: str) -> list[Figures]:
    """Rounds of the C ABI and of a program, as near to each other as two programs can be."""
    cycles = {"cycles": int(bench.pick(800, 4000)), "blocks": 4, "warmup": bench.pick(0.2, 0.5)}
    rounds = []
    say(f"P8 {case}")
    with bench.session("P8", case) as session:
        for number in range(int(bench.pick(5, 9))):
            scripts = session.programs.scripts
            (floor,) = session.run("uncontended", scripts=scripts, rounds=1, only="all", **cycles)
            (ours,) = session.run(program, round=number, **cycles)
            rounds.append({**floor, **ours})
    return rounds


def _handed_over(session: Session, library: str, hold_s: float, turns: int, number: int) -> float:
    """Median us from the start of a release to the return of a Lock in another process."""
    arguments: dict[str, object] = {"library": library, "hold": hold_s, "turns": turns}
    arguments["name"] = f"wake-up-{library}-{number}"
    port = {"port": session.server.port}
    both = [session.programs.start("wakeup.go", {**port, **arguments}) for _ in range(2)]
    found = []
    for which, process in enumerate(both):
        try:
            output, _ = process.communicate(timeout=GIVE_UP_S)
        except subprocess.TimeoutExpired:
            say(f"P8 {library}: nobody has the lock, and both wait for it")
            for stuck in both:
                stuck.kill()
                stuck.communicate()
            return GIVE_UP_S * 1e6
        if process.returncode != 0:
            raise RuntimeError("wakeup.go failed")
        rows = session.keep("wakeup.go", arguments, json.loads(output))
        found += [(row["got_ns"], row["asked_ns"], row["released_ns"], which) for row in rows]
    found.sort()
    return statistics.median(
        (got_ns - released_ns) / 1000
        for (_, _, released_ns, holder), (got_ns, asked_ns, _, waiter) in zip(found, found[1:])
        if holder != waiter and asked_ns < released_ns
    )


def _wake_ups(bench: Bench) -> list[Row]:
    case = "Go, released by another process"
    asked = {"kind": "lock", "workers": 2, "processes": 2, "burst": 0, "hold": 0.001}
    seconds = {"warmup": 0.2, "seconds": bench.pick(0.5, 2), "pings": int(bench.pick(100, 300))}
    rounds: list[Figures] = []
    peers: dict[str, list[Figures]] = {name: [] for name in _PEERS}
    say(f"P8 {case}")
    with bench.session("P8", case) as session:
        for number in range(int(bench.pick(5, 9))):
            (floor,) = session.run("handoff", **asked, **seconds)
            turns = int(bench.pick(150, 500))
            ours = _handed_over(session, "lock", 0.002, turns, number)
            rounds.append({**floor, "wakeup_us": ours})
            for name, (_, pause_s) in _PEERS.items():
                if pause_s > 0 and number > 0:
                    continue  # How soon it looks again is what is measured.
                few = int(bench.pick(5, 10))
                hold_s = max(2.2 * pause_s, 0.002)
                theirs = _handed_over(session, name, hold_s, few if pause_s else turns, number)
                peers[name].append({"wakeup_us": theirs, "ours_us": ours})
    columns = (
        (Metric("wake-up / C ABI", "library"), lambda r: r["wakeup_us"] / r["p50_us"]),
        (Metric("wake-up", unit="us"), lambda r: r["wakeup_us"]),
    )
    rows = rows_of("P8", case, rounds, columns)
    for name, (label, _) in _PEERS.items():
        columns = (
            (Metric("wake-up / ours", "ours"), lambda r: r["wakeup_us"] / r["ours_us"]),
            (Metric("wake-up", unit="us"), lambda r: r["wakeup_us"]),
        )
        rows += rows_of("P8", f"{label}, likewise", peers[name], columns)
    return rows


def bindings(bench: Bench) -> list[Row]:
    case = "Python, one thread"
    rounds = _beside_the_abi(bench, case, "uncontended.py")
    rows = rows_of("P8", case, rounds, _PYTHON)
    rows += rows_of("P8", "redis-py", rounds, _REDIS_PY)
    if not all(build_go(program, bench.build) for program in ("uncontended.go", "wakeup.go")):
        say("P8: nothing of Go, which is not there, or could not build what is measured")
        return rows
    case = "Go, one goroutine"
    rounds = _beside_the_abi(bench, case, "uncontended.go")
    rows += rows_of("P8", case, rounds, _GO)
    for name, (label, _) in _PEERS.items():
        rows += rows_of("P8", label, rounds, _peer(name))
    return rows + _wake_ups(bench)
