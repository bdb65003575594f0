# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""P8: what the languages add to the C ABI, next to other libraries of theirs."""

from __future__ import annotations

import json
import select
import statistics
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain
from typing import Any

from machine import build_go, build_java, has_redisson
from report import Metric, Row
from topics import Bench, Column, Figures, Session, rows_of, say



def _ours(held: str, guarded: str, at_most: float) -> list[Column]:
    """Of a lock that is acquired and released, and of one that is held while work goes on."""
    return [
        (
            Metric("p50 / C ABI", "library", at_most=at_most),
            lambda r: r[f"{held}_p50_us"] / r["library_p50_us"],
        ),
        (
            Metric("`with`, `Do` or `call` p50 / C ABI", "library"),
            lambda r: r[f"{guarded}_p50_us"] / r["library_p50_us"],
        ),
        *_absolute(held),
    ]


def _peer(name: str, ours: str) -> list[Column]:
    to_ours = (Metric("p50 / ours", "ours"), lambda r: r[f"{name}_p50_us"] / r[f"{ours}_p50_us"])
    return [to_ours, *_absolute(name)]


def _absolute(name: str) -> list[Column]:
    return [
        (Metric("p50 / raw", "plain"), lambda r: r[f"{name}_p50_us"] / r["plain_p50_us"]),
        (Metric("CPU / C ABI", "library"), lambda r: r[f"{name}_cpu_us"] / r["library_cpu_us"]),
        (Metric("p50", unit="us"), lambda r: r[f"{name}_p50_us"]),
    ]


def _allocations(name: str) -> Column:
    return (Metric("allocations", unit="per cycle"), lambda r: r[f"{name}_allocs"])


def _allocated(name: str) -> Column:
    return (Metric("allocated", unit="bytes/cycle"), lambda r: r[f"{name}_bytes"])


_PYTHON = _ours("acquire", "with", at_most=1.35)
_GO = [*_ours("lock", "do", at_most=1.25), _allocations("lock"), _allocated("lock")]
_JIT: Column = (Metric("JIT", unit="% of the time"), lambda r: r["jit_share"] * 100)
_JAVA = [*_ours("lock", "call", at_most=1.25), _allocated("lock"), _JIT]
_WAKE_UP: tuple[Column, ...] = (
    (Metric("wake-up / C ABI", "library"), lambda r: r["wakeup_us"] / r["p50_us"]),
    (Metric("wake-up", unit="us"), lambda r: r["wakeup_us"]),
)
_PEERS_WAKE_UP: tuple[Column, ...] = (
    (Metric("wake-up / ours", "ours"), lambda r: r["wakeup_us"] / r["ours_us"]),
    (Metric("wake-up", unit="us"), lambda r: r["wakeup_us"]),
)
# As bench/go/locks names them, and what they sleep at most before they look again.
_PEERS = {
    "redsync": ("redsync", 0.25),
    "redislock": ("bsm/redislock", 0.1),
    "rueidislock": ("rueidislock, one key", 0.0),
}
# As bench/java/RedissonLocks.java names them.
_REDISSON = {"rlock": "Redisson RLock", "fenced": "RFencedLock", "fair": "RFairLock"}

# What does not return counts as this long: a lower bound.
GIVE_UP_S = 30.0
# A program of Java that needs longer for a round has failed.
ROUND_S = 120.0
# Of the time of a round, for the compilers: then it is warm.
QUIET_JIT = 0.01

# When a turn had the lock, asked for it and began to give it back, in ns; and which process it was.
Turn = tuple[float, float, float, int]


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
    found: list[Turn] = []
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
        found += _turns(rows, which)
    return _passing_us(found)


def _passing_us(turns: list[Turn]) -> float:
    """The median, of those turns for which the other process waited."""
    turns.sort()
    return statistics.median(
        (got_ns - released_ns) / 1000
        for (_, _, released_ns, holder), (got_ns, asked_ns, _, waiter) in zip(turns, turns[1:])
        if holder != waiter and asked_ns < released_ns
    )


def _turns(rows: list[Figures], which: int) -> list[Turn]:
    return [(row["got_ns"], row["asked_ns"], row["released_ns"], which) for row in rows]


def _passed_in_c(bench: Bench, session: Session) -> Figures:
    asked = {"kind": "lock", "workers": 2, "processes": 2, "burst": 0, "hold": 0.001}
    seconds = {"warmup": 0.2, "seconds": bench.pick(0.5, 2), "pings": int(bench.pick(100, 300))}
    (floor,) = session.run("handoff", **asked, **seconds)
    return floor


def _go_wake_ups(bench: Bench) -> list[Row]:
    case = "Go, released by another process"
    rounds: list[Figures] = []
    peers: dict[str, list[Figures]] = {name: [] for name in _PEERS}
    say(f"P8 {case}")
    with bench.session("P8", case) as session:
        for number in range(int(bench.pick(5, 9))):
            floor = _passed_in_c(bench, session)
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
    rows = rows_of("P8", case, rounds, _WAKE_UP)
    for name, (label, _) in _PEERS.items():
        rows += rows_of("P8", f"{label}, likewise", peers[name], _PEERS_WAKE_UP)
    return rows


