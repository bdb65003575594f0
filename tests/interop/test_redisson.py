# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: Redisson's locks and reentrant locks of redlatch exclude each other on the same key, and
each is woken by the other's release.

Method: the real Redisson in a JVM; each owner of theirs is a thread there, each of ours a name.
Leases are far longer than what a test waits for a release, unless the test is about their end.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.servers import Server
from support.wait import wait_until

from .conftest import (
    TTL_MS,
    SOON_S,
    Farm,
    compete,
    count_attempts,
    is_in_soon,
    ours_of,
    queue_length,
)
from .peer import Pending, Side

KINDS = ["rlock", "spin", "fenced", "nonreentrant", "fair"]

# No lease: the watchdog keeps it.
WATCHDOG = -1
WATCHDOG_MS = 2500

ROUNDS = 15
MEMBERS = 10
RUN_MS = 3000
BURST = 16
FEW = 3  # turns: how many more depends on the machine
LONG_MS = 12_000  # as in test_string.py


def theirs_of(processes: Farm, server: Server, name: str, kind: str = "rlock") -> Side:
    peer = processes.peer("java")
    client = processes.client(peer, url=server.url, watchdog_ms=WATCHDOG_MS)
    return Side(peer, client, name, TTL_MS, kind=kind)


def hash_of(processes: Farm, server: Server, name: str, *, is_own: bool = False) -> Side:
    """Ours; in a process of its own, that can be killed."""
    peer = processes.new_peer("python") if is_own else processes.peer("python")
    client = processes.client(peer, kind="redlatch-hash", url=server.url)
    return Side(peer, client, name, TTL_MS, options={"owner": "ours"})


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def theirs(processes: Farm, one_server: Server, name: str) -> Side:
    return theirs_of(processes, one_server, name)


@pytest.fixture
def ours(processes: Farm, one_server: Server, name: str) -> Side:
    return hash_of(processes, one_server, name)


def wait_for_looks(server: Server, before: int) -> None:
    """Until somebody has looked twice since, the second time when he was subscribed."""
    wait_until(lambda: count_attempts(server) >= before + 2)


def waits_of_theirs(theirs: Side, server: Server, **arguments: Any) -> Pending:
    """One of theirs that waits, and is known to."""
    before = count_attempts(server)
    waiting = theirs.waits(**arguments)
    wait_for_looks(server, before)
    return waiting


def error_of(side: Side, do: str, **arguments: Any) -> str:
    return side.call(do, **arguments).error.partition(":")[0]


def test_mutex_and_their_locks_exclude_each_other(
    processes: Farm, server: Server, name: str, kind: str
) -> None:
    """Goal: a mutex of ours is kept out by theirs, and theirs by a mutex, with an error.
    Method: one try each; a waiter that notices when theirs goes."""
    theirs, ours = theirs_of(processes, server, name, kind), ours_of(processes, server, name)
    assert theirs.tries()
    assert not ours.tries()
    before = count_attempts(server)
    waiting = ours.waits()
    wait_for_looks(server, before)
    assert is_in_soon(waiting, theirs.release())
    # The server's WRONGTYPE; the one that cannot be entered again takes it for that.
    assert error_of(theirs, "acquire", wait_ms=0).endswith("Exception")
    ours.ok("check")
    ours.release()
    assert theirs.tries()
    theirs.release()


def test_theirs_keeps_ours_out(processes: Farm, server: Server, name: str, kind: str) -> None:
    """Goal: ours is busy while they hold, and is in soon after their release.
    Method: a try, a waiter in our queue, their release."""
    theirs, ours = theirs_of(processes, server, name, kind), hash_of(processes, server, name)
    assert theirs.tries()
    assert not ours.tries()
    waiting = ours.waits()
    wait_until(lambda: queue_length(ours) == 1)
    assert not waiting.is_done
    assert is_in_soon(waiting, theirs.release())
    assert not theirs.tries(owner="another")
    ours.release()


def test_ours_keeps_theirs_out(processes: Farm, server: Server, name: str, kind: str) -> None:
    """Goal: they are refused while we hold, and are in soon after our release.
    Method: a try, a waiter that has looked twice, our release."""
    theirs, ours = theirs_of(processes, server, name, kind), hash_of(processes, server, name)
    assert ours.tries()
    assert not theirs.tries()
    waiting = waits_of_theirs(theirs, server)
    assert not waiting.is_done
    assert is_in_soon(waiting, ours.release())
    assert not ours.tries()
    theirs.release()


