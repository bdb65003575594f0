# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: many read or one writes, in blocks and by leases, and nobody waits for himself in silence.

Method: one server, clients of this process; who waits is seen on the server before anything else
happens.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

import pytest
import redlatch
from redlatch.testing import assert_free
from support.wait import wait_until

from .conftest import Forking, Starter
from .test_lock import in_thread


# ---- blocks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["side", "named owner"])
def test_blocks_of_a_shared_lock_end_by_themselves(client: redlatch.Client, kind: str) -> None:
    shared: redlatch.RWSide | redlatch.RLock
    shared = client.rwlock("report").read()
    if kind == "named owner":
        shared = client.rlock("report", owner="job")
    is_in, may_end = threading.Event(), threading.Event()
    seen: list[bool] = []

    def block() -> None:
        with shared as lease:
            is_in.set()
            may_end.wait()
            seen.append(lease.held)

    with shared as outer, shared as inner:
        thread = threading.Thread(target=block)
        thread.start()
        is_in.wait()
        assert client.inspect("report").hold_count == 3
    assert not outer.held and not inner.held
    # An end without a beginning ends nothing of two who might be meant.
    may_end.set()
    thread.join()
    assert seen == [True]
    assert_free(client, "report")


def test_block_may_end_in_another_thread(client: redlatch.Client) -> None:
    side = client.rwlock("report").read()

    @contextlib.contextmanager
    def guarded() -> Iterator[redlatch.Lease]:
        with side as lease:
            yield lease

    first, second = guarded(), guarded()
    leases = [in_thread(first.__enter__), in_thread(second.__enter__)]
    # Which of the two? Rather none than one that somebody relies on.
    first.__exit__(None, None, None)
    assert [isinstance(one, redlatch.Lease) and one.held for one in leases] == [True, True]
    assert isinstance(leases[0], redlatch.Lease) and leases[0].release()
    second.__exit__(None, None, None)
    assert isinstance(leases[1], redlatch.Lease) and not leases[1].held
    assert_free(client, "report")


# ---- signals, forks, other processes -------------------------------------------------------------

WAIT = """
client = redlatch.connect(url)
lock = client.rwlock("report")
lease = %s
print("begun")
try:
    %s
except KeyboardInterrupt:
    print("interrupted")
print(lease and lease.held and lease.mode)
input()  # What is left behind by this process must not end with it.
"""


@pytest.mark.parametrize(
    ("lease", "call", "mode"),
    [
        ("None", "lock.acquire_write()", "write"),
        ("None", "lock.write().__enter__()", "write"),
        ("None", "(lock.acquire_write(timeout=0), lock.acquire_read())", "read"),
        ("lock.acquire_read()", "lease.upgrade()", "upgrade"),
    ],
)
def test_ctrl_c_ends_a_wait(
    client: redlatch.Client, script: Starter, lease: str, call: str, mode: str
) -> None:
    def waiters() -> list[str]:
        return [waiter.mode for waiter in client.inspect("report").waiters]

    lock = client.rwlock("report")
    with lock.write() if mode == "read" else lock.read():
        waiter = script(WAIT % (lease, call))
        assert waiter.read() == "begun"
        wait_until(lambda: waiters() == [mode])
        waiter.process.send_signal(signal.SIGINT)
        assert waiter.read() == "interrupted"
        # Who was to be upgraded reads on.
        assert waiter.read() == ("read" if mode == "upgrade" else "None")
        wait_until(lambda: not waiters())
        if mode == "upgrade":
            with lock.read(timeout=30):
                pass
        waiter.write("")
        assert waiter.end() == ("", "")


def test_forked_child_is_a_reader_of_its_own(client: redlatch.Client, forking: Forking) -> None:
    forking(
        """
client = redlatch.connect(url)
lock = client.rwlock("report")
side = lock.read()
with side as lease:
    def child():
        for call in (lease.upgrade, lease.downgrade):
            raises(redlatch.Forked, call)
        with side as mine:
            assert client.inspect("report").hold_count == 2
            assert mine.upgrade(timeout=0) is False
        assert lock.acquire_write(timeout=0) is None
        raises(redlatch.NotAcquired, lock.write(timeout=0).__enter__)
    in_child(child)
    lease.check()
    assert client.inspect("report").hold_count == 1
"""
    )
    assert_free(client, "report")


# ---- operations ----------------------------------------------------------------------------------


def test_repr_of_each_state(client: redlatch.Client) -> None:
    lock = client.rwlock("report")
    assert repr(lock) == "<RWLock 'report'>"
    side = lock.read()
    assert repr(side).startswith("<unlocked redlatch.RWSide object 'report' not held here at 0x")
    with side as lease:
        shown = f"'report' held to read fence={lease.fence} remaining=2"
        assert repr(side).startswith(f"<locked redlatch.RWSide object {shown}")
        assert repr(lease).startswith(f"<Lease {shown}")
        assert side.locked() and lock.locked()
