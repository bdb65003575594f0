# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""One test for threads and for tasks: it is written for tasks, and run in both worlds.

    def test_x(both: Both, client: redlatch.Client) -> None:
        async def main() -> None:
            async with both.of(client).lock("report") as lease:
                ...

        both.run(main())

For threads, what `async with` and `await` name are the methods of redlatch.Client and its locks,
which block; what runs elsewhere does so in a thread, and else in a task.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import redlatch

T = TypeVar("T")

# What is awaited of the twins for tasks, and what makes another one.
_AWAITED = {"acquire", "acquire_read", "acquire_write", "release", "extend", "detach"}
_AWAITED |= {"upgrade", "downgrade", "wait_lost", "connect", "attach", "stats", "once_forget"}
_AWAITED |= {"single_flight", "resign", "leader", "participants", "recall"}
_MAKING = {"lock", "lock_all", "lock_path", "rlock", "rwlock", "semaphore", "read", "write"}
_MAKING |= {"election", "term"}


class _Awaited:
    """An object for threads in the shape of its twin for tasks."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.made, name)
        if name in _MAKING and callable(found):  # the `term` of a term is a number
            return lambda *args, **values: _Awaited(found(*args, **values))
        if name == "observe":
            return lambda *args: _stepped(found(*args))
        if name not in _AWAITED:
            return _shown(found)

        async def call(*args: Any, **values: Any) -> Any:
            return _shown(found(*args, **values))

        return call

    async def __aenter__(self) -> Any:
        entered = self.made.__enter__()
        return self if entered is self.made else _shown(entered)

    async def __aexit__(self, *error: Any) -> Any:
        return self.made.__exit__(*error)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Awaited) and self.made is other.made


async def _stepped(steps: Iterator[T]) -> AsyncGenerator[T, None]:
    """An iterator whose steps block, in the shape of its twin for tasks."""
    for step in steps:
        yield step


def _shown(value: Any) -> Any:
    return _Awaited(value) if isinstance(value, redlatch.Lease) else value


def free(client: redlatch.Client, name: str = "report") -> bool:
    """Nobody holds it, nobody waits."""
    info = client.inspect(name)
    return info.is_free and info.waiting == 0


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


async def waiting(client: redlatch.Client, *modes: str) -> redlatch.LockInfo:
    """The lock, as soon as these wait for it, in this order."""
    await until(lambda: tuple(w.mode for w in client.inspect("report").waiters) == modes)
    return client.inspect("report")


async def read_of(aio: redlatch.Aio) -> redlatch.AsyncLease:
    lease = await aio.rwlock("report").acquire_read(timeout=30)
    assert lease is not None
    return lease


async def write_of(aio: redlatch.Aio) -> redlatch.AsyncLease:
    lease = await aio.rwlock("report").acquire_write(timeout=30)
    assert lease is not None
    return lease


async def raises(kind: type[BaseException], call: Awaitable[object], said: str = "") -> Any:
    """What was raised, which names `said`."""
    try:
        await call
    except kind as error:
        assert said in str(error)
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


@dataclass
class Both:
    """How a world runs what it is told."""

    run: Callable[[Any], Any]
    has_tasks: bool

    @property
    def lease_type(self) -> type[object]:
        return redlatch.AsyncLease if self.has_tasks else redlatch.Lease

    def of(self, client: redlatch.Client) -> redlatch.Aio:
        return client.aio if self.has_tasks else cast(redlatch.Aio, _Awaited(client))

    def is_lease(self, lease: Any) -> bool:
        return isinstance(lease if self.has_tasks else lease.made, self.lease_type)

    def begin(self, body: Callable[[], Awaitable[T]]) -> Awaitable[T]:
        """In a task, or a thread, of its own. What is awaited is its result."""

        async def work() -> T:
            return await body()

        return asyncio.ensure_future(work()) if self.has_tasks else _of_thread(work)

    async def elsewhere(self, body: Callable[[], Awaitable[T]]) -> T:
        return await self.begin(body)

    async def together(self, body: Callable[[], Awaitable[T]], count: int) -> None:
        for one in [self.begin(body) for _ in range(count)]:
            await one


def _of_thread(work: Callable[[], Any]) -> Awaitable[Any]:
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(asyncio.run(work()))
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    async def join() -> Any:
        thread.join()
        if isinstance(results[0], Exception):
            raise results[0]
        return results[0]

    return join()
