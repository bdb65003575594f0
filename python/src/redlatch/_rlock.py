# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Reentrant locks: the parts that both kinds share, and the lock of threads."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import NoReturn, Optional, Union

from . import _core
from ._advice import URL, no_keywords, warn_of_with
from ._base import Base
from ._convert import NO_LIMIT, Seconds, shown, to_text
from ._errors import Error
from ._holds import Hold, Holds, L, ThreadKey, owner_of, this_thread
from ._lease import Lease
from ._lock import NamedLock
from ._option_table import Keywords
from ._options import OwnedOptions, check_keywords
from ._status import Status
from ._wait import Refusal


class RLockBase(NamedLock[L]):
    """A reentrant lock. Each taker has a key, also takers that share a named owner."""

    __slots__ = ("_owner", "_options", "_holds")

    def __init__(
        self,
        client: Base,
        name: bytes,
        wait_ms: int,
        owner: Optional[bytes],
        keywords: Keywords,
    ) -> None:
        super().__init__(client, name, wait_ms)
        check_keywords(keywords)
        self._owner = owner
        self._options = OwnedOptions(True, keywords)
        self._holds: Holds[L] = Holds()

    def _leases(self) -> Iterator[L]:
        return self._holds.leases()

    def _options_of(self, taker: int) -> Optional[_core.AcquireOptions]:
        """The options of the thread or task with this number."""
        owner = self._owner
        return self._options.of(owner_of(self._client._number, taker) if owner is None else owner)

    def _to_release(self, key: object) -> L:
        """The latest lease of the taker with `key`; for a named owner, else another taker's."""
        lease = self._holds.pop_latest(key)
        if lease is None and self._owner is not None:
            lease = self._holds.pop_of_others()
        if lease is None:
            raise self._nothing_to_release()
        return lease

    def _taken_by(self) -> str:
        keys = self._holds.held()
        if self._owner is not None:
            return f" owner={to_text(self._owner)!r} count={len(keys)}"
        owner = self._shown(keys[0]) if keys else 0
        return f" owner={owner!r} count={keys.count(keys[0]) if keys else 0}"

    @staticmethod
    def _shown(key: object) -> object:
        """The name of the taker with `key` in repr()."""
        raise NotImplementedError

    @staticmethod
    def _is_gone(key: object) -> bool:
        """True if the taker with `key` has ended."""
        raise NotImplementedError

    def _sweep(self) -> None:
        """Forget leases that can no longer be released by this object."""
        is_named = self._owner is not None
        self._holds.sweep(lambda key, lease: self._is_gone(key) and not (is_named and lease.held))


class RLock(RLockBase[Lease]):
    """A reentrant lock by its name, made by Client.rlock(). Sends nothing until acquired.

    The owner may acquire it again while it holds it: at once, past the queue. The owner is the
    thread, unless a name was given. Each acquisition is a Lease of its own, and the lock is free
    when the last one has ended. As a context manager its value is the Lease. Otherwise it has the
    shape of threading.RLock.
    """

    __slots__ = ()

    _MADE_BY = f"client.rlock(name), where client = redlatch.connect({URL!r})"

    _is_gone = staticmethod(ThreadKey.is_gone)

    @property
    def lease(self) -> Optional[Lease]:
        """The latest lease that this thread acquired and did not release."""
        return self._holds.latest(this_thread.key)

    def acquire(
        self, blocking: bool = True, timeout: Seconds = None, **unknown: NoReturn
    ) -> Optional[Lease]:
        """Acquire the lock, or acquire it again. Return a Lease; None if not acquired in time.

        blocking  False: one try
        timeout   seconds to wait in the queue; -1: no limit; None: the timeout of this lock object
        """
        if unknown:
            no_keywords(unknown)
        got = self._take(self._wait_of(blocking, timeout), False)
        if isinstance(got, Lease):
            return got
        warn_of_with("acquire()", f"client.rlock({shown(self.name)})")
        return None

    def release(self) -> None:
        """Release the latest acquisition of this thread by this object.

        With a named owner any thread of the owner may release. Blocks for at most
        `command_timeout`. Raises NotHeld if there is nothing to release, LockLost if the lease had
        ended before.
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
        lease = self._holds.pop_block(this_thread.key)
        if lease is not None:
            lease._leave(exception)

    @staticmethod
    def _shown(key: object) -> object:
        return key.ident if isinstance(key, ThreadKey) else 0

    # What threading.Condition asks of its lock.

    def _is_owned(self) -> bool:
        # Check each one: any of them may be lost.
        owned = [self._owns(lease) for lease in self._holds.all_of(this_thread.key)]
        return any(owned)

    def _recursion_count(self) -> int:
        return len(self._holds.all_of(this_thread.key))

    def _release_save(self) -> list[tuple[Hold[Lease], bool]]:
        """Release all leases of this thread for a wait. Returns what _acquire_restore() takes."""
        key = this_thread.key
        if not self._recursion_count():
            raise self._nothing_to_release()
        saved = [(hold, not hold.lease._is_given_back) for hold in self._holds.take_out(key)]
        try:
            failed: Optional[Error] = None
            for hold, _ in reversed(saved):
                try:
                    hold.lease._leave(None)
                except Error as error:
                    failed = failed or error
            if failed is not None:
                raise failed
        except BaseException:
            self._holds.put_back(key, [hold for hold, _ in saved])
            raise
        return saved

    def _acquire_restore(self, saved: list[tuple[Hold[Lease], bool]]) -> None:
        """Acquire the same number of leases again, or none.

        The `timeout` of the lock is no limit: the end of a wait has the lock.
        """
        key = this_thread.key
        try:
            for hold, was_taken in saved:
                if was_taken:
                    hold.lease = self._take_again(key)
        except BaseException as error:
            for hold, _ in reversed(saved):
                hold.lease._leave(error)
            raise
        finally:
            # The ends of blocks look for them, even if the lock is not held.
            self._holds.put_back(key, [hold for hold, _ in saved])

    def _take_again(self, key: ThreadKey) -> Lease:
        got = self._client._take(self._name, NO_LIMIT, self._options_of(key.number))
        if not isinstance(got, Lease):
            raise self._not_acquired(got)
        return got

    def _take(self, wait_ms: int, is_block: bool) -> Union[Lease, Refusal]:
        key = this_thread.key
        if self._holds:
            self._sweep()
        got = self._client._take(self._name, wait_ms, self._options_of(key.number))
        if isinstance(got, Lease):
            self._holds.add(key, got, is_block)
        return got
