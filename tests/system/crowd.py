# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A crowd: 200 threads in four processes that take one of 20 locks over and over, for a time."""

from __future__ import annotations

from .actor import Actor

PROCESSES, THREADS = 4, 50  # 100 that may hold, and 100 that wait behind them
NAMES = ("even", "odd")  # with ten digits each
LOCKS = 20
SERVE_MS = 8000


class Crowd:
    def __init__(self, actors: list[Actor], ms: int, **options: int) -> None:
        self._limit_s = ms / 1000 + 120
        self._running = [
            actor.begin(
                "loop",
                thread=thread,
                name=NAMES[thread % 2],
                keys=10,
                wait=60_000,
                hold_us=20_000,
                ms=ms,
                seed=number * THREADS + thread + 1,
                looks=1,
                **options,
            )
            for number, actor in enumerate(actors)
            for thread in range(THREADS)
        ]

    @property
    def is_running(self) -> bool:
        return not any(pending.is_done for pending in self._running)

    def finish(self) -> int:
        """The number of acquisitions; each was granted, held and released without an error."""
        replies = [pending.get(self._limit_s) for pending in self._running]
        failed = [reply for reply in replies if reply.status != "RL_OK"]
        assert not failed, failed[:3]
        return sum(reply.number("count") for reply in replies)
