# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The Python runner of the conformance suite, with asyncio: what waits is awaited, `&N` is a task.

What asyncio has nothing of its own for is done as the Python runner does it. REDLATCH_RUNNER_DEFECT
plants a defect in this half of the package.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Union

import elections
import recalls
import redlatch
import runner
import work
from answers import Answer, Values, levels_of, names_of, shown_of, stats_of
from lines import line_of, parse
from redlatch import (
    Status,
    _aio_locks,
    _candidacy,
    _convert,
    _kinds,
    _named_lock,
    _redlock,
    _wait,
)
from runner import locks, seconds

# The lease, and the block that ends it if it is a mutex; or why there is none.
Taken = tuple[AsyncExitStack, Union[redlatch.AsyncLease, Status]]


class Lock(runner.Lock):
    """A named lock of a case; the block of an attached lease is that of the Python runner."""

    def __init__(
        self, kind: str, name: bytes, owner: bytes | None, options: dict[str, object]
    ) -> None:
        super().__init__(kind, name, owner, options)
        self.async_block = AsyncExitStack()
        self.task: asyncio.Task[Taken] | None = None
        self.async_observer: elections.AsyncObserver | None = None
        self.async_listener: recalls.AsyncListener | None = None
        self.is_taken = False  # what the task was granted; a result is delivered once


jobs: dict[int, asyncio.Task[str]] = {}


# ---- of the client -------------------------------------------------------------------------------


async def do_connect(values: Values) -> Answer:
    await runner.client.aio.connect(wait=seconds(values, "wait_ms"))
    return Status.OK, {}


async def do_shutdown(values: Values) -> Answer:
    answer = runner.do_shutdown(values)
    # The waits have ended, each in its own task, which is yet to say so.
    await asyncio.sleep(0)
    return answer


async def do_check_servers(values: Values) -> Answer:
    return levels_of(await runner.client.aio.check(wait=seconds(values, "wait_ms")))


async def do_inspect(values: Values) -> Answer:
    return shown_of(await runner.client.aio.inspect(values["name"]))


async def do_force_release(values: Values) -> Answer:
    await runner.client.aio.force_release(values["name"], values["token"])
    return Status.OK, {}


async def do_force_release_any(values: Values) -> Answer:
    await runner.client.aio.force_release(values["name"], any=True)
    return Status.OK, {}


async def do_recall(values: Values) -> Answer:
    return recalls.heard(await runner.client.aio.recall(values["name"], values["reason"]))


async def do_resign(values: Values) -> Answer:
    return recalls.heard(await runner.client.aio.resign(values["name"], values["reason"]))


async def do_once_forget(values: Values) -> Answer:
    await runner.client.aio.once_forget(values["name"])
    return Status.OK, {}


async def do_leader(values: Values) -> Answer:
    return elections.leading(await runner.client.aio.leader(values["name"]))


async def do_participants(values: Values) -> Answer:
    return elections.listed(await runner.client.aio.election(values["name"]).participants())


async def do_list(values: Values) -> Answer:
    return names_of([info async for info in runner.client.aio.list(values["pattern"])])


# ---- of a lock -----------------------------------------------------------------------------------


def taking(lock: Lock, op: str, wait: float) -> Coroutine[Any, Any, Taken]:
    """As that of the Python runner: a mutex comes with a block."""
    aio = runner.client.aio
    if lock.kind == "all":
        return without_block(runner.all_of(aio, lock, timeout=wait).acquire(), wait)
    if lock.kind == "semaphore":
        pool = runner.semaphore_of(aio, lock, timeout=wait)
        return without_block(pool.acquire(lock.permits), wait)
    if op == "acquire" and lock.kind != "reentrant":
        return enter(aio.lock(lock.name, timeout=wait, **lock.options))
    if op == "acquire":
        owned = aio.rlock(lock.name, owner=lock.owner, timeout=wait, **lock.options)
        return without_block(owned.acquire(), wait)
    both, options = runner.sides(aio.rwlock, lock)
    acquire = both.acquire_read if op == "acquire_read" else both.acquire_write
    return without_block(acquire(timeout=wait, **options), wait)


