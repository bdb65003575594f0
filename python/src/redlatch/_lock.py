# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Locks by name: the parts that all kinds share, and the lock of threads."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Generic, NoReturn, Optional, Union

from . import _core
from ._advice import URL, Made, Unique, no_keywords
from ._base import Base
from ._convert import NO_LIMIT, Seconds, check_limit, shown, to_text, to_wait_ms
from ._errors import Error, error_of, invalid
from ._holds import Hold, L, ThreadKey, this_thread
from ._lease import Lease
from ._status import Status
from ._wait import Refusal


class NamedLock(Unique, Generic[L], metaclass=Made):
    """The parts that all kinds of lock objects share."""

    __slots__ = ("_client", "_name", "_wait_ms", "__weakref__")

    _MADE_BY: str
    _IN_ANOTHER_PROCESS = "send its name, and open a client and make the lock there"

    def __init__(self, client: Base, name: bytes, wait_ms: int) -> None:
        self._client = client
        self._name = name
        self._wait_ms = wait_ms

    @property
    def name(self) -> str:
        """The name of the lock."""
        return to_text(self._name)

    def locked(self) -> bool:
        """Return True if the lock is held by this object or, according to the server, by anyone.

        For a Redlock: by this object; the nodes are not asked.
        """
        if any(lease.held for lease in self._leases()):
            return True
        return not self._client._is_free(self._name)

    def __repr__(self) -> str:
        leases = list(self._leases())
        held = next((lease for lease in leases if lease.held), None)
        lease = held or next(iter(leases), None)
        said = lease._describe() if lease is not None else f"{shown(self.name)} not held here"
        return self._shape("locked" if held is not None else "unlocked", said + self._taken_by())

    def _shape(self, state: str, said: str) -> str:
        """The text of repr(), in the form of the locks of threading."""
        kind = type(self)
        return f"<{state} {kind.__module__}.{kind.__qualname__} object {said} at {id(self):#x}>"

    def _taken_by(self) -> str:
        """The rest of the text of repr()."""
        return ""

    def _leases(self) -> Iterator[L]:
        """The leases that this object acquired and did not release, the latest first."""
        raise NotImplementedError

    def _wait_of(self, blocking: bool, timeout: Seconds) -> int:
        """The wait in ms for the arguments of acquire()."""
        if not blocking and timeout is not None and timeout != NO_LIMIT:
            raise invalid(f"timeout must not be given with blocking=False (got {timeout!r})")
        wait_ms = self._wait_ms if timeout is None else to_wait_ms(timeout)
        check_limit(timeout)
        return wait_ms if blocking else 0

    def _not_acquired(self, refusal: Refusal) -> Error:
        return error_of(refusal.status, refusal.message)

    def _owns(self, lease: L) -> bool:
        """True if this thread holds the lock. Raises LockLost if the lock was lost."""
        if lease._is_given_back or _core.lease_state(lease._handle) == 0:
            return False  # Or the parent of this forked process holds it.
        error = lease._loss()
        if error is not None:
            raise error
        return True

    def _nothing_to_release(self) -> Error:
        text = f"lock {shown(self.name)} is not held: nothing to release"
        return error_of(Status.E_NOT_HELD, text)


