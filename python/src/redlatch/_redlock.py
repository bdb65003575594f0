# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Redlock: a lock on most of several servers."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Callable, NoReturn, Optional

from . import _core
from ._advice import made, warn_of_with
from ._aio import RedlockAio
from ._base import Base, options_from_env, options_of
from ._candidacy import no_election
from ._convert import NO_LIMIT, Duration, Name, Seconds, shown, to_bytes
from ._credentials import Provider
from ._errors import invalid
from ._flight import no_flight
from ._kinds import Mutex, no_semaphore
from ._lease import Lease
from ._lock import Lock
from ._names import NameAndMode, no_names
from ._once import no_once
from ._option_table import RedlockKeywords, RedlockOptions
from ._options import documented, make_redlock_options
from ._recall import no_recall

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class Redlock(Base):
    """A client of several independent servers, the nodes. Any number of threads may use it.

    A lock on most of the nodes survives the failure of the others. docs/redlock.md has the promises
    and limits. Nothing is sent before connect() or the first acquire.

    A forked process opens connections of its own with the first call. The leases of the parent
    raise Forked there.
    """

    __slots__ = ()

    @documented
    def __init__(
        self,
        urls: Iterable[Name],
        *,
        credentials: Optional[Provider] = None,
        **options: Unpack[RedlockOptions],
    ) -> None:
        """Make a Redlock of an odd number of `urls`. Sends nothing.

        {quorum}

        `credentials` and the other options are those of connect(), and apply to every node. Raises
        Invalid if a URL or an option is wrong, or the number of URLs is even.
        """
        super().__init__(_core.redlock_open, _joined(urls), options_of(options), credentials)

    @classmethod
    def from_env(
        cls, *, credentials: Optional[Provider] = None, **options: Unpack[RedlockOptions]
    ) -> Self:
        """Return a Redlock of the URLs in REDLATCH_URL, separated by spaces. Sends nothing.

        REDLATCH_NAMESPACE, and REDLATCH_PASSWORD_FILE or else REDISCLI_AUTH, are used where neither
        the URLs nor `options` set these options.
        """
        made = cls.__new__(cls)
        Base.__init__(made, _core.redlock_open, b"", options_from_env(options), credentials)
        return made

    def connect(self, *, wait: Seconds = 0) -> None:
        """Connect now, until most of the nodes may vote. Without it, the first acquire connects.

        wait  seconds to keep trying; 0: one attempt with each node; -1 or None: no limit

        Raises Unavailable, Denied, Unsupported, Invalid or ServerError, which names the nodes.
        """
        self._connect(wait)

    def semaphore(self, name: Name, limit: int, **keywords: object) -> NoReturn:
        """Raise Unsupported: two permits on three nodes could have three holders."""
        raise no_semaphore()

    def lock_all(self, names: Iterable[NameAndMode], **keywords: object) -> NoReturn:
        """Raise Unsupported: the nodes have no common order of waiters."""
        raise no_names()

    def lock_path(self, path: Name, **keywords: object) -> NoReturn:
        """Raise Unsupported: the nodes have no common order of waiters."""
        raise no_names()

    def once(self, name: Name, **keywords: object) -> NoReturn:
        """Raise Unsupported: the nodes do not remember runs."""
        raise no_once()

    def once_forget(self, name: Name) -> NoReturn:
        """Raise Unsupported: the nodes do not remember runs."""
        raise no_once()

    def single_flight(
        self, key: Name, ttl: Duration, f: Callable[[], object], **keywords: object
    ) -> NoReturn:
        """Raise Unsupported: the nodes store no values."""
        raise no_flight()

    def election(self, name: Name, id: Optional[Name] = None, **keywords: object) -> NoReturn:
        """Raise Unsupported: an election needs one server or cluster."""
        raise no_election()

    def leader(self, name: Name) -> NoReturn:
        """Raise Unsupported: an election needs one server or cluster."""
        raise no_election()

    def observe(self, name: Name) -> NoReturn:
        """Raise Unsupported: an election needs one server or cluster."""
        raise no_election()

    def recall(self, name: Name, reason: Name = "") -> NoReturn:
        """Raise Unsupported: a recall needs one server or cluster."""
        raise no_recall()

    def resign(self, name: Name, reason: Name = "") -> NoReturn:
        """Raise Unsupported: an election needs one server or cluster."""
        raise no_election()

    @documented
    def lock(
        self, name: Name, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[RedlockKeywords]
    ) -> Lock:
        """Return the lock `name`, for `with` and in the shape of threading.Lock. Sends nothing.

        timeout   seconds to wait; -1 or None: no limit; 0: one round
        {redlock}
        """
        return made(Lock, self, name, timeout, Mutex(make_redlock_options(**keywords)))

    def acquire(
        self, name: Name, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[RedlockKeywords]
    ) -> Optional[Lease]:
        """Acquire the lock `name` and return a Lease; None if not acquired within `timeout`.

        The keywords are those of lock(). Raises Unavailable if too few nodes could be reached in
        time.
        """
        lease = self._acquire(name, timeout, make_redlock_options(**keywords))
        if lease is None:
            warn_of_with(f"redlock.acquire({shown(name)})", f"redlock.lock({shown(name)})")
        return lease

    @property
    def aio(self) -> RedlockAio:
        """The Redlock for asyncio: its calls do not block the event loop."""
        aio: Optional[RedlockAio] = self._aio()
        if aio is None:
            aio = RedlockAio(self)
            self._aio = weakref.ref(aio)
        return aio

    def _is_free(self, name: bytes) -> bool:
        return True  # The nodes are not asked.


def _joined(urls: Iterable[Name]) -> bytes:
    """The URLs in the form of the C ABI."""
    if isinstance(urls, (str, bytes)):
        raise TypeError(f"urls must be a list of URLs (got {type(urls).__name__})")
    texts = [to_bytes(url, "url") for url in urls]
    for i, text in enumerate(texts):
        if text.split() != [text]:  # Which is not shown: it may hold a password.
            raise invalid(f"urls[{i}] must be one URL without spaces")
    if not texts:
        raise invalid("urls must be an odd number of URLs (got none)")
    return b"\n".join(texts)
