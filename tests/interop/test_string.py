# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: libraries that lock by SET NX, and redlatch, exclude each other on the same key.

Method: the real packages in processes of their languages, on every kind of server: whoever holds
keeps the other out and lets it in afterwards; leases end; nobody removes what is not his. Nobody's
lease is short enough to explain that the other got in soon, unless the test is about that.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
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


# What a lease of one second lasts at least: clocks differ, and our validity ends a little earlier.
NEARLY_1_S = 0.97


@dataclass(frozen=True)
class Library:
    name: str
    language: str
    refusals: tuple[str, ...]
    """What it says, in parts, when its user gives back or extends what is not his any more."""
    namespace: str = ""
    """What it puts before a name."""
    sleep_ms: int = 0
    """It looks again only after this, its lease, if nobody of its own kind tells it."""
    window_s: float = 0.15
    """No less than the pause between two of its looks."""

    def waits(self, side: Side) -> Pending:
        if self.sleep_ms:
            return side.waits(wait_ms=-1, ttl_ms=self.sleep_ms)
        return side.waits()


LIBRARIES = [
    Library("redis-py", "python", ("LockNotOwnedError", "LockError")),
    Library("python-redis-lock", "python", ("NotAcquired",), "lock:", sleep_ms=1000, window_s=1.2),
    Library("redsync", "go", ("already expired", "already taken", "not extended")),
    Library("redislock", "go", ("not held", "not obtained")),
    Library("node-redlock", "node", ("ExecutionError",)),
]


@pytest.fixture(params=LIBRARIES, ids=lambda library: library.name)
def library(request: pytest.FixtureRequest) -> Library:
    chosen: Library = request.param
    return chosen


def theirs_of(processes: Farm, server: Server, name: str, library: Library) -> Side:
    peer = processes.peer(library.language)
    client = processes.client(peer, kind=library.name, url=server.url)
    return Side(peer, client, name, TTL_MS)


def sides_of(processes: Farm, server: Server, name: str, library: Library) -> tuple[Side, Side]:
    theirs = theirs_of(processes, server, name, library)
    return theirs, ours_of(processes, server, name, namespace=library.namespace)


@pytest.fixture
def sides(processes: Farm, server: Server, name: str, library: Library) -> tuple[Side, Side]:
    """Theirs and ours."""
    return sides_of(processes, server, name, library)


@pytest.fixture
def one_sides(
    processes: Farm, one_server: Server, name: str, library: Library
) -> tuple[Side, Side]:
    """Likewise, for tests that wait for leases to end."""
    return sides_of(processes, one_server, name, library)


def is_waiting(server: Server, before: int) -> bool:
    """Whether somebody has looked twice since."""
    return count_attempts(server) >= before + 2


def refuses(side: Side, do: str, words: tuple[str, ...], **arguments: Any) -> bool:
    error = side.call(do, **arguments).error
    return any(word in error for word in words)


def test_theirs_keeps_ours_out(sides: tuple[Side, Side]) -> None:
    """Goal: ours is busy while they hold, names them as others, and is in soon after them.
    Method: a try, a look, a waiter in our queue, their release."""
    theirs, ours = sides
    assert theirs.tries()
    assert not ours.tries()
    assert ours.ok("look")["state"] == "FOREIGN"
    waiting = ours.waits()
    wait_until(lambda: queue_length(ours) == 1)
    assert not waiting.is_done
    assert is_in_soon(waiting, theirs.release())
    assert not theirs.tries(owner="another")
    ours.release()


def test_ours_keeps_theirs_out(sides: tuple[Side, Side], server: Server, library: Library) -> None:
    """Goal: they are refused while we hold, and are in after our release.
    Method: a try, a waiter that has looked twice or sleeps, our release."""
    theirs, ours = sides
    assert ours.tries()
    assert not theirs.tries()
    before = count_attempts(server)
    waiting = library.waits(theirs)
    wait_until(lambda: is_waiting(server, before))
    assert not waiting.is_done
    assert is_in_soon(waiting, ours.release())
    assert not ours.tries()
    theirs.release()


