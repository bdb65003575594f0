# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The kinds of locks, each once for threads and tasks.

A taker is a thread or a task, known by its key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

from . import _core
from ._convert import Name, Seconds, to_text
from ._errors import Error, error_of
from ._holds import owner_of
from ._option_table import OF_REDLOCK, Keywords
from ._options import (
    OwnedOptions,
    RWFormat,
    check_owner,
    check_permits,
    make_options,
    make_permits_options,
)
from ._status import Status
from ._wait import ACQUIRE, ACQUIRE_ALL, Start


class Kind:
    """A kind decides how an acquisition starts, and which rights its takers have."""

    __slots__ = ()

    start: Start
    # False: a second acquisition of a taker would wait for the first one.
    may_nest: bool
    # True: a taker may release a lease that another taker acquired.
    any_may_release: bool

    def options_of(self, key: object) -> Optional[_core.AcquireOptions]:
        """The options of an acquisition by this taker."""
        raise NotImplementedError

    def is_busy(self, wait_ms: int) -> bool:
        """True if AlreadyHeld for a block only means that the lock is busy."""
        return False

    def taken_by(self, keys: Sequence[object], shown: Callable[[object], object]) -> str:
        """The end of the text of repr(). `keys` has the key of the taker of each held lease."""
        return ""


class Mutex(Kind):
    """A lock that a taker acquires once, and any taker may release."""

    __slots__ = ("_options",)

    start = ACQUIRE
    may_nest = False
    any_may_release = True

    def __init__(self, options: Optional[_core.AcquireOptions]) -> None:
        self._options = options

    def options_of(self, key: object) -> Optional[_core.AcquireOptions]:
        return self._options


class Owner:
    """The owner of acquisitions: a named one, else each taker of the object with a number."""

    __slots__ = ("named", "_number")

    def __init__(self, name: Optional[Name], number: int) -> None:
        self.named = None if name is None else check_owner(name)
        self._number = number

    def of(self, key: object) -> bytes:
        return owner_of(self._number, key) if self.named is None else self.named


class Reentrant(Kind):
    """A lock that its owner may acquire any number of times."""

    __slots__ = ("_owner", "_options", "any_may_release")

    start = ACQUIRE
    may_nest = True

    def __init__(self, owner: Owner, keywords: Keywords) -> None:
        self._owner = owner
        self._options = OwnedOptions(True, keywords)
        self.any_may_release = owner.named is not None

    def options_of(self, key: object) -> Optional[_core.AcquireOptions]:
        return self._options.of(self._owner.of(key))

    def taken_by(self, keys: Sequence[object], shown: Callable[[object], object]) -> str:
        if self._owner.named is not None:
            return f" owner={to_text(self._owner.named)!r} count={len(keys)}"
        owner = shown(keys[0]) if keys else 0
        return f" owner={owner!r} count={keys.count(keys[0]) if keys else 0}"


class Permits(Kind):
    """Permits of a semaphore. Each acquisition is a lease of its own, also those of one taker."""

    __slots__ = ("limit", "_keywords", "_one")

    start = ACQUIRE
    may_nest = True
    any_may_release = False

    def __init__(self, limit: int, keywords: Keywords) -> None:
        self.limit = limit
        self._keywords: dict[str, Any] = {**keywords}
        self._one = make_permits_options(1, limit, self._keywords)  # A mistake shows now.

    def options_of(self, key: object) -> _core.AcquireOptions:
        return self._one

    def options_of_lease(self, permits: int, ttl: Seconds) -> _core.AcquireOptions:
        """The options of an acquisition of so many permits."""
        check_permits(permits)
        if permits == 1 and ttl is None:
            return self._one
        return make_permits_options(permits, self.limit, self._with(ttl))

    def options_of_attach(self, permits: int, ttl: Seconds) -> _core.AcquireOptions:
        """Those of an attach, which has fewer."""
        check_permits(permits)
        keywords = {name: value for name, value in self._with(ttl).items() if name in OF_REDLOCK}
        return make_permits_options(permits, self.limit, keywords)

    def _with(self, ttl: Seconds) -> Mapping[str, Any]:
        return self._keywords if ttl is None else {**self._keywords, "ttl": ttl}


class All(Kind):
    """Several names together. A second acquisition of a taker would wait for the first one."""

    __slots__ = ("_keywords", "_options")

    start = ACQUIRE_ALL
    may_nest = False
    any_may_release = False

    def __init__(self, keywords: Keywords) -> None:
        self._keywords: dict[str, Any] = {**keywords}
        self._options = make_options(**self._keywords)  # A mistake shows now.

    def options_of(self, key: object) -> Optional[_core.AcquireOptions]:
        return self._options

    def options_of_lease(self, ttl: Seconds) -> Optional[_core.AcquireOptions]:
        """The options of an acquisition with its own ttl; None: that of the object."""
        if ttl is None:
            return self._options
        return make_options(**{**self._keywords, "ttl": ttl})


def no_semaphore() -> Error:
    """Why a Redlock has none."""
    return error_of(
        Status.E_UNSUPPORTED,
        "a semaphore needs one server: two permits on three nodes could have three holders",
    )


class Side(Kind):
    """One side of a read-write lock.

    A block cannot be handed over, so a second one of the same taker would wait for itself: a taker
    owns its blocks. A lease without a block can be handed over: it has no owner unless one was
    named.
    """

    __slots__ = ("start", "_owner", "_options")

    may_nest = True  # The library refuses what would wait for itself.
    any_may_release = False

    def __init__(self, start: Start, owner: Owner, keywords: Keywords, format: RWFormat) -> None:
        self.start = start
        self._owner = owner
        self._options = OwnedOptions(False, keywords, format=format)

    def options_of(self, key: object) -> Optional[_core.AcquireOptions]:
        return self._options.of(self._owner.of(key))

    def options_of_lease(self) -> Optional[_core.AcquireOptions]:
        """The options of a lease without a block."""
        return self._options.of(self._owner.named)

    def is_busy(self, wait_ms: int) -> bool:
        # One try does not wait, and no owner was named.
        return wait_ms == 0 and self._owner.named is None
