# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Elections, with both clients: campaigns, and observers that run beside them."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from typing import Any, Optional, Union

import redlatch
from answers import Answer, Values
from redlatch import Status
from redlatch._options import make_once_options

# What an observer sees, or why it sees no more.
News = Union[redlatch.Leader, None, redlatch.Error]


# ---- campaigns -----------------------------------------------------------------------------------


def is_possible(kind: str, values: Values) -> bool:
    """Python has no words for a candidate of another lock."""
    return kind == "mutex" and values.get("mode") != b"read"


def term_of(client: Any, name: bytes, values: Values, options: dict[str, Any]) -> Any:
    """A campaign, for `with`. Bad options show here."""
    return client.election(name, values["id"], **options).term(timeout=in_seconds(values))


def campaigning(
    client: Any, lock: Any, values: Values
) -> Callable[[ExitStack], redlatch.Lease | Status]:
    if not is_possible(lock.kind, values):
        return lambda _: Status.E_INVALID
    made = term_of(client, lock.name, values, lock.options)
    return lambda block: block.enter_context(made)


def without_id(_: bytes, keywords: dict[str, Any]) -> redlatch._core.AcquireOptions:
    """A defect: the acquisition of a candidate is one as others."""
    return make_once_options(**keywords)


def in_seconds(values: Values) -> float | None:
    """None: no limit."""
    wait_ms = int(values["wait_ms"])
    return None if wait_ms == -1 else wait_ms / 1000


# ---- looking -------------------------------------------------------------------------------------


def leading(leader: redlatch.Leader | None) -> Answer:
    if leader is None:
        return Status.OK, {"id": "", "term": 0}
    return Status.OK, {"id": leader.id, "term": leader.term}


def listed(ids: list[str]) -> Answer:
    return Status.OK, {"ids": ",".join(ids)}


def answer_to(news: News) -> Answer:
    if isinstance(news, redlatch.Error):
        raise news
    return leading(news)


TIMED_OUT: Answer = (Status.TIMEOUT, {})


class Observer(threading.Thread):
    """Reads what a blocking iterator yields, so that a line can wait for a limited time."""

    def __init__(self, client: Any, name: bytes) -> None:
        super().__init__()
        self._client = client
        self._name = name
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self.start()

    def run(self) -> None:
        try:
            leaders: Iterator[Optional[redlatch.Leader]] = self._client.observe(self._name)
            for leader in leaders:
                self._news.put(leader)
        except redlatch.Error as error:
            self._news.put(error)

    def next(self, values: Values) -> Answer:
        try:
            news = self._news.get(timeout=in_seconds(values))
        except queue.Empty:
            return TIMED_OUT
        if isinstance(news, redlatch.Error):
            self._news.put(news)  # The next line gets it, too.
        return answer_to(news)


class AsyncObserver:
    """The same in a task."""

    def __init__(self, aio: Any, name: bytes) -> None:
        self._aio = aio
        self._name = name
        self._news: asyncio.Queue[News] = asyncio.Queue()
        self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        try:
            leaders: AsyncIterator[Optional[redlatch.Leader]] = self._aio.observe(self._name)
            async for leader in leaders:
                self._news.put_nowait(leader)
        except redlatch.Error as error:
            self._news.put_nowait(error)

    async def next(self, values: Values) -> Answer:
        try:
            news = await asyncio.wait_for(self._news.get(), in_seconds(values))
        except asyncio.TimeoutError:
            return TIMED_OUT
        if isinstance(news, redlatch.Error):
            self._news.put_nowait(news)
        return answer_to(news)
