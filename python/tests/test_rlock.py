# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a reentrant lock is what Python's users expect of threading.RLock, on many hosts.

Method: one server, clients of this process; who an owner is, is tried with threads and forks.
"""

from __future__ import annotations

import pytest
import redlatch
from redlatch.testing import assert_free, steal

from .conftest import Forking
from .test_lock import in_thread


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


def test_loss_is_reported_by_each_lease(client: redlatch.Client) -> None:
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


# ---- who the owner is ----------------------------------------------------------------------------


def test_lease_of_an_ended_thread_is_released_with_a_warning(client: redlatch.Client) -> None:
    lock = client.rlock("report")
    assert in_thread(lambda: lock.acquire() is not None) is True
    assert lock.locked()
    with pytest.warns(ResourceWarning, match="never released: <Lease 'report' held"):
        assert lock.acquire(timeout=0) is None
    second = lock.acquire(timeout=30)
    assert second is not None and second.hold_count == 1
    second.release()


def test_forked_child_is_another_owner(client: redlatch.Client, forking: Forking) -> None:
    forking(
        """
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
"""
    )
    assert_free(client, "report")
