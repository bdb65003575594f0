# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The leases of lock objects by their takers, and the owners that the library sees."""

from __future__ import annotations

import itertools
import os
import threading
from asyncio import Task
from collections.abc import Callable, Iterator
from typing import Any, Generic, Optional, TypeVar
from weakref import WeakKeyDictionary, ref

from ._hub import current_greenlet, new_thread_local
from ._lease import LeaseBase

L = TypeVar("L", bound=LeaseBase)

# Never used again, unlike the identity of what has ended.
_numbers = itertools.count(1)


class _Life:
    """Referred to by its thread only, so that it is collected when the thread ends."""

    dead = False  # Greenlets have this attribute.

    __slots__ = ("__weakref__",)


class ThreadKey:
    """The key of a thread or greenlet. Its ident is only shown: a later thread may have the same.

    Nothing here asks for threading.current_thread(): before Python 3.13 that leaves an object for
    each thread that `threading` did not start.
    """

    __slots__ = ("ident", "number", "_life")

    def __init__(self, life: Any) -> None:
        self.ident = threading.get_ident()
        self.number = next(_numbers)
        self._life = ref(life)

    @staticmethod
    def is_gone(key: object) -> bool:
        """True if the thread with `key` has ended."""
        if not isinstance(key, ThreadKey):
            return False
        life = key._life()
        return life is None or life.dead


_of_thread = new_thread_local()
_greenlet_keys: WeakKeyDictionary[Any, ThreadKey] = WeakKeyDictionary()


class _ThisThread:
    @property
    def key(self) -> ThreadKey:
        """The key of the running greenlet, or of the thread."""
        greenlet = current_greenlet()
        key: Optional[ThreadKey]
        if greenlet is None:
            key = getattr(_of_thread, "key", None)
            if key is None:
                _of_thread.life = life = _Life()
                key = _of_thread.key = ThreadKey(life)
        else:
            key = _greenlet_keys.get(greenlet)
            if key is None:
                key = _greenlet_keys[greenlet] = ThreadKey(greenlet)
        return key


this_thread = _ThisThread()


class _Process:
    """The name of this process, unique among all hosts. A child process has another one."""

    name = os.urandom(16).hex()

    @classmethod
    def rename(cls) -> None:
        cls.name = os.urandom(16).hex()


os.register_at_fork(after_in_child=_Process.rename)

_task_numbers: WeakKeyDictionary[Task[Any], int] = WeakKeyDictionary()


def new_number() -> int:
    """The number of a new client or lock object whose takers are owners."""
    return next(_numbers)


def owner_of(maker: int, taker: int) -> bytes:
    """The owner name of a thread or task for `maker`."""
    return f"{_Process.name}:{maker}:{taker}".encode()


def number_of(task: Task[Any]) -> int:
    number = _task_numbers.get(task)
    if number is None:
        number = _task_numbers[task] = next(_numbers)
    return number


class Hold(Generic[L]):
    """A lease that a thread or task acquired by one lock object."""

    __slots__ = ("lease", "is_block")

    def __init__(self, lease: L, is_block: bool) -> None:
        self.lease = lease
        self.is_block = is_block  # by `with`, which will end


class Holds(Generic[L]):
    """The leases that threads or tasks acquired by one lock object, any number each.

    Each change is a single step, so that threads need no lock: a forked child might find it locked.
    """

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: dict[object, list[Hold[L]]] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def add(self, key: object, lease: L, is_block: bool) -> None:
        mine = self._of.get(key, [])
        mine.append(Hold(lease, is_block))
        self._of[key] = mine

    def leases(self) -> Iterator[L]:
        """The unreleased leases; of each taker the latest first."""
        for holds in list(self._of.values()):
            for hold in reversed(list(holds)):
                if not hold.lease._is_given_back:
                    yield hold.lease

    def held(self) -> list[object]:
        """The keys of the takers, each once for each lease that is held."""
        return [
            key
            for key, holds in list(self._of.items())
            for hold in list(holds)
            if not hold.lease._is_given_back and hold.lease.held
        ]

    def all_of(self, key: object) -> list[L]:
        """The unreleased acquisitions of this taker."""
        holds = self._of.get(key, [])
        return [hold.lease for hold in holds if not hold.lease._is_given_back]

    def take_out(self, key: object) -> list[Hold[L]]:
        """The state of this taker, for put_back()."""
        return self._of.pop(key, [])

    def put_back(self, key: object, holds: list[Hold[L]]) -> None:
        """Put it before newer acquisitions. Drops released ones, except those of blocks."""
        kept = [hold for hold in holds if hold.is_block or not hold.lease._is_given_back]
        kept += self._of.pop(key, [])
        if kept:
            self._of[key] = kept

    def latest(self, key: object) -> Optional[L]:
        """The latest unreleased lease of this taker."""
        for hold in reversed(self._of.get(key, [])):
            if not hold.lease._is_given_back:
                return hold.lease
        return None

    def pop_latest(self, key: object) -> Optional[L]:
        """Remove and return it, to be released. A block keeps its own to its end."""
        for hold in reversed(self._of.get(key, [])):
            if not hold.lease._is_given_back and (hold.is_block or self._remove(key, hold)):
                return hold.lease
        return None

    def pop_of_others(self) -> Optional[L]:
        """Remove and return the latest unreleased lease of any taker that is not a block."""
        for key, holds in reversed(list(self._of.items())):
            for hold in reversed(list(holds)):
                if not hold.lease._is_given_back and not hold.is_block:
                    if self._remove(key, hold):
                        return hold.lease
        return None

    def pop_block(self, key: object) -> Optional[L]:
        """Remove and return the block that ends. A generator may end a block in another place.

        If it may belong to one of several takers, none is returned: a lease too many is better than
        one that another taker relies on.
        """
        found = [(key, hold) for hold in self._of.get(key, []) if hold.is_block]
        if not found:
            found = [
                (other, hold)
                for other, holds in list(self._of.items())
                for hold in list(holds)
                if hold.is_block and not hold.lease._is_given_back
            ]
        if not found or found[0][0] is not found[-1][0] or not self._remove(*found[-1]):
            return None
        return found[-1][1].lease

    def sweep(self, is_left: Callable[[object, L], bool]) -> None:
        """Forget released leases and those that are left behind.

        A lease without another reference is then released. Blocks are kept: their ends look for
        them.
        """
        for key, holds in list(self._of.items()):
            for hold in list(holds):
                lease = hold.lease
                if not hold.is_block and (lease._is_given_back or is_left(key, lease)):
                    self._remove(key, hold)

    def _remove(self, key: object, hold: Hold[L]) -> bool:
        """True if it was still there."""
        holds = self._of.get(key, [])
        try:
            holds.remove(hold)
        except ValueError:
            return False
        if not holds and self._of.get(key) is holds:
            self._of.pop(key, None)
            if holds:
                self._of.setdefault(key, holds)  # Its taker was quick, and has the next one.
        return True
