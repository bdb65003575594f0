# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The delivery of completions to an event loop: one queue of the C ABI for each loop."""

from __future__ import annotations

import itertools
import os
import weakref
from asyncio import AbstractEventLoop, Future, Task, current_task, get_running_loop
from typing import Any, Callable, Optional

from . import _core
from ._errors import error_of, new_error, raise_of
from ._log import pass_on_log
from ._status import Status
from ._wait import PENDING

_OK = int(Status.OK)
_numbers = itertools.count(1)
_LOG_INFO = _core.constant(b"RL_LOG_INFO", 0)

_status_of = _core.request_status
_take = _core.queue_take


class Pump:
    """The queue of an event loop, and the futures of its tags. Only the loop's thread uses it.

    The loop owns it, as the reader of the queue's descriptor, so that it ends when the loop is
    closed or collected.
    """

    __slots__ = ("loop", "queue", "waiting", "last_tag", "number", "clients", "__weakref__")

    def __init__(self, loop: AbstractEventLoop) -> None:
        err = new_error()
        queue = _core.queue_new(err)
        raise_of(err)
        assert queue is not None
        self.loop = loop
        self.queue = queue
        self.waiting: dict[int, Future[None]] = {}
        self.last_tag = 0
        self.number = next(_numbers)
        # Whose log is watched, by the tag. Weak: a client that is dropped goes at once.
        self.clients: dict[int, weakref.ref[_core.Client]] = {}
        loop.add_reader(_core.queue_fd(queue), self.drain)

    def watch_log(self, client: _core.Client) -> None:
        """Notify an idle loop of an outage of `client`; else its lines wait for the next call."""
        tag = self.next_tag()
        for other, found in list(self.clients.items()):
            if found() is None or found() is client:
                del self.clients[other]
        self.clients[tag] = weakref.ref(client)
        _core.client_log_watch(client, _LOG_INFO, self.queue, tag)

    def next_tag(self) -> int:
        self.last_tag = tag = self.last_tag + 1
        return tag

    def expect(self, tag: int) -> Future[None]:
        """A future that is done when `tag` comes."""
        self.waiting[tag] = future = self.loop.create_future()
        return future

    def drain(self) -> None:
        pop = self.waiting.pop
        for tag in _take(self.queue):
            future = pop(tag, None)
            if future is None:
                # A client has lines, or nothing waits for it any more.
                self.pass_on_log(tag)
            elif not future.done():
                future.set_result(None)

    def pass_on_log(self, tag: int) -> None:
        found = self.clients.get(tag)
        client = found() if found is not None else None
        if client is not None:
            pass_on_log(client)

    async def finish(self, request: Optional[_core.Request], tag: int) -> _core.Request:
        """Wait for the request, which limits its time itself.

        If the wait is cancelled, the request is too: a grant that crosses it is released. A release
        or extension that was sent continues.
        """
        if request is None:
            raise error_of(Status.E_NO_MEMORY)
        if _status_of(request) == PENDING:
            self.waiting[tag] = future = self.loop.create_future()
            try:
                await future
            except BaseException:
                self.drop(request, tag)
                raise
        return request

    def drop(self, request: _core.Request, tag: int) -> None:
        self.waiting.pop(tag, None)
        _core.request_free(request)


# By the identity of the loop, which is not another's as long as the pump keeps the loop alive.
# Weak, so that a loop that is closed takes its pump with it.
_pumps: dict[int, weakref.ref[Pump]] = {}

# A child's loops must not use its parent's queues.
os.register_at_fork(after_in_child=_pumps.clear)


def pump_here() -> Pump:
    """The pump of the running loop."""
    try:
        loop = get_running_loop()
    except RuntimeError:
        raise _not_in_asyncio() from None
    found = _pumps.get(id(loop))
    pump = found() if found is not None else None
    return pump if pump is not None else _new_pump(loop)


async def finished_here(
    start: Callable[..., Optional[_core.Request]], *arguments: Any
) -> _core.Request:
    """The finished request of `start`, which takes the queue and a tag after the arguments."""
    pump = pump_here()
    tag = pump.next_tag()
    return await pump.finish(start(*arguments, pump.queue, tag), tag)


def task_here() -> Optional[Task[Any]]:
    """The running task."""
    try:
        return current_task()
    except RuntimeError:
        raise _not_in_asyncio() from None


def _not_in_asyncio() -> RuntimeError:
    # The type is that of asyncio's own error, whose text does not help in Trio.
    return RuntimeError(
        "the calls of `aio` must be awaited in asyncio, or in anyio on asyncio (got no running "
        "event loop of asyncio)"
    )


def pump_of(loop: AbstractEventLoop) -> Optional[Pump]:
    found = _pumps.get(id(loop))
    pump = found() if found is not None else None
    return pump if pump is not None and pump.loop is loop else None


def _new_pump(loop: AbstractEventLoop) -> Pump:
    for key, pump in list(_pumps.items()):
        if pump() is None:
            _pumps.pop(key, None)
    made = Pump(loop)
    _pumps[id(loop)] = weakref.ref(made)
    return made
