# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Waits of greenlets, in a program that gevent or eventlet has patched.

A wait goes through the hub, so that the other greenlets of the thread continue. Neither package is
imported for itself: a program that has not patched anything has threads.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Callable, Optional, Union

from . import _core
from ._errors import error_of, invalid, new_error, raise_of
from ._log import LOG_SLICE_S, pass_on_log
from ._status import Status

_OK = int(Status.OK)
_PENDING = int(Status.PENDING)
_READ = 1  # of gevent's loop

# Ends the watch of a descriptor.
End = Callable[[], object]


class Gevent:
    """The parts of gevent that this module uses."""

    def __init__(self) -> None:
        gevent: Any = import_module("gevent")
        # Where a thread has no hub, it has no other greenlets either, and needs none for a wait: a
        # hub would outlive its thread.
        local: Any = import_module("gevent._hub_local")
        self.hub_here: Callable[[], Any] = getattr(local, "get_hub_if_exists", gevent.get_hub)
        self.current: Callable[[], Any] = gevent.getcurrent
        self.spawn: Callable[..., object] = gevent.spawn
        self.new_event: Callable[[], Any] = import_module("gevent.event").Event
        monkey: Any = import_module("gevent.monkey")
        original = monkey.get_original
        self.start_thread: Callable[..., object] = original("_thread", "start_new_thread")
        self.thread_local: Callable[[], Any] = original("threading", "local")
        self.here = self.thread_local()  # the hub of a thread, and its pump

    @staticmethod
    def has_patched() -> bool:
        monkey: Any = sys.modules.get("gevent.monkey")
        is_patched = getattr(monkey, "is_module_patched", None)
        return bool(is_patched and (is_patched("threading") or is_patched("socket")))

    def notify(self, event: Any) -> None:
        event.set()

    def listen(self, descriptor: int, callback: Callable[[], None]) -> End:
        """Have `callback` called by the hub while the descriptor can be read."""
        watcher = self.hub_here().loop.io(descriptor, _READ)
        watcher.start(callback)
        end: End = watcher.close
        return end

    def wait_read(self, descriptor: int) -> None:
        """Wait until it can be read. This alone does not keep the program from ending."""
        hub = self.hub_here()
        hub.wait(hub.loop.io(descriptor, _READ, ref=False))


class Eventlet:
    """The parts of eventlet that this module uses."""

    def __init__(self) -> None:
        self._hubs: Any = import_module("eventlet.hubs")
        self.current: Callable[[], Any] = import_module("eventlet").getcurrent
        self.spawn: Callable[..., object] = import_module("eventlet").spawn
        self.new_event: Callable[[], Any] = import_module("eventlet.event").Event
        original = import_module("eventlet.patcher").original
        self.start_thread: Callable[..., object] = original("_thread").start_new_thread
        self.thread_local: Callable[[], Any] = original("threading").local
        self.here = self.thread_local()

    @staticmethod
    def has_patched() -> bool:
        patcher: Any = sys.modules.get("eventlet.patcher")
        is_patched = getattr(patcher, "is_monkey_patched", None)
        return bool(is_patched and (is_patched("thread") or is_patched("socket")))

    def hub_here(self) -> Any:
        local = getattr(self._hubs, "_threadlocal", None)
        return self._hubs.get_hub() if local is None else getattr(local, "hub", None)

    def notify(self, event: Any) -> None:
        event.send()

    def listen(self, descriptor: int, callback: Callable[[], None]) -> End:
        hub = self.hub_here()
        listener = hub.add(hub.READ, descriptor, lambda _: callback(), _ignore, _ignore)
        return lambda: hub.remove(listener)

    def wait_read(self, descriptor: int) -> None:
        self._hubs.trampoline(descriptor, read=True)


def _ignore(*_: object) -> None:
    pass


Kind = Union[Gevent, Eventlet]


class _Found:
    """The package that has patched this program; a patch stays."""

    kind: Optional[Kind] = None


def kind_here() -> Optional[Kind]:
    """The package that has patched this program, or None."""
    if _Found.kind is None:
        modules = sys.modules
        if "gevent" in modules and Gevent.has_patched():
            _Found.kind = Gevent()
        elif "eventlet" in modules and Eventlet.has_patched():
            _Found.kind = Eventlet()
    return _Found.kind


_lease_watches: dict[_core.Lease, _LeaseWatch] = {}


class _Process:
    """A child has the hub of its parent, and must not use a queue of its parent."""

    key = object()

    @classmethod
    def renew(cls) -> None:
        cls.key = object()
        _lease_watches.clear()


os.register_at_fork(after_in_child=_Process.renew)