def test_their_lease_ends(one_sides: tuple[Side, Side]) -> None:
    """Goal: what they took and never gave back is ours when its lease is over, and not before.
    Method: a lease of one second, which all of them can have, and a waiter."""
    theirs, ours = one_sides
    began = time.monotonic()
    assert theirs.tries(ttl_ms=1000)
    waiting = ours.waits()
    reply = waiting.get()
    assert reply.value is True
    assert NEARLY_1_S <= reply.ended - began < 1 + SOON_S
    ours.release()


def test_our_lease_ends(one_sides: tuple[Side, Side], library: Library) -> None:
    """Goal: what we took without renewal and never gave back is theirs when its lease is over.
    Method: a lease of one second and a waiter."""
    theirs, ours = one_sides
    began = time.monotonic()
    assert ours.tries(ttl_ms=1000, options={"renew": False})
    reply = library.waits(theirs).get()
    assert reply.value is True
    assert NEARLY_1_S <= reply.ended - began < 1 + SOON_S
    theirs.release()


def test_only_the_holder_releases(
    one_sides: tuple[Side, Side], library: Library, one_server: Server, name: str
) -> None:
    """Goal: whoever has lost the lock to the other neither extends nor removes it.
    Method: a lease ends, the other takes over; both directions."""
    theirs, ours = one_sides
    assert ours.tries(ttl_ms=200, options={"renew": False})
    assert library.waits(theirs).get().value is True
    key = library.namespace + name
    with one_server.connect() as connection:
        before = connection.cmd("GET", key), connection.cmd("PTTL", key)
        assert refuses(ours, "extend", ("LockLost",), ttl_ms=TTL_MS)
        assert refuses(ours, "release", ("LockLost",))
        assert connection.cmd("GET", key) == before[0]
        assert 0 < connection.cmd("PTTL", key) <= before[1]
    theirs.release()

    assert theirs.tries(ttl_ms=1000)
    assert ours.waits().get().value is True
    assert refuses(theirs, "extend", library.refusals, ttl_ms=TTL_MS)
    assert refuses(theirs, "release", library.refusals)
    ours.ok("check")
    ours.ok("extend", ttl_ms=TTL_MS)
    ours.release()


def test_they_extend(sides: tuple[Side, Side], server: Server, name: str) -> None:
    """Goal: their extension counts: ours does not get in at the end of the first lease.
    Method: the expiry of the key; a try of ours."""
    theirs, ours = sides
    assert theirs.tries(ttl_ms=20_000)
    with server.connect() as connection:
        (key,) = [key for key in connection.cmd("KEYS", f"*{name}") if b"rl1" not in key]
        connection.cmd("PEXPIRE", key, 5000)
        theirs.ok("extend", ttl_ms=20_000)
        assert connection.cmd("PTTL", key) > 10_000
    assert not ours.tries()
    theirs.release()


def test_their_release_is_notified(
    one_sides: tuple[Side, Side], library: Library, figure: Callable[[str], None]
) -> None:
    """Goal: the head of our queue is told by the server of their release, and does not poll.
    Method: wait until its looks are 125 to 250 ms apart; five releases; the median is far
    below what polling could have, seven times of eight."""
    theirs, ours = one_sides
    late = []
    for _ in range(5):
        assert theirs.tries()
        waiting = ours.waits()
        wait_until(lambda: queue_length(ours) == 1)
        time.sleep(0.6)
        released = theirs.release()
        late.append(waiting.get().ended - released)
        ours.release()
    median = statistics.median(late)
    figure(f"{library.name}: released to ours granted, median {median * 1e3:.2f} ms")
    assert median < 0.05, late


