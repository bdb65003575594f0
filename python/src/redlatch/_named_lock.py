# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Locks by name: the parts that threads and tasks share."""

from __future__ import annotations

from typing import Any, Generic, Optional, Union, get_args

from ._advice import Made, Unique, no_keywords
from ._base import Base
from ._convert import NO_LIMIT, Name, Seconds, check_limit, shown, to_bytes, to_text, to_wait_ms
from ._errors import AlreadyHeld, Error, error_of, invalid
from ._holds import Holds, L, new_number
from ._kinds import All, Kind, Owner, Permits, Side
from ._names import Names
from ._option_table import Keywords
from ._options import RWFormat, make_options
from ._status import Status
from ._wait import Refusal, Start


class NamedLock(Unique, Generic[L], metaclass=Made):
    """A lock of some kind, and the leases that threads or tasks acquired by it."""

    __slots__ = ("_client", "_name", "_wait_ms", "_kind", "_holds", "__weakref__")

    _MADE_BY: str
    _TAKER: str
    _IN_ANOTHER_PROCESS = "send its name, and open a client and make the lock there"

    def __init__(self, client: Base, name: Name, timeout: Seconds, kind: Kind) -> None:
        self._client = client
        self._name = to_bytes(name, "name")
        self._wait_ms = to_wait_ms(timeout)
        self._kind = kind
        self._holds: Holds[L] = Holds()

    @property
    def name(self) -> str:
        """The name of the lock."""
        return to_text(self._name)

    def locked(self) -> bool:
        """Return True if the lock is held by this object or, according to the server, by anyone.

        For a Redlock: by this object; the nodes are not asked.
        """
        if any(lease.held for lease in self._holds.leases()):
            return True
        return not self._client._is_free(self._name)

    def __repr__(self) -> str:
        leases = list(self._holds.leases())
        held = next((lease for lease in leases if lease.held), None)
        lease = held or next(iter(leases), None)
        said = lease._describe() if lease is not None else f"{shown(self.name)} not held here"
        said += self._kind.taken_by(self._holds.held(), self._shown)
        return self._shape("locked" if held is not None else "unlocked", said)

    def _shape(self, state: str, said: str) -> str:
        """The text of repr(), in the form of the locks of threading."""
        kind = type(self)
        return f"<{state} {kind.__module__}.{kind.__qualname__} object {said} at {id(self):#x}>"

    @staticmethod
    def _shown(key: object) -> object:
        """The name of a taker in repr()."""
        raise NotImplementedError

    @staticmethod
    def _is_gone(key: object) -> bool:
        """True if the taker has ended."""
        raise NotImplementedError

    # ---- acquiring ----

    def _wait_of(self, blocking: bool, timeout: Seconds, unknown: dict[str, Any]) -> int:
        """The wait in ms for the arguments of acquire()."""
        if unknown:
            no_keywords(unknown)
        if not blocking and timeout is not None and timeout != NO_LIMIT:
            raise invalid(f"timeout must not be given with blocking=False (got {timeout!r})")
        wait_ms = self._wait_ms
        if timeout is not None:
            wait_ms = to_wait_ms(timeout)
            check_limit(timeout)
        return wait_ms if blocking else 0

    def _may_take(self, key: object, is_try: bool) -> bool:
        """True if a request can succeed. Raises AlreadyHeld if the taker would wait for itself."""
        self._sweep()
        lease = None if self._kind.may_nest else self._holds.latest(key)
        # What the parent of this process holds is not taken by this thread.
        if lease is None or not lease._is_of_here():
            return True
        if is_try:
            return False
        raise error_of(
            Status.E_ALREADY_HELD,
            f"lock {shown(self.name)}: this {self._TAKER} has taken it, and has to release it "
            "first",
        )

    def _refusal(self, error: AlreadyHeld) -> Refusal:
        """The refusal of a block by AlreadyHeld. Raises it if the lock is not just busy."""
        if not self._kind.is_busy(self._wait_ms):
            raise error
        text = f"lock {shown(self.name)} is busy: held by this {self._TAKER}"
        return Refusal(Status.BUSY, text)

    def _not_acquired(self, refusal: Refusal) -> Error:
        return error_of(refusal.status, refusal.message)

    def _kept(self, key: object, got: Union[L, Refusal]) -> Optional[L]:
        """The result of a request without a block; a lease is noted."""
        if isinstance(got, Refusal):
            return None
        # The end of a block releases a mutex that was released in it and acquired again.
        if not self._holds or self._kind.may_nest or not self._holds.renew_block(key, got):
            self._holds.add(key, got, False)
        return got

    def _sweep(self) -> None:
        """Forget leases that were released by themselves, and those of takers that have ended.

        A held lease is kept as long as another taker may release it.
        """
        stays = self._kind.any_may_release
        self._holds.sweep(lambda key, lease: self._is_gone(key) and not (stays and lease.held))

    # ---- releasing ----

    def _of_others(self) -> L:
        """A lease to release that another taker acquired, if any taker may."""
        lease = self._holds.pop_of_others() if self._kind.any_may_release else None
        if lease is None:
            raise self._nothing_to_release()
        return lease

    def _still_held(self, key: object, lease: L) -> None:
        """Its release failed before it began: this taker can release it again."""
        if not lease._is_block:  # A block kept it.
            self._holds.put_back(key, [lease])

    def _nothing_to_release(self) -> Error:
        text = f"lock {shown(self.name)} is not held: nothing to release"
        return error_of(Status.E_NOT_HELD, text)


