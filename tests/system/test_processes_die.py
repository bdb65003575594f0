# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a process that stands still or dies harms others for at most its lease, or one claim.

Method: SIGSTOP and SIGKILL for holders and waiters, up to a hundred processes; who gets the lock
and when.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

import pytest
from support.history import History
from support.servers import Server
from support.wait import SLACK_S, wait_until

from .actor import HELD, LOST, Actor, Pending, Spawn
from .conftest import aux_key, enqueue_dead, queue_length, queued_tokens


CLAIM_S = 3.0
# How often a waiter that hears nothing looks by itself, at the latest.
POLL_S = 15.0


def begin_in_order(server: Server, actors: list[Actor], name: str) -> list[Pending]:
    """Each waits for the lock, in this order, and releases it when it gets it."""
    waiting = []
    for number, actor in enumerate(actors):
        waiting.append(actor.begin("acquire", name=name, wait=-1))
        actor.begin("release")
        wait_until(lambda: queue_length(server, name) == number + 1)
    return waiting


# ---- many at once ----


@pytest.mark.parametrize("dead", [100, 1500])
def test_a_holder_that_dies_with_a_crowd_of_waiters_costs_its_lease_only(
    server: Server, spawn: Spawn, name: str, dead: int
) -> None:
    """Goal: behind any number of dead waiters a live one has the lock when the lease ends.
    Method: the entries of dead waiters are written by hand, behind a holder that is killed."""
    holder, waiter = spawn(server.url), spawn(server.url)
    holder.ok("acquire", name=name, wait=0, ttl_ms=3000)
    with server.connect() as admin:
        seconds, micros = admin.cmd("TIME")
        now_us = int(seconds) * 1_000_000 + int(micros)
        enqueue_dead(admin, aux_key(name, "q"), dead, now_us)
        waiting = waiter.begin("acquire", name=name, wait=-1)
        wait_until(lambda: queue_length(server, name) == dead + 1)
        holder.kill()
        ends = time.monotonic() + admin.cmd("PTTL", name) / 1000
    reply = waiting.get()
    assert reply.status == "RL_OK"
    assert reply.ended - ends < SLACK_S


# ---- stopped ----


def test_a_paused_holder_learns_that_it_lost(server: Server, spawn: Spawn, name: str) -> None:
    """Goal: after SIGCONT the first call says LOST, and the old holder does no harm.
    Method: SIGSTOP for longer than the lease while another waits; look and release are in the
    old holder's input before it goes on."""
    old, new = spawn(server.url), spawn(server.url)
    old.ok("acquire", name=name, wait=0, ttl_ms=500)
    waiting = new.begin("acquire", name=name, wait=-1)
    wait_until(lambda: queue_length(server, name) == 1)
    old.pause()
    paused = time.monotonic()
    reply = waiting.get()
    assert reply.status == "RL_OK"
    assert reply.ended - paused < 0.5 + SLACK_S
    look, release = old.begin("look"), old.begin("release")
    old.resume()
    assert look.get().number("state") == LOST
    assert look.get().number("remaining") == 0
    assert release.get().status == "RL_E_LOST"
    theirs = new.ok("look")
    assert theirs.number("state") == HELD
    with server.connect() as connection:
        assert connection.cmd("GET", name).decode() == theirs["token"]
    assert old.call("extend").status == "RL_E_LOST"
    new.ok("release")


def test_a_paused_waiter_costs_one_claim(
    one_server: Server, spawn: Spawn, name: str, figure: Callable[[str], None]
) -> None:
    """Goal: the first of three waiters stands still; those behind wait for its claim and no more.
    Method: SIGSTOP of the first, release, and the time until the third is served."""
    holder, first, second, third = (spawn(one_server.url) for _ in range(4))
    holder.ok("acquire", name=name, wait=0)
    waiting = begin_in_order(one_server, [first, second, third], name)
    first.pause()
    released = holder.ok("release").began
    served = waiting[2].get().ended - released
    figure(f"a paused first waiter of three: the third was served after {served:.3f} s")
    assert waiting[1].get().ended < waiting[2].get().ended
    # Not before the claim was over: the first one might believe.
    assert CLAIM_S - 0.1 < waiting[1].get().ended - released
    assert served < CLAIM_S + SLACK_S
    # It refuses the late grant and asks again: the lock is free now.
    first.resume()
    reply = waiting[0].get()
    assert reply.status == "RL_OK"
    assert reply.ended > waiting[2].get().ended


# ---- killed ----