async def enter(made: redlatch.AsyncLock | redlatch.AsyncCampaign) -> Taken:
    block = AsyncExitStack()
    return block, await block.enter_async_context(made)


async def without_block(acquired: Awaitable[redlatch.AsyncLease | None], wait: float) -> Taken:
    return AsyncExitStack(), await acquired or runner.refusal(wait)


def granted(lock: Lock, taken: Taken) -> Answer:
    block, lease = taken
    if not isinstance(lease, Status):
        lock.async_block = block
    return runner.granted(lock, lease)  # type: ignore[arg-type]


def acquiring(op: str) -> Callable[[Lock, Values], Awaitable[Answer]]:
    async def do_acquire(lock: Lock, values: Values) -> Answer:
        return granted(lock, await taking(lock, op, seconds(values, "wait_ms")))

    return do_acquire


async def start(lock: Lock, work: Coroutine[Any, Any, Taken]) -> Answer:
    lock.task = asyncio.ensure_future(work)
    lock.is_taken = False
    await asyncio.sleep(0)  # Its place in the queue is now.
    return Status.PENDING, {}


def starting(op: str) -> Callable[[Lock, Values], Awaitable[Answer]]:
    async def do_start(lock: Lock, values: Values) -> Answer:
        return await start(lock, taking(lock, op, seconds(values, "wait_ms")))

    return do_start


async def do_start_upgrade(lock: Lock, values: Values) -> Answer:
    return await start(lock, upgrade(lock, seconds(values, "wait_ms")))


async def upgrade(lock: Lock, wait: float) -> Taken:
    lease: Any = runner.held(lock)
    status = Status.OK if await lease.upgrade(timeout=wait) else runner.refusal(wait)
    return lock.async_block, status


async def do_upgrade(lock: Lock, values: Values) -> Answer:
    if not isinstance(lock.lease, redlatch.AsyncLease):
        return runner.do_upgrade(lock, values)
    return granted(lock, await upgrade(lock, seconds(values, "wait_ms")))


async def do_downgrade(lock: Lock, values: Values) -> Answer:
    lease: Any = runner.held(lock)
    if not isinstance(lease, redlatch.AsyncLease):
        return runner.do_downgrade(lock, values)
    await lease.downgrade()
    return Status.OK, {}


async def do_poll(lock: Lock, values: Values) -> Answer:
    assert lock.task is not None
    wait = seconds(values, "wait_ms")
    await asyncio.wait([lock.task], timeout=None if wait == -1 else wait)
    return result_of(lock) if lock.task.done() else (Status.PENDING, {})


async def do_cancel(lock: Lock, values: Values) -> Answer:
    assert lock.task is not None
    lock.task.cancel()
    await asyncio.wait([lock.task])
    return result_of(lock)


def result_of(lock: Lock) -> Answer:
    assert lock.task is not None
    if lock.task.cancelled():
        return Status.CANCELLED, {}
    taken = lock.task.result()
    if lock.is_taken and not isinstance(taken[1], Status):
        return Status.OK, {}
    lock.is_taken = True
    return granted(lock, taken)


async def do_release(lock: Lock, values: Values) -> Answer:
    lease: object = lock.lease
    if lease is None:
        await runner.client.aio.lock(lock.name).release()  # Which says that it is not held.
    elif not isinstance(lease, redlatch.AsyncLease):
        return runner.do_release(lock, values)
    elif lease._is_given_back or lock.kind != "mutex":
        return Status.OK if await lease.release() else Status.STILL_HELD, {}
    else:
        runner.logged.error = None
        await lock.async_block.aclose()
        if runner.logged.error is not None:
            raise runner.logged.error
    return Status.OK, {}


async def do_once(lock: Lock, values: Values) -> Answer:
    return await work.run_once_later(runner.client.aio, lock.name, lock.options, values)


async def do_flight(lock: Lock, values: Values) -> Answer:
    return await work.fly_later(runner.client.aio, lock.name, lock.options, values)