def test_sleeping_waiter_can_be_woken(processes: Farm, one_server: Server, name: str) -> None:
    """Goal: python-redis-lock sleeps through our release, until its lease would end; a push to its
    signal list wakes it, as docs/interop.md says.
    Method: a waiter with a long lease; a release, then the push."""
    library = next(library for library in LIBRARIES if library.name == "python-redis-lock")
    theirs, ours = sides_of(processes, one_server, name, library)
    assert ours.tries()
    before = count_attempts(one_server)
    waiting = theirs.waits(wait_ms=-1)
    wait_until(lambda: is_waiting(one_server, before))
    ours.release()
    time.sleep(0.5)
    assert not waiting.is_done
    one_server.cmd("LPUSH", f"lock-signal:{name}", 1)
    reply = waiting.get()
    assert reply.value is True
    assert reply.seconds < TTL_MS / 1000 / 2
    theirs.release()


# Of each side.
MEMBERS = 8
RUN_MS = 3000
BURST = 16


def test_neither_starves(
    processes: Farm,
    one_server: Server,
    name: str,
    library: Library,
    counter: Path,
    figure: Callable[[str], None],
) -> None:
    """Goal: in a crowd of both no two are inside at once, and with yield_every each side has
    its turns.
    Method: eight of theirs, eight of ours in two processes, three seconds; a file that loses a
    count when two are inside."""
    theirs, ours = sides_of(processes, one_server, name, library)
    other = processes.new_peer("python")
    opened = {"kind": "redlatch", "url": one_server.url, "namespace": library.namespace}
    others = Side(other, processes.client(other, **opened), name, TTL_MS)
    said = {"run_ms": RUN_MS, "hold_ms": 2, "counter": str(counter), "wait_ms": 20_000}
    options = {"yield_every": BURST, "yield_for": library.window_s}
    half = {**said, "threads": MEMBERS // 2, "options": options}
    running = [side.begin("crowd", owner="crowd", **half) for side in (ours, others)]
    if library.sleep_ms:
        said |= {"wait_ms": -1, "ttl_ms": library.sleep_ms}
    crowd = theirs.begin("crowd", owner="crowd", threads=MEMBERS, **said)
    counts = []
    for pending in running:
        reply = pending.get(120)
        assert not reply.error, reply
        counts += reply.value
    reply = crowd.get(120)
    assert not reply.error, reply
    done = f"{sum(reply.value)} to {sum(counts)}"
    figure(f"{library.name} to ours, yield_every {BURST}: {done}")
    assert int(counter.read_text()) == sum(counts) + sum(reply.value)
    assert min(counts) > 0
    assert sum(reply.value) >= sum(counts) / (4 * BURST), reply.value


# Turns: how many more depends on the machine.
FEW = 3
LONG_MS = 12_000


def test_each_has_turns_by_itself(
    processes: Farm,
    one_server: Server,
    name: str,
    library: Library,
    counter: Path,
    figure: Callable[[str], None],
) -> None:
    """Goal: a library that polls for a lock that ours hand on has turns without an option, once one
    of ours has seen it hold the lock.
    Method: eight of theirs and eight of ours in two processes, behind one of theirs; to one that
    sleeps for longer than a window ours give longer ones."""
    theirs, ours = sides_of(processes, one_server, name, library)
    other = processes.new_peer("python")
    opened = {"kind": "redlatch", "url": one_server.url, "namespace": library.namespace}
    others = Side(other, processes.client(other, **opened), name, TTL_MS)
    said = {"run_ms": LONG_MS, "hold_ms": 2, "counter": str(counter), "wait_ms": 40_000}
    half = {**said, "threads": MEMBERS // 2}
    if library.sleep_ms:
        half["options"] = {"yield_for": library.window_s}
        said |= {"wait_ms": -1, "ttl_ms": library.sleep_ms}
    turns = [0, 0, 0]
    for _ in range(3):  # a busy machine lets them try less often
        crowd = {**said, "threads": MEMBERS}
        # Waiters of one mutex share one place of their client.
        counts = compete(theirs, [ours, others], crowd, half, queued=2)
        turns = [one + more for one, more in zip(turns, counts, strict=True)]
        assert int(counter.read_text()) == sum(turns)
        if min(turns) >= FEW:
            break
    figure(f"{library.name} to ours, by itself: {turns[-1]} to {sum(turns[:-1])}")
    assert min(turns) >= FEW