class NamedSemaphore(NamedLock[L]):
    """A semaphore by its name. Only its blocks are noted: any thread or task may end a lease."""

    __slots__ = ()

    @property
    def _permits(self) -> Permits:
        assert isinstance(self._kind, Permits)
        return self._kind

    def locked(self) -> bool:
        """Return True if a caller that wants one permit would have to wait. Asks the server."""
        now = self._client._stats(self._name, self._permits.limit)
        return now.waiting > 0 or now.used >= now.limit

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {shown(self.name)} limit={self._permits.limit}>"


class NamedLocks(NamedLock[L]):
    """Several names together. Only its blocks are noted: any thread or task may end a lease."""

    __slots__ = ()

    _names: Names

    @property
    def _all(self) -> All:
        assert isinstance(self._kind, All)
        return self._kind

    @property
    def names(self) -> list[str]:
        """The names, in the order of the caller."""
        return self._names.texts

    def locked(self) -> bool:
        """Return True if one of the names has a holder, according to the server."""
        return not all(self._client._is_free(name) for name in self._names.bytes)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {shown(self.names)}>"

    def _named(self, got: Union[L, Refusal]) -> Union[L, Refusal]:
        if not isinstance(got, Refusal):
            got._names = self._names.texts
        return got


class NamedRWLock(Unique, metaclass=Made):
    """A read-write lock by its name."""

    __slots__ = ("_client", "_name", "_owner", "_format", "__weakref__")

    _MADE_BY: str
    _IN_ANOTHER_PROCESS = NamedLock._IN_ANOTHER_PROCESS

    def __init__(
        self, client: Base, name: Name, owner: Optional[Name], format: RWFormat
    ) -> None:
        self._client = client
        self._owner = Owner(owner, new_number())
        self._name = to_bytes(name, "name")
        make_options(format=format)  # A mistake shows now.
        if format not in get_args(RWFormat):
            raise invalid(
                "option 'format' must be string or hash-rw for a read-write lock "
                f"(got {shown(format)})"
            )
        self._format = format

    @property
    def name(self) -> str:
        """The name of the lock."""
        return to_text(self._name)

    def locked(self) -> bool:
        """Return True if the lock has a reader or a writer, according to the server."""
        return not self._client._is_free(self._name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {shown(self.name)}>"

    def _kind(self, start: Start, keywords: Keywords) -> Side:
        return Side(start, self._owner, keywords, self._format)
