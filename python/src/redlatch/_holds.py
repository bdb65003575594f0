# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The leases of lock objects by their takers, and the owners that the library sees."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, Optional, TypeVar
from weakref import WeakKeyDictionary, ref

from ._hub import current_greenlet, kind_here, new_thread_local
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
        key: Optional[ThreadKey]
        # A program without greenlets does not pay for the second question.
        if kind_here() is None or (greenlet := current_greenlet()) is None:
            try:
                key = _of_thread.key
            except AttributeError:
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

_task_numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def new_number() -> int:
    """The number of a new client or lock object whose takers are owners."""
    return next(_numbers)


def owner_of(maker: int, key: object) -> bytes:
    """The owner name of a thread or task for `maker`."""
    return f"{_Process.name}:{maker}:{_number_of(key)}".encode()


def _number_of(key: object) -> int:
    if isinstance(key, ThreadKey):
        return key.number
    assert key is not None  # who else could await
    number = _task_numbers.get(key)
    if number is None:
        number = _task_numbers[key] = next(_numbers)
    return number


class Holds(dict[object, list[L]]):
    """The leases that threads or tasks acquired by one lock object, any number each, by their keys.

    Each change is a single step, so that threads need no lock: a forked child might find it locked.
    """

    __slots__ = ("_has_others",)

    def __init__(self) -> None:
        self._has_others = False  # There may be some that are not blocks.

    def add(self, key: object, lease: L, is_block: bool) -> None:
        lease._is_block = is_block
        mine = self.get(key)
        if mine is None:
            self[key] = [lease]
        else:
            mine.append(lease)
            self[key] = mine  # Another taker may just have removed the list.
        if not is_block:
            self._has_others = True

    def renew_block(self, key: object, lease: L) -> bool:
        """Put `lease` into the innermost block of this taker that has a released one."""
        mine = self.get(key, [])
        for old in reversed(mine):
            if old._is_block and old._is_given_back:
                lease._take_place_of(old)
                mine[mine.index(old)] = lease
                return True
        return False

    def leases(self) -> Iterator[L]:
        """The unreleased leases: those of the latest taker first, and of each its latest first."""
        for leases in reversed(list(self.values())):
            for lease in reversed(list(leases)):
                if not lease._is_given_back:
                    yield lease

    def held(self) -> list[object]:
        """The keys of the takers, each once for each lease that is held."""
        return [
            key
            for key, leases in list(self.items())
            for lease in list(leases)
            if not lease._is_given_back and lease.held
        ]

    def all_of(self, key: object) -> list[L]:
        """The unreleased acquisitions of this taker."""
        return [lease for lease in self.get(key, ()) if not lease._is_given_back]

    def take_out(self, key: object) -> list[L]:
        """The state of this taker, for put_back()."""
        return self.pop(key, [])

    def put_back(self, key: object, leases: list[L]) -> None:
        """Put it before newer acquisitions. Drops released ones, except those of blocks."""
        kept = [lease for lease in leases if lease._is_block or not lease._is_given_back]
        kept += self.pop(key, [])
        if kept:
            self[key] = kept
            self._has_others = True

    def latest(self, key: object) -> Optional[L]:
        """The latest unreleased lease of this taker."""
        for lease in reversed(self.get(key, ())):
            if not lease._is_given_back:
                return lease
        return None

    def pop_latest(self, key: object) -> Optional[L]:
        """Remove and return it, to be released. A block keeps its own to its end."""
        mine = self.get(key, [])
        for lease in reversed(mine):
            if not lease._is_given_back and (lease._is_block or self._remove(key, mine, lease)):
                return lease
        return None

    def pop_of_others(self) -> Optional[L]:
        """Remove and return the latest unreleased lease of any taker that is not a block."""
        for key, leases in reversed(list(self.items())):
            for lease in reversed(list(leases)):
                if not lease._is_given_back and not lease._is_block:
                    if self._remove(key, leases, lease):
                        return lease
        return None

    def pop_block(self, key: object) -> Optional[L]:
        """Remove and return the block that ends. A generator may end a block in another place.

        If it may belong to one of several takers, a lost one is returned, else none: a lease too
        many is better than one that another taker relies on.
        """
        mine = self.get(key)
        if mine is not None:
            if len(mine) == 1 and mine[0]._is_block:
                # As nearly always. Only one end can come for the only block.
                self.pop(key, None)
                return mine.pop()
            for lease in reversed(mine):
                if lease._is_block:
                    return lease if self._remove(key, mine, lease) else None
        found = [
            (other, leases, lease)
            for other, leases in list(self.items())
            for lease in list(leases)
            if lease._is_block and not lease._is_given_back
        ]
        if found and found[0][0] is not found[-1][0]:
            found = [one for one in found if not one[2].held]
        return found[-1][2] if found and self._remove(*found[-1]) else None

    def sweep(self, is_left: Callable[[object, L], bool]) -> None:
        """Forget released leases and those that are left behind.

        A lease without another reference is then released. Blocks are kept: their ends look for
        them.
        """
        if not self._has_others:
            return
        self._has_others = False  # First: another thread may add one meanwhile.
        for key, leases in list(self.items()):
            for lease in list(leases):
                if lease._is_block:
                    continue
                if lease._is_given_back or is_left(key, lease):
                    self._remove(key, leases, lease)
                else:
                    self._has_others = True

    def _remove(self, key: object, leases: list[L], lease: L) -> bool:
        """True if it was still there. `leases` are those of `key`."""
        try:
            leases.remove(lease)
        except ValueError:
            return False
        if not leases and self.get(key) is leases:
            self.pop(key, None)
            if leases:
                self.setdefault(key, leases)  # Its taker was quick, and has the next one.
        return True
