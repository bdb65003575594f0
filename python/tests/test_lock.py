# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: locks and leases are what Python's users expect of `with` and of threading.Lock.

Method: one server, clients of this process; time is never slept away but for what is given up.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest
import redlatch
from redlatch.testing import expire
from support.servers import Server
from support.wait import wait_until


def in_thread(body: Callable[[], object]) -> object:
    """What `body` returns, or raises, in a thread of its own."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(body())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]


# ---- with ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["lock", "rlock"])
def test_block_may_end_in_another_thread(client: redlatch.Client, kind: str) -> None:
    lock = getattr(client, kind)("report")

    @contextlib.contextmanager
    def guarded() -> Iterator[redlatch.Lease]:
        with lock as lease:
            yield lease

    context = guarded()
    lease = in_thread(context.__enter__)
    assert isinstance(lease, redlatch.Lease) and lease.held
    context.__exit__(None, None, None)
    assert not lease.held and client.inspect("report").is_free


# ---- the shape of threading.Lock -----------------------------------------------------------------


def test_late_release_after_a_loss_keeps_the_next_holder(client: redlatch.Client) -> None:
    lock = client.lock("report")
    lock.acquire()
    expire(client, "report")
    assert in_thread(lambda: lock.acquire(timeout=5)) is True
    with pytest.raises(redlatch.LockLost):
        lock.release()
    assert lock.locked()
    lock.release()  # The other thread's, which nobody else would release.


# ---- operations ----------------------------------------------------------------------------------


def test_inspection_is_typed(client: redlatch.Client, other: redlatch.Client) -> None:
    info = client.inspect("report")
    assert info.is_free and info.state is redlatch.LockState.FREE and info.holder is None
    assert info.remaining is None and info.type == "none"
    with client.lock("report", label="nightly") as lease:
        wait_until(lambda: labelled(other.inspect("report")))
        info = other.inspect("report")
        assert info.name == "report" and info.state is redlatch.LockState.HELD
        assert info.holder is not None and info.holder.token == lease.token
        assert info.holder.label == "nightly" and info.holder.who
        assert info.remaining is not None and 25 < info.remaining <= 30
        assert info.holder.since is not None
        assert abs((info.server_time - info.holder.since).total_seconds()) < 60


def labelled(info: redlatch.LockInfo) -> bool:
    return info.holder is not None and info.holder.label != ""


def test_list_is_typed(client: redlatch.Client, other: redlatch.Client) -> None:
    with client.lock("job-0"), client.lock("report"):
        assert {info.name for info in other.list()} == {"job-0", "report"}
        assert all(info.holder is not None for info in other.list(b"job-?"))


def test_names_are_bytes(server: Server, client: redlatch.Client) -> None:
    names: list[tuple[str | bytes, bytes]] = [
        ("orders\0eu", b"orders\0eu"),
        ("\N{LOCK}", "\N{LOCK}".encode()),
        (b"\xff\xfe\x00", b"\xff\xfe\x00"),
        ("caf\udce9", b"caf\xe9"),
    ]
    with server.connect() as connection:
        for name, key in names:
            with client.lock(name) as lease:
                assert connection.cmd("EXISTS", key) == 1
                again = lease.name
                assert client.inspect(again).name == again
                assert client.acquire(again, timeout=0) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": ""}, "name"),
        ({"name": "\ud800"}, "UTF-8"),
        ({"ttl": 0}, r"option 'ttl' must be 10 ms to 7 days \(got 0\)$"),
        ({"ttl": -1}, r"option 'ttl' must be 10 ms to 7 days \(got -1\)$"),
        ({"ttl": float("inf")}, r"option 'ttl' must be 10 ms to 7 days \(got inf\)$"),
        ({"ttl": 10**400}, r"option 'ttl' must be 10 ms to 7 days \(got 1000"),
        ({"ttl": float("nan")}, "ttl must be a number of seconds .got nan"),
        ({"max_hold": -1e-9}, "option 'max_hold' must be 0 or 1 ms to 7 days"),
        ({"max_hold": -1}, "option 'max_hold' must be 0 or 1 ms to 7 days"),
        ({"yield_for": 60.1}, "1 ms to 1 minute"),
        ({"max_local_handoffs": 1 << 80}, "0 to 31"),
        ({"timeout": -3}, "timeout must be -1 .no limit., 0 .one try. or more .got -3"),
    ],
)
def test_bad_argument_is_named(
    client: redlatch.Client, arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        client.acquire(**{"name": "report", **arguments})  # type: ignore[arg-type]
    assert isinstance(caught.value, redlatch.Invalid)
    assert caught.value.status is redlatch.Status.E_INVALID


def test_bad_argument_of_each_kind_is_named(client: redlatch.Client) -> None:
    sides = client.rwlock("report")
    calls: list[Callable[..., object]] = [
        partial(client.lock, "report"),
        partial(client.rlock, "report"),
        *(sides.read, sides.write, sides.acquire_read, sides.acquire_write),
    ]
    for call in calls:
        with pytest.raises(redlatch.Invalid, match="'ttl' must be 10 ms to 7 days"):
            call(ttl=0)
        with pytest.raises(redlatch.Invalid, match=r"timeout must be .* \(got -3\)"):
            call(timeout=-3)
    for made in (client.rlock, client.rwlock):
        for size in (0, 257):
            said = f"'owner' must be 1 to 256 bytes .got {size} bytes"
            with pytest.raises(redlatch.Invalid, match=said):
                made("report", owner="x" * size)
    with pytest.raises(redlatch.Invalid, match="format' must be auto, string, hash or hash-rw"):
        client.lock("report", format="set")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments", [{"name": 7}, {"ttl": "30"}, {"timeout": "5"}, {"ttl": True}, {"label": 3}]
)
def test_wrong_type_is_named(client: redlatch.Client, arguments: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=next(iter(arguments))):
        client.acquire(**{"name": "report", **arguments})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="owner"):
        client.rlock("report", owner=7)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["ttl", "max_hold", "timeout"])
def test_duration_as_text_says_what_is_allowed(client: redlatch.Client, name: str) -> None:
    said = rf"{name} must be a number of seconds, such as 0.5 or 2, or a timedelta \(got '2s'\)$"
    with pytest.raises(TypeError, match=said):
        client.lock("report", **{name: "2s"}).acquire()  # type: ignore[arg-type]


# ---- what is told, and what is left --------------------------------------------------------------


def test_forgotten_lease_is_released_with_a_warning(
    server: Server, client: redlatch.Client
) -> None:
    lease = client.acquire("report")
    assert lease is not None
    with pytest.warns(ResourceWarning, match="never released: <Lease 'report' held"):
        del lease
        gc.collect()
    wait_until(lambda: client.inspect("report").is_free)


def test_lease_outlives_its_client(server: Server, other: redlatch.Client) -> None:
    lease = redlatch.connect(server.url).acquire("report")
    gc.collect()
    assert lease is not None
    lease.check()
    assert other.acquire("report", timeout=0) is None
    lease.release()
    assert other.inspect("report").is_free