async def campaigning(lock: Lock, values: Values) -> Taken:
    if not elections.is_possible(lock.kind, values):
        return AsyncExitStack(), Status.E_INVALID
    # Its block is left in another line, whose task a loss is not to cancel.
    options = {**lock.options, "on_lost": "ignore"}
    return await enter(elections.term_of(runner.client.aio, lock.name, values, options))


async def do_campaign(lock: Lock, values: Values) -> Answer:
    return granted(lock, await campaigning(lock, values))


async def do_start_campaign(lock: Lock, values: Values) -> Answer:
    return await start(lock, campaigning(lock, values))


async def do_observe(lock: Lock, values: Values) -> Answer:
    if lock.async_observer is None:
        lock.async_observer = elections.AsyncObserver(runner.client.aio, lock.name)
    return await lock.async_observer.next(values)


async def do_recalled(lock: Lock, values: Values) -> Answer:
    lease: Any = runner.held(lock)
    if lock.async_listener is None or lock.async_listener.lease is not lease:
        lock.async_listener = recalls.AsyncListener(lease)
    return await lock.async_listener.wait(values)


async def do_extend(lock: Lock, values: Values) -> Answer:
    lease: Any = runner.held(lock)
    if not isinstance(lease, redlatch.AsyncLease):
        return runner.do_extend(lock, values)
    await lease.extend(int(values["ttl_ms"]) / 1000)
    return Status.OK, {}


async def do_detach(lock: Lock, values: Values) -> Answer:
    lease: Any = runner.held(lock)
    if not isinstance(lease, redlatch.AsyncLease):
        return runner.do_detach(lock, values)
    token = await lease.detach()
    status, shown = runner.do_show(lock, values)
    return status, {**shown, "token": token}


async def do_attach(lock: Lock, values: Values) -> Answer:
    aio = runner.client.aio
    if lock.kind == "semaphore":
        fence = int(values.get("fence", 0))
        pool = runner.semaphore_of(aio, lock)
        lease = await pool.attach(values["token"], lock.permits, fence=fence)
    else:
        terms = runner.terms_of(lock, values)
        lease = await aio.attach(lock.name, values["token"], **terms)
    lock.async_block = AsyncExitStack()
    await lock.async_block.enter_async_context(lease)
    return runner.granted(lock, lease)


async def do_stats(lock: Lock, values: Values) -> Answer:
    return stats_of(await runner.semaphore_of(runner.client.aio, lock).stats())


async def do_wait_lost(lock: Lock, values: Values) -> Answer:
    lease: Any = runner.held(lock)
    if not isinstance(lease, redlatch.AsyncLease):
        return runner.do_wait_lost(lock, values)
    is_lost = await lease.wait_lost(timeout=seconds(values, "wait_ms"))
    return Status.OK, {"state": "LOST" if is_lost else runner.state_of(lease)}


# ---- lines ---------------------------------------------------------------------------------------

OF_CLIENT: dict[str, Callable[[Values], Awaitable[Answer]]] = {
    "connect": do_connect,
    "check": do_check_servers,
    "force_release": do_force_release,
    "force_release_any": do_force_release_any,
    "inspect": do_inspect,
    "recall": do_recall,
    "resign": do_resign,
    "once_forget": do_once_forget,
    "leader": do_leader,
    "participants": do_participants,
    "list": do_list,
    "shutdown": do_shutdown,
}
OF_LOCK: dict[str, Callable[[Lock, Values], Awaitable[Answer]]] = {
    "acquire": acquiring("acquire"),
    "acquire_read": acquiring("acquire_read"),
    "acquire_write": acquiring("acquire_write"),
    "start": starting("acquire"),
    "start_read": starting("acquire_read"),
    "start_write": starting("acquire_write"),
    "start_upgrade": do_start_upgrade,
    "poll": do_poll,
    "upgrade": do_upgrade,
    "downgrade": do_downgrade,
    "cancel": do_cancel,
    "release": do_release,
    "once": do_once,
    "flight": do_flight,
    "campaign": do_campaign,
    "start_campaign": do_start_campaign,
    "observe": do_observe,
    "recalled": do_recalled,
    "extend": do_extend,
    "attach": do_attach,
    "stats": do_stats,
    "detach": do_detach,
    "wait_lost": do_wait_lost,
}


