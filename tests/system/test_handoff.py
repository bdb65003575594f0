# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: many processes and threads hand one lock around; nobody hangs, no two believe at once, and
the fence rises each time.

Method: blocking waits mixed with short commands on the same connections, which makes the roles of
leader and follower change hands all the time; the history of all processes is judged afterwards. A
lost wake-up shows as a hang here and nowhere else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from support.history import History
from support.servers import Server
from support.wait import wait_until

from .actor import Pending, Spawn


PROCESSES, THREADS = 8, 4
RUN_MS = 5000
# A hang is what this must tell from a slow machine.
WAIT_MS = 30_000
# Twice the longest time that a waiter who hears nothing takes to look by itself.
SERVE_MS = 10_000


def storm(
    urls: list[str], spawn: Spawn, bursts: tuple[int, ...], **options: int
) -> tuple[int, int]:
    """Let all run. The numbers of holds and of short commands."""
    actors = [spawn(urls[number % len(urls)]) for number in range(PROCESSES)]
    running = [
        actors[number % PROCESSES].begin(
            "loop",
            thread=number // PROCESSES,
            name="storm",
            wait=WAIT_MS,
            burst=bursts[number % PROCESSES % len(bursts)],
            seed=number,
            **options,
        )
        for number in range(PROCESSES * THREADS)
    ]
    replies = [pending.get(WAIT_MS / 1000 + 30) for pending in running]
    failed = [reply for reply in replies if reply.status != "RL_OK"]
    assert not failed, failed
    counts = (sum(reply.number(count) for reply in replies) for count in ("count", "short_count"))
    return next(counts), next(counts)


@pytest.mark.parametrize("bursts", [(0,), (16,), (0, 16)], ids=["queue", "local", "mixed"])
def test_hand_off_between_many_processes(
    one_server: Server,
    spawn: Spawn,
    history: History,
    figure: Callable[[str], None],
    bursts: tuple[int, ...],
) -> None:
    """Goal: many hand-offs without a hang, with strict order, with local passing, and both.
    Method: 8 processes of 4 threads for 5 s; each hold up to 0.1 ms, then short commands."""
    holds, shorts = storm([one_server.url], spawn, bursts, ms=RUN_MS, hold_us=100, mixed=2)
    history.judge(is_fifo=True, serve_ms=SERVE_MS)
    figure(f"storm, max_local_handoffs {bursts}: {holds} hand-offs, {shorts} short commands")
    assert holds > PROCESSES * THREADS
    assert shorts > PROCESSES * THREADS


def test_hand_off_while_connections_are_killed(
    one_server: Server, spawn: Spawn, history: History, figure: Callable[[str], None]
) -> None:
    """Goal: the same with faults: connections that die cost time and nothing else.
    Method: the storm, while CLIENT KILL ends all connections ten times a second."""
    stop = threading.Event()
    kills = []

    def kill() -> None:
        with one_server.connect() as connection:
            while not stop.wait(0.1):
                kills.append(connection.cmd("CLIENT", "KILL", "TYPE", "normal"))
                kills.append(connection.cmd("CLIENT", "KILL", "TYPE", "pubsub"))

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        holds, _ = storm([one_server.url], spawn, (0, 16), ms=3000, hold_us=2000)
    finally:
        stop.set()
        killer.join(10.0)
    history.judge(serve_ms=SERVE_MS)
    figure(f"storm with killed connections: {holds} hand-offs, {sum(kills)} connections killed")
    assert sum(kills) > 0
    assert holds > PROCESSES * THREADS


@pytest.mark.parametrize("burst", [0, 4, 16])
def test_local_passing_is_bounded(one_server: Server, spawn: Spawn, burst: int) -> None:
    """Goal: the bound of docs/guarantees.md: a waiter is overtaken by at most `max_local_handoffs`
    later callers for the present holder, and `max_local_handoffs` + 1 for each place in front of
    it; by none with 0, which is strict order.
    Method: one process holds and has a place; another process queues behind it; then many more
    callers of the first come, and each gives the lock back as soon as it has it."""
    crowd, other = spawn(one_server.url), spawn(one_server.url)
    name = "bounded"

    def waiting(count: int) -> None:
        wait_until(lambda: other.ok("inspect", name=name).number("waiting") == count)

    def queue_up(number: int) -> Pending:
        return crowd.begin(
            "acquire", thread=number, lease=number, name=name, wait=WAIT_MS, burst=burst
        )

    late_count = 2 * burst + 6
    crowd.ok("acquire", lease=0, name=name, wait=0, burst=burst)
    crowds = {1: queue_up(1)}
    waiting(1)
    others = other.begin("acquire", thread=1, name=name, wait=WAIT_MS, burst=burst)
    waiting(2)
    crowds |= {number: queue_up(number) for number in range(2, 2 + late_count)}
    if burst == 0:
        waiting(2 + late_count)

    def give_back() -> int:
        done = [number for number, held in crowds.items() if held.is_done]
        for number in done:
            assert crowds.pop(number).get().status == "RL_OK"
            crowd.ok("release", lease=number)
        return len(done)

    crowd.ok("release", lease=0)
    overtaking = -1  # the first of the crowd was there before
    while not others.is_done:
        wait_until(lambda: others.is_done or any(held.is_done for held in crowds.values()))
        overtaking += give_back()
    assert others.get().status == "RL_OK"
    assert overtaking <= (2 * burst + 1 if burst else 0)
    assert crowds, "more callers were there than the bound lets by"
    other.ok("release")
    wait_until(lambda: give_back() >= 0 and not crowds)
