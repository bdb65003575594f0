# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a reentrant lock is what Python's users expect of threading.RLock, on many hosts.

Method: one server, clients of this process; who an owner is, is tried with threads and forks.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

import pytest
import redlatch
from redlatch.testing import assert_free, expire, steal
from support.wait import wait_until

from .conftest import Starter
from .test_fork import PREPARE, run
from .test_lock import in_thread


def waiting(client: redlatch.Client, count: int) -> redlatch.LockInfo:
    wait_until(lambda: client.inspect("report").waiting == count)
    return client.inspect("report")


# ---- nesting -------------------------------------------------------------------------------------


def test_release_says_whether_others_are_left(client: redlatch.Client) -> None:
    lock = client.rlock("report")
    first, second = lock.acquire(), lock.acquire()
    assert first is not None and second is not None
    # In any order: each is a lease of its own.
    assert first.release() is False
    assert second.held and not first.held
    assert second.release() is True
    assert_free(client, "report")
    for lease in (first, second):
        with pytest.raises(redlatch.NotHeld):
            lease.release()
    mutex = client.acquire("report")
    assert mutex is not None and mutex.hold_count == 1 and mutex.mode == "write"
    assert mutex.release() is True


def test_owner_passes_the_queue_and_waiters_wait_for_the_last(
    client: redlatch.Client, other: redlatch.Client
) -> None:
    lock = client.rlock("report")
    got: list[redlatch.Lease | None] = []

    def wait() -> None:
        got.append(other.rlock("report").acquire(timeout=30))

    thread = threading.Thread(target=wait)
    with lock:
        thread.start()
        waiting(client, 1)
        with lock as inner:
            assert inner.hold_count == 2
        assert waiting(client, 1).hold_count == 1 and got == []
    thread.join()
    assert got[0] is not None and got[0].release() is True


# ---- the shape of threading.RLock ----------------------------------------------------------------


def test_release_gives_back_the_latest(client: redlatch.Client) -> None:
    lock = client.rlock("report")
    first, second, third = (lock.acquire() for _ in range(3))
    assert first is not None and second is not None and third is not None
    third.release()  # Through its lease: it is not released again.
    lock.release()
    assert [lease.held for lease in (first, second, third)] == [True, False, False]
    with lock as block:
        lock.release()
        assert not block.held and first.held
        # A block ends nothing but what it began.
        with lock:
            pass
    with lock as outer:
        with lock as inner:
            inner.release()
            with lock:
                pass
        with lock as inner:
            lock.release()
            assert not inner.held
        assert outer.held
    assert first.held and not outer.held
    lock.release()
    assert not lock._holds
    assert_free(client, "report")


def test_threads_share_a_lock(client: redlatch.Client) -> None:
    lock = client.rlock("report")
    inside: list[int] = []
    seen: list[int] = []

    def work() -> None:
        for _ in range(10):
            with lock, lock:
                inside.append(1)
                seen.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 60 and not lock._holds


def test_exception_of_the_body_wins(client: redlatch.Client) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        with client.rlock("report"), client.rlock("report"):
            expire(client, "report")
            _ = 1 / 0
    notes = getattr(caught.value, "__notes__")
    assert len(notes) == 2 and all(note.startswith("redlatch: ") for note in notes)


def test_loss_is_told_of_each_lease(client: redlatch.Client) -> None:
    lock = client.rlock("report")
    outer = lock.acquire()
    assert outer is not None
    with pytest.raises(redlatch.LockLost):
        with lock as inner:
            thief = steal(client, "report")
            assert inner.lost and outer.lost
            # The thief is one whom a reentrant lock keeps out, and who keeps it out.
            assert client.inspect("report").type == "hash"
    with pytest.raises(redlatch.LockLost):
        lock.release()
    thief.release()


def test_block_may_end_in_another_thread(client: redlatch.Client) -> None:
    lock = client.rlock("report")

    @contextlib.contextmanager
    def guarded() -> Iterator[redlatch.Lease]:
        with lock as lease:
            yield lease

    context = guarded()
    lease = in_thread(context.__enter__)
    assert isinstance(lease, redlatch.Lease) and lease.held
    context.__exit__(None, None, None)
    assert not lease.held
    assert_free(client, "report")


# ---- who the owner is ----------------------------------------------------------------------------


def test_what_an_ended_thread_left_is_released_and_told(client: redlatch.Client) -> None:
    lock = client.rlock("report")
    assert in_thread(lambda: lock.acquire() is not None) is True
    assert lock.locked()
    with pytest.warns(ResourceWarning, match="never released: <Lease 'report' held"):
        assert lock.acquire(timeout=0) is None
    second = lock.acquire(timeout=30)
    assert second is not None and second.hold_count == 1
    second.release()


def test_lease_outlives_its_thread(client: redlatch.Client) -> None:
    lock = client.rlock("report")
    lease = in_thread(lock.acquire)
    assert isinstance(lease, redlatch.Lease)
    assert lock.acquire(timeout=0) is None
    lease.check()
    assert lease.release() is True