async def answer(target: str, op: str, values: Values) -> str:
    """Do it, and say how it went."""
    shown: dict[str, object] = {}
    lock: Any = locks.get(target)
    try:
        if target == "-" and op in OF_CLIENT:
            status, shown = await OF_CLIENT[op](values)
        elif lock is not None and op in OF_LOCK:
            status, shown = await OF_LOCK[op](lock, values)
        else:
            return runner.answer(target, op, values)
    except redlatch.Error as error:
        status = error.status
    except TypeError as error:
        status = recalls.unsaid(error)
    return line_of(status, shown)


async def run(line: str) -> str:
    """Do a line, or start it in a task of its own, or wait for what was started."""
    target, op, values, job = parse(line)
    if job and op == "wait":
        return await jobs.pop(job)
    if not job:
        return await answer(target, op, values)
    jobs[job] = asyncio.ensure_future(answer(target, op, values))
    await asyncio.sleep(0)
    return "STARTED"


def plant(defect: str) -> None:
    """Break the package as a careless change of it would."""
    error_init = redlatch.Error.__init__

    def cut_at_nul(value: bytes, what: str) -> bytes:
        return _convert.to_bytes(value, what).partition(b"\0")[0]

    async def ignore_release(lease: redlatch.AsyncLease) -> None:
        lease._is_given_back = True

    def wrong_status(error: redlatch.Error, message: str, status: Status) -> None:
        wrong = {Status.E_LOST: Status.E_NOT_HELD, Status.BUSY: Status.TIMEOUT}
        wrong[Status.E_DEADLOCK] = wrong[Status.E_ALREADY_HELD] = Status.BUSY
        error_init(error, message, wrong.get(status, status))

    kept: list[object] = []

    release = redlatch.AsyncLease.release

    async def forget_count(lease: redlatch.AsyncLease) -> bool:
        await release(lease)
        return True

    core = redlatch._core
    plants: dict[str, tuple[object, str, object]] = {
        "read_as_write": (_aio_locks, "ACQUIRE_READ", _wait.ACQUIRE_WRITE),
        "write_as_read": (_aio_locks, "ACQUIRE_WRITE", _wait.ACQUIRE_READ),
        "own_owner": (_kinds, "check_owner", runner.own_owner),
        "forget_count": (redlatch.AsyncLease, "release", forget_count),
        "deaf": (redlatch.AsyncLease, "on_recall", recalls.unheard),
        "forget_retain": (redlatch._core, "acquire_options_set", recalls.without_retain),
        "forget_id": (_candidacy, "make_candidate_options", elections.without_id),
        "one_node": (_redlock, "_joined", lambda urls: urls[0]),
        "cut_at_nul": (_named_lock, "to_bytes", cut_at_nul),
        "ignore_release": (redlatch.AsyncLease, "release", ignore_release),
        "wrong_status": (redlatch.Error, "__init__", wrong_status),
        "ignore_cancel": (core, "request_free", kept.append),
    }
    if defect:
        setattr(*plants[defect])


async def serve() -> None:
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async for line in lines:
        print(await run(line.decode()), flush=True)
    runner.client.close()  # Ends the waits of the jobs.
    ours = [lock for lock in locks.values() if isinstance(lock, Lock)]
    started = (lock.task for lock in ours if lock.task)
    observers = (lock.async_observer.task for lock in ours if lock.async_observer)
    await asyncio.gather(*jobs.values(), *started, *observers, return_exceptions=True)


def main() -> None:
    plant(os.environ.get("REDLATCH_RUNNER_DEFECT", ""))
    logging.getLogger("redlatch").addHandler(runner.Handler())
    runner.Lock = Lock  # type: ignore[misc]
    asyncio.run(serve())


if __name__ == "__main__":
    main()
