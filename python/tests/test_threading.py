# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what works with the locks of threading works with these.

Method: one server, and threads that `threading` did not start.
"""

from __future__ import annotations

import _thread
import asyncio
import gc
import math
import threading
from collections.abc import Callable

import pytest
import redlatch
from redlatch.testing import assert_free
from support.wait import LIMIT, wait_until

from .test_lock import in_thread


# ---- threads that `threading` did not start ------------------------------------------------------


def foreign(body: Callable[[], object]) -> object:
    """As in_thread(), in a thread that `threading` knows nothing of."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(body())
        except Exception as error:
            results.append(error)

    _thread.start_new_thread(run, ())
    wait_until(lambda: results)
    return results[0]


def test_no_thread_object_is_made_for_a_foreign_thread(client: redlatch.Client) -> None:
    lock, rlock, rwlock = client.lock("a"), client.rlock("b"), client.rwlock("c")

    def use() -> list[threading.Thread]:
        with lock, rlock, rlock, rwlock.read(), rwlock.read():
            assert lock.locked() and rlock.locked() and repr(rlock) != ""
        lock.acquire(timeout=LIMIT)
        lock.release()
        rlock.acquire()
        rlock.release()
        lease = client.acquire("d")
        assert lease is not None and not lease.wait_lost(timeout=0.001)
        lease.release()
        return [one for one in threading.enumerate() if isinstance(one, threading._DummyThread)]

    for _ in range(3):
        assert foreign(use) == []


def test_a_foreign_thread_that_runs_keeps_what_it_has(client: redlatch.Client) -> None:
    lock = client.rlock("x")
    may_end = threading.Event()
    got: list[object] = []

    def hold() -> None:
        got.append(lock.acquire() is not None)
        may_end.wait(LIMIT)
        lock.release()
        got.append("released")

    _thread.start_new_thread(hold, ())
    wait_until(lambda: got)
    for _ in range(3):
        gc.collect()
        assert lock.acquire(timeout=0) is None and lock.locked()
    may_end.set()
    wait_until(lambda: got == [True, "released"])
    assert_free(client, "x")


# ---- timeouts ------------------------------------------------------------------------------------


def test_a_timeout_above_the_limit_is_an_overflow_error(client: redlatch.Client) -> None:
    said = r"timeout must be .* 0 to 9223372036 seconds \(got "
    for lock in (client.lock("x"), client.rlock("y"), client.aio.lock("z"), client.aio.rlock("z")):
        for timeout in (threading.TIMEOUT_MAX + 1, 1e100, 10**30, math.inf):
            with pytest.raises(OverflowError, match=said):
                got = lock.acquire(timeout=timeout)
                asyncio.run(got)  # type: ignore[arg-type]
            with pytest.raises(ValueError):
                asyncio.run(lock.acquire(False, timeout))  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            asyncio.run(lock.acquire(timeout="5"))  # type: ignore[arg-type]
    lock, rlock = client.lock("x"), client.rlock("y")
    assert lock.acquire(timeout=threading.TIMEOUT_MAX) and rlock.acquire(True, 9e9)
    assert in_thread(lambda: lock.acquire(timeout=0.02)) is False
    lock.release()
    rlock.release()
    # What threading has no counterpart of has no limit then.
    for seconds in (threading.TIMEOUT_MAX + 1, 1e100, math.inf):
        with client.lock("x", timeout=seconds) as lease:
            assert not lease.lost
        second = client.acquire("x", timeout=seconds)
        assert second is not None
        second.release()
