# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a pool of three is one for all languages, also while holders die.

Method: twelve processes, two of each runner, acquire one permit each, again and again, and two are
ended by SIGKILL while they hold one. Nobody leaves before all others wait. The test counts who is
inside: it begins to count after the reply with the grant has come, and stops before the release is
sent.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

from support.servers import Server, available_kinds
from support.wait import LIMIT, wait_until

from .runners import PREPARE, Runner

SIZE = 3
TURNS = 4
# Those of a dead process come back after it.
TTL_MS = 1500


class Inside:
    """Who is inside, and the most that were so at once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.now = self.most = self.turns = 0
        self.may_leave = Event()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.turns += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


def take_turns(runner: Runner, inside: Inside, dies: bool) -> None:
    try:
        for turn in range(TURNS):
            reply = runner.call(f"m acquire wait_ms={int(LIMIT * 1000)}", LIMIT)
            assert reply.startswith("OK"), reply
            with inside:
                assert inside.may_leave.wait(LIMIT)
                assert runner.call("m check").startswith("OK")
                if dies and turn == 1:
                    runner.kill()
                    return
            assert runner.call("m release").startswith("OK")
        runner.end()
    finally:
        runner.kill()


def test_pool_of_three_serves_all_that_live(commands: dict[str, list[str]]) -> None:
    inside = Inside()
    with Server(available_kinds()[0]) as server, ThreadPoolExecutor(2 * len(PREPARE)) as pool:
        assert 2 * len(PREPARE) == 12
        runners = [Runner(commands[name]) for name in PREPARE for _ in range(2)]
        for runner in runners:
            assert runner.call(f"- open url={server.unix_url}").startswith("OK")
            lock = f"- lock id=m kind=semaphore name=pool limit={SIZE} ttl_ms={TTL_MS}"
            assert runner.call(lock).startswith("OK")
        # The first one and the last one: of two languages.
        dying = (runners[0], runners[-1])
        turns = [pool.submit(take_turns, one, inside, one in dying) for one in runners]
        with server.connect() as connection:
            wait_until(lambda: connection.cmd("ZCARD", "{pool}:rl1:sq") == len(runners) - SIZE)
            wait_until(lambda: inside.now == SIZE)
            inside.may_leave.set()
            for turn in turns:
                turn.result(2 * LIMIT)
            wait_until(lambda: connection.cmd("EXISTS", "pool", "{pool}:rl1:sq") == 0)
    assert (inside.most, inside.now) == (SIZE, 0)
    assert inside.turns == 10 * TURNS + 2 * 2
