# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Read-write locks: the parts that both kinds share, and the lock of threads."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Optional, Union, cast, get_args

from . import _core
from ._advice import URL, Made, Unique, made, warn_of_with
from ._base import Base
from ._convert import NO_LIMIT, Seconds, shown, to_text, to_wait_ms
from ._errors import AlreadyHeld, invalid
from ._holds import Holds, L, new_number, owner_of, this_thread
from ._lease import Lease
from ._lock import NamedLock
from ._option_table import Keywords, LockKeywords
from ._options import OwnedOptions, RWFormat, check_keywords, make_options
from ._status import Status
from ._wait import ACQUIRE_READ, ACQUIRE_WRITE, Refusal, Start

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RWOwner:
    """The owner of a read-write lock: a named one, else each thread or task for its blocks.

    A block cannot be handed over, so a second one of the same taker would wait for itself. A lease
    without a block can be handed over: it has no owner unless one was named.
    """

    __slots__ = ("named", "_number")

    def __init__(self, named: Optional[bytes]) -> None:
        self.named: Optional[bytes] = named
        self._number = new_number()

    def of_block(self, taker: int) -> bytes:
        return owner_of(self._number, taker) if self.named is None else self.named


class RWSideBase(NamedLock[L]):
    """One side of a read-write lock, for blocks."""

    __slots__ = ("_owner", "_options", "_holds")

    def __init__(
        self, client: Base, name: bytes, wait_ms: int, owner: RWOwner, keywords: LockKeywords
    ) -> None:
        super().__init__(client, name, wait_ms)
        self._owner = owner
        self._options = OwnedOptions(False, keywords)
        self._holds: Holds[L] = Holds()

    def _leases(self) -> Iterator[L]:
        return self._holds.leases()

    def _options_of(self, taker: int) -> Optional[_core.AcquireOptions]:
        """The options of the thread or task with this number."""
        return self._options.of(self._owner.of_block(taker))

    def _refused(self, error: AlreadyHeld) -> Exception:
        """The exception of a block that would wait for its own thread or task."""
        # One try does not wait, and no owner was named.
        if self._wait_ms == 0 and self._owner.named is None:
            text = f"lock {shown(self.name)} is busy: held by this thread"
            return self._not_acquired(Refusal(Status.BUSY, text))
        return error


class RWSide(RWSideBase[Lease]):
    """One side of a read-write lock, made by RWLock.read() and RWLock.write(), for `with`.

    The value of the block is the Lease. NotAcquired is raised if the wait times out. Threads may
    share it, and nest its blocks.
    """

    __slots__ = ("_start",)

    _MADE_BY = "client.rwlock(name).read() and .write()"

    def __init__(
        self,
        client: Base,
        name: bytes,
        wait_ms: int,
        owner: RWOwner,
        keywords: LockKeywords,
        start: Start,
    ) -> None:
        super().__init__(client, name, wait_ms, owner, keywords)
        self._start = start

    def __enter__(self) -> Lease:
        key = this_thread.key
        options = self._options_of(key.number)
        try:
            got = self._client._take(self._name, self._wait_ms, options, self._start)
        except AlreadyHeld as error:
            raise self._refused(error) from None
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


class RWLockBase(Unique, metaclass=Made):
    """A read-write lock by its name."""

    __slots__ = ("_client", "_name", "_owner", "_format", "__weakref__")

    _MADE_BY: str
    _IN_ANOTHER_PROCESS = NamedLock._IN_ANOTHER_PROCESS

    def __init__(
        self, client: Base, name: bytes, owner: Optional[bytes], format: RWFormat
    ) -> None:
        make_options(format=format)  # A mistake shows now.
        if format not in get_args(RWFormat):
            raise invalid(
                "option 'format' must be string or hash-rw for a read-write lock "
                f"(got {shown(format)})"
            )
        self._client = client
        self._name = name
        self._owner = RWOwner(owner)
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

    def _with_format(self, keywords: Keywords) -> LockKeywords:
        check_keywords(keywords)
        return cast(LockKeywords, {**keywords, "format": self._format})

    def _options_of(self, keywords: Keywords) -> Optional[_core.AcquireOptions]:
        """The options of a lease without a block."""
        options = OwnedOptions(False, self._with_format(keywords))
        return options.of(self._owner.named)


class RWLock(RWLockBase):
    """A read-write lock by its name, made by Client.rwlock(): many readers, or one writer.

    Threads may share it. Readers and writers have one queue: a reader waits behind a writer that
    came before it, and readers next to each other enter together. A thread that is in a block of
    this object may read again in it, at once; any other second block would wait for itself, and
    raises AlreadyHeld.
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
        said, wait_ms = self._with_format(keywords), to_wait_ms(timeout)
        return made(RWSide, self._client, self._name, wait_ms, self._owner, said, start)

    def _acquire(
        self, start: Start, timeout: Seconds, keywords: Keywords
    ) -> Optional[Lease]:
        options, wait_ms = self._options_of(keywords), to_wait_ms(timeout)
        got = self._client._take(self._name, wait_ms, options, start)
        return got if isinstance(got, Lease) else None
