# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The client: connect() and from_env() make it."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, overload

from . import _core
from ._advice import URL, Made, made, takes_url, warn_of_with
from ._aio import Aio
from ._base import Base, options_from_env, options_of
from ._candidacy import Candidacy, Leader, leader_of
from ._convert import (
    ANY_HOLDER,
    NO_LIMIT,
    Duration,
    Name,
    Seconds,
    check_fence,
    shown,
    to_bytes,
)
from ._credentials import Provider
from ._election import Election, Observed, ask_leader
from ._errors import NotHeld
from ._flight import Flight, fly
from ._force import TRIES, check_arguments, token_of
from ._info import LockInfo, SemaphoreStats, read_info, read_stats
from ._lease import Lease
from ._kinds import All, Mutex, Owner, Permits, Reentrant
from ._lock import Lock, Locks, RLock, RWLock, Semaphore
from ._names import NameAndMode, Names
from ._once import FORGET, Terms, decorated
from ._option_table import ClientOptions, Keywords, LockKeywords, RedlockKeywords
from ._options import RWFormat, documented, make_options, make_redlock_options
from ._recall import RECALL
from ._status import Status
from ._wait import Call

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._once import P

T = TypeVar("T")

_ATTACH = Call(_core.lease_attach, _core.lease_attach_watched, _core.request_take_lease)
_INSPECT = Call(_core.inspect, _core.inspect_watched, _core.request_take_info)
_STATS = Call(_core.semaphore_stats, _core.semaphore_stats_watched, _core.request_take_info)
_LIST_NEXT = Call(_core.list_next, _core.list_next_watched, _core.request_status)
_FORCE = Call(_core.force_release, _core.force_release_watched, _core.request_status)
_FORCE_ANY = Call(_core.force_release_any, _core.force_release_any_watched, _core.request_status)


