# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: in a crowd of redis-py's Lock and redlatch no two believe at once that they hold a lock.

Method: the real package, in threads, beside actors; all of them in one history. More about other
libraries is in tests/interop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
import redis
from support.history import History
from support.record import Record
from support.servers import Server
from support.wait import wait_until

from .actor import Spawn


# As its users have it, but for the first: a lock without a time limit would stay for ever.
THEIR_LEASE_S = 10.0
BURST = 16
FEW = 3  # turns: how many more depends on the machine


@pytest.fixture
def theirs(shared_server: Server) -> Iterator[redis.Redis]:
    with redis.Redis(unix_socket_path=shared_server.unix_path) as client:
        yield client


class Crowd:
    """Threads with redis-py's Lock that take, write and release over and over."""

    def __init__(self, client: redis.Redis, name: str, size: int, record: Record) -> None:
        self.count = 0
        self._record = record
        self._client, self._name = client, name
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(size)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            lock = self._client.lock(self._name, timeout=THEIR_LEASE_S, blocking_timeout=60)
            said = {"name": self._name, "wait_ms": 60_000, "ttl_ms": int(THEIR_LEASE_S * 1000)}
            number = self._record.call("acquire", **said)
            if not lock.acquire():
                self._record.returned(number, "timeout")
                continue
            until = time.monotonic_ns() + int(THEIR_LEASE_S / 2 * 1e9)
            lease = {"token": lock.local.token, "fence": 0, "until": until}
            self._record.returned(number, "ok", **lease)
            time.sleep(0.002)
            self.count += 1
            number = self._record.call("release", **lease)
            lock.release()
            self._record.returned(number, "ok")

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(90)


def test_later_foreign_clients_are_found(
    shared_server: Server, spawn: Spawn, theirs: redis.Redis, name: str, history: History
) -> None:
    """Goal: redis-py has its turns also if ours never leave the lock free.
    Method: ours hand it over for a second and more; then redis-py. The minute until the next search
    is not waited for: its mark is deleted."""
    actors = [spawn(shared_server.url) for _ in range(3)]
    for actor in actors:
        actor.begin("loop", name=name, wait=60_000, hold_us=2000, ms=120_000)

    turn = f"{{{name}}}:rl1:w"

    def has_searched() -> bool:
        with shared_server.connect() as connection:
            is_search = (connection.cmd("GET", turn) or b"").startswith(b"p ")
            # Its window is over.
            if not is_search or connection.cmd("PTTL", turn) > 59_000:
                return False
            return bool(connection.cmd("DEL", turn))

    wait_until(has_searched)
    crowd = Crowd(theirs, name, 3, history.record)
    try:
        wait_until(lambda: crowd.count >= FEW or (has_searched() and False), 60)
    finally:
        for actor in actors:
            actor.kill()
        crowd.stop()


@pytest.mark.parametrize(
    "burst", [0, BURST, None], ids=["without turns", "with turns", "by itself"]
)
def test_neither_starves(
    shared_server: Server,
    spawn: Spawn,
    theirs: redis.Redis,
    name: str,
    burst: int | None,
    history: History,
    figure: Callable[[str], None],
) -> None:
    """Goal: in a crowd of both no two believe at once; with yield_every each side has its turns.
    Method: 8 threads of redis-py, 8 of ours, three seconds; one history of all of them."""
    crowd = Crowd(theirs, name, 8, history.record)
    actors = [spawn(shared_server.url) for _ in range(4)]
    running = [
        actors[number % 4].begin(
            "loop",
            thread=number // 4,
            name=name,
            wait=60_000,
            **({} if burst is None else {"foreign": burst}),
            hold_us=2000,
            ms=3000,
        )
        for number in range(8)
    ]
    replies = [pending.get(120) for pending in running]
    crowd.stop()
    assert {reply.status for reply in replies} == {"RL_OK"}
    ours = [reply.number("count") for reply in replies]
    figure(f"redis-py to ours, yield_every {burst}: {crowd.count} to {sum(ours)}")
    history.judge()
    # Nobody of either kind goes without.
    assert min(ours) > 0
    if burst is None:
        assert crowd.count >= FEW
    elif burst:
        assert crowd.count >= sum(ours) / (4 * burst)
