# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Cycles of pottery's Redlock, beside bench/quorum.cc. Takes `ports=` of the servers. For each
number on standard input it does so many cycles, and prints one JSON object."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time

import pottery
import redis


def run(lock: pottery.Redlock, cycles: int) -> dict[str, float]:
    times, failed = [], 0
    for _ in range(cycles):
        start = time.perf_counter_ns()
        is_held = False
        with contextlib.suppress(Exception):
            if is_held := lock.acquire(blocking=False):
                lock.release()
        failed += not is_held
        times.append((time.perf_counter_ns() - start) / 1000)
    return {"p50_us": sorted(times)[len(times) // 2], "failed": failed}


def main() -> None:
    ports = sys.argv[1].removeprefix("ports=").split(",")
    masters = {redis.Redis(port=int(port)) for port in ports}
    lock = pottery.Redlock(key="quorum-peer", masters=masters, auto_release_time=30)
    for line in sys.stdin:
        print(json.dumps(run(lock, int(line))), flush=True)
    os._exit(0)  # its threads may hang


if __name__ == "__main__":
    main()
