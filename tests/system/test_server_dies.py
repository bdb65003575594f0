# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a server that dies, stands still, forgets or drops connections harms nobody for long.

Method: real processes on a real server, which is killed, stopped and told to forget; what callers
get and when is compared with the contract in redlatch.h.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from support.servers import Server
from support.wait import SLACK_S, wait_until

from .actor import HELD, LOST, Spawn
from .conftest import client_ids, kill_connections, queue_length
from .proxy import FaultProxy


# Limits of connecting and of one command in tests where neither can succeed.
SHORT_S = 0.3
SHORT = "?command_timeout=300ms&connect_timeout=300ms"


# ---- killed ----


def test_all_waiters_are_served_after_a_restart_without_data(
    one_server: Server, spawn: Spawn, name: str, figure: Callable[[str], None]
) -> None:
    """Goal: P11, nobody waits for ever on a server that forgot the queue.
    Method: 10 processes with 10 waiting threads each, half of them queueing alone; SIGKILL, start,
    and the time until the last has had the lock."""
    holder = spawn(one_server.url)
    holder.ok("acquire", name=name, wait=0)
    actors = [spawn(one_server.url) for _ in range(10)]
    waiting = []
    for number, actor in enumerate(actors):
        burst = 16 * (number % 2)
        for thread in range(10):
            waiting.append(
                actor.begin("loop", thread=thread, name=name, wait=-1, count=1, burst=burst)
            )
    wait_until(lambda: queue_length(one_server, name) == 5 * 10 + 5)
    one_server.kill()
    one_server.start()
    back = time.monotonic()
    replies = [pending.get() for pending in waiting]
    assert {reply.status for reply in replies} == {"RL_OK"}
    last = max(reply.ended for reply in replies) - back
    figure(f"P11: 100 waiters served {last:.3f} s after the restarted server was back")
    assert last < 3.0


# ---- stopped ----


@pytest.mark.parametrize("was_connected", [False, True])
def test_wait_limits_are_kept_against_a_stopped_server(
    server: Server, spawn: Spawn, name: str, was_connected: bool
) -> None:
    """Goal: wait_ms is kept whatever the caller was about to read, and afterwards all works.
    Method: SIGSTOP; free and busy locks, queued and not, two callers of one client."""
    holder, queued, fresh = (spawn(server.url) for _ in range(3))
    holder.ok("acquire", name=name, wait=0)
    pending = []
    if was_connected:
        fresh.ok("connect")
        pending.append(queued.begin("acquire", name=name, wait=1000))
        wait_until(lambda: queue_length(server, name) == 1)
    server.pause()
    pending.append(fresh.begin("acquire", name=name, wait=500))
    pending.append(fresh.begin("acquire", thread=1, lease=1, name="free", wait=700))
    for wait in reversed(pending):
        reply = wait.get()
        limit = int(wait.line.rpartition("=")[2]) / 1000
        assert reply.status in ("RL_E_UNAVAILABLE", "RL_E_OUTCOME_UNKNOWN", "RL_TIMEOUT"), reply
        assert limit <= reply.seconds < limit + SLACK_S, reply
    server.resume()
    for actor in (holder, queued, fresh):
        actor.ok("acquire", lease=9, name="after", wait=10_000)
        actor.ok("release", lease=9)
    holder.ok("release")
    fresh.ok("acquire", name=name, wait=10_000)


def test_requests_are_driven_no_longer_than_asked(
    one_server: Server, spawn: Spawn, name: str
) -> None:
    """Goal: rl_request_wait and rl_release keep their limits against a stopped server.
    Method: SIGSTOP; a started acquire is driven for 200 ms and cancelled, a lock is released."""
    actor = spawn(one_server.url + SHORT)
    actor.ok("acquire", lease=1, name="held", wait=0)
    one_server.pause()
    actor.ok("start", name=name, wait=-1)
    reply = actor.call("wait", wait=200)
    assert reply.status == "RL_PENDING"
    assert 0.2 <= reply.seconds < 0.2 + SLACK_S
    reply = actor.call("cancel")
    assert reply.status == "RL_CANCELLED"
    assert reply.seconds < SLACK_S
    reply = actor.call("release", lease=1)
    assert reply.status == "RL_E_OUTCOME_UNKNOWN"
    assert reply.seconds < SHORT_S + SLACK_S
    one_server.resume()
    # Both were cleaned up behind the callers' backs.
    other = spawn(one_server.url)
    for lock in ("held", name):
        other.ok("acquire", name=lock, wait=5000)
    assert queue_length(one_server, name) == 0


def test_a_lost_lease_stays_lost(one_server: Server, spawn: Spawn, name: str) -> None:
    """Goal: what was told to be lost is never held again, whatever answer comes late.
    Method: SIGSTOP until LOST is seen, with a renewal on its way; SIGCONT at once; four times."""
    actor = spawn(one_server.url)
    for lease in range(4):
        actor.ok("acquire", lease=lease, name=f"{name}-{lease}", wait=2000, ttl_ms=600)
        one_server.pause()
        while actor.call("look", lease=lease).number("state") == HELD:
            pass  # The sooner it is seen the better.
        one_server.resume()
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            assert actor.call("look", lease=lease).number("state") == LOST
        assert actor.call("release", lease=lease).status == "RL_E_LOST"


# ---- connections dropped, scripts forgotten ----


def test_a_reset_connection_costs_no_processor(
    proxy: FaultProxy, spawn: Spawn, name: str
) -> None:
    """Goal: a connection that was reset while nobody used it keeps no thread busy.
    Method: resets, for an idle client and for a holder; the processor time of a second."""
    idle, holder = spawn(proxy.url), spawn(proxy.url)
    idle.ok("connect")
    holder.ok("acquire", name=name, wait=0)
    for _ in range(2):
        proxy.cut()
        before = idle.processor_seconds + holder.processor_seconds
        time.sleep(1.0)
        assert idle.processor_seconds + holder.processor_seconds - before < 0.3
    holder.ok("release")


def test_an_idle_client_survives_a_killed_connection(
    server: Server, spawn: Spawn, name: str
) -> None:
    """Goal: a connection that the server closed while nothing happened is not the caller's concern.
    Method: kill it and wait until the client has seen that, whose threads may be late on a busy
    machine, before one try, one look, one release and one extension."""
    actor = spawn(server.url)

    def kill() -> None:
        before = actor.descriptor_count
        if kill_connections(server):
            # A holder is connected anew at once.
            wait_until(lambda: actor.descriptor_count < before or bool(client_ids(server)))

    for number in range(3):
        lock = f"{name}-{number}"
        for command in ("acquire", "extend", "inspect", "release"):
            kill()
            reply = actor.call(command, name=lock, wait=0)
            assert reply.status == "RL_OK", (command, reply)
