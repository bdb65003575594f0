# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: several names are one lock, for threads and tasks, and nothing of it is left behind.

Method: one server, clients of this process, most tests in both worlds (both.py). The rules one by
one are in tests/conformance.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
import redlatch
from support.sentinel import Replicated

from .both import Both, free, raises, until
from .conftest import Forking

NAMES, CALLERS = "abcd", 64


def all_free(client: redlatch.Client, names: str = NAMES) -> bool:
    return all(free(client, name) for name in names)


def test_any_order_of_names_is_served(both: Both, client: redlatch.Client) -> None:
    inside = dict.fromkeys(NAMES, 0)

    async def main() -> None:
        async def work() -> None:
            for _ in range(3):
                names = random.sample(NAMES, random.randint(1, 3))
                async with both.of(client).lock_all(names) as lease:
                    assert list(lease.fences) == names and min(lease.fences.values()) > 0
                    for name in names:
                        inside[name] += 1
                        assert inside[name] == 1
                    await asyncio.sleep(0)
                    for name in names:
                        inside[name] -= 1

        await both.together(work, CALLERS)
        assert all_free(client)

    both.run(main())


def test_one_name_has_one_fence(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        async with both.of(client).lock("a") as lease:
            assert lease.fences == {"a": lease.fence}

    both.run(main())


def test_all_are_acquired_or_none(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        locks = both.of(client).lock_all(["b", ("a", "read")], timeout=0.05)
        assert locks.names == ["b", "a"]
        async with client.aio.lock("b"):
            assert await locks.acquire(blocking=False) is None
            assert await locks.acquire() is None
            said = "2 names were not granted within 0.05 s"
            with pytest.raises(redlatch.NotAcquired, match=said):
                await locks.__aenter__()
            await until(lambda: free(client, "a"))
        async with client.aio.rwlock("a").read():
            async with locks as lease:
                assert (lease.name, lease.mode, lease.fence) == ("b", "write", lease.fences["b"])
                assert lease.held and not lease.lost
                await raises(redlatch.AlreadyHeld, locks.__aenter__())
        second = await locks.acquire(timeout=-1, ttl=600)
        assert second is not None and second.remaining > 500
        await second.release()
        assert all_free(client)

    both.run(main())


def test_a_lost_name_is_the_loss_of_all(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        with pytest.raises(redlatch.LockLost, match="its part 'a' was lost"):
            async with both.of(client).lock_all(["b", "a"]) as lease:
                client.force_release("a")
                await raises(redlatch.LockLost, lease.extend(30))
                assert lease.lost and "'a'" in lease.lost_text
        await until(lambda: all_free(client))

    both.run(main())


def test_a_path_keeps_others_out_above_and_below(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        of = both.of(client)
        async with of.lock_path("a/b/c") as lease:
            assert list(lease.fences) == ["a/b/c", "a", "a/b"]
            assert lease.fence == lease.fences["a/b/c"]
            for kept in ("a/b/c", "a/b", "a", "a/b/c/d"):
                assert await of.lock_path(kept).acquire(timeout=0) is None
            for open_path in ("a/b/d", "b", "a/b/../c", "a/b/."):
                other = await of.lock_path(open_path).acquire(timeout=1)
                assert other is not None
                await other.release()
            assert not await of.lock("a/b/c").acquire(timeout=0)

    both.run(main())


def test_a_cancelled_wait_leaves_nothing(client: redlatch.Client) -> None:
    async def main() -> None:
        async with client.aio.lock("b"):
            waiting = asyncio.ensure_future(client.aio.lock_all(["a", "b", "c"]).acquire())
            await until(lambda: client.inspect("b").waiting == 1)
            assert not free(client, "a") and free(client, "c")
            waiting.cancel()
            await raises(asyncio.CancelledError, waiting)
            await until(lambda: free(client, "a") and client.inspect("b").waiting == 0)

    asyncio.run(main())


def test_too_few_replicas_leave_nothing(both: Both) -> None:
    options: dict[str, Any] = {"min_replicas": 1, "sync_timeout": 10}

    async def main() -> None:
        with Replicated(replicas=1) as group, redlatch.connect(group.primary.url) as client:
            (replica,) = group.replicas
            async with both.of(client).lock_all(["a", "b"], **options):
                with replica.connect() as connection:
                    assert connection.cmd("EXISTS", "a", "b") == 2
            replica.pause()
            options["sync_timeout"] = 0.1
            one = both.of(client).lock("a", **options)
            several = both.of(client).lock_all(["a", "b"], **options)
            for timeout in (0, -1):
                for acquire in (one.acquire, several.acquire):
                    await raises(redlatch.NotReplicated, acquire(timeout=timeout))
            await until(lambda: all_free(client, "ab"))

    both.run(main())


WRONG: list[tuple[Any, str]] = [
    ([], r"names must be 1 to 64 \(got 0\)"),
    (["a", "a"], r"names must differ \(got 'a' twice\)"),
    ([f"n{i}" for i in range(65)], r"names must be 1 to 64 \(got more\)"),
    ([("a", "w")], "each of names must be a name"),
    ([""], "name must be 1 to 1024 bytes"),
]


@pytest.mark.parametrize(("names", "said"), WRONG)
def test_wrong_names_are_refused(client: redlatch.Client, names: Any, said: str) -> None:
    for of in (client, client.aio):
        with pytest.raises(redlatch.Invalid, match=said):
            of.lock_all(names)


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b"])
def test_a_path_has_no_empty_component(client: redlatch.Client, path: str) -> None:
    with pytest.raises(redlatch.Invalid, match="path must have no empty component"):
        client.lock_path(path)


def test_a_text_is_no_list_of_names(client: redlatch.Client) -> None:
    wrong: Any = "abc"
    with pytest.raises(TypeError, match="names must be a list of names"):
        client.lock_all(wrong)
    with pytest.raises(redlatch.Invalid, match="at most 64 components"):
        client.lock_path("/".join("a" * 65))


def test_a_redlock_has_none() -> None:
    redlock = redlatch.Redlock([f"unix:///{x}" for x in "abc"])
    for of in (redlock, redlock.aio):
        with pytest.raises(redlatch.Unsupported, match="no common order of waiters"):
            of.lock_all(["a", "b"])
        with pytest.raises(redlatch.Unsupported, match="no common order of waiters"):
            of.lock_path("a/b")


def test_a_child_acquires_names_of_its_own(client: redlatch.Client, forking: Forking) -> None:
    forking(
        """
client = redlatch.connect(url)
both = client.lock_all(["a", "b"])
lease = both.acquire()
def child():
    for call in (lease.check, lease.release):
        raises(redlatch.Forked, call)
    assert both.acquire(timeout=0) is None
    with client.lock_all(["c", "d"]) as own:
        assert own.held
in_child(child)
lease.check()
lease.release()
"""
    )
    assert all_free(client)
