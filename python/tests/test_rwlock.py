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
from collections.abc import Callable, Iterator

import pytest
import redlatch
from redlatch.testing import assert_free, expire, steal
from support.wait import wait_until

from .conftest import Starter
from .test_fork import PREPARE, run
from .test_lock import in_thread


def waiting(client: redlatch.Client, *modes: str) -> redlatch.LockInfo:
    """The lock, as soon as these wait for it, in this order."""
    wait_until(lambda: tuple(w.mode for w in client.inspect("report").waiters) == modes)
    return client.inspect("report")


class Waiter:
    """A call in a thread of its own."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._results: list[object] = []
        self._thread = threading.Thread(target=lambda: self._results.append(in_thread(call)))
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return bool(self._results)

    def result(self) -> object:
        self._thread.join()
        return self._results[0]

    def lease(self) -> redlatch.Lease:
        lease = self.result()
        assert isinstance(lease, redlatch.Lease), lease
        return lease


def read_of(client: redlatch.Client) -> redlatch.Lease:
    lease = client.rwlock("report").acquire_read(timeout=30)
    assert lease is not None
    return lease


def write_of(client: redlatch.Client) -> redlatch.Lease:
    lease = client.rwlock("report").acquire_write(timeout=30)
    assert lease is not None
    return lease


# ---- blocks --------------------------------------------------------------------------------------


def test_readers_are_together_and_a_writer_alone(
    client: redlatch.Client, other: redlatch.Client
) -> None:
    lock, theirs = client.rwlock("report"), other.rwlock("report")
    assert lock.name == "report" and not lock.locked()
    with lock.write(ttl=30, timeout=5) as writer:
        assert isinstance(writer, redlatch.Lease) and writer.mode == "write"
        assert 25 < writer.remaining <= 30 and writer.hold_count == 1
        assert theirs.acquire_read(timeout=0) is None and theirs.locked()
        assert theirs.acquire_write(timeout=0.2) is None
        assert theirs.acquire_read(timeout=0.2) is None
        with pytest.raises(redlatch.NotAcquired, match="'report'.*0.2 s") as caught:
            theirs.read(timeout=0.2).__enter__()
        assert caught.value.status is redlatch.Status.TIMEOUT
    with lock.read() as reader, theirs.read(timeout=0) as second:
        assert reader.mode == second.mode == "read" and reader.token != second.token
        assert reader.fence > writer.fence
        assert theirs.acquire_write(timeout=0) is None
        with pytest.raises(redlatch.NotAcquired) as caught:
            theirs.write(timeout=0).__enter__()
        assert caught.value.status is redlatch.Status.BUSY
    with theirs.write(timeout=0) as later:
        assert later.fence > reader.fence
    assert_free(client, "report")


def test_reader_waits_behind_a_writer(client: redlatch.Client, other: redlatch.Client) -> None:
    reader = read_of(client)
    writer = Waiter(lambda: write_of(other))
    waiting(client, "write")
    readers = [Waiter(lambda: read_of(client))]
    waiting(client, "write", "read")
    readers.append(Waiter(lambda: read_of(other)))
    assert waiting(client, "write", "read", "read").waiting == 3
    assert client.rwlock("report").acquire_read(timeout=0) is None
    reader.release()
    written = writer.lease()
    waiting(client, "read", "read")
    written.release()
    leases = [one.lease() for one in readers]
    assert client.inspect("report").hold_count == 2
    assert all(lease.release() for lease in leases)
    assert_free(client, "report")


def test_threads_share_a_side(client: redlatch.Client) -> None:
    lock = client.rwlock("report")
    reading, writing = lock.read(), lock.write()
    inside: list[str] = []
    seen: list[set[str]] = []
    barrier = threading.Barrier(4)

    def work() -> None:
        with reading:
            barrier.wait(30)  # All of them are in at a time.
        for _ in range(10):
            with reading:
                inside.append("r")
                seen.append(set(inside))
                inside.remove("r")
            with writing:
                inside.append("w")
                seen.append(set(inside))
                inside.remove("w")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 80 and {"r", "w"} not in seen
    assert not reading._holds and not writing._holds


def test_blocks_of_a_side_end_by_themselves(client: redlatch.Client) -> None:
    side = client.rwlock("report").read()
    is_in, may_end = threading.Event(), threading.Event()
    seen: list[bool] = []

    def block() -> None:
        with side as lease:
            is_in.set()
            may_end.wait()
            seen.append(lease.held)

    with side as outer, side as inner:
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


def test_exception_of_the_body_wins(client: redlatch.Client) -> None:
    for side in (client.rwlock("report").read(), client.rwlock("report").write()):
        with pytest.raises(ZeroDivisionError) as caught:
            with side:
                expire(client, "report")
                _ = 1 / 0
        (note,) = getattr(caught.value, "__notes__")
        assert note.startswith("redlatch: ")


def test_loss_is_told_to_all_readers(client: redlatch.Client, other: redlatch.Client) -> None:
    second = read_of(other)
    with pytest.raises(redlatch.LockLost):
        with client.rwlock("report").read() as first:
            thief = steal(client, "report")
            assert first.lost and second.lost
    with pytest.raises(redlatch.LockLost):
        second.release()
    thief.release()


# ---- who would wait for himself ------------------------------------------------------------------


def test_thread_in_a_block_may_read_again(client: redlatch.Client, other: redlatch.Client) -> None:
    lock = client.rwlock("report")
    with lock.read():
        writer = Waiter(lambda: write_of(other))
        waiting(client, "write")
        # Behind the writer, who waits for this thread, it would wait for ever.
        with lock.read(timeout=30) as inner:
            assert inner.mode == "read" and not writer.is_over
    writer.lease().release()


def test_thread_in_a_block_is_told_of_misuse(client: redlatch.Client) -> None:
    lock = client.rwlock("report")
    with lock.read():
        with pytest.raises(redlatch.AlreadyHeld, match="'report'.*reads already: upgrade"):
            lock.write().__enter__()
        # What does not wait cannot wait for itself.
        with pytest.raises(redlatch.NotAcquired) as caught:
            lock.write(timeout=0).__enter__()
        assert caught.value.status is redlatch.Status.BUSY
        # Another object is another owner, and so is another thread.
        with client.rwlock("report").read(timeout=0):
            pass
        with pytest.raises(redlatch.NotAcquired):
            client.rwlock("report").write(timeout=0.2).__enter__()
        assert isinstance(in_thread(lock.write(timeout=0.2).__enter__), redlatch.NotAcquired)
    with lock.write():
        for side, said in ((lock.write(), "not reentrant"), (lock.read(), "downgrade")):
            with pytest.raises(redlatch.AlreadyHeld, match=said):
                side.__enter__()
    with lock.write(timeout=0):
        pass


def test_leases_are_of_nobody(client: redlatch.Client) -> None:
    lock = client.rwlock("report")
    first, second = lock.acquire_read(), lock.acquire_read(timeout=0)
    assert first is not None and second is not None
    # It may wait: another thread may release what this one has taken.
    writer = Waiter(lambda: lock.acquire_write(timeout=30))
    waiting(client, "write")
    in_thread(first.release)
    in_thread(second.release)
    writer.lease().release()


def test_named_owner_is_told_of_misuse(client: redlatch.Client, other: redlatch.Client) -> None:
    lock = client.rwlock("report", owner="job")
    reader = lock.acquire_read()
    assert reader is not None
    writer = Waiter(lambda: write_of(other))
    waiting(client, "write")
    again = in_thread(lambda: client.rwlock("report", owner=b"job").acquire_read(timeout=0))
    assert isinstance(again, redlatch.Lease) and again.mode == "read"
    for timeout in (0, 0.2, -1):
        with pytest.raises(redlatch.AlreadyHeld, match="reads already"):
            lock.acquire_write(timeout=timeout)
        with pytest.raises(redlatch.AlreadyHeld, match="reads already"):
            lock.write(timeout=timeout).__enter__()
    assert client.rwlock("report", owner="other job").acquire_write(timeout=0) is None
    again.release()
    reader.release()
    writer.lease().release()


# ---- up and down ---------------------------------------------------------------------------------


def test_only_reader_is_upgraded_at_once(client: redlatch.Client, other: redlatch.Client) -> None:
    with client.rwlock("report").read() as lease:
        fence = lease.fence
        assert lease.upgrade(timeout=0) is True
        assert lease.mode == "write" and lease.fence > fence
        assert lease.upgrade() is True  # It writes already.
        assert other.rwlock("report").acquire_read(timeout=0) is None
        lease.downgrade()
        assert lease.mode == "read"
        with other.rwlock("report").read(timeout=0) as second:
            assert lease.upgrade(timeout=0) is False
            assert lease.upgrade(timeout=0.2) is False
            assert lease.mode == "read" and second.held
            lease.check()
    assert_free(client, "report")


def test_upgrade_waits_for_the_other_readers(
    client: redlatch.Client, other: redlatch.Client
) -> None:
    first, second = read_of(client), read_of(other)
    upgrading = Waiter(lambda: first.upgrade(timeout=30))
    info = waiting(other, "upgrade")
    assert info.waiters[0].token == first.token and first.mode == "read"
    with pytest.raises(redlatch.Deadlock) as caught:
        second.upgrade()
    assert caught.value.status is redlatch.Status.E_DEADLOCK
    assert isinstance(caught.value, redlatch.Error) and second.held and not upgrading.is_over
    second.release()
    assert upgrading.result() is True and first.mode == "write"
    reading = Waiter(lambda: read_of(other))
    waiting(other, "read")
    first.downgrade()
    assert reading.lease().fence > 0
    reading.lease().release()
    first.release()
    assert_free(client, "report")


def test_what_ended_goes_neither_up_nor_down(client: redlatch.Client) -> None:
    lease = read_of(client)
    expire(client, "report")
    for call in (lease.upgrade, lease.downgrade):
        with pytest.raises(redlatch.LockLost):
            call()
    lease = read_of(client)
    lease.release()
    for call in (lease.upgrade, lease.downgrade):
        with pytest.raises(redlatch.NotHeld):
            call()
    lease = read_of(client)
    with pytest.raises(redlatch.Invalid, match="timeout=-3"):
        lease.upgrade(timeout=-3)
    lease.release()


def test_write_lock_is_a_mutex(client: redlatch.Client, other: redlatch.Client) -> None:
    lock = other.rwlock("report")
    with client.lock("report") as lease:
        assert lock.acquire_read(timeout=0) is None and lock.acquire_write(timeout=0) is None
        lease.downgrade()
        assert lease.mode == "read"
        with lock.read(timeout=0):
            pass
    with lock.write():
        assert client.acquire("report", timeout=0) is None
    with client.rlock("report") as hold:
        with pytest.raises(redlatch.Invalid):
            hold.downgrade()


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
    mine = write_of(client) if mode == "read" else read_of(client)
    waiter = script(WAIT % (lease, call))
    assert waiter.read() == "begun"
    waiting(client, mode)
    waiter.process.send_signal(signal.SIGINT)
    assert waiter.read() == "interrupted"
    # Who was to be upgraded reads on.
    assert waiter.read() == ("read" if mode == "upgrade" else "None")
    waiting(client)
    if mode == "upgrade":
        assert read_of(client).release()
    waiter.write("")
    assert waiter.end() == ("", "")
    mine.release()


def test_forked_child_is_a_reader_of_its_own(client: redlatch.Client, script: Starter) -> None:
    program = script(
        PREPARE
        + """
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
print("well")
"""
    )
    assert run(program) == "well\n"
    assert_free(client, "report")


def test_detached_reader_goes_on_elsewhere(
    client: redlatch.Client, other: redlatch.Client
) -> None:
    second = read_of(client)
    attached = other.attach("report", read_of(client).detach())
    assert attached.mode == "read" and attached.held
    second.release()
    assert attached.upgrade(timeout=0) is True
    attached.release()
    assert_free(client, "report")


# ---- operations ----------------------------------------------------------------------------------


def test_inspection_shows_modes(client: redlatch.Client, other: redlatch.Client) -> None:
    readers = [read_of(client), read_of(other)]
    writer = Waiter(lambda: write_of(client))
    waiting(client, "write")
    info = other.inspect("report")
    assert info.state is redlatch.LockState.HELD and info.mode == "read" and info.owner == ""
    assert info.hold_count == 2 and {h.token for h in info.holders} == {r.token for r in readers}
    for holder in info.holders:
        assert holder.mode == "read"
        assert holder.remaining is not None and 25 < holder.remaining <= 30
    assert [row.mode for row in info.waiters] == ["write"] and info.waiting == 1
    for reader in readers:
        reader.release()
    lease = writer.lease()
    info = other.inspect("report")
    assert info.mode == "write" and info.hold_count == 1
    assert [(h.mode, h.token) for h in info.holders] == [("write", lease.token)]
    lease.release()
    info = other.inspect("report")
    assert info.mode is None and info.hold_count == 0


def test_options_are_those_of_each_side(client: redlatch.Client) -> None:
    lock = client.rwlock("report")
    for side in (lock.read(ttl=5, renew=False), lock.write(ttl=5)):
        for _ in range(2):
            with side as lease:
                assert 2 < lease.remaining <= 5
    for call in (lock.acquire_read, lock.acquire_write):
        taken = call(ttl=5, timeout=0)
        assert taken is not None and 2 < taken.remaining <= 5
        taken.release()
    with client.rwlock("report", owner="job").read(ttl=5) as lease:
        assert 2 < lease.remaining <= 5


def test_bad_argument_is_named(client: redlatch.Client) -> None:
    lock = client.rwlock("report")
    for call in (lock.read, lock.write, lock.acquire_read, lock.acquire_write):
        with pytest.raises(redlatch.Invalid, match="ttl=0: allowed are 0.01 to 604800"):
            call(ttl=0)
        with pytest.raises(redlatch.Invalid, match="timeout=-3"):
            call(timeout=-3)
        with pytest.raises(TypeError, match="blocking_timeout"):
            call(blocking_timeout=5)  # type: ignore[call-arg]
    with pytest.raises(redlatch.Invalid, match="owner of 257 bytes: allowed are 1 to 256"):
        client.rwlock("report", owner="x" * 257)
    with pytest.raises(redlatch.Invalid, match="name"):
        client.rwlock("").acquire_read()


def test_what_a_repr_shows(client: redlatch.Client) -> None:
    lock = client.rwlock("report")
    assert repr(lock) == "<RWLock 'report'>"
    side = lock.read()
    assert repr(side).startswith("<unlocked redlatch.RWSide object 'report' not held here at 0x")
    with side as lease:
        shown = f"'report' held to read fence={lease.fence} remaining=2"
        assert repr(side).startswith(f"<locked redlatch.RWSide object {shown}")
        assert repr(lease).startswith(f"<Lease {shown}")
        assert side.locked() and lock.locked()


def test_format_of_redisson(client: redlatch.Client, other: redlatch.Client) -> None:
    lock = client.rwlock("report", format="hash-rw")
    theirs = other.rwlock("report", format="hash-rw")
    with lock.read(ttl=5) as lease, theirs.read():
        info = other.inspect("report")
        assert (info.type, info.mode, info.owner, len(info.holders)) == ("hash", "read", "", 2)
        assert client.lock("report", format="hash-rw").acquire(timeout=0) is False
        assert theirs.acquire_write(timeout=0) is None
        assert client.rwlock("report").acquire_read(timeout=0) is None
        assert client.rlock("report").acquire(timeout=0) is None
        assert lease.upgrade(timeout=0) is False
    with theirs.write() as lease:
        assert client.acquire("report", timeout=0, format="hash-rw") is None
        assert lock.acquire_read(timeout=0) is None
        lease.downgrade()
        with lock.read(timeout=0):
            assert lease.mode == other.inspect("report").mode == "read"
    with client.lock("report", format="hash-rw") as lease:
        assert theirs.acquire_read(timeout=0) is None
    stolen = lock.acquire_write()
    assert stolen is not None
    steal(other, "report").release()
    with pytest.raises(redlatch.LockLost):
        stolen.release()
    with pytest.raises(redlatch.Invalid, match='format=\'hash\': allowed are "string", "hash-rw"'):
        client.rwlock("report", format="hash")  # type: ignore[arg-type]
    with pytest.raises(redlatch.Invalid, match="at most 30000"):
        lock.acquire_read(ttl=31)
