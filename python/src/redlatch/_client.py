# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A client of one server."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional, overload

from . import _core
from ._advice import URL, Made, made, takes_url, warn_of_with
from ._aio import Aio
from ._base import Base, options_from_env, options_of
from ._convert import (
    ANY_HOLDER,
    NO_LIMIT,
    Name,
    Seconds,
    check_fence,
    shown,
    to_bytes,
    to_wait_ms,
)
from ._credentials import Provider
from ._errors import NotHeld
from ._force import TRIES, check_arguments, token_of
from ._info import LockInfo, read_info
from ._lease import Lease
from ._lock import Lock
from ._option_table import ClientOptions, Keywords, LockKeywords, RedlockKeywords
from ._options import RWFormat, check_owner, documented, make_options, make_redlock_options
from ._rlock import RLock
from ._rwlock import RWLock
from ._status import Status
from ._wait import Call

if TYPE_CHECKING:
    from typing_extensions import Unpack

_ATTACH = Call(_core.lease_attach, _core.lease_attach_watched, _core.request_take_lease)
_INSPECT = Call(_core.inspect, _core.inspect_watched, _core.request_take_info)
_LIST_NEXT = Call(_core.list_next, _core.list_next_watched, _core.request_status)
_FORCE = Call(_core.force_release, _core.force_release_watched, _core.request_status)
_FORCE_ANY = Call(_core.force_release_any, _core.force_release_any_watched, _core.request_status)


class Client(Base, metaclass=Made):
    """One server, for any number of threads. Made by connect() and from_env().

    In a forked process it opens a connection of its own with the first call; the leases of the
    parent are the parent's, and raise Forked.
    """

    __slots__ = ()

    _MADE_BY = f"redlatch.connect({URL!r})"

    def __init__(
        self,
        url: bytes,
        options: _core.ClientOptions,
        credentials: Optional[Provider] = None,
    ) -> None:
        super().__init__(_core.client_open, url, options, credentials)

    # ---- locks ----

    @documented
    def lock(
        self, name: Name, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[LockKeywords]
    ) -> Lock:
        """The lock `name`, for `with` and in the shape of threading.Lock. Sends nothing.

        timeout             seconds to wait for it, -1 or None for no limit; 0 is one try
        {acquire}
        """
        options = make_options(**keywords)
        return made(Lock, self, to_bytes(name, "name"), to_wait_ms(timeout), options)

    def acquire(
        self, name: Name, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[LockKeywords]
    ) -> Optional[Lease]:
        """Acquire `name`: a Lease, or None when it is busy or the time is over.

        The keywords are those of lock().
        """
        options = make_options(**keywords)
        got = self._take(to_bytes(name, "name"), to_wait_ms(timeout), options)
        if isinstance(got, Lease):
            return got
        warn_of_with(f"client.acquire({shown(name)})", f"client.lock({shown(name)})")
        return None

    def rlock(
        self,
        name: Name,
        *,
        owner: Optional[Name] = None,
        timeout: Seconds = NO_LIMIT,
        **keywords: Unpack[Keywords],
    ) -> RLock:
        """The reentrant lock `name`, for `with` and in the shape of threading.RLock. Sends nothing.

        owner  who may acquire it again while it holds it: whoever names the same, in any thread,
               client or process; left out, this thread, by this client

        The other keywords are those of lock(). Its key is of another type than a lock()'s: of one
        name there should be one kind, because to each the other one is busy.
        """
        named = None if owner is None else check_owner(owner)
        name_bytes, wait_ms = to_bytes(name, "name"), to_wait_ms(timeout)
        return made(RLock, self, name_bytes, wait_ms, named, keywords)

    def rwlock(
        self, name: Name, *, owner: Optional[Name] = None, format: RWFormat = "string"
    ) -> RWLock:
        """The read-write lock `name`. Sends nothing. Its write lock is that of lock().

        owner  who takes it, to be told of misuse: while it reads it may read again, at once and
               past those who wait; what else it takes a second time by this client would wait for
               itself, and raises AlreadyHeld; left out, see RWLock
        format "string", or "hash-rw", as Redisson's RReadWriteLock has it: to exclude that; its ttl
               is at most Redisson's lockWatchdogTimeout
        """
        named = None if owner is None else check_owner(owner)
        return made(RWLock, self, to_bytes(name, "name"), named, format)

    def attach(
        self, name: Name, token: Name, *, fence: int = 0, **keywords: Unpack[RedlockKeywords]
    ) -> Lease:
        """Take over a lease that was detached, here or in another process: once for each detach().

        fence  that of the detached lease, which travels beside the token; 0 if it is not known
        ttl, renew, max_hold, label  as those of lock(); the detached lease's own do not travel

        Raises NotHeld if the token does not hold the lock, was not detached, or was attached
        before. After OutcomeUnknown the mark of the detach() may be used up, and the lock ends with
        its ttl.
        """
        name_bytes, token_bytes = to_bytes(name, "name"), to_bytes(token, "token")
        fence_number, options = check_fence(fence), make_redlock_options(**keywords)

        lease = self._ask(_ATTACH, name_bytes, token_bytes, fence_number, options)
        return Lease(lease, self._handle)

    @property
    def aio(self) -> Aio:
        """The same for asyncio: its calls wait without holding up the event loop."""
        aio: Optional[Aio] = self._aio()
        if aio is None:
            aio = Aio(self)
            self._aio = weakref.ref(aio)
        return aio

    # ---- looking and operating ----

    def inspect(self, name: Name) -> LockInfo:
        """What the server knows about the lock `name`. Changes nothing."""
        return self._inspect(to_bytes(name, "name"))

    @overload
    def force_release(self, name: Name, *, any: bool = False) -> None: ...

    @overload
    def force_release(self, name: Name, token: Name) -> None: ...

    def force_release(
        self, name: Name, token: Any = ANY_HOLDER, *, any: bool = False
    ) -> None:
        """Remove all holders of the lock `name`, or only the one with `token`; for operators.

        any  also the locks of other libraries, and data that are in the place of the lock, such as
             a counter. Without it these raise WrongType, and stay

        A token that is passed must not be empty, nor None, which is what a variable that was not
        set may hold; it may be that of another library's lock, as inspect() shows it. The holder
        learns of it with its next renewal or release. Raises NotHeld if there is nothing to remove.
        """
        check_arguments(token, any)
        name_bytes = to_bytes(name, "name")
        if token is not ANY_HOLDER:
            self._force(name_bytes, to_bytes(token, "token"))
            return
        for _ in range(0 if any else TRIES):
            found = token_of(self._inspect(name_bytes))
            if found is None:
                break
            try:
                return self._force(name_bytes, found)
            except NotHeld:
                pass  # Another one holds it by now, or none.
        self._ask(_FORCE_ANY, name_bytes)

    def _force(self, name: bytes, token: bytes) -> None:
        self._ask(_FORCE, name, token)

    def list(self, pattern: Name = "") -> Iterator[LockInfo]:
        """The locks that redlatch clients hold, whose names match `pattern` (* ? [a-z]).

        A lock that is held all the time is found; one that comes or goes meanwhile may be. Not
        reentrant ones, whose keys may be anybody's: inspect() shows them by name.
        """
        return self._read_list(self._open_list(to_bytes(pattern, "pattern")))

    def _open_list(self, pattern: bytes) -> _core.List:
        return self._call(lambda handle, err: _core.list_open(handle, pattern, err))

    def _read_list(self, locks: _core.List) -> Iterator[LockInfo]:
        while True:
            if _LIST_NEXT(self._handle, locks) == Status.END:
                return
            info = _core.list_info(locks)
            assert info is not None
            yield read_info(info)

    def _inspect(self, name: bytes) -> LockInfo:
        return read_info(self._ask(_INSPECT, name))

    def _is_free(self, name: bytes) -> bool:
        return self._inspect(name).is_free