class HubPump:
    """The queue of a hub, and the greenlets that wait for its tags. Only the hub's thread uses it.

    The thread owns it: gevent keeps the hubs of threads that have ended.
    """

    __slots__ = (
        "_kind",
        "_process",
        "_queue",
        "_last_tag",
        "_waiting",
        "_end_listening",
        "listeners",
    )

    def __init__(self, kind: Kind) -> None:
        err = new_error()
        queue = _core.queue_new(err)
        raise_of(err)
        assert queue is not None
        self._kind = kind
        self._process = _Process.key
        self._queue = queue
        self._last_tag = 0
        self._waiting: dict[int, Any] = {}  # events, by their tags
        self._end_listening: Optional[End] = None
        self.listeners: dict[str, Any] = {}  # of _recall, at most one

    @property
    def is_of_parent(self) -> bool:
        return self._process is not _Process.key

    def _check_process(self) -> None:
        """A call that the parent has begun does not end in its child."""
        if self.is_of_parent:
            raise error_of(Status.E_FORKED)

    def finish(
        self,
        start: Callable[..., Optional[_core.Request]],
        arguments: tuple[Any, ...],
        client: _core.Client,
    ) -> _core.Request:
        """The finished request of `start`. The request limits its time itself.

        An exception that is thrown into the greenlet cancels the request: a grant that crosses it
        is released. A release or extension that was sent continues.
        """
        tag = self._next_tag()
        request = start(*arguments, self._queue, tag)
        if request is None:
            raise error_of(Status.E_NO_MEMORY)
        try:
            if _core.request_status(request) == _PENDING:
                with self._expected(tag) as event:
                    while _core.request_status(request) == _PENDING:
                        event.wait(LOG_SLICE_S)
                        self._check_process()
                        pass_on_log(client)
            pass_on_log(client)
        except BaseException:
            _core.request_free(request)
            raise
        return request

    def call_in_thread(self, function: Callable[..., object], *arguments: Any) -> None:
        """Wait for a call that has no request, in a new thread: those of a pool may all be busy.

        An exception that is thrown into the greenlet does not end the call.
        """
        tag = self._next_tag()
        done: list[bool] = []

        def run() -> None:
            function(*arguments)
            done.append(True)
            _core.queue_post(self._queue, tag)

        with self._expected(tag) as event:
            self._kind.start_thread(run, ())
            while not done:
                event.wait(LOG_SLICE_S)  # The post may fail for want of memory.
                self._check_process()

    @contextmanager
    def lease_watched(self, lease: _core.Lease) -> Iterator[Any]:
        """The event of the end of `lease`. The library has one watch for a lease."""
        watch = _lease_watches.get(lease)
        if watch is None:
            watch = _lease_watches[lease] = _LeaseWatch(self, self._next_tag())
        elif watch.pump is not self:
            raise invalid("wait_lost() of a lease must be in one thread at a time (got a second)")
        watch.count += 1
        try:
            if watch.event is None:
                watch.event = self._expect(watch.tag)
                status = _core.lease_watch(lease, self._queue, watch.tag)
                if status != _OK:
                    raise error_of(status)
            yield watch.event
        finally:
            watch.count -= 1
            if watch.count == 0:
                _lease_watches.pop(lease, None)
                self._forget(watch.tag)

    # ---- inside ----

    def _next_tag(self) -> int:
        self._last_tag = tag = self._last_tag + 1
        return tag

    def _expect(self, tag: int) -> Any:
        self._waiting[tag] = event = self._kind.new_event()
        self._listen()
        return event

    def _forget(self, tag: int) -> None:
        self._waiting.pop(tag, None)
        self._listen()

    @contextmanager
    def _expected(self, tag: int) -> Iterator[Any]:
        try:
            yield self._expect(tag)
        finally:
            self._forget(tag)

    def _listen(self) -> None:
        """Only for greenlets that wait: a hub with nothing to wait for must end."""
        if self._waiting and self._end_listening is None:
            descriptor = _core.queue_fd(self._queue)
            self._end_listening = self._kind.listen(descriptor, self._drain)
        elif not self._waiting and self._end_listening is not None:
            end, self._end_listening = self._end_listening, None
            end()

    def _drain(self) -> None:
        """The hub calls this, so that nothing here may wait."""
        tags = list(self._waiting) if self.is_of_parent else _core.queue_take(self._queue)
        for tag in tags:
            event = self._waiting.pop(tag, None)
            if event is not None:
                self._kind.notify(event)
        self._listen()


class _LeaseWatch:
    """The greenlets that wait for the end of one lease."""

    __slots__ = ("pump", "tag", "event", "count")

    def __init__(self, pump: HubPump, tag: int) -> None:
        self.pump = pump
        self.tag = tag
        self.event: Any = None
        self.count = 0


def pump_here() -> Optional[HubPump]:
    """The pump of this thread's hub. None: a wait may block the thread."""
    kind = kind_here()
    if kind is None:
        return None
    hub = kind.hub_here()
    if hub is None:
        return None
    pump: Optional[HubPump] = getattr(kind.here, "pump", None)
    if pump is None or pump.is_of_parent or kind.here.hub is not hub:
        pump = kind.here.pump = HubPump(kind)
        kind.here.hub = hub
    return pump


def current_greenlet() -> Optional[Any]:
    """The running greenlet. None for the first one of a thread, which has no parent."""
    kind = kind_here()
    if kind is None:
        return None
    greenlet = kind.current()
    return None if greenlet.parent is None else greenlet


def new_thread_local() -> Any:
    """A local object of each thread, which its greenlets share."""
    kind = kind_here()
    return threading.local() if kind is None else kind.thread_local()


def start_daemon(function: Callable[..., object], *arguments: Any) -> bool:
    """Run `function` in a greenlet, or in a thread where this one has no hub.

    False: nothing has patched this program.
    """
    kind = kind_here()
    if kind is None:
        return False
    if kind.hub_here() is None:
        kind.start_thread(function, arguments)
    else:
        kind.spawn(function, *arguments)
    return True


def wait_for_tags(queue: _core.Queue) -> list[int]:
    """The next tags of a queue; none in a child of its process."""
    kind = kind_here()
    if kind is None or kind.hub_here() is None:
        return [_core.queue_wait(queue)]
    while True:
        tags = _core.queue_take(queue)
        descriptor = _core.queue_fd(queue)
        if tags or descriptor < 0:
            return tags
        kind.wait_read(descriptor)