class LockBase(NamedLock[L]):
    """The holders of a lock object: threads or tasks, each with a key."""

    __slots__ = ("_options", "_holds")

    _TAKER: str

    def __init__(
        self,
        client: Base,
        name: bytes,
        wait_ms: int,
        options: Optional[_core.AcquireOptions],
    ) -> None:
        super().__init__(client, name, wait_ms)
        self._options = options
        # By the keys of takers, in the order of taking. More than one only after a loss, when the
        # next may have the lock before the former has released.
        self._holds: dict[object, Hold[L]] = {}

    def _leases(self) -> Iterator[L]:
        for hold in reversed(list(self._holds.values())):
            if not hold.lease._is_given_back:
                yield hold.lease

    def _lease_of(self, key: object) -> Optional[L]:
        hold = self._holds.get(key)
        return hold.lease if hold is not None else None

    def _may_take(self, key: object, wait_ms: int, is_block: bool) -> bool:
        """True if a request can succeed. Raises AlreadyHeld if the taker would wait for itself."""
        hold = self._holds.get(key)
        if hold is None or not self._is_ours(hold.lease):
            return True
        if wait_ms == 0 and not is_block:
            return False
        raise error_of(
            Status.E_ALREADY_HELD,
            f"lock {shown(self.name)}: this {self._TAKER} has taken it, and has to release it "
            "first",
        )

    def _is_ours(self, lease: L) -> bool:
        # What the parent of this process holds is not taken by this thread.
        return not lease._is_given_back and _core.lease_state(lease._handle) != 0

    def _to_release(self, key: object) -> L:
        """The lease of the taker with `key`, else one that another taker acquired."""
        hold = self._holds.get(key)
        if hold is not None and not hold.lease._is_given_back:
            if not hold.is_block:
                self._holds.pop(key, None)
        else:
            hold = self._pop_latest(is_block=False)
        if hold is None:
            raise self._nothing_to_release()
        return hold.lease

    @staticmethod
    def _is_gone(key: object) -> bool:
        """True if the taker with `key` has ended."""
        raise NotImplementedError

    def _sweep(self) -> None:
        """Forget leases that were released by themselves, and ended ones of takers that have ended.

        Blocks are kept: their ends look for them.
        """
        for key, hold in list(self._holds.items()):
            if hold.is_block:
                continue
            lease = hold.lease
            if not lease._is_given_back and (lease.held or not self._is_gone(key)):
                continue
            found = self._holds.pop(key, None)
            if found is not None and found is not hold:
                self._holds.setdefault(key, found)  # Its taker was quick, and has the next one.

    def _pop_block(self, key: object) -> Optional[Hold[L]]:
        # A generator may end its block elsewhere than it began.
        return self._holds.pop(key, None) or self._pop_latest(is_block=True)

    def _pop_latest(self, is_block: bool) -> Optional[Hold[L]]:
        """Remove and return the latest unreleased lease of another taker."""
        for key, hold in reversed(list(self._holds.items())):
            if hold.is_block == is_block and not hold.lease._is_given_back:
                return self._holds.pop(key, None)
        return None


class Lock(LockBase[Lease]):
    """A lock by its name, made by Client.lock() and Redlock.lock(). Sends nothing until acquired.

    As a context manager its value is the Lease; NotAcquired is raised if the wait times out.
    Otherwise it has the shape of threading.Lock: threads may share it, and any thread may release
    it. A thread that acquires it twice would wait for itself, which raises AlreadyHeld.
    """

    __slots__ = ()

    _MADE_BY = f"client.lock(name), where client = redlatch.connect({URL!r})"
    _TAKER = "thread"

    _is_gone = staticmethod(ThreadKey.is_gone)

    @property
    def lease(self) -> Optional[Lease]:
        """The lease by which this thread holds the lock; None if it has no lease."""
        return self._lease_of(this_thread.key)

    def acquire(
        self, blocking: bool = True, timeout: Seconds = None, **unknown: NoReturn
    ) -> bool:
        """Acquire the lock as threading.Lock does. Return True if it was acquired.

        blocking  False: one try
        timeout   seconds to wait in the queue; -1: no limit; None: the timeout of this lock object

        Raises AlreadyHeld if this thread has the lock, Unavailable if the server could not be
        reached in time.
        """
        if unknown:
            no_keywords(unknown)
        return isinstance(self._take(self._wait_of(blocking, timeout), False), Lease)

    def release(self) -> None:
        """Release the lease of this thread, else that of another thread, as threading.Lock does.

        Blocks for at most `command_timeout`. Raises LockLost if the lease had ended before, NotHeld
        if there is nothing to release.
        """
        self._to_release(this_thread.key).release()

    def __enter__(self) -> Lease:
        got = self._take(self._wait_ms, True)
        if isinstance(got, Lease):
            return got
        raise self._not_acquired(got)

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        hold = self._pop_block(this_thread.key)
        if hold is not None:
            hold.lease._leave(exception)

    # What threading.Condition asks of its lock.

    def _is_owned(self) -> bool:
        hold = self._holds.get(this_thread.key)
        return hold is not None and self._owns(hold.lease)

    def _release_save(self) -> bool:
        """Release the lock for a wait. Return True if a `with` block had acquired it."""
        key = this_thread.key
        hold = self._holds.get(key)
        if hold is None or hold.lease._is_given_back:
            raise self._nothing_to_release()
        self._to_release(key)._leave(None)
        return hold.is_block

    def _acquire_restore(self, is_block: bool) -> None:
        """Acquire the lock again, without its `timeout`: a wait must end with the lock."""
        got = self._take(NO_LIMIT, is_block)
        if not isinstance(got, Lease):
            raise self._not_acquired(got)

    def _take(self, wait_ms: int, is_block: bool) -> Union[Lease, Refusal]:
        key = this_thread.key
        if not self._may_take(key, wait_ms, is_block):
            return Refusal(Status.BUSY, f"lock {shown(self.name)} is busy: held by this thread")
        got = self._client._take(self._name, wait_ms, self._options)
        if isinstance(got, Lease):
            if self._holds:
                self._sweep()
            self._holds[key] = Hold(got, is_block)
        return got
