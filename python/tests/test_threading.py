# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what works with the locks of threading works with these: conditions, threads that
`threading` did not start, the limit of a timeout, and what repr() shows.

Method: one server. The conditions are those of `threading`; other hosts are other clients.
"""

from __future__ import annotations

import _thread
import asyncio
import gc
import math
import re
import signal
import threading
import time
from collections.abc import Callable
from typing import Literal

import pytest
import redlatch
from redlatch.testing import assert_free, assert_locked, expire
from support.servers import Server
from support.wait import LIMIT, wait_until

from .conftest import Starter
from .test_lock import in_thread

AnyLock = redlatch.Lock | redlatch.RLock
Maker = Callable[[redlatch.Client], AnyLock]

KINDS: list[Maker] = [lambda client: client.lock("x"), lambda client: client.rlock("x")]
kinds = pytest.mark.parametrize("make", KINDS, ids=["Lock", "RLock"])


def condition_of(lock: AnyLock) -> threading.Condition:
    return threading.Condition(lock)  # type: ignore[arg-type]


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


def test_foreign_thread_that_ended_is_no_owner_any_more(client: redlatch.Client) -> None:
    # The ident of a thread comes again; what it held must not.
    leases = [foreign(lambda: client.rlock("x").acquire(timeout=0))]
    lock = client.rlock("x")
    for _ in range(20):
        assert foreign(lambda: (lock.acquire(timeout=0), lock._is_owned())) == (None, False)
    assert isinstance(leases[0], redlatch.Lease)
    leases[0].release()


def test_lease_of_an_ended_foreign_thread_is_released(client: redlatch.Client) -> None:
    lock = client.rlock("x")
    assert foreign(lambda: lock.acquire() is not None) is True
    # Its end comes a little after its result.
    wait_until(lambda: all(lock._is_gone(key) for key in lock._holds.held()))
    with pytest.warns(ResourceWarning, match="never released: <Lease 'x' held"):
        lock._sweep()
        gc.collect()
    assert not lock._holds
    second = lock.acquire(timeout=LIMIT)
    assert second is not None and second.hold_count == 1
    second.release()


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


# ---- threading.Condition -------------------------------------------------------------------------


@kinds
def test_wait_gives_the_lock_back_and_takes_it_again(
    client: redlatch.Client, other: redlatch.Client, make: Maker
) -> None:
    lock = make(client)
    condition = condition_of(lock)
    fences: list[int] = []
    ready: list[str] = []

    def wait() -> None:
        with condition as lease:
            assert isinstance(lease, redlatch.Lease)
            fences.append(lease.fence)
            assert condition.wait_for(lambda: ready, timeout=LIMIT) == ["said"]
            assert lock.lease is not None and lock.lease is not lease and not lease.held
            fences.append(lock.lease.fence)
            lock.lease.check()

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: fences)
    # Another host has it while this one waits.
    with make(other) as theirs:
        assert isinstance(theirs, redlatch.Lease)
        fences.append(theirs.fence)
    with condition:
        ready.append("said")
        condition.notify()
        assert thread.is_alive() and len(fences) == 2
    thread.join()
    assert fences == sorted(set(fences)) and len(fences) == 3
    assert_free(client, "x")


def test_wait_gives_every_acquisition_back_and_takes_as_many_again(
    client: redlatch.Client, other: redlatch.Client
) -> None:
    lock = client.rlock("x", timeout=0)
    condition = condition_of(lock)
    waiting, counts = threading.Event(), list[int]()

    def wait() -> None:
        with lock, lock:
            lock.acquire()
            lock.acquire()
            lock.release()
            with lock:
                lock.release()  # A block keeps its own to its end.
                counts.append(client.inspect("x").hold_count)
                waiting.set()
                assert condition.wait(LIMIT)
                counts.append(client.inspect("x").hold_count)
                counts.append(lock._recursion_count())
            counts.append(client.inspect("x").hold_count)
            lock.release()
            counts.append(client.inspect("x").hold_count)
        counts.append(lock._recursion_count())

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait(LIMIT)
    theirs = other.rlock("x").acquire(timeout=LIMIT)
    assert theirs is not None and theirs.hold_count == 1
    theirs.release()
    wait_until(lambda: lock.acquire() is not None)
    condition.notify_all()
    # The lock's own timeout does not limit this wait for it.
    wait_until(lambda: client.inspect("x").waiting == 1)
    lock.release()
    thread.join()
    assert counts == [3, 3, 3, 3, 2, 0]
    assert not lock._holds
    assert_free(client, "x")


@kinds
def test_wait_ends_with_its_timeout_and_has_the_lock(client: redlatch.Client, make: Maker) -> None:
    lock = make(client)
    condition = condition_of(lock)
    with condition:
        began = time.monotonic()
        assert condition.wait(0.05) is False
        assert time.monotonic() - began >= 0.05
        assert lock._is_owned()
        assert condition.wait_for(lambda: False, timeout=0.05) is False
        assert_locked(client, "x")
    assert_free(client, "x")
    lock.acquire()
    assert condition.wait(0) is False
    condition.notify()
    lock.release()
    assert_free(client, "x")


@kinds
def test_condition_is_for_the_thread_that_has_the_lock(
    client: redlatch.Client, other: redlatch.Client, make: Maker
) -> None:
    lock = make(client)
    condition = condition_of(lock)

    def refused() -> None:
        assert not lock._is_owned()
        for call in (condition.wait, condition.notify, condition.notify_all):
            with pytest.raises(RuntimeError, match="un-acquired lock"):
                call()
        with pytest.raises(redlatch.NotHeld):
            lock._release_save()

    refused()
    with make(other):
        refused()
    with lock:
        assert lock._is_owned() and in_thread(lock._is_owned) is False
        assert in_thread(lambda: isinstance(in_thread(condition.notify), RuntimeError)) is True
        assert lock._is_owned()
    refused()


@kinds
def test_64_threads_take_turns_by_a_condition(
    client: redlatch.Client, other: redlatch.Client, make: Maker
) -> None:
    conditions = [condition_of(make(one)) for one in (client, other)]
    turn, seen = [0], list[int]()

    def work(number: int) -> None:
        with conditions[0]:
            assert conditions[0].wait_for(lambda: turn[0] == number, timeout=LIMIT)
            seen.append(number)
            turn[0] += 1
            conditions[0].notify_all()

    def disturb() -> None:
        while turn[0] < 64:
            with conditions[1]:
                conditions[1].wait(0.001)

    threads = [threading.Thread(target=work, args=[63 - number]) for number in range(64)]
    threads.append(threading.Thread(target=disturb))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == list(range(64))
    assert_free(client, "x")


@kinds
def test_a_lost_lock_ends_wait_and_notify(client: redlatch.Client, make: Maker) -> None:
    lock = make(client)
    condition = condition_of(lock)
    with pytest.raises(redlatch.LockLost):
        with condition:
            expire(client, "x")
            for call in (condition.wait, condition.notify, condition.notify_all):
                with pytest.raises(redlatch.LockLost):
                    call()
    assert not condition._waiters  # type: ignore[attr-defined]
    # Lost, and not known to be before the wait gives it back.
    with pytest.raises(redlatch.LockLost):
        with condition:
            client.force_release("x")
            condition.wait(LIMIT)
    lock.acquire()
    client.force_release("x")
    with pytest.raises(redlatch.LockLost):
        condition.wait(LIMIT)
    with pytest.raises(redlatch.NotHeld):
        lock.release()
    with lock:
        assert lock._is_owned()
    assert_free(client, "x")


@kinds
def test_a_wait_that_cannot_take_the_lock_again_raises_and_holds_nothing(
    client: redlatch.Client, other: redlatch.Client, make: Maker
) -> None:
    lock = make(client)
    condition = condition_of(lock)
    ended: list[object] = []

    def wait() -> None:
        with condition:
            ended.append("in")
            try:
                condition.wait()
            except redlatch.Error as error:
                ended.append(error)
            assert not lock._is_owned()
        ended.append("out")

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: ended and client.inspect("x").is_free)
    lock.acquire()
    condition.notify()
    wait_until(lambda: client.inspect("x").waiting == 1)
    client.close()
    thread.join()
    assert isinstance(ended[1], redlatch.Closed) and ended[2] == "out", ended
    wait_until(lambda: other.inspect("x").is_free)


def test_part_of_the_acquisitions_is_given_back_again(client: redlatch.Client) -> None:
    lock = client.rlock("x")
    with lock:
        lock.acquire()
        with lock:
            state = lock._release_save()
            assert_free(client, "x")
            taken = client._take
            calls: list[int] = []

            def fail_at_the_third(_: redlatch.Client, *arguments: object) -> object:
                calls.append(1)
                if len(calls) == 3:
                    raise KeyboardInterrupt
                return taken(*arguments)  # type: ignore[arg-type]

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(redlatch.Client, "_take", fail_at_the_third)
                with pytest.raises(KeyboardInterrupt):
                    lock._acquire_restore(state)
            assert_free(client, "x")
            assert not lock._is_owned()
            with pytest.raises(redlatch.NotHeld):
                lock.release()
            # The blocks of others are not ended by those of this thread.
            theirs = threading.Event(), threading.Event()

            def hold() -> object:
                with lock as lease:
                    theirs[0].set()
                    theirs[1].wait(LIMIT)
                    return lease.held

            results: list[object] = []
            thread = threading.Thread(target=lambda: results.append(hold()))
            thread.start()
            theirs[0].wait(LIMIT)
    assert_locked(client, "x")
    theirs[1].set()
    thread.join()
    assert results == [True] and not lock._holds
    assert_free(client, "x")


@kinds
def test_a_wait_outlives_an_outage(
    server: Server, client: redlatch.Client, make: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    lock = make(client)
    with lock:
        server.stop()
        # Protected to its end, as a block that ends in an outage: the wait begins.
        state = lock._release_save()
        assert "release of 'x'" in caplog.text
        assert not lock._is_owned()
        thread = threading.Thread(target=server.start)
        thread.start()
        lock._acquire_restore(state)
        thread.join()
        assert lock._is_owned()
    assert_free(client, "x")


def test_ctrl_c_ends_the_wait_of_a_condition(client: redlatch.Client, script: Starter) -> None:
    formats: dict[str, Literal["string", "hash"]] = {"lock": "string", "rlock": "hash"}
    for kind, format in formats.items():
        waiter = script(
            f"""
