# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Acquire and release in many asyncio tasks, each on a key of its own, by this package and by
redis-py, whose parser is hiredis.

Takes `name=value` arguments and prints one JSON object, as the programs in C++ do.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable

import redis.asyncio
import redlatch

Cycle = Callable[[], Awaitable[None]]


def cpu_us() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1e6


async def run(name: str, cycles: list[Cycle], seconds: float) -> dict[str, float]:
    """All at once, as often as they can; what a cycle has cost."""
    counts = [0] * len(cycles)
    start = time.perf_counter()
    end = start + seconds

    async def work(i: int, cycle: Cycle) -> None:
        now = time.perf_counter
        count = 0
        while now() < end:
            await cycle()
            count += 1
        counts[i] = count

    gc.collect()
    before = cpu_us()
    await asyncio.gather(*(work(i, cycle) for i, cycle in enumerate(cycles)))
    elapsed = time.perf_counter() - start
    return {
        f"{name}_per_s": sum(counts) / elapsed,
        f"{name}_cpu_us": (cpu_us() - before) / sum(counts),
        f"{name}_fewest": min(counts),
    }


def ours(client: redlatch.Client, key: str) -> Cycle:
    aio = client.aio

    async def cycle() -> None:
        lease = await aio.acquire(key)
        assert lease is not None
        await lease.release()

    return cycle


def permit(client: redlatch.Client, key: str) -> Cycle:
    semaphore = client.aio.semaphore(key, 10)

    async def cycle() -> None:
        lease = await semaphore.acquire()
        assert lease is not None
        await lease.release()

    return cycle


def block(client: redlatch.Client, key: str) -> Cycle:
    lock = client.aio.lock(key)

    async def cycle() -> None:
        async with lock:
            pass

    return cycle


def redis_py(client: redis.asyncio.Redis, key: str) -> Cycle:
    # A lease of 30 s as ours, which it does not renew.
    lock = client.lock(key, timeout=30)

    async def cycle() -> None:
        await lock.acquire()
        await lock.release()

    return cycle


async def measure(arguments: dict[str, str]) -> dict[str, float]:
    port, count = int(arguments["port"]), int(arguments["tasks"])
    seconds, warmup = float(arguments["seconds"]), float(arguments["warmup"])
    number = arguments["round"]
    client = redlatch.connect(f"redis://127.0.0.1:{port}")
    # What it is quickest with: waiting for one of few connections beats having one for each task.
    pool = redis.asyncio.BlockingConnectionPool(
        port=port, max_connections=int(arguments["connections"]), timeout=None
    )
    theirs = redis.asyncio.Redis(connection_pool=pool)
    keys = [f"tasks-{number}-{i}" for i in range(count)]
    candidates = {
        "acquire": [ours(client, f"{key}-acquire") for key in keys],
        "with": [block(client, f"{key}-with") for key in keys],
        "permit": [permit(client, f"{key}-permit") for key in keys],
        "redis_py": [redis_py(theirs, f"{key}-redis-py") for key in keys],
    }
    only = arguments.get("only", ",".join(candidates)).split(",")
    figures: dict[str, float] = {}
    for limit in (warmup, seconds):
        for name, cycles in candidates.items():
            if name in only:
                figures |= await run(name, cycles, limit)
    await theirs.aclose()
    client.close()
    return figures


def main() -> None:
    arguments = dict(word.split("=", 1) for word in sys.argv[1:])
    print(json.dumps(asyncio.run(measure(arguments))))


if __name__ == "__main__":
    main()
