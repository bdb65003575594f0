# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Recalls: asking the holders of a lock to finish, and calling back the holder that is asked."""

from __future__ import annotations

import inspect
import itertools
import os
import threading
import weakref
from typing import Any, Callable, Protocol

from . import _core
from ._convert import shown
from ._errors import Error, error_of, new_error, raise_of
from ._hub import pump_here, start_daemon, wait_for_tags
from ._log import logger
from ._status import Status
from ._wait import Call

RECALL = Call(_core.recall, _core.recall_watched, _core.recall_heard)

Callback = Callable[[], object]


def no_recall() -> Error:
    """Why a Redlock has none."""
    return error_of(
        Status.E_UNSUPPORTED,
        "a recall is not possible with a Redlock: use a client of one server",
    )


def check_callback(callback: Any) -> None:
    """Refuse what a call without arguments would not run."""
    if inspect.iscoroutinefunction(callback) or not callable(callback):
        is_async = callable(callback)
        got = "an async function" if is_async else type(callback).__name__
        raise TypeError(f"callback must be a function that is not async (got {got})")


def check_watch(status: int) -> None:
    """Raise the error of a watch for recalls."""
    if status == Status.E_UNSUPPORTED:
        raise no_recall()
    if status != Status.OK:
        raise error_of(status)


class Holder(Protocol):
    """The parts of a lease that its listener uses."""

    _handle: _core.Lease
    _recall_callbacks: list[Callback]

    @property
    def name(self) -> str: ...

    @property
    def held(self) -> bool: ...


class Listener:
    """A queue of recalls, and the thread or greenlet that takes them and calls back.

    It knows the leases weakly, and they have the callbacks, which often refer to their lease.
    """

    __slots__ = ("_queue", "_leases", "_tags")

    def __init__(self) -> None:
        err = new_error()
        queue = _core.queue_new(err)
        raise_of(err)
        assert queue is not None
        self._queue = queue
        self._leases: weakref.WeakValueDictionary[int, Holder] = weakref.WeakValueDictionary()
        self._tags = itertools.count(1)

    def start(self) -> None:
        if not start_daemon(self._run):
            threading.Thread(target=self._run, name="redlatch-recalls", daemon=True).start()

    def watch(self, lease: Holder) -> None:
        """Call the callbacks of `lease` when its holder is asked to finish, or has been asked.

        A second watch replaces the first one.
        """
        tag = next(self._tags)
        self._leases[tag] = lease
        check_watch(_core.lease_watch_recall(lease._handle, self._queue, tag))

    def _run(self) -> None:
        while tags := wait_for_tags(self._queue):
            for tag in tags:
                self._call_back(tag)

    def _call_back(self, tag: int) -> None:
        lease = self._leases.pop(tag, None)
        while lease is not None and lease.held:
            try:
                callback = lease._recall_callbacks.pop(0)
            except IndexError:
                return
            try:
                callback()
            except BaseException:  # SystemExit is no reason to stop, either.
                logger.exception("on_recall() of %s: the callback raised", shown(lease.name))


# The one of all threads; that of a hub is with its pump.
_of_threads: dict[str, Listener] = {}

# A child has no thread of its parent, and must not use its queues.
os.register_at_fork(after_in_child=_of_threads.clear)


def listener_here() -> Listener:
    """The listener of this thread's hub, or that of all threads."""
    pump = pump_here()
    found = _of_threads if pump is None else pump.listeners
    listener = found.get("")
    if listener is None:
        made = Listener()
        listener = found.setdefault("", made)
        if listener is made:
            made.start()
    return listener