@takes_url
@documented
def connect(
    url: Name,
    *,
    wait: Seconds = 0,
    credentials: Optional[Provider] = None,
    **options: Unpack[ClientOptions],
) -> Client:
    """A client of the server at `url`, which is reached before this returns.

    wait     seconds to keep trying when the server is not there; 0 is one attempt, -1 is no limit,
             and None leaves it to the first call
    credentials  a callable that returns Credentials, in place of a user and a password. It is
             called in a thread of the package when a connection needs them and before they end;
             an exception is the reason why there are none. docs/credentials.md
    options  those of a URL, which they win over:

        {client}

    Raises Invalid, Unavailable, Denied, Unsupported or ServerError.
    """
    return _opened(to_bytes(url, "url"), options_of(options), wait, credentials)


def from_env(
    *, wait: Seconds = 0, credentials: Optional[Provider] = None, **options: Unpack[ClientOptions]
) -> Client:
    """connect() to what the environment names: REDLATCH_URL, else VALKEY_URL, else REDIS_URL.

    REDLATCH_NAMESPACE, and REDLATCH_PASSWORD_FILE or else REDISCLI_AUTH, count for what neither the
    URL nor `options` say.
    """
    return _opened(b"", options_from_env(options), wait, credentials)


def _opened(
    url: bytes, options: _core.ClientOptions, wait: Seconds, credentials: Optional[Provider]
) -> Client:
    client = made(Client, url, options, credentials)
    if wait is not None:
        client._connect(wait)
    return client
