# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: Redisson's RReadWriteLock and redlatch in the format hash-rw exclude each other on the same
key, read together, and wake each other.

Method: the real Redisson in a JVM, where each owner is a thread. Leases are far longer than what a
test waits for a release, unless the test is about their end.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.servers import Server
from support.wait import wait_until

from .conftest import TTL_MS, SOON_S, Farm, is_in_soon
from .peer import Peer, Pending, Side
from .test_redisson import (
    KINDS,
    MEMBERS,
    ROUNDS,
    RUN_MS,
    WATCHDOG,
    WATCHDOG_MS,
    error_of,
    theirs_of,
    waits_of_theirs,
)

# That who reads, and may not.
MODES = [("read", "write"), ("write", "read"), ("write", "write")]


class Pair:
    """Both sides of one lock on one server, each with one of its modes."""

    def __init__(self, processes: Farm, server: Server, name: str) -> None:
        self._processes = processes
        self._server = server
        self._name = name

    def theirs(self, kind: str) -> Side:
        return theirs_of(self._processes, self._server, self._name, kind)

    def ours(self, kind: str) -> Side:
        return self._ours(self._processes.peer("python"), kind)

    def _ours(self, peer: Peer, kind: str) -> Side:
        client = self._processes.client(peer, kind="redlatch-rw", url=self._server.url)
        return Side(peer, client, self._name, TTL_MS, kind=kind)

    def in_own_process(self, who: str, kind: str) -> Side:
        """In a process, or a JVM, that can be killed."""
        if who == "ours":
            return self._ours(self._processes.new_peer("python"), kind)
        peer = self._processes.new_peer("java")
        client = self._processes.client(peer, url=self._server.url, watchdog_ms=WATCHDOG_MS)
        return Side(peer, client, self._name, WATCHDOG, kind=kind)

    def of(self, who: str, kind: str) -> Side:
        return self.theirs(kind) if who == "theirs" else self.ours(kind)

    def waits(self, who: str, kind: str, *, owner: str = "waiter") -> Pending:
        """One who waits, and is known to."""
        if who == "theirs":
            return waits_of_theirs(self.theirs(kind), self._server, owner=owner)
        before = self.queued
        pending = self.ours(kind).waits(owner=owner)
        wait_until(lambda: self.queued == before + 1)
        return pending

    def let_in(self, writers: dict[str, Pending], released: float, limit: float = SOON_S) -> None:
        """One of two writers that wait is in soon after the release, and then the other."""
        wait_until(lambda: any(waiting.is_done for waiting in writers.values()))
        first = next(who for who, waiting in writers.items() if waiting.is_done)
        second = other_of(first)
        assert is_in_soon(writers[first], released, limit)
        assert not writers[second].is_done
        released = self.of(first, "write").release(owner="waiter")
        assert is_in_soon(writers[second], released)
        self.of(second, "write").release(owner="waiter")

    @property
    def queued(self) -> int:
        """How many of ours wait."""
        return int(self._server.cmd("ZCARD", f"{{{self._name}}}:rl1:mq"))

    @property
    def reading(self) -> int:
        """How many read, of both, as the key says; -1 if it is gone."""
        return int(self._server.cmd("HLEN", self._name)) - 1

    @property
    def subscribed(self) -> int:
        """How many channels of the lock theirs subscribe to, also late, after a wait has ended."""
        return len(self._server.cmd("PUBSUB", "CHANNELS", f"*{self._name}*"))

    @property
    def keys(self) -> list[bytes]:
        """Keys of the lock except fences and turns. Redisson deletes its unlock latch late."""
        keys = self._server.cmd("KEYS", f"*{self._name}*")
        stays = re.compile(rb":(f|mw)$|^redisson_lock_token:")
        return [key for key in keys if not stays.search(key)]


@pytest.fixture
def both(processes: Farm, one_server: Server, name: str) -> Pair:
    return Pair(processes, one_server, name)


