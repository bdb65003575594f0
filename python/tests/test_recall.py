# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: every holder of a lock that is recalled hears it, once and with the reason, for threads and
tasks, and nothing else happens to its lease.

Method: one server, clients of this process and of others, most tests in both worlds (both.py). A
client sends at most one recall a second for a name: where a test needs two, another client sends
the second one. That a callback is not called is seen by a later one of the same thread or loop.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import redlatch
from redlatch.testing import expire

from .both import Both, free, raises, until
from .conftest import Starter
from .test_election import election_of

LEASES = 64
THREAD = "redlatch-recalls"

Lease = redlatch.AsyncLease


class Ears:
    """Notes the reason of each call of on_recall()."""

    def __init__(self, *leases: Lease) -> None:
        self.heard: list[str] = []
        for lease in leases:
            self.listen(lease)

    def listen(self, lease: Lease) -> None:
        lease.on_recall(lambda: self.heard.append(lease.recall_reason))

    async def hear(self, *reasons: str) -> None:
        """Wait for as many calls: these reasons were heard, in any order."""
        await until(lambda: len(self.heard) >= len(reasons))
        assert sorted(self.heard) == sorted(reasons)


async def is_called_at_once(lease: Lease) -> None:
    """Whatever was to be called before has been, then."""
    called: list[None] = []
    lease.on_recall(lambda: called.append(None))
    await until(lambda: bool(called))


@asynccontextmanager
async def sender(both: Both, client: redlatch.Client) -> AsyncIterator[redlatch.Aio]:
    """A client of the same server that has sent no recall."""
    with redlatch.connect(client.option("url")) as client:
        yield both.of(client)


# ---- holders -------------------------------------------------------------------------------------


