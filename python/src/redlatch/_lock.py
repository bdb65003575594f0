# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Locks by name, for threads."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Optional, Union

from . import _core
from ._advice import URL, made, warn_of_with
from ._base import Base
from ._convert import NO_LIMIT, Name, Seconds, check_fence, shown, to_bytes
from ._errors import AlreadyHeld, Error, NoMemory
from ._holds import ThreadKey, this_thread
from ._info import SemaphoreStats
from ._kinds import All
from ._lease import Lease
from ._named_lock import NamedLock, NamedLocks, NamedRWLock, NamedSemaphore
from ._names import Names
from ._option_table import Keywords
from ._wait import ACQUIRE_ALL, ACQUIRE_READ, ACQUIRE_WRITE, Refusal, Start

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ThreadLock(NamedLock[Lease]):
    """A lock for threads: how they acquire, and their blocks."""

    __slots__ = ()

    _TAKER = "thread"

    _is_gone = staticmethod(ThreadKey.is_gone)

    @staticmethod
    def _shown(key: object) -> object:
        return key.ident if isinstance(key, ThreadKey) else 0

    def _take(self, key: ThreadKey, wait_ms: int) -> Union[Lease, Refusal]:
        kind = self._kind
        return self._client._take(self._name, wait_ms, kind.options_of(key), kind.start)

    def _acquire(
        self, blocking: bool, timeout: Seconds, unknown: dict[str, NoReturn]
    ) -> Optional[Lease]:
        wait_ms = self._wait_of(blocking, timeout, unknown)
        key = this_thread.key
        if self._holds and not self._may_take(key, wait_ms == 0):
            return None
        return self._kept(key, self._take(key, wait_ms))

    def __enter__(self) -> Lease:
        key = this_thread.key
        if self._holds:
            self._may_take(key, False)
        try:
            got = self._take(key, self._wait_ms)
        except AlreadyHeld as error:
            got = self._refusal(error)
        if not isinstance(got, Lease):
            raise self._not_acquired(got)
        self._holds.add(key, got, True)
        return got

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        lease = self._holds.pop_block(this_thread.key)
        if lease is not None:
            lease._leave(exception)


class OwnedLock(ThreadLock):
    """A lock of a thread for threading.Condition, which calls these methods."""

    __slots__ = ()

    def _release(self) -> None:
        key = this_thread.key
        lease = self._holds.pop_latest(key) or self._of_others()
        try:
            lease.release()
        except NoMemory:
            self._still_held(key, lease)
            raise

    def _is_owned(self) -> bool:
        # Check each one: any of them may be lost.
        owned = [self._owns(lease) for lease in self._holds.all_of(this_thread.key)]
        return any(owned)

    def _owns(self, lease: Lease) -> bool:
        """True if this thread holds the lock. Raises LockLost if the lock was lost."""
        if not lease._is_of_here():
            return False
        error = lease._loss()
        if error is not None:
            raise error
        return True

    def _recursion_count(self) -> int:
        return sum(lease._is_of_here() for lease in self._holds.all_of(this_thread.key))

    def _release_save(self) -> list[tuple[Lease, bool]]:
        """Release all leases of this thread for a wait. Returns what _acquire_restore() takes."""
        key = this_thread.key
        if not self._recursion_count():
            raise self._nothing_to_release()
        saved = [
            (lease, not lease._is_given_back and lease._is_of_here())
            for lease in self._holds.take_out(key)
        ]
        try:
            failed: Optional[Error] = None
            for lease, is_taken in reversed(saved):
                try:
                    if is_taken:
                        lease._leave(None)
                except Error as error:
                    failed = failed or error
            if failed is not None:
                raise failed
        except BaseException:
            self._holds.put_back(key, [lease for lease, _ in saved])
            raise
        return saved

    def _acquire_restore(self, saved: list[tuple[Lease, bool]]) -> None:
        """Acquire the same number of leases again, or none.

        The `timeout` of the lock is no limit: the end of a wait has the lock.
        """
        key = this_thread.key
        leases = [lease for lease, _ in saved]
        try:
            for i, (lease, was_taken) in enumerate(saved):
                if was_taken:
                    leases[i] = self._take_again(key, lease._is_block)
        except BaseException as error:
            for lease, (_, was_taken) in zip(reversed(leases), reversed(saved)):
                if was_taken:
                    lease._leave(error)
            raise
        finally:
            # The ends of blocks look for them, even if the lock is not held.
            self._holds.put_back(key, leases)

    def _take_again(self, key: ThreadKey, is_block: bool) -> Lease:
        got = self._take(key, NO_LIMIT)
        if not isinstance(got, Lease):
            raise self._not_acquired(got)
        got._is_block = is_block
        return got