def other_of(who: str) -> str:
    return "ours" if who == "theirs" else "theirs"


sides = pytest.mark.parametrize("who", ["theirs", "ours"])


# ---- exclusion and news --------------------------------------------------------------------------


@sides
@pytest.mark.parametrize(("held", "wanted"), MODES)
def test_each_keeps_the_other_out(
    processes: Farm, server: Server, name: str, who: str, held: str, wanted: str
) -> None:
    """Goal: who writes is alone, who reads keeps writers of the other side out, and after the
    release the other is in soon.
    Method: a try and a waiter of the other side, in both directions; all modes but two readers."""
    both = Pair(processes, server, name)
    holder, other = both.of(who, held), other_of(who)
    assert holder.tries()
    assert not both.of(other, wanted).tries(owner="try")
    waiting = both.waits(other, wanted)
    assert not waiting.is_done
    released = holder.release()
    assert is_in_soon(waiting, released)
    assert not both.of(who, held).tries(owner="try")
    both.of(other, wanted).release(owner="waiter")
    wait_until(lambda: both.keys == [])


def test_each_wakes_the_other(both: Pair, figure: Callable[[str], None]) -> None:
    """Goal: a release is told to the other side, and not found by polling or by the lease's end.
    Method: rounds of all modes in both directions; how late each was, in the median."""
    for held, wanted in MODES:
        late: dict[str, list[float]] = {"theirs": [], "ours": []}
        for _ in range(ROUNDS // 3):
            for who, times in late.items():
                holder, other = both.of(who, held), other_of(who)
                assert holder.tries()
                waiting = both.waits(other, wanted)
                released = holder.release()
                times.append(waiting.get().ended - released)
                # A release of ours beside a subscriber of theirs leaves the next turn to theirs.
                wait_until(lambda: both.subscribed == 0)
                both.of(other, wanted).release(owner="waiter")
        for who, times in late.items():
            assert max(times) < SOON_S, late
            median_ms = statistics.median(times) * 1e3
            said = f"{who} {held}, {other_of(who)} {wanted}"
            figure(f"Redisson {said}: released to granted, median {median_ms:.2f} ms")


def test_readers_of_both_share(both: Pair, server: Server) -> None:
    """Goal: readers of both sides are in together, each with a field in the key, and a writer of
    either gets in after the last of them.
    Method: two of each, also one of theirs twice; releases in turn; two writers that wait."""
    theirs, ours = both.theirs("read"), both.ours("read")
    for owner in ("one", "two"):
        assert theirs.tries(owner=owner)
        assert ours.tries(owner=owner)
    assert theirs.tries(owner="one")
    assert both.reading == 4
    assert theirs.ok("state", owner="one")["hold_count"] == 2
    writers = {who: both.waits(who, "write") for who in ("theirs", "ours")}
    theirs.release(owner="one")
    for left, (side, owner) in enumerate([(ours, "one"), (theirs, "one"), (ours, "two")]):
        assert both.reading == 4 - left
        side.release(owner=owner)
    assert both.reading == 1
    assert not any(waiting.is_done for waiting in writers.values())
    released = theirs.release(owner="two")
    both.let_in(writers, released)
    wait_until(lambda: both.keys == [])


@pytest.mark.parametrize("is_upgrade", [False, True])
def test_a_reader_who_joined_later(both: Pair, is_upgrade: bool) -> None:
    """Goal: who waits for readers of ours to write is in soon after a reader of theirs that came
    to them later, and left last.
    Method: a writer, or a reader that upgrades, who waits for one of ours; theirs; two releases."""
    theirs, ours = both.theirs("read"), both.ours("read")
    assert ours.tries()
    assert ours.tries(owner="waiter")
    if is_upgrade:
        waiting = ours.begin("upgrade", owner="waiter", wait_ms=20_000)
        wait_until(lambda: both.queued == 1)
    else:
        ours.release(owner="waiter")
        waiting = both.waits("ours", "write")
    assert theirs.tries()
    ours.release()
    assert both.reading == 1 + is_upgrade
    released = theirs.release()
    assert is_in_soon(waiting, released)
    both.ours("read" if is_upgrade else "write").release(owner="waiter")
    wait_until(lambda: both.keys == [])


# ---- from one mode to the other ------------------------------------------------------------------


def test_our_upgrade_waits_for_their_readers(both: Pair) -> None:
    """Goal: ours becomes the writer when the last reader of theirs has gone, and not before.
    Method: a try, then a wait, their two releases."""
    theirs, ours = both.theirs("read"), both.ours("read")
    assert ours.tries()
    assert theirs.tries(owner="one")
    assert theirs.tries(owner="two")
    assert ours.ok("upgrade", wait_ms=0) is False
    waiting = ours.begin("upgrade", wait_ms=20_000)
    wait_until(lambda: both.queued == 1)
    theirs.release(owner="one")
    assert both.reading == 2
    assert not waiting.is_done
    released = theirs.release(owner="two")
    assert is_in_soon(waiting, released)
    assert not theirs.tries(owner="one")
    assert error_of(theirs, "release", owner="two") == "IllegalMonitorStateException"
    ours.release()
    wait_until(lambda: both.keys == [])


def test_our_downgrade_lets_their_readers_in(both: Pair) -> None:
    """Goal: their readers, and not their writers, are in soon after our downgrade.
    Method: two readers that wait, a writer that tries."""
    ours = both.ours("write")
    assert ours.tries()
    readers = [both.waits("theirs", "read", owner=owner) for owner in ("one", "two")]
    began = time.monotonic()
    ours.ok("downgrade")
    assert all([is_in_soon(waiting, began) for waiting in readers])
    assert both.reading == 3
    assert not both.theirs("write").tries(owner="try")
    ours.release()
    assert both.reading == 2
    for owner in ("one", "two"):
        both.theirs("read").release(owner=owner)
    wait_until(lambda: both.keys == [])


def test_their_downgrade_lets_our_readers_in(both: Pair) -> None:
    """Goal: our readers are in soon after their downgrade, and while they read, ours cannot write.
    Method: two readers that wait; who reads and writes at once is the writer until then."""
    theirs = both.theirs("write")
    assert theirs.tries()
    readers = [both.waits("ours", "read", owner=owner) for owner in ("one", "two")]
    began = time.monotonic()
    theirs.ok("downgrade")
    assert all([is_in_soon(waiting, began) for waiting in readers])
    assert both.reading == 3
    assert not both.ours("write").tries(owner="try")
    for owner in ("one", "two"):
        both.ours("read").release(owner=owner)
    assert not both.ours("write").tries(owner="try")
    both.theirs("read").release()
    wait_until(lambda: both.keys == [])


def test_thread_that_writes_and_reads_keeps_ours_out(both: Pair) -> None:
    """Goal: a thread of theirs that takes both is a writer to ours, and a reader after its unlock
    of the write lock; a reader that waits is in then.
    Method: tries of ours at each step."""
    writer, reader = both.theirs("write"), both.theirs("read")
    assert writer.tries()
    assert reader.tries()
    assert not both.ours("read").tries()
    waiting = both.waits("ours", "read")
    released = writer.release()
    assert is_in_soon(waiting, released)
    assert not both.ours("write").tries()
    reader.release()
    both.ours("read").release(owner="waiter")
    wait_until(lambda: both.keys == [])


# ---- leases --------------------------------------------------------------------------------------


@sides
@pytest.mark.parametrize("kind", ["read", "write"])
def test_each_renews(both: Pair, who: str, kind: str) -> None:
    """Goal: what is held for longer than its lease stays.
    Method: renewed leases, held for two of them while a writer of the other side waits."""
    holder = both.of(who, kind)
    assert holder.tries(ttl_ms=WATCHDOG if who == "theirs" else WATCHDOG_MS)
    waiting = both.waits(other_of(who), "write")
    time.sleep(2.2 * WATCHDOG_MS / 1000)
    assert not waiting.is_done
    released = holder.release()
    assert is_in_soon(waiting, released)
    both.of(other_of(who), "write").release(owner="waiter")


@sides
def test_readers_renew_beside_each_other(both: Pair, who: str) -> None:
    """Goal: neither's renewal nor release ends what the other reads.
    Method: readers of both with renewed leases, for two of them; one goes, and the other stays
    for two more, with writers of both sides that wait."""
    theirs, ours = both.theirs("read"), both.ours("read")
    assert theirs.tries(ttl_ms=WATCHDOG)
    assert ours.tries(ttl_ms=WATCHDOG_MS)
    writers = {side: both.waits(side, "write") for side in ("theirs", "ours")}
    time.sleep(2.2 * WATCHDOG_MS / 1000)
    assert both.reading == 2
    both.of(other_of(who), "read").release()
    assert both.reading == 1
    time.sleep(2.2 * WATCHDOG_MS / 1000)
    assert not any(waiting.is_done for waiting in writers.values())
    if who == "ours":
        ours.ok("check")
    both.let_in(writers, both.of(who, "read").release())


def test_loss_by_a_shorter_watchdog_is_reported(both: Pair) -> None:
    """Goal: a watchdog that is shorter than our lease, which is not allowed, shortens the key of
    both, so that ours is over with a reader of theirs that dies; ours is told at the next word
    with the server.
    Method: a lease of 30 s beside a renewed one; SIGKILL; a writer of theirs."""
    theirs, ours = both.in_own_process("theirs", "read"), both.ours("read")
    assert theirs.tries()
    assert ours.tries(options={"renew": False})
    time.sleep(WATCHDOG_MS / 1000)
    assert not both.theirs("write").tries(owner="try")
    killed = theirs.peer.kill()
    waiting = both.theirs("write").waits(owner="waiter")
    assert is_in_soon(waiting, killed, WATCHDOG_MS / 1000 + SOON_S)
    assert error_of(ours, "extend") == "LockLost"
    assert error_of(ours, "release") == "LockLost"
    assert both.theirs("write").ok("state", owner="waiter")["is_held"]
    both.theirs("write").release(owner="waiter")


@sides
@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_holder_is_killed(both: Pair, who: str, kind: str) -> None:
    """Goal: what a process held when it was killed is the other's at the end of its lease.
    Method: a process of its own, a renewed lease, a writer that waits, SIGKILL."""
    dead = both.in_own_process(who, kind)
    assert dead.tries(ttl_ms=WATCHDOG if who == "theirs" else WATCHDOG_MS)
    waiting = both.waits(other_of(who), "write")
    time.sleep(1.2 * WATCHDOG_MS / 1000)
    assert not waiting.is_done
    killed = dead.peer.kill()
    assert is_in_soon(waiting, killed, WATCHDOG_MS / 1000 + SOON_S)
    both.of(other_of(who), "write").release(owner="waiter")


@sides
def test_a_reader_is_killed_beside_another(both: Pair, who: str) -> None:
    """Goal: a reader that was killed stands in nobody's way for longer than its lease, and that of
    the other side who reads beside it goes on.
    Method: SIGKILL of one, two leases later the other releases; a writer of each side waits."""
    dead = both.in_own_process(who, "read")
    alive = both.of(other_of(who), "read")
    assert dead.tries(ttl_ms=WATCHDOG if who == "theirs" else WATCHDOG_MS)
    assert alive.tries(ttl_ms=WATCHDOG if who == "ours" else WATCHDOG_MS)
    writers = {side: both.waits(side, "write") for side in ("theirs", "ours")}
    dead.peer.kill()
    time.sleep(2.2 * WATCHDOG_MS / 1000)
    assert not any(waiting.is_done for waiting in writers.values())
    if who == "theirs":
        alive.ok("check")
    # Their watchdog keeps all who read, also the dead: one lease more.
    both.let_in(writers, alive.release(), WATCHDOG_MS / 1000 + SOON_S)


def test_our_upgrade_outlives_a_dead_reader(both: Pair) -> None:
    """Goal: ours becomes the writer when the lease of a reader that was killed is over.
    Method: a JVM of its own, SIGKILL, an upgrade that waits."""
    theirs, ours = both.in_own_process("theirs", "read"), both.ours("read")
    assert theirs.tries()
    assert ours.tries()
    waiting = ours.begin("upgrade", wait_ms=20_000)
    wait_until(lambda: both.queued == 1)
    killed = theirs.peer.kill()
    assert is_in_soon(waiting, killed, WATCHDOG_MS / 1000 + SOON_S)
    assert not both.theirs("read").tries()
    ours.release()
    wait_until(lambda: both.keys == [])


def test_writer_about_to_wait_is_notified(both: Pair, one_server: Server, name: str) -> None:
    """Goal: no writer of theirs sleeps out our lease because it was just about to wait: a `1` is
    given to who waits at that moment, a `0` is kept.
    Method: what a subscriber hears when our writer, and then our last reader, gives back."""
    with one_server.connect(protocol=3) as listener:
        listener.send("SUBSCRIBE", f"redisson_rwlock:{{{name}}}")
        assert listener.push(SOON_S) is not None
        for kind, told in (("write", [b"1", b"0"]), ("read", [b"0"])):
            side = both.ours(kind)
            wait_until(side.tries)
            side.release()
            for expected in told:
                message = listener.push(SOON_S)
                assert message is not None and message[2] == expected, (kind, message)


# ---- whose it is ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["read", "write"])
def test_only_the_holder_releases(both: Pair, kind: str) -> None:
    """Goal: who does not hold it, or has lost it to the other, neither extends nor removes it.
    Method: releases of others; a lease that ends and is taken over; both directions."""
    theirs, ours = both.theirs(kind), both.ours(kind)
    assert ours.tries()
    for wrong in ("read", "write"):
        assert error_of(both.theirs(wrong), "release") == "IllegalMonitorStateException"
    ours.ok("check")
    ours.ok("extend")
    ours.release()

    assert ours.tries(ttl_ms=200, options={"renew": False})
    assert both.theirs("write").waits().get().value is True
    assert error_of(ours, "extend") == "LockLost"
    assert error_of(ours, "release") == "LockLost"
    assert both.theirs("write").ok("state")["is_held"]
    both.theirs("write").release()

    assert theirs.tries(ttl_ms=500)
    assert both.ours("write").waits().get().value is True
    assert error_of(theirs, "release") == "IllegalMonitorStateException"
    both.ours("write").ok("check")
    both.ours("write").ok("extend")
    both.ours("write").release()
    wait_until(lambda: both.keys == [])


def test_force(both: Pair) -> None:
    """Goal: what the other side removes by force is lost, and is told so; who waits is in soon.
    Method: forceUnlock of theirs, force_release of ours, a reader that waits."""
    ours, theirs = both.ours("write"), both.theirs("write")
    assert ours.tries()
    assert theirs.ok("force") is True
    assert error_of(ours, "extend") == "LockLost"
    assert theirs.tries()
    waiting = both.waits("theirs", "read")
    began = time.monotonic()
    ours.ok("force")
    assert is_in_soon(waiting, began)
    assert error_of(theirs, "release") == "IllegalMonitorStateException"
    both.theirs("read").release(owner="waiter")


# ---- beside their other locks --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mutex", "read"])
@pytest.mark.parametrize("theirs_are", KINDS)
def test_their_plain_locks(both: Pair, theirs_are: str, kind: str) -> None:
    """Goal: what Redisson's getLock and its like lock excludes ours of this format, both ways, and
    each is in soon after the other.
    Method: tries and waiters in both directions."""
    theirs, ours = both.theirs(theirs_are), both.ours(kind)
    assert theirs.tries()
    assert not ours.tries()
    waiting = both.waits("ours", kind)
    assert is_in_soon(waiting, theirs.release())
    assert not theirs.tries()
    pending = both.waits("theirs", theirs_are)
    released = ours.release(owner="waiter")
    assert is_in_soon(pending, released)
    assert not ours.tries()
    theirs.release(owner="waiter")
    wait_until(lambda: both.keys == [])


# ---- crowds --------------------------------------------------------------------------------------


def test_a_crowd_of_both(both: Pair, counter: Path, figure: Callable[[str], None]) -> None:
    """Goal: in a crowd of readers and writers of both sides no writer is beside anybody, and who
    waits is in when it thins out. Not before: readers of theirs come in as long as one of them
    reads, so that writers may starve, and our readers behind a writer of ours.
    Method: five readers and five writers of each, three seconds; a file that loses a count when two
    write at once, and that must not change while one reads."""
    said = {"run_ms": RUN_MS, "hold_ms": 2, "counter": str(counter), "threads": MEMBERS // 2}
    running = {
        (who, kind): both.of(who, kind).begin("crowd", owner=kind, wait_ms=TTL_MS, **said)
        for who in ("theirs", "ours")
        for kind in ("read", "write")
    }
    counts = {}
    for key, pending in running.items():
        reply = pending.get(120)
        assert not reply.error, reply
        assert reply.seconds < RUN_MS / 1000 + 2 * SOON_S
        counts[key] = sum(reply.value)
    shown = ", ".join(f"{who} {kind} {count}" for (who, kind), count in counts.items())
    figure(f"Redisson RReadWriteLock and ours: {shown}")
    writes = counts["theirs", "write"] + counts["ours", "write"]
    assert int(counter.read_text()) == writes
    assert min(writes, counts["theirs", "read"]) > 0


def test_a_crowd_of_writers(both: Pair, counter: Path, figure: Callable[[str], None]) -> None:
    """Goal: where all write, the two sides take turns.
    Method: ten of theirs, ten of ours, three seconds, and the file."""
    said = {"run_ms": RUN_MS, "hold_ms": 2, "counter": str(counter), "threads": MEMBERS}
    said["wait_ms"] = 20_000
    running = [both.of(who, "write").begin("crowd", **said) for who in ("theirs", "ours")]
    replies = [pending.get(120) for pending in running]
    assert not any(reply.error for reply in replies), replies
    theirs, ours = (sum(reply.value) for reply in replies)
    figure(f"Redisson writers to ours: {theirs} to {ours}")
    assert int(counter.read_text()) == theirs + ours
    assert min(theirs, ours) >= (theirs + ours) / 64


@pytest.mark.parametrize(("kind", "threads"), [("write", 2), ("read", 3)])
@pytest.mark.parametrize("theirs_are", ["rlock", "fair"])
def test_a_plain_lock_of_theirs_has_its_turns(
    both: Pair,
    theirs_are: str,
    kind: str,
    threads: int,
    counter: Path,
    figure: Callable[[str], None],
) -> None:
    """Goal: getLock and getFairLock of theirs, which need the key free, get it beside writers of
    ours that hand it on, and beside readers of ours that come while others are in.
    Method: two writers or three readers of ours, and two of theirs; three seconds; the file."""
    said = {"run_ms": RUN_MS, "hold_ms": 2, "counter": str(counter), "wait_ms": 20_000}
    ours = both.ours(kind).begin("crowd", owner="crowd", threads=threads, **said)
    theirs = both.theirs(theirs_are).begin("crowd", owner="crowd", threads=2, **said)
    replies = [pending.get(120) for pending in (theirs, ours)]
    assert not any(reply.error for reply in replies), replies
    counts = [sum(reply.value) for reply in replies]
    figure(f"Redisson {theirs_are} to {threads} of ours that {kind}: {counts[0]} to {counts[1]}")
    assert int(counter.read_text()) == counts[0] + (counts[1] if kind == "write" else 0)
    assert min(counts) >= sum(counts) / 64