import threading
client = redlatch.connect(url)
lock = client.{kind}("x", timeout=0)
condition = threading.Condition(lock)
try:
    with condition:
        input()
        condition.wait(0.01)
        print("not reached")
except KeyboardInterrupt:
    print("interrupted", lock._is_owned())
input()
with lock:
    print("again")
"""
        )
        wait_until(lambda: not client.inspect("x").is_free)
        got: list[redlatch.Lease | None] = []
        thread = threading.Thread(
            target=lambda: got.append(client.acquire("x", timeout=LIMIT, format=format))
        )
        thread.start()
        wait_until(lambda: client.inspect("x").waiting == 1)
        waiter.write("")
        thread.join()
        assert got[0] is not None
        wait_until(lambda: client.inspect("x").waiting == 1)
        waiter.process.send_signal(signal.SIGINT)
        assert waiter.read() == "interrupted False"
        wait_until(lambda: client.inspect("x").waiting == 0)
        got[0].release()
        waiter.write("")
        assert waiter.end() == ("again\n", "")


# ---- repr() and timeouts -------------------------------------------------------------------------


def test_repr_has_the_shape_of_threading(client: redlatch.Client, other: redlatch.Client) -> None:
    ident = threading.get_ident()
    lock, rlock, named = client.lock("x"), client.rlock("y"), client.rlock("y", owner="job 7")
    free, held = "<unlocked redlatch.{} object '{}' not held here{} at 0x[0-9a-f]+>", (
        "<locked redlatch.{} object '{}' held fence=[0-9]+ remaining=[0-9.]+s{} at 0x[0-9a-f]+>"
    )
    with other.lock("x"):  # Nothing is sent.
        assert re.fullmatch(free.format("Lock", "x", ""), repr(lock))
    assert re.fullmatch(free.format("RLock", "y", " owner=0 count=0"), repr(rlock))
    assert re.fullmatch(free.format("RLock", "y", " owner='job 7' count=0"), repr(named))
    with lock, rlock:
        assert re.fullmatch(held.format("Lock", "x", ""), repr(lock))
        with rlock:
            shown = held.format("RLock", "y", f" owner={ident} count=2")
            assert re.fullmatch(shown, repr(rlock)) and re.fullmatch(shown, str(in_thread(
                lambda: repr(rlock)
            )))
        assert f"owner={ident} count=1 " in repr(rlock)
    with named, named:
        shown = held.format("RLock", "y", " owner='job 7' count=2")
        assert re.fullmatch(shown, repr(named))
    with pytest.raises(redlatch.LockLost), lock as lease:
        expire(client, "x")
        shown = f"<unlocked redlatch.Lock object 'x' lost fence={lease.fence} at "
        assert repr(lock).startswith(shown)
        assert repr(lease) == f"<Lease 'x' lost fence={lease.fence}>"
    assert "unlocked" in repr(lock) and "unlocked" in repr(rlock)


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