class Lock(OwnedLock):
    """A lock by its name, made by Client.lock() and Redlock.lock(). Sends nothing until acquired.

    As a context manager its value is the Lease; NotAcquired is raised if the wait times out.
    Otherwise it has the shape of threading.Lock: threads may share it, and any thread may release
    it. A block is an exception: release() in another thread does not release it, also if it was
    released and acquired again in the block, and raises NotHeld. A thread that acquires the lock
    twice would wait for itself, which raises AlreadyHeld.
    """

    __slots__ = ()

    _MADE_BY = f"client.lock(name), where client = redlatch.connect({URL!r})"

    @property
    def lease(self) -> Optional[Lease]:
        """The lease by which this thread holds the lock; None if it has no lease."""
        return self._holds.latest(this_thread.key)

    def acquire(
        self, blocking: bool = True, timeout: Seconds = None, **unknown: NoReturn
    ) -> bool:
        """Acquire the lock as threading.Lock does. Return True if it was acquired.

        blocking  False: one try
        timeout   seconds to wait in the queue; -1: no limit; None: the timeout of this lock object

        Raises AlreadyHeld if this thread has the lock, Unavailable if the server could not be
        reached in time.
        """
        return self._acquire(blocking, timeout, unknown) is not None

    def release(self) -> None:
        """Release the lease of this thread, else that of another thread, as threading.Lock does.

        Blocks for at most `command_timeout`. Raises LockLost if the lease had ended before, NotHeld
        if there is nothing to release.
        """
        self._release()


class RLock(OwnedLock):
    """A reentrant lock by its name, made by Client.rlock(). Sends nothing until acquired.

    The owner may acquire it again while it holds it: at once, past the queue. The owner is the
    thread, unless a name was given. Each acquisition is a Lease of its own, and the lock is free
    when the last one has ended. As a context manager its value is the Lease. Otherwise it has the
    shape of threading.RLock.
    """

    __slots__ = ()

    _MADE_BY = f"client.rlock(name), where client = redlatch.connect({URL!r})"

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
        lease = self._acquire(blocking, timeout, unknown)
        if lease is None:
            warn_of_with("acquire()", f"client.rlock({shown(self.name)})")
        return lease

    def release(self) -> None:
        """Release the latest acquisition of this thread by this object.

        With a named owner any thread of the owner may release. Blocks for at most
        `command_timeout`. Raises NotHeld if there is nothing to release, LockLost if the lease had
        ended before.
        """
        self._release()


class Semaphore(NamedSemaphore[Lease], ThreadLock):
    """A semaphore by its name, made by Client.semaphore(). Sends nothing until acquired.

    As a context manager it takes one permit, and its value is the Lease; NotAcquired is raised if
    the wait times out. Threads may share it, and nest its blocks: each block takes another permit,
    so a thread that nests may wait for itself. There is no release(): a lease is released, with all
    its permits.

        pool = client.semaphore("pool", 3)
        with pool:  # one of three
            ...
        with pool.acquire(2) as lease:  # two permits, without a limit of the wait
            ...
    """

    __slots__ = ()

    _MADE_BY = f"client.semaphore(name, limit), where client = redlatch.connect({URL!r})"

    def acquire(
        self,
        permits: int = 1,
        *,
        blocking: bool = True,
        timeout: Seconds = None,
        ttl: Seconds = None,
        **unknown: NoReturn,
    ) -> Optional[Lease]:
        """Acquire `permits` permits together. Return a Lease; None if not acquired in time.

        permits   1 to the limit
        blocking  False: one try
        timeout   seconds to wait in the queue; -1: no limit; None: the timeout of this object
        ttl       as for Client.lock(); None: that of this object

        The lease belongs to no thread: any thread may release it.
        """
        options = self._permits.options_of_lease(permits, ttl)
        wait_ms = self._wait_of(blocking, timeout, unknown)
        got = self._client._take(self._name, wait_ms, options)
        if isinstance(got, Lease):
            return got
        warn_of_with("acquire()", f"client.semaphore({shown(self.name)}, limit)")
        return None

    def attach(
        self, token: Name, permits: int = 1, *, fence: int = 0, ttl: Seconds = None
    ) -> Lease:
        """Take over a lease that was detached. Return the new Lease.

        permits  those of the detached lease

        The keywords ttl, renew, max_hold and label of this object apply. Otherwise as
        Client.attach().
        """
        options = self._permits.options_of_attach(permits, ttl)
        token_bytes, fence_number = to_bytes(token, "token"), check_fence(fence)
        return self._client._attach(self._name, token_bytes, fence_number, options)

    def stats(self) -> SemaphoreStats:
        """Return the numbers of the semaphore, as the server has them. Changes nothing."""
        return self._client._stats(self._name, self._permits.limit)