def test_the_holder_hears_the_reason(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        async with both.of(client).lock("report") as lease:
            ears = Ears(lease)
            assert (lease.recall_count, lease.recall_reason) == (0, "")
            assert await both.of(other).recall("report", "a déploiement") == 1
            await ears.hear("a déploiement")
            assert (lease.recall_count, lease.recall_reason) == (1, "a déploiement")
            lease.check()  # nothing was forced
            assert not free(other)
        assert free(other)

    both.run(main())


def test_its_own_client_may_recall_without_a_reason(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        async with both.of(client).lock("report") as lease:
            ears = Ears(lease)
            assert await both.of(client).recall(b"report") == 1
            await ears.hear("")

    both.run(main())


def test_a_holder_in_another_process_hears_it(client: redlatch.Client, script: Starter) -> None:
    program = script(
        """
import threading
with redlatch.connect(url).lock("report") as lease:
    stop = threading.Event()
    lease.on_recall(stop.set)
    print("holds")
    stop.wait()
    print(lease.recall_reason, lease.recall_count, lease.held)
"""
    )
    assert program.read() == "holds"
    assert client.recall("report", "an upgrade") == 1
    assert program.read() == "an upgrade 1 True"
    assert program.end() == ("", "") and free(client)


def test_without_a_holder_none_hears_it(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        assert await both.of(client).recall("report", "x") == 0
        assert await both.of(client).resign("report") == 0
        assert free(client)

    both.run(main())


def test_a_lease_without_a_callback_counts(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        async with both.of(client).lock("report") as lease:
            assert await both.of(other).recall("report", "x") == 1
            await lease.extend(30)  # the answer of the server comes after the recall
            assert (lease.recall_count, lease.recall_reason) == (1, "x")

    both.run(main())


def test_all_readers_and_all_permits_hear_it(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        ears = Ears()
        async with AsyncExitStack() as stack:
            for one in (client, client, other):
                aio = both.of(one)
                ears.listen(await stack.enter_async_context(aio.rwlock("report").read()))
                ears.listen(await stack.enter_async_context(aio.semaphore("pool", 3)))
            assert await both.of(client).recall("report", "read") == 3
            assert await both.of(client).recall("pool", "use") == 3
            await ears.hear("read", "read", "read", "use", "use", "use")

    both.run(main())


def test_other_kinds_hear_it(both: Both, client: redlatch.Client, other: redlatch.Client) -> None:
    async def main() -> None:
        aio = both.of(client)
        for lock in (
            aio.rlock("report"),
            aio.rwlock("report").write(),
            aio.lock("report", format="hash"),
            aio.lock_path("report"),
        ):
            async with lock as lease, sender(both, other) as recaller:
                ears = Ears(lease)
                assert await recaller.recall("report", "x") == 1
                await ears.hear("x")

    both.run(main())


def test_several_names_hear_it_by_each_of_them(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        for name in "abc":
            async with both.of(client).lock_all(["a", "b", ("c", "read")]) as lease:
                ears = Ears(lease)
                assert await both.of(other).recall(name, f"of {name}") == 1
                await ears.hear(f"of {name}")
                assert lease.recall_count == 1

    both.run(main())


def test_64_leases_are_watched(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        names = [f"report{i}" for i in range(LEASES)]
        leases = [await both.of(client).acquire(name) for name in names]
        ears = Ears(*[lease for lease in leases if lease is not None])
        for name in names:
            assert await both.of(other).recall(name, name) == 1
        await ears.hear(*names)
        assert sum(thread.name == THREAD for thread in threading.enumerate()) <= 1
        for lease in leases:
            assert lease is not None and await lease.release()

    both.run(main())


# ---- once, and no longer than the lease ----------------------------------------------------------


def test_a_callback_is_called_once(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        async with both.of(client).lock("report") as lease, sender(both, other) as third:
            ears = Ears(lease)
            assert await both.of(other).recall("report", "first") == 1
            await ears.hear("first")
            assert await third.recall("report", "second") == 1
            await lease.extend(30)
            assert (lease.recall_count, lease.recall_reason) == (2, "second")
            await is_called_at_once(lease)
            assert ears.heard == ["first"]

    both.run(main())


def test_a_callback_of_a_lease_that_was_recalled_is_called_at_once(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        async with both.of(client).lock("report") as lease:
            assert await both.of(other).recall("report", "x") == 1
            for _ in range(3):
                ears = Ears(lease)
                await ears.hear("x")

    both.run(main())


def test_several_callbacks_are_called_in_their_order(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        called: list[int] = []
        async with both.of(client).lock("report") as lease:
            for i in range(5):
                lease.on_recall(lambda i=i: called.append(i))  # type: ignore[misc]
            assert await both.of(other).recall("report") == 1
            await until(lambda: len(called) == 5)
            assert called == [0, 1, 2, 3, 4]

    both.run(main())


def test_a_lease_that_has_ended_hears_nothing(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        aio = both.of(client)
        released, lost = await aio.acquire("report"), await aio.acquire("lost")
        assert released is not None and lost is not None
        ears = Ears(released, lost)
        await released.release()
        await asyncio.to_thread(expire, other, "lost")
        await until(lambda: lost.lost)
        async with aio.lock("report") as lease:
            later = Ears(lease)
            assert await both.of(other).recall("report", "x") == 1
            await later.hear("x")
            ears.listen(released)
            ears.listen(lost)
            await is_called_at_once(lease)
            assert ears.heard == [] and released.recall_count == 0
        await raises(redlatch.LockLost, lost.release())

    both.run(main())


def test_a_recall_is_not_reported_after_the_end(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        aio = both.of(client)
        lease = await aio.acquire("report")
        assert lease is not None and await both.of(other).recall("report", "x") == 1
        await lease.extend(30)
        assert lease.recall_count == 1 and await lease.release()
        ears = Ears(lease)
        async with aio.lock("another") as another:
            assert await both.of(other).recall("another") == 1
            await is_called_at_once(another)
        assert ears.heard == [] and lease.recall_reason == "x"

    both.run(main())


def test_a_release_in_the_callback(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        lease: Any = await both.of(client).acquire("report")
        if both.has_tasks:
            lease.on_recall(lambda: tasks.append(asyncio.ensure_future(lease.release())))
        else:
            lease.on_recall(lease.made.release)
        tasks: list[asyncio.Future[bool]] = []
        assert await both.of(other).recall("report") == 1
        await until(lambda: free(other))
        for task in tasks:
            await task

    both.run(main())


def test_two_recalls_within_a_second_are_one(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        for i in range(100):  # on a busy machine a second is short
            async with both.of(client).lock(f"report{i}") as lease:
                began = time.monotonic()
                assert await both.of(other).recall(f"report{i}", "first") == 1
                assert await both.of(other).recall(f"report{i}", "second") == 1
                was_fast = time.monotonic() - began < 0.9
                await lease.extend(30)
                if was_fast:
                    assert (lease.recall_count, lease.recall_reason) == (1, "first")
                    return
        raise AssertionError("no two recalls were within a second")

    both.run(main())


def test_a_lease_that_is_forgotten_is_released(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        lease: Any = await both.of(client).acquire("report")
        Ears(lease)  # whose callback refers to the lease
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del lease
            gc.collect()
        await until(lambda: free(other))

    both.run(main())


# ---- reasons -------------------------------------------------------------------------------------


def test_control_characters_are_spaces(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        async with both.of(client).lock("report") as lease:
            ears = Ears(lease)
            assert await both.of(other).recall("report", "a\n\x1b[31m\0b\x7f") == 1
            await ears.hear("a  [31m b ")

    both.run(main())


def test_a_reason_is_bytes_of_any_kind(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        async with both.of(client).lock("report") as lease:
            ears = Ears(lease)
            assert await both.of(other).recall("report", b"caf\xe9: stop") == 1
            await until(lambda: bool(ears.heard))
            [reason] = ears.heard
            assert reason.encode().endswith(b": stop")  # can be printed

    both.run(main())


def test_a_reason_has_at_most_128_bytes(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        async with both.of(client).lock("report") as lease:
            said = r"reason must be at most 128 bytes (got 129 bytes)"
            for call in (both.of(other).recall, both.of(other).resign):
                await raises(redlatch.Invalid, call("report", "x" * 129), said)
            wrong: Any = 7
            await raises(TypeError, both.of(other).recall("report", wrong), "reason must be str")
            assert lease.recall_count == 0
            assert await both.of(other).recall("report", "é" * 64) == 1
            ears = Ears(lease)
            await ears.hear("é" * 64)

    both.run(main())


# ---- elections -----------------------------------------------------------------------------------


def test_a_leader_that_is_recalled_resigns(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    terms: list[str] = []

    async def lead(client: redlatch.Client, id: str) -> None:
        async with election_of(both, client, id).term() as term:
            terms.append(f"{id} leads")
            ears = Ears(term)
            await until(lambda: bool(ears.heard))
            terms.append(f"{id} hears {ears.heard}")
            assert term.is_leader()

    async def main() -> None:
        first = both.begin(lambda: lead(client, "a"))
        await until(lambda: terms == ["a leads"])
        second = both.begin(lambda: lead(other, "b"))
        await until(lambda: client.inspect("report").waiting == 1)
        assert await both.of(other).resign("report", "move") == 1
        await first
        await until(lambda: terms[-1] == "b leads")
        assert await both.of(client).resign("report", "back") == 1
        await second
        assert terms == ["a leads", "a hears ['move']", "b leads", "b hears ['back']"]

    both.run(main())