@pytest.mark.parametrize("theirs_are", ["rlock", "fair"])
def test_each_wakes_the_other(
    processes: Farm,
    one_server: Server,
    name: str,
    theirs_are: str,
    figure: Callable[[str], None],
) -> None:
    """Goal: a release is told to the other side, and not found by polling or by the lease's end.
    Method: rounds in which ours and theirs wait in turn; how late each was, in the median."""
    theirs = theirs_of(processes, one_server, name, theirs_are)
    ours = hash_of(processes, one_server, name)
    late: dict[str, list[float]] = {"theirs to ours": [], "ours to theirs": []}
    for _ in range(ROUNDS):
        assert theirs.tries()
        waiting = ours.waits()
        wait_until(lambda: queue_length(ours) == 1)
        released = theirs.release()
        late["theirs to ours"].append(waiting.get().ended - released)
        before = count_attempts(one_server)
        waiting = theirs.waits()
        wait_for_looks(one_server, before)
        released = ours.release()
        late["ours to theirs"].append(waiting.get().ended - released)
        theirs.release()
    for who, times in late.items():
        assert max(times) < SOON_S, late
        median_ms = statistics.median(times) * 1e3
        figure(f"Redisson {theirs_are}, {who}: released to granted, median {median_ms:.2f} ms")


def test_both_renew(theirs: Side, ours: Side) -> None:
    """Goal: a lock that is held for longer than its lease stays, on both sides.
    Method: renewed leases, held for two of them while the other waits."""
    for holder, waiter, ttl_ms in ((theirs, ours, WATCHDOG), (ours, theirs, WATCHDOG_MS)):
        assert holder.tries(ttl_ms=ttl_ms)
        waiting = waiter.waits()
        time.sleep(2.2 * WATCHDOG_MS / 1000)
        assert not waiting.is_done
        assert is_in_soon(waiting, holder.release())
        waiter.release()


def test_they_enter_again(theirs: Side, ours: Side) -> None:
    """Goal: ours waits for the last of their releases.
    Method: three times in, two times out, with a waiter of ours."""
    for _ in range(3):
        assert theirs.tries()
    waiting = ours.waits()
    wait_until(lambda: queue_length(ours) == 1)
    assert theirs.tries()
    for left in (3, 2, 1):
        theirs.release()
        assert theirs.ok("state")["hold_count"] == left
        assert not ours.tries(owner="try", options={"owner": "another"})
    assert not waiting.is_done
    assert is_in_soon(waiting, theirs.release())
    ours.release()


def test_we_enter_again(theirs: Side, ours: Side, one_server: Server, name: str) -> None:
    """Goal: theirs waits for the last of our releases, and can read our count.
    Method: twice in, under the name of an owner of theirs, whom Redisson asks for his count."""
    assert theirs.tries()
    (field,) = one_server.cmd("HKEYS", name)
    theirs.release()
    as_theirs = {"owner": field.decode()}
    assert ours.tries(owner="first", options=as_theirs)
    assert ours.tries(owner="second", options=as_theirs)
    state = theirs.ok("state")
    assert state["is_locked"] and state["is_held"] and state["hold_count"] == 2
    assert theirs.ok("state", owner="another")["hold_count"] == 0
    before = count_attempts(one_server)
    waiting = theirs.waits(owner="another")
    wait_for_looks(one_server, before)
    ours.release(owner="first")
    assert theirs.ok("state")["hold_count"] == 1
    assert not waiting.is_done
    assert is_in_soon(waiting, ours.release(owner="second"))
    theirs.release(owner="another")


def test_only_the_holder_releases(theirs: Side, ours: Side) -> None:
    """Goal: who does not hold it, or has lost it to the other, neither extends nor removes it.
    Method: releases of others; a lease that ends and is taken over; both directions."""
    assert ours.tries()
    assert error_of(theirs, "release") == "IllegalMonitorStateException"
    ours.ok("check")
    ours.ok("extend")
    ours.release()

    assert ours.tries(ttl_ms=200, options={"owner": "ours", "renew": False})
    assert theirs.waits().get().value is True
    assert error_of(ours, "extend") == "LockLost"
    assert error_of(ours, "release") == "LockLost"
    assert theirs.ok("state")["is_held"]
    theirs.release()

    assert theirs.tries(ttl_ms=500)
    assert ours.waits().get().value is True
    assert error_of(theirs, "release") == "IllegalMonitorStateException"
    ours.ok("check")
    ours.ok("extend")
    ours.release()