class Locks(NamedLocks[Lease], ThreadLock):
    """Several names together, made by Client.lock_all() and lock_path(). Sends nothing until
    acquired.

    As a context manager its value is the Lease, which has all names; NotAcquired is raised if the
    wait times out. Threads may share it. There is no release(): a lease is released, with all its
    names.
    """

    __slots__ = ("_names",)

    _MADE_BY = f"client.lock_all(names), where client = redlatch.connect({URL!r})"

    def __init__(self, client: Base, names: Names, timeout: Seconds, kind: All) -> None:
        self._names = names
        super().__init__(client, names.bytes[0], timeout, kind)

    def _take(self, key: ThreadKey, wait_ms: int) -> Union[Lease, Refusal]:
        return self._take_all(wait_ms, self._all.options_of(key))

    def _take_all(
        self, wait_ms: int, options: Optional[_core.AcquireOptions]
    ) -> Union[Lease, Refusal]:
        return self._named(
            self._client._take(self._names.handle, wait_ms, options, ACQUIRE_ALL)
        )

    def acquire(
        self,
        *,
        blocking: bool = True,
        timeout: Seconds = None,
        ttl: Seconds = None,
        **unknown: NoReturn,
    ) -> Optional[Lease]:
        """Acquire all names. Return a Lease; None if not acquired in time.

        blocking  False: one try
        timeout   seconds to wait in the queues; -1: no limit; None: the timeout of this object
        ttl       as for Client.lock(); None: that of this object

        The lease belongs to no thread: any thread may release it.
        """
        wait_ms = self._wait_of(blocking, timeout, unknown)
        got = self._take_all(wait_ms, self._all.options_of_lease(ttl))
        if isinstance(got, Lease):
            return got
        warn_of_with("acquire()", "client.lock_all(names)")
        return None


class RWSide(ThreadLock):
    """One side of a read-write lock, made by RWLock.read() and RWLock.write(), for `with`.

    The value of the block is the Lease. NotAcquired is raised if the wait times out. Threads may
    share it, and nest its blocks.
    """

    __slots__ = ()

    _MADE_BY = "client.rwlock(name).read() and .write()"


class RWLock(NamedRWLock):
    """A read-write lock by its name, made by Client.rwlock(): many readers, or one writer.

    Threads may share it. Readers and writers have one queue: a reader waits behind a writer that
    came before it, and readers next to each other enter together. A thread that is in a block of
    this object may read again in it, at once; any other second block would wait for itself, and
    raises AlreadyHeld. With timeout=0, one try, it raises NotAcquired instead, as if another thread
    had the lock, unless an owner was named.
    """

    __slots__ = ()

    _MADE_BY = f"client.rwlock(name), where client = redlatch.connect({URL!r})"

    def read(self, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[Keywords]) -> RWSide:
        """Return the read side, for `with`: the block reads, together with other readers.

        timeout  seconds to wait in the queue; -1 or None: no limit; 0: one try

        The other keywords are those of Client.lock(). Sends nothing.
        """
        return self._side(ACQUIRE_READ, timeout, keywords)

    def write(self, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[Keywords]) -> RWSide:
        """Return the write side, for `with`: the block writes, alone. Otherwise as read()."""
        return self._side(ACQUIRE_WRITE, timeout, keywords)

    def acquire_read(
        self, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[Keywords]
    ) -> Optional[Lease]:
        """Acquire the lock to read and return a Lease; None if not acquired within `timeout`.

        The lease belongs to no thread unless an owner was named: any thread may release it. The
        keywords are those of read().
        """
        lease = self._acquire(ACQUIRE_READ, timeout, keywords)
        if lease is None:
            warn_of_with("acquire_read()", "read()")
        return lease

    def acquire_write(
        self, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[Keywords]
    ) -> Optional[Lease]:
        """Acquire the lock to write. Otherwise as acquire_read()."""
        lease = self._acquire(ACQUIRE_WRITE, timeout, keywords)
        if lease is None:
            warn_of_with("acquire_write()", "write()")
        return lease

    def _side(self, start: Start, timeout: Seconds, keywords: Keywords) -> RWSide:
        return made(RWSide, self._client, self._name, timeout, self._kind(start, keywords))

    def _acquire(
        self, start: Start, timeout: Seconds, keywords: Keywords
    ) -> Optional[Lease]:
        options = self._kind(start, keywords).options_of_lease()
        return self._client._acquire(self._name, timeout, options, start)
