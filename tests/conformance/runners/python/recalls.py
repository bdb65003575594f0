# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Recalls, with both clients: who asks, and holders that are called back."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Union

import redlatch
from answers import Answer, Values
from elections import TIMED_OUT, in_seconds
from redlatch import Status


def heard(count: int) -> Answer:
    return Status.OK, {"heard": count}


def shown(lease: Union[redlatch.Lease, redlatch.AsyncLease], told: int) -> Answer:
    return Status.OK, {"count": lease.recall_count, "told": told, "reason": lease.recall_reason}


class Listener:
    """Counts the calls of a callback, from the first line that wants to know."""

    def __init__(self, lease: redlatch.Lease) -> None:
        self.lease = lease
        self._told = 0
        self._is_told = threading.Event()
        lease.on_recall(self._on_recall)

    def _on_recall(self) -> None:
        self._told += 1
        self._is_told.set()

    def wait(self, values: Values) -> Answer:
        is_told = self._is_told.wait(in_seconds(values))
        return shown(self.lease, self._told) if is_told else TIMED_OUT


class AsyncListener:
    """The same in an event loop, where a holder may also wait until it is asked."""

    def __init__(self, lease: redlatch.AsyncLease) -> None:
        self.lease = lease
        self._told = 0
        self._is_told = asyncio.Event()
        lease.on_recall(self._on_recall)

    def _on_recall(self) -> None:
        self._told += 1
        self._is_told.set()

    async def wait(self, values: Values) -> Answer:
        limit = in_seconds(values)
        try:
            if not await self.lease.wait_recalled(-1 if limit is None else limit):
                return TIMED_OUT
            await asyncio.wait_for(self._is_told.wait(), limit)
        except asyncio.TimeoutError:
            return TIMED_OUT
        return shown(self.lease, self._told)


# ---- mistakes ------------------------------------------------------------------------------------


def unsaid(error: TypeError) -> Status:
    """A Redlock has no word for `retain`."""
    if "argument 'retain'" not in str(error):
        raise error
    return Status.E_INVALID


def unheard(_: object, callback: object) -> None:
    """A defect: nobody calls back."""


set_option = redlatch._core.acquire_options_set


def without_retain(options: Any, name: bytes, value: bytes, error: Any) -> int:
    """A defect: the option is lost on the way."""
    return Status.OK if name == b"retain" else set_option(options, name, value, error)