def test_force(theirs: Side, ours: Side) -> None:
    """Goal: what the other side removes by force is lost, and is told so.
    Method: forceUnlock of theirs, force_release of ours."""
    assert ours.tries()
    assert theirs.ok("force") is True
    assert error_of(ours, "extend") == "LockLost"
    assert theirs.tries()
    ours.ok("force")
    assert error_of(theirs, "release") == "IllegalMonitorStateException"


@pytest.mark.parametrize("who", ["ours", "theirs"])
def test_a_holder_is_killed(processes: Farm, one_server: Server, name: str, who: str) -> None:
    """Goal: what a process held when it was killed is the other's at the end of its lease.
    Method: a process of its own, a renewed lease, a waiter, SIGKILL."""
    if who == "ours":
        dead = hash_of(processes, one_server, name, is_own=True)
        waiter, ttl_ms = theirs_of(processes, one_server, name), WATCHDOG_MS
    else:
        peer = processes.new_peer("java")
        client = processes.client(peer, url=one_server.url, watchdog_ms=WATCHDOG_MS)
        dead = Side(peer, client, name, WATCHDOG, kind="rlock")
        waiter, ttl_ms = hash_of(processes, one_server, name), WATCHDOG
    assert dead.tries(ttl_ms=ttl_ms)
    waiting = waiter.waits()
    time.sleep(1.2 * WATCHDOG_MS / 1000)
    assert not waiting.is_done
    assert is_in_soon(waiting, dead.peer.kill(), WATCHDOG_MS / 1000 + SOON_S)
    waiter.release()


@pytest.mark.parametrize(
    ("theirs_are", "burst"), [("rlock", None), ("spin", BURST), ("spin", None), ("fair", None)]
)
def test_a_crowd_of_both(
    processes: Farm,
    one_server: Server,
    name: str,
    theirs_are: str,
    burst: int | None,
    counter: Path,
    figure: Callable[[str], None],
) -> None:
    """Goal: in a crowd of both no two are inside at once, and each side has its turns, also the
    spin lock, which is not told of a release: more of them with yield_every.
    Method: ten of theirs and ten of ours in two processes, behind one of theirs, three seconds or
    more; a file that loses a count when two are inside."""
    is_by_itself = theirs_are == "spin" and burst is None
    run_ms = LONG_MS if is_by_itself else RUN_MS
    said = {"run_ms": run_ms, "hold_ms": 2, "counter": str(counter), "wait_ms": 40_000}
    theirs = theirs_of(processes, one_server, name, theirs_are)
    ours = [hash_of(processes, one_server, name, is_own=is_own) for is_own in (False, True)]
    # Each of our threads is an owner.
    options = {} if burst is None else {"yield_every": burst}
    half = {**said, "threads": MEMBERS // 2, "options": options}
    turns = [0, 0, 0]
    for _ in range(3 if is_by_itself else 1):  # a busy machine lets them try less often
        counts = compete(theirs, ours, {**said, "threads": MEMBERS}, half, queued=MEMBERS)
        turns = [one + more for one, more in zip(turns, counts, strict=True)]
        assert int(counter.read_text()) == sum(turns)
        if turns[2] >= FEW:
            break
    figure(f"Redisson {theirs_are} to ours, yield_every {burst}: {turns[2]} to {sum(turns[:2])}")
    assert min(turns) > 0
    assert turns[2] >= (FEW if is_by_itself else sum(turns) / (4 * BURST))


@pytest.mark.parametrize("mode", ["read", "write"])
def test_their_read_write_lock_keeps_ours_out(
    processes: Farm, ours: Side, one_server: Server, name: str, mode: str
) -> None:
    """Goal: ours is busy while their read-write lock is held in any mode, and in soon afterwards.
    Method: a try, a waiter, their release. The other direction is not for sharing: Redisson's own
    two kinds do not exclude each other there."""
    theirs = theirs_of(processes, one_server, name, mode)
    assert theirs.tries()
    assert not ours.tries()
    waiting = ours.waits()
    wait_until(lambda: queue_length(ours) == 1)
    assert is_in_soon(waiting, theirs.release())
    ours.release()