class Jvm:
    """A program of bench/java: a round for each line of words, so that the next one is warmer."""

    def __init__(self, session: Session, program: str, **arguments: object) -> None:
        self._session = session
        self._program = program
        self._arguments = arguments
        given = {"port": session.server.port, **arguments}
        self._process = session.programs.start(program, given, stdin=subprocess.PIPE)
        self._words: tuple[object, ...] = ()

    def __enter__(self) -> Jvm:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def begin(self, *words: object) -> None:
        assert self._process.stdin
        self._words = words
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def end(self) -> dict[str, Any]:
        assert self._process.stdout
        if not select.select([self._process.stdout], [], [], ROUND_S)[0]:
            raise RuntimeError(f"{self._program} does not come to an end")
        result: dict[str, Any] = json.loads(self._process.stdout.readline())
        self._session.keep(self._program, {**self._arguments, "words": self._words}, result)
        return result


def warm_up(programs: Sequence[Jvm], least: int, *words: object) -> None:
    """Until the compilers of Java have next to nothing to do, and after `least` rounds: what they
    have not counted often enough does not keep them busy either."""
    for number in range(3 * least):
        for program in programs:
            program.begin(f"warm-up-{number}", *words)
        busiest = max(program.end()["jit_share"] for program in programs)
        if number + 1 >= least and busiest < QUIET_JIT:
            return
    say(f"P8: the compilers of Java have not come to rest: {busiest:.1%} of the time")


def _java_uncontended(bench: Bench) -> list[Row]:
    case = "Java, one thread"
    cycles, blocks = int(bench.pick(1000, 4000)), 4
    libraries = ["RedlatchLocks"] + ["RedissonLocks"] * has_redisson()
    rounds = []
    say(f"P8 {case}")
    with bench.session("P8", case) as session:
        scripts = session.programs.scripts
        floor = {"scripts": scripts, "rounds": 1, "cycles": cycles, "blocks": blocks}
        with Jvm(session, "Uncontended.java", libraries=",".join(libraries)) as program:
            # Twice what the last compiler asks of a method.
            warm_up([program], 10, 1000, blocks)
            for number in range(int(bench.pick(5, 9))):
                (c_abi,) = session.run("uncontended", warmup=0.2, only="all", **floor)
                program.begin(number, cycles, blocks)
                rounds.append({**c_abi, **program.end()})
    rows = rows_of("P8", case, rounds, _JAVA)
    for kind, label in _REDISSON.items():
        if has_redisson():
            columns = [*_peer(kind, "lock"), _allocated(kind)]
            rows += rows_of("P8", label, rounds, columns)
    return rows


def _java_handed_over(pair: Sequence[Jvm], number: int, turns: int) -> Figures:
    for program in pair:
        # The pause is long enough for the other one to have it.
        program.begin(f"wake-up-{number}", 2, 1, turns)
    answers = [program.end() for program in pair]
    found = [turn for which, one in enumerate(answers) for turn in _turns(one["rows"], which)]
    busiest = max(one["jit_share"] for one in answers)
    return {"wakeup_us": _passing_us(found), "jit_share": busiest}


def _java_wake_ups(bench: Bench) -> list[Row]:
    case = "Java, released by another process"
    kinds = {"lock": "RedlatchLocks"}
    if has_redisson():
        kinds |= {"rlock": "RedissonLocks", "fair": "RedissonLocks"}
    rounds: dict[str, list[Figures]] = {kind: [] for kind in kinds}
    say(f"P8 {case}")
    with bench.session("P8", case) as session, ExitStack() as open_programs:
        pairs: dict[str, list[Jvm]] = {kind: [] for kind in kinds}
        for kind, library in 2 * [*kinds.items()]:
            program = Jvm(session, "Wakeup.java", library=library, kind=kind)
            pairs[kind].append(open_programs.enter_context(program))
        warm_up([*chain(*pairs.values())], 5, 1, 0, 1000)
        for number in range(int(bench.pick(5, 9))):
            floor = _passed_in_c(bench, session)
            for kind, pair in pairs.items():
                passed = _java_handed_over(pair, number, int(bench.pick(150, 500)))
                ours_us = rounds["lock"][number]["wakeup_us"] if kind != "lock" else 0.0
                rounds[kind].append({**floor, **passed, "ours_us": ours_us})
    rows = rows_of("P8", case, rounds.pop("lock"), [*_WAKE_UP, _JIT])
    for kind, found in rounds.items():
        rows += rows_of("P8", f"{_REDISSON[kind]}, likewise", found, [*_PEERS_WAKE_UP, _JIT])
    return rows


def _python(bench: Bench) -> list[Row]:
    case = "Python, one thread"
    rounds = _beside_the_abi(bench, case, "uncontended.py")
    rows = rows_of("P8", case, rounds, _PYTHON)
    return rows + rows_of("P8", "redis-py", rounds, _peer("redis_py", "acquire"))


def _go(bench: Bench) -> list[Row]:
    if not all(build_go(program, bench.build) for program in ("uncontended.go", "wakeup.go")):
        say("P8: nothing of Go, which is not there, or could not build what is measured")
        return []
    case = "Go, one goroutine"
    rounds = _beside_the_abi(bench, case, "uncontended.go")
    rows = rows_of("P8", case, rounds, _GO)
    for name, (label, _) in _PEERS.items():
        columns = [*_peer(name, "lock"), _allocations(name), _allocated(name)]
        rows += rows_of("P8", label, rounds, columns)
    return rows + _go_wake_ups(bench)


def _java(bench: Bench) -> list[Row]:
    if not build_java(bench.build):
        say("P8: nothing of Java, which is not there, or could not build what is measured")
        return []
    if not has_redisson():
        say("P8: nothing of Redisson, which `scripts/test interop` fetches")
    return _java_uncontended(bench) + _java_wake_ups(bench)


def bindings(bench: Bench) -> list[Row]:
    return _python(bench) + _go(bench) + _java(bench)
