# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: type checkers know what semaphores and several names take and give, as it is when it runs.

Method: programs of a user, which mypy checks strictly and the tests run. A comment that ignores an
error is itself one if there is none: so nothing here is Any by accident.
"""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Optional

import pytest
import redlatch


def test_semaphores(client: redlatch.Client) -> None:
    pool: redlatch.Semaphore = client.semaphore("pool", 3, ttl=20, timeout=1)
    with pool as lease:
        permits: int = lease.permits
        text: str = lease.permits  # type: ignore[assignment]
    got: Optional[redlatch.Lease] = pool.acquire(2, timeout=0)
    sure: redlatch.Lease = pool.acquire(1, blocking=False)  # type: ignore[assignment]
    stats: redlatch.SemaphoreStats = pool.stats()
    cap: int = stats.cap  # type: ignore[assignment]
    assert got is not None and sure and permits == 1 and text
    assert stats.used == 3 and cap is None
    taken: redlatch.Lease = pool.attach(got.detach(), 2, fence=got.fence)
    assert taken.release() and sure.release()


def test_wrong_calls_of_semaphores(client: redlatch.Client) -> None:
    with pytest.raises(redlatch.Invalid):
        client.semaphore("pool", "3").acquire()  # type: ignore[arg-type]
    with pytest.raises(redlatch.Invalid):
        client.semaphore("pool", 3).acquire("2")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        client.semaphore("pool")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        client.semaphore("pool", 3, owner="me")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        client.semaphore("pool", 3).release()  # type: ignore[attr-defined]


def test_several_names(client: redlatch.Client) -> None:
    both: redlatch.Locks = client.lock_all(["a", ("b", "read"), (b"c", "write")], ttl=20)
    names: list[str] = both.names
    with both as lease:
        fences: dict[str, int] = lease.fences
        text: str = lease.fences["a"]  # type: ignore[assignment]
    assert list(fences) == names == ["a", "b", "c"] and text
    path: redlatch.Locks = client.lock_path("a/b")
    got: Optional[redlatch.Lease] = path.acquire(timeout=0)
    sure: redlatch.Lease = both.acquire(blocking=False)  # type: ignore[assignment]
    assert got is not None and sure is None and got.release()


def test_wrong_calls_of_several_names(client: redlatch.Client) -> None:
    with pytest.raises(redlatch.Invalid):
        client.lock_all([("a", "w")])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        client.lock_all(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        client.lock_all(["a"], permits=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        client.lock_path(["a", "b"])  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        client.lock_all(["a"]).release()  # type: ignore[attr-defined]


def test_jobs(client: redlatch.Client) -> None:
    @client.once("report:{day}", every=timedelta(hours=1), key="{day}", ttl=20, label="it")
    def report(day: str, shift: int = 1) -> int:
        return shift

    got: Optional[int] = report("mon", shift=2)
    sure: int = report("mon")  # type: ignore[assignment]
    assert got == 2 and not sure
    with pytest.raises(TypeError):
        report(shift=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        client.once("report")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        client.once("report", every=60, owner="me")  # type: ignore[call-arg]
    client.once_forget("report:mon")
    report(1)  # type: ignore[arg-type]


def test_jobs_for_tasks(client: redlatch.Client) -> None:
    @client.aio.once("report", every=60, tries=1, skip_if_busy=True, on_lost="cancel")
    async def report(day: str) -> str:
        return day

    async def main() -> None:
        got: Optional[str] = await report("mon")
        sure: str = await report("mon")  # type: ignore[assignment]
        assert got == "mon" and not sure
        with pytest.raises(TypeError):
            await report(day="mon", night=1)  # type: ignore[call-arg]
        await client.aio.once_forget("report")

    asyncio.run(main())

    def now() -> None: ...

    with pytest.raises(TypeError):
        client.aio.once("report", every=60)(now)  # type: ignore[arg-type]


def test_flights(client: redlatch.Client) -> None:
    value: bytes = client.single_flight("price", timedelta(hours=1), lambda: b"one", timeout=1)
    text: str = client.single_flight(b"price", 60, lambda: b"two")  # type: ignore[assignment]
    assert value == text == b"one"  # type: ignore[comparison-overlap]
    with pytest.raises(redlatch.Invalid):
        client.single_flight("text", 60, lambda: "one")  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError):
        client.single_flight("price", 60)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        client.single_flight("price", 60, lambda: b"", owner="me")  # type: ignore[call-arg]

    async def later() -> bytes:
        return b"two"

    async def main() -> None:
        value: bytes = await client.aio.single_flight("later", 60, later, lease_ttl=20, label="it")
        text: str = await client.aio.single_flight("price", 60, later)  # type: ignore[assignment]
        assert value == b"two" and text
        fly = client.aio.single_flight
        with pytest.raises(TypeError):
            await fly("x", 60, lambda: b"")  # type: ignore[arg-type, return-value]

    asyncio.run(main())
    error = redlatch.SingleFlightError("no", redlatch.Status.OK)
    error.type, error.text = "Refused", "no"
    number: int = error.type  # type: ignore[assignment]
    assert number


def test_elections(client: redlatch.Client) -> None:
    election: redlatch.Election = client.election("report", "a", ttl=20, label="it")
    with election.term(timeout=1) as term:
        leads: bool = term.is_leader()
        number: int = term.term
        text: str = term.fence  # type: ignore[assignment]
        again: redlatch.Term = term
        lease: redlatch.Lease = term
        leader: Optional[redlatch.Leader] = client.leader("report")
        sure: redlatch.Leader = election.leader()  # type: ignore[assignment]
        assert leads and number == text and again is lease  # type: ignore[comparison-overlap]
        assert leader == sure and sure.id == "a" and sure.since is not None
        ids: list[str] = election.participants()
        assert ids == ["a"]
    for seen in client.observe("report"):
        none: redlatch.Leader = seen  # type: ignore[assignment]
        assert none is None
        break
    with pytest.raises(TypeError):
        client.election("report", owner="me")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        election.release()  # type: ignore[attr-defined]


def test_elections_for_tasks(client: redlatch.Client) -> None:
    async def main() -> None:
        election: redlatch.AsyncElection = client.aio.election("report", on_lost="ignore")
        async with election.term() as term:
            leads: bool = term.is_leader()
            again: redlatch.AsyncTerm = term
            text: str = term.term  # type: ignore[assignment]
            async for leader in client.aio.observe("report"):
                sure: redlatch.Leader = leader  # type: ignore[assignment]
                assert leads and again and sure.term == text  # type: ignore[comparison-overlap]
                break
            await term.resign()
        seen: Optional[redlatch.Leader] = await client.aio.leader("report")
        ids: list[str] = await election.participants()
        assert seen is None and ids == []

    asyncio.run(main())


def test_recalls(client: redlatch.Client) -> None:
    with client.lock("report") as lease, client.election("e").term() as term:
        for one in (lease, term):
            one.on_recall(lambda: print())
            one.on_recall(threading.Event().set)
            count: int = one.recall_count
            reason: str = one.recall_reason
            assert count == 0 and reason == ""
        with pytest.raises(TypeError):
            lease.on_recall("stop")  # type: ignore[arg-type]
        heard: int = client.recall("report", "now")
        text: str = client.resign("e")  # type: ignore[assignment]
        assert heard == text == 1  # type: ignore[comparison-overlap]
    with pytest.raises(TypeError):
        client.recall("report", 7)  # type: ignore[arg-type]


def test_recalls_for_tasks(client: redlatch.Client) -> None:
    async def main() -> None:
        async with client.aio.lock("report") as lease:
            lease.on_recall(asyncio.Event().set)
            heard: int = await client.aio.recall("report", b"now")
            none: None = await client.aio.resign("e")  # type: ignore[assignment]
            was: bool = await lease.wait_recalled(1000)
            assert heard == 1 and none == 0 and was

    asyncio.run(main())


def test_twins_for_tasks(client: redlatch.Client) -> None:
    async def main() -> None:
        pool: redlatch.AsyncSemaphore = client.aio.semaphore("pool", 3)
        async with pool as lease, client.aio.lock_all(["a", "b"]) as both:
            number: int = lease.permits
            text: str = both.fences["a"]  # type: ignore[assignment]
            stats: redlatch.SemaphoreStats = await pool.stats()
        assert number == stats.used == 1 and text
        got: Optional[redlatch.AsyncLease] = await client.aio.lock_path("a/b").acquire(timeout=0)
        sure: redlatch.AsyncLease = await pool.acquire(2)  # type: ignore[assignment]
        assert got is not None and await got.release() and await sure.release()

    asyncio.run(main())
