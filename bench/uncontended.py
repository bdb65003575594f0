# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Acquire and release from Python, by this package and by redis-py, whose parser is hiredis.

Takes `name=value` arguments and prints one JSON object, as the programs in C++ do.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable

import redis
import redlatch


def cpu_us() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1e6


class Candidate:
    """A cycle, and how long it took each time."""

    def __init__(self, name: str, cycle: Callable[[], None]) -> None:
        self.name = name
        self.cycle = cycle
        self.times_ns: list[int] = []
        self.cpu_us = 0.0

    def run(self, count: int) -> None:
        cycle, now, add = self.cycle, time.perf_counter_ns, self.times_ns.append
        before = cpu_us()
        for _ in range(count):
            start = now()
            cycle()
            add(now() - start)
        self.cpu_us += cpu_us() - before

    def forget(self) -> None:
        self.times_ns.clear()
        self.cpu_us = 0.0

    def figures(self) -> dict[str, float]:
        times = sorted(self.times_ns)
        return {
            f"{self.name}_p50_us": times[len(times) // 2] / 1000,
            f"{self.name}_p99_us": times[len(times) * 99 // 100] / 1000,
            f"{self.name}_cpu_us": self.cpu_us / len(times),
        }


def candidates(port: int, number: str) -> list[Candidate]:
    ours = redlatch.connect(f"redis://127.0.0.1:{port}")
    theirs = redis.Redis(port=port)
    key = f"python-{number}"
    lock = ours.lock(f"{key}-with")
    # A lease of 30 s as ours, which it does not renew.
    other = theirs.lock(f"{key}-redis-py", timeout=30)

    def acquire() -> None:
        lease = ours.acquire(f"{key}-acquire")
        assert lease is not None
        lease.release()

    def block() -> None:
        with lock:
            pass

    def redis_py() -> None:
        other.acquire()
        other.release()

    return [
        Candidate("acquire", acquire),
        Candidate("with", block),
        Candidate("redis_py", redis_py),
    ]


def main() -> None:
    arguments = dict(word.split("=", 1) for word in sys.argv[1:])
    chosen = candidates(int(arguments["port"]), arguments["round"])
    blocks = int(arguments["blocks"])
    end = time.monotonic() + float(arguments["warmup"])
    while time.monotonic() < end:
        for candidate in chosen:
            candidate.run(50)
    for candidate in chosen:
        candidate.forget()
    for i in range(blocks):
        for k in range(len(chosen)):
            chosen[(i + k) % len(chosen)].run(int(arguments["cycles"]) // blocks)
    figures: dict[str, float] = {}
    for candidate in chosen:
        figures |= candidate.figures()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