def test_a_killed_holder_blocks_for_its_lease(
    server: Server, spawn: Spawn, name: str, figure: Callable[[str], None]
) -> None:
    """Goal: P10, the next waiter has the lock when the dead holder's lease is over.
    Method: SIGKILL, the key's time to live at that moment, and the time of the grant; 6 times."""
    late = []
    lease_ms = 300
    waiter = spawn(server.url)
    with server.connect() as connection:
        for round_number in range(6):
            holder = spawn(server.url)
            holder.ok("acquire", name=name, wait=2000, ttl_ms=lease_ms)
            waiting = waiter.begin("acquire", name=name, wait=-1)
            wait_until(lambda: queue_length(server, name) == 1)
            # At different moments between two renewals.
            time.sleep(0.02 * round_number)
            holder.kill()
            left_ms = connection.cmd("PTTL", name)
            expiry = time.monotonic() + left_ms / 1000
            reply = waiting.get()
            assert reply.status == "RL_OK"
            # Else the machine stood still for longer than the lease: the key is the waiter's.
            if left_ms <= lease_ms:
                late.append(reply.ended - expiry)
            waiter.ok("release")
    assert late
    figure(
        f"P10 ({server.kind}): next waiter {statistics.median(late) * 1000:.1f} ms (median), "
        f"{max(late) * 1000:.1f} ms (max) after the end of the killed holder's lease"
    )
    assert min(late) > -0.005
    assert max(late) < SLACK_S


def test_a_new_holder_and_the_next_in_line_die(
    one_server: Server, spawn: Spawn, name: str, figure: Callable[[str], None]
) -> None:
    """Goal: two crashes at once, of a new holder and of the one who alone was told when to look
    again, cost the third no more than its own safety poll.
    Method: release to the first of three waiters, then SIGKILL it and the second."""
    holder, *waiters = (spawn(one_server.url) for _ in range(4))
    holder.ok("acquire", name=name, wait=0)
    waiting = []
    for number, waiter in enumerate(waiters):
        waiting.append(waiter.begin("acquire", name=name, wait=-1))
        wait_until(lambda: queue_length(one_server, name) == number + 1)
    released = holder.ok("release").began
    assert waiting[0].get().status == "RL_OK"
    waiters[0].kill()
    waiters[1].kill()
    reply = waiting[2].get()
    assert reply.status == "RL_OK"
    figure(f"new holder and next in line killed: the third after {reply.ended - released:.3f} s")
    assert reply.ended - released < POLL_S + SLACK_S


@pytest.mark.parametrize("while_served", [0, 25])
def test_half_of_a_hundred_processes_die(
    one_server: Server,
    spawn: Spawn,
    name: str,
    history: History,
    figure: Callable[[str], None],
    while_served: int,
) -> None:
    """Goal: 100 processes wait, 50 of them are killed; the others are all served, in order, with no
    pause longer than one claim.
    Method: all 50 die before the release, or 25 at the end of the queue while others are served."""
    chosen = random.Random(20)
    holder = spawn(one_server.url)
    holder.ok("acquire", name=name, wait=0)
    actors = [spawn(one_server.url) for _ in range(100)]
    waiting = []
    for number, actor in enumerate(actors):
        once = {"count": 1, "hold_us": 10_000, "seed": number}
        waiting.append(actor.begin("loop", name=name, wait=-1, burst=0, **once))
        wait_until(lambda: queue_length(one_server, name) == number + 1)
        history.record.queue(name, queued_tokens(one_server, name))
    # Not those in front: two deaths at once, of holder and next in line, are another test's.
    late = chosen.sample(range(60, 100), while_served)
    early = chosen.sample(sorted(set(range(100)) - set(late)), 50 - while_served)
    for number in early:
        actors[number].kill()
    released = holder.ok("release").began
    for number in late:
        actors[number].kill()
    others = sorted(set(range(100)) - set(late) - set(early))
    replies = [waiting[number].get(60.0) for number in others]
    assert {reply.status for reply in replies} == {"RL_OK"}
    history.judge(is_fifo=True)
    times = [released, *sorted(reply.ended for reply in replies)]
    pause = max(after - before for before, after in zip(times, times[1:]))
    figure(
        f"50 of 100 waiting processes killed, {while_served} of them while others were served: "
        f"all served in {times[-1] - released:.3f} s, longest pause {pause:.3f} s"
    )
    assert pause < CLAIM_S + SLACK_S
    assert queue_length(one_server, name) == 0