def test_blocks_of_a_named_owner_end_by_themselves(client: redlatch.Client) -> None:
    lock = client.rlock("report", owner="job")
    is_in, may_end = threading.Event(), threading.Event()
    seen: list[bool] = []

    def block() -> None:
        with lock as lease:
            is_in.set()
            may_end.wait()
            seen.append(lease.held)

    with lock as mine:
        thread = threading.Thread(target=block)
        thread.start()
        is_in.wait()
    assert not mine.held
    may_end.set()
    thread.join()
    assert seen == [True]


def test_forked_child_is_another_owner(client: redlatch.Client, script: Starter) -> None:
    program = script(
        PREPARE
        + """
client = redlatch.connect(url)
lock = client.rlock("report")
named = client.rlock("named", owner="job")
mine = client.rlock("mine")
outer = lock.acquire()
def child():
    assert lock.acquire(timeout=0) is None and client.rlock("report").acquire(timeout=0) is None
    raises(redlatch.Forked, lock.release)
    raises(redlatch.NotHeld, lock.release)
    with mine as first, mine as second:
        assert second.hold_count == 2
        in_child(lambda: client.rlock("report").acquire(timeout=0) is None or 1 / 0)
        in_child(lambda: mine.acquire(timeout=0) is None or 1 / 0)
    with named as lease:
        assert lease.hold_count == 2
    mine.acquire().detach()
with named:
    in_child(child)
# Nor is the parent its child, though it goes on with the same thread.
assert mine.acquire(timeout=0) is None
with lock as inner:
    assert inner.hold_count == 2
outer.check()
lock.release()
print("well")
"""
    )
    assert run(program) == "well\n"
    assert_free(client, "report")


def test_ctrl_c_ends_a_wait(client: redlatch.Client, script: Starter) -> None:
    with client.rlock("report"):
        waiter = script(
            """
client = redlatch.connect(url)
lock = client.rlock("report")
try:
    lock.acquire()
except KeyboardInterrupt:
    print("interrupted")
print(lock.lease, bool(lock._holds))
input()
"""
        )
        waiting(client, 1)
        waiter.process.send_signal(signal.SIGINT)
        assert waiter.read() == "interrupted" and waiter.read() == "None False"
        waiting(client, 0)
        waiter.write("")
    assert waiter.end() == ("", "")


# ---- operations ----------------------------------------------------------------------------------


def test_formats_exclude_each_other(client: redlatch.Client, other: redlatch.Client) -> None:
    with client.rlock("report"):
        assert other.acquire("report", timeout=0) is None
        assert other.acquire("report", timeout=0, format="hash") is None
        assert client.lock("report", format="hash").acquire(timeout=0) is False
    with client.lock("report", format="hash") as lease:
        info = other.inspect("report")
        assert info.type == "hash" and info.owner == lease.token and lease.hold_count == 1
        assert other.rlock("report").acquire(timeout=0) is None
    with client.lock("report", format="string", ttl=5):
        assert other.inspect("report").type == "string" and other.inspect("report").owner == ""
        assert other.rlock("report").acquire(timeout=0) is None


def test_inspection_shows_the_owner(client: redlatch.Client, other: redlatch.Client) -> None:
    info = client.inspect("report")
    assert (info.owner, info.hold_count, info.mode) == ("", 0, None)
    with client.rlock("report") as first, client.rlock("report") as second:
        info = other.inspect("report")
        assert info.state is redlatch.LockState.HELD and info.mode == "write"
        assert info.hold_count == 2 and info.owner != ""
        assert {one.token for one in info.holders} == {first.token, second.token}
        for holder in info.holders:
            assert holder.remaining is not None and 25 < holder.remaining <= 30
            assert holder.mode == "write"
    with other.rlock("report"):
        assert other.inspect("report").owner != info.owner


def test_options_are_those_of_each_acquisition(client: redlatch.Client) -> None:
    lock = client.rlock("report", ttl=5, renew=False)
    for _ in range(2):
        lease = lock.acquire()
        assert lease is not None and 2 < lease.remaining <= 5
        lock.release()
    theirs = in_thread(lock.acquire)
    assert isinstance(theirs, redlatch.Lease) and 2 < theirs.remaining <= 5
    theirs.release()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"owner": ""}, "'owner' must be 1 to 256 bytes .got 0 bytes"),
        ({"owner": "x" * 257}, "'owner' must be 1 to 256 bytes .got 257 bytes"),
        ({"ttl": 0}, "'ttl' must be 10 ms to 7 days"),
        ({"timeout": -3}, "timeout must be -1 .no limit., 0 .one try. or more .got -3"),
    ],
)
def test_bad_argument_is_named(
    client: redlatch.Client, arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(redlatch.Invalid, match=said):
        client.rlock("report", **arguments)  # type: ignore[arg-type]
    with pytest.raises(redlatch.Invalid, match="format' must be auto, string, hash or hash-rw"):
        client.lock("report", format="set")  # type: ignore[arg-type]


def test_wrong_type_is_named(client: redlatch.Client) -> None:
    with pytest.raises(TypeError, match="owner"):
        client.rlock("report", owner=7)  # type: ignore[arg-type]
    for call in (client.rlock, client.lock, client.acquire):
        with pytest.raises(TypeError, match="blocking_timeout"):
            call("report", blocking_timeout=5)  # type: ignore[call-arg]