class Client(Base, metaclass=Made):
    """A client of one server, a Sentinel group or a Cluster, made by connect() and from_env().

    Any number of threads may use it, and a process needs one. A forked process opens a connection
    of its own with the first call. The leases of the parent raise Forked there.
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
        """Return the lock `name`, for `with` and in the shape of threading.Lock. Sends nothing.

        timeout             seconds to wait in the queue; -1 or None: no limit; 0: one try
        {acquire}
        """
        return made(Lock, self, name, timeout, Mutex(make_options(**keywords)))

    def acquire(
        self, name: Name, *, timeout: Seconds = NO_LIMIT, **keywords: Unpack[LockKeywords]
    ) -> Optional[Lease]:
        """Acquire the lock `name` and return a Lease; None if not acquired within `timeout`.

        Waiters are served in the order of the queue. During an outage of the server the call keeps
        waiting. The keywords are those of lock(). Raises Unavailable if the server could not be
        reached in time.
        """
        lease = self._acquire(name, timeout, make_options(**keywords))
        if lease is None:
            warn_of_with(f"client.acquire({shown(name)})", f"client.lock({shown(name)})")
        return lease

    def rlock(
        self,
        name: Name,
        *,
        owner: Optional[Name] = None,
        timeout: Seconds = NO_LIMIT,
        **keywords: Unpack[Keywords],
    ) -> RLock:
        """Return the reentrant lock `name`, for `with` and in the shape of threading.RLock.

        owner    name of the owner, which may acquire the lock again while it holds it. All threads,
                 clients and processes that pass the same name are one owner. None: this thread of
                 this client
        timeout  seconds to wait in the queue; -1 or None: no limit; 0: one try

        The other keywords are those of lock(). Sends nothing. Use one kind of lock for each name:
        the key of an rlock() has another type than the key of a lock(), and each is busy to the
        other.
        """
        kind = Reentrant(Owner(owner, self._number), keywords)
        return made(RLock, self, name, timeout, kind)

    def rwlock(
        self, name: Name, *, owner: Optional[Name] = None, format: RWFormat = "string"
    ) -> RWLock:
        """Return the read-write lock `name`. Its write lock is the lock of lock(). Sends nothing.

        owner   name of the owner, which may read again while it reads, past the queue. Any other
                second acquisition by this client would wait for itself, and raises AlreadyHeld.
                None: see RWLock
        format  "string"; or "hash-rw", to exclude Redisson's RReadWriteLock of the same name. The
                ttl is then at most Redisson's lockWatchdogTimeout
        """
        return made(RWLock, self, name, owner, format)

    def semaphore(
        self,
        name: Name,
        limit: int,
        *,
        timeout: Seconds = NO_LIMIT,
        **keywords: Unpack[Keywords],
    ) -> Semaphore:
        """Return the semaphore `name`: at most `limit` permits are out at once. Sends nothing.

        limit    1 to 1,000,000. It counts for the acquisitions of this object; an operator's cap,
                 which `redlatch limit` sets, may be smaller
        timeout  seconds to wait in the queue; -1 or None: no limit; 0: one try

        The other keywords are those of lock(). All waiters have one queue: a request for few
        permits does not overtake one for many. When a process dies, its permits come back with the
        end of its leases. The fences are in the order of the grants; with several holders, none
        shows who holds permits now.
        """
        return made(Semaphore, self, name, timeout, Permits(limit, keywords))

    def lock_all(
        self,
        names: Iterable[NameAndMode],
        *,
        timeout: Seconds = NO_LIMIT,
        **keywords: Unpack[Keywords],
    ) -> Locks:
        """Return all of `names` as one lock, for `with`: all are held, or none. Sends nothing.

        names    each a name, or (name, "read") or (name, "write"), without repetition
        timeout  seconds to wait; -1 or None: no limit; 0: one try

        The other keywords are those of lock(). It cannot deadlock with other calls of lock_all(),
        whatever their order of names. The lease is lost as soon as one of the names is; its
        `fences` has a fence for each name, and its `fence` is that of the first one. While it waits
        for one name it may hold others: keep the list short.
        """
        return made(Locks, self, Names(names), timeout, All(keywords))

    def lock_path(
        self,
        path: Name,
        *,
        timeout: Seconds = NO_LIMIT,
        **keywords: Unpack[Keywords],
    ) -> Locks:
        """Return the path "a/b/c" as one lock: a writer of it, and a reader of "a" and "a/b".

        docs/paths.md says what a path is, and which other locks it excludes. An empty component
        raises Invalid, and so do more than 64 components. The `fence` of the lease is that of the
        path. The keywords are those of lock_all(). Sends nothing.
        """
        return made(Locks, self, Names.of_path(path), timeout, All(keywords))

    def once(
        self,
        name: Name,
        *,
        every: Duration,
        key: Name = "",
        tries: int = 3,
        skip_if_busy: bool = False,
        timeout: Seconds = NO_LIMIT,
        **keywords: Unpack[Keywords],
    ) -> Callable[[Callable[P, T]], Callable[P, Optional[T]]]:
        """Return a decorator: the function runs once in a period, on one host. Sends nothing.

            @client.once("report:{day}", every=timedelta(hours=1))
            def report(day): ...

        name          the job, and the lock that each run holds
        every         the period: 0.1 s to 366 days. A success is remembered for 90 % of it, from
                      the start of the first run, because schedulers may start some ms early
        key           text that names the period: one success for each text,
                      remembered for all of `every`. "": none
        tries         the most runs of a period. A failed run leaves the next caller one
                      fewer
        skip_if_busy  True: a call during another run is skipped. False: it waits for the end of
                      that run, and is skipped if the run succeeded
        timeout       seconds to wait in the queue, or NotAcquired is raised; -1 or None: no limit

        The other keywords are those of lock(). A str `name` or `key` may have fields for the
        arguments of the call; write a brace that is no field twice. A call that is skipped returns
        None, and the log has the reason. A run that raises has failed, also by KeyboardInterrupt or
        SystemExit. So has a run that loses the lock: its call raises LockLost. Raises Invalid for a
        field that is no parameter.
        """
        return decorated(self, Terms(name, every, key, tries, skip_if_busy, timeout, keywords))

    def single_flight(
        self,
        key: Name,
        ttl: Duration,
        f: Callable[[], bytes],
        *,
        timeout: Seconds = NO_LIMIT,
        lease_ttl: Seconds = None,
        max_hold: Seconds = None,
        label: Optional[Name] = None,
    ) -> bytes:
        """Return the value of `key`. One caller on all hosts computes it; the others wait for it.

            price = client.single_flight("price:7", 60, lambda: fetch(7))

        key        name of the value, and of the mutex that is held while it is computed
        ttl        how long the value is returned without computing it again, from when it was
                   computed: 0.01 s to 7 days
        f          computes the value: at most 64 KiB, as bytes
        timeout    seconds to wait for the value, or NotAcquired is raised, and `f` is not called;
                   -1 or None: no limit
        lease_ttl  how long the mutex is kept after the process that computes has died
        max_hold   longest time that `f` may take; 0: no limit
        label      as for lock()

        The last three count for the first one of the callers of this client that wait together. An
        exception of `f` reaches its own caller unchanged, and the others as SingleFlightError;
        a later caller computes again. If `f` is interrupted, as by Ctrl-C, or its process dies, the
        next caller that waits computes. Raises

        - Invalid: `f` returned something other than bytes, or too many;
        - LockLost: the mutex was lost while `f` ran. The value is not stored;
        - AlreadyHeld: the call is inside `f` of the same key, and would wait for itself.
        """
        return fly(Flight(self, key, ttl, timeout, lease_ttl, max_hold, label), f)

    def election(
        self, name: Name, id: Optional[Name] = None, **keywords: Unpack[Keywords]
    ) -> Election:
        """Return the election `name`, in which this program is a candidate. Sends nothing.

            with client.election("billing").term() as term:  # waits until it leads
                while term.is_leader():
                    bill(fence=term.fence)

        id  text of 1 to 256 bytes by which others know this candidate. None: the environment
            variable POD_NAME if it is set and not empty, else "HOST:PID"

        The other keywords are those of lock(). The lock of an election is the mutex of that name: a
        holder without an id excludes leaders, and does not lead.
        """
        return made(Election, self, name, Candidacy(id, keywords))

    def leader(self, name: Name) -> Optional[Leader]:
        """Return the leader of the election `name`; None without one. Changes nothing."""
        return leader_of(ask_leader(self, to_bytes(name, "name")))

    def observe(self, name: Name) -> Iterator[Optional[Leader]]:
        """Iterate over the leaders of the election `name`: the present one, then each change.

            for leader in client.observe("billing"):
                print(leader.id if leader else "no leader")

        None: there is no leader. Each step blocks until the next change, and waits for the end of
        an outage. Terms never fall, and a term that ends before it is read is left out. Where the
        server cannot report changes, the client asks each second. A step that was interrupted can
        be repeated. Raises Closed when the client is closed.
        """
        return Observed(self, to_bytes(name, "name"))

    def attach(
        self, name: Name, token: Name, *, fence: int = 0, **keywords: Unpack[RedlockKeywords]
    ) -> Lease:
        """Take over a lease that was detached, here or in another process. Return the new Lease.

        token  as detach() returned it; each detach() can be attached once
        fence  fence of the detached lease, which the caller stores beside the token; 0 if not known

        The keywords are ttl, renew, max_hold and label of lock(); those of the detached lease are
        not kept. A lease of a semaphore is attached by Semaphore.attach(). Raises

        - NotHeld: the token does not hold the lock, was not detached, or was attached before;
        - OutcomeUnknown: no answer came; the lease may no longer be attachable, and the lock ends
          with its ttl.
        """
        name_bytes, token_bytes = to_bytes(name, "name"), to_bytes(token, "token")
        fence_number, options = check_fence(fence), make_redlock_options(**keywords)

        return self._attach(name_bytes, token_bytes, fence_number, options)

    def _attach(
        self, name: bytes, token: bytes, fence: int, options: Optional[_core.AcquireOptions]
    ) -> Lease:
        lease = self._ask(_ATTACH, name, token, fence, options)
        return Lease(lease, self._handle)

    @property
    def aio(self) -> Aio:
        """The client for asyncio: its calls do not block the event loop."""
        aio: Optional[Aio] = self._aio()
        if aio is None:
            aio = Aio(self)
            self._aio = weakref.ref(aio)
        return aio

    # ---- looking and operating ----

    def inspect(self, name: Name) -> LockInfo:
        """Return a snapshot of the lock `name`, as the server has it. Changes nothing."""
        return self._inspect(to_bytes(name, "name"))

    @overload
    def force_release(self, name: Name, *, any: bool = False) -> None: ...

    @overload
    def force_release(self, name: Name, token: Name) -> None: ...

    def force_release(
        self, name: Name, token: Any = ANY_HOLDER, *, any: bool = False
    ) -> None:
        """Remove all holders of the lock `name`, or only the holder with `token`. For operators.

        token  as inspect() shows it, also of another library's lock. Must not be empty or None
        any    True: remove also locks of other libraries, and data in the place of the lock, such
               as a counter. Without it, these raise WrongType and are kept

        The next waiter gets the lock. The holder finds out at its next renewal or release. Raises
        NotHeld if there is nothing to remove.
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
                pass  # It has another holder by now, or no holder.
        self._ask(_FORCE_ANY, name_bytes)

    def _force(self, name: bytes, token: bytes) -> None:
        self._ask(_FORCE, name, token)

    def recall(self, name: Name, reason: Name = "") -> int:
        """Ask the holders of the lock `name` to finish: holder, readers, or holders of permits.

        reason  for people, short: Lease.recall_reason shows it

        Return the number of holders whose client it reached; 0 is no error. Each of them decides:
        nothing is forced, a recall may be lost, and a client without Lease.on_recall() ignores it.
        A client sends at most one recall a second for a name: within a second the call sends
        nothing, and returns the number of the one before. Raises Invalid for a reason that is too
        long.
        """
        return self._ask(RECALL, to_bytes(name, "name"), to_bytes(reason, "reason"))

    def resign(self, name: Name, reason: Name = "") -> int:
        """Ask the leader of the election `name` to resign, and return 1 if its client heard it.

        As recall(): Term.on_recall() hears it. Client.force_release() removes a leader.
        """
        return self.recall(name, reason)

    def once_forget(self, name: Name) -> None:
        """Forget the runs of the job `name`, of all its periods: the next caller runs.

        A run that is under way continues, and its success counts only for callers that wait for it.
        For operators.
        """
        self._ask(FORGET, to_bytes(name, "name"))

    def list(self, pattern: Name = "") -> Iterator[LockInfo]:
        """Iterate over the locks of redlatch clients whose names match `pattern` (* ? [a-z]).

        A lock that is held all the time is found; a lock that is acquired or released meanwhile may
        be. Reentrant locks are left out, because their keys may be those of other programs:
        inspect() shows them by name. Each step asks the server.
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

    def _stats(self, name: bytes, limit: int) -> SemaphoreStats:
        return read_stats(self._ask(_STATS, name), limit)

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
    """Return a client of the server at `url`, after the server was reached.

    wait         seconds to keep trying while the server cannot be reached; 0: one attempt; -1: no
                 limit; None: do not connect now, the first call does
    credentials  a callable that returns Credentials, in place of a user and a password. It is
                 called in a thread of the package when a connection needs credentials, and before
                 they end. If it raises, connections fail with the text of that exception.
                 docs/credentials.md
    options      options of a URL, which they win over:

            {client}

    Raises Invalid, Unavailable, Denied, Unsupported or ServerError.
    """
    return _opened(to_bytes(url, "url"), options_of(options), wait, credentials)


def from_env(
    *, wait: Seconds = 0, credentials: Optional[Provider] = None, **options: Unpack[ClientOptions]
) -> Client:
    """Return connect() of the URL in REDLATCH_URL, else VALKEY_URL, else REDIS_URL.

    REDLATCH_NAMESPACE, and REDLATCH_PASSWORD_FILE or else REDISCLI_AUTH, are used where neither the
    URL nor `options` set these options.
    """
    return _opened(b"", options_from_env(options), wait, credentials)


def _opened(
    url: bytes, options: _core.ClientOptions, wait: Seconds, credentials: Optional[Provider]
) -> Client:
    client = made(Client, url, options, credentials)
    if wait is not None:
        client._connect(wait)
    return client
