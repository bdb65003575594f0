# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Leases: the parts that all kinds share, and the lease of threads."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from functools import partial
from types import TracebackType
from typing import Callable, Optional

from . import _core
from ._advice import Unique
from ._convert import NO_LIMIT, Duration, Seconds, shown, to_ms, to_text, to_wait_ms
from ._errors import (
    Denied,
    Error,
    NoMemory,
    NotHeld,
    OutcomeUnknown,
    ServerError,
    Unavailable,
    add_note,
    error_of,
    new_error,
)
from ._hub import pump_here
from ._log import logger, pass_on_log
from ._mode import READ
from ._recall import Callback, check_callback, listener_here
from ._status import Status
from ._wait import LOG_SLICE_MS, UPGRADE, Call, finished, refusal_of, slice_ms

_HELD = _core.constant(b"RL_LEASE_HELD", 0)
LOST = _core.constant(b"RL_LEASE_LOST", 0)
_DETACHED = _core.constant(b"RL_LEASE_DETACHED", 0)
_WORDS = {
    _core.constant(f"RL_LEASE_{word.upper()}".encode(), 0): word
    for word in ("held", "released", "lost", "detached")
}
_OK = int(Status.OK)
_RELEASE = Call(_core.release, _core.release_watched, _core.request_status)
_EXTEND = Call(_core.extend, _core.extend_watched, _core.request_status)
_DETACH = Call(_core.lease_detach, _core.lease_detach_watched, _core.request_status)
_DOWNGRADE = Call(_core.rw_downgrade, _core.rw_downgrade_watched, _core.request_status)


class LostReason(Enum):
    """Why a lease was lost."""

    EXPIRED = _core.constant(b"RL_LOST_EXPIRED", 0)
    """No renewal was confirmed in time, or there was none."""
    TAKEN_OVER = _core.constant(b"RL_LOST_TAKEN_OVER", 0)
    """The server no longer has the lease, and the lock has another holder."""
    FORCED = _core.constant(b"RL_LOST_FORCED", 0)
    """Rare: the lease was removed from the server, which then granted a late request of the same
    waiter. Treat it as GONE, the usual reason after a forced release."""
    MAX_HOLD = _core.constant(b"RL_LOST_MAX_HOLD", 0)
    """The option max_hold was reached."""
    NO_MAJORITY = _core.constant(b"RL_LOST_NO_MAJORITY", 0)
    """Too few servers of a Redlock still have the lease."""
    CLOSED = _core.constant(b"RL_LOST_CLOSED", 0)
    """The client ended without a shutdown. Programs do not see this."""
    DEFECT = _core.constant(b"RL_LOST_DEFECT", 0)
    """A defect of redlatch was found; the log has more."""
    GONE = _core.constant(b"RL_LOST_GONE", 0)
    """The server no longer has the lease, and no other holder was seen. The causes are a restart or
    a failover without the data, DEL or FLUSHALL, a forced release, an eviction or an expiry."""


class LeaseBase(Unique):
    """The local facts about a lease. No property or method here waits for the server."""

    __slots__ = (
        "_handle",
        "_client",
        "_is_given_back",
        "_is_block",
        "_names",
        "_recall_callbacks",
        "__weakref__",
    )

    # Set and read by the Holds of a lock object: the end of its `with` releases this lease.
    _is_block: bool

    _IN_ANOTHER_PROCESS = "send the token that detach() returns, and call client.attach() there"

    def __init__(self, handle: _core.Lease, client: _core.Client) -> None:
        self._handle = handle
        # The lease keeps the client alive: the collector would close it, which releases the lease.
        self._client = client
        self._is_given_back = False
        self._names: Optional[list[str]] = None  # of several
        self._recall_callbacks: list[Callback] = []  # of threads

    @property
    def name(self) -> str:
        """The name of the lock."""
        return to_text(_core.lease_name(self._handle))

    @property
    def fence(self) -> int:
        """The fencing number of this lease. Every new exclusive holder of a name gets a higher one.

        Pass it to the resource that you write to, and let the resource refuse a lower one. A
        reader's fence is lower than that of every later writer; readers may share one. An attached
        lease has the number that was passed to attach(). 0 for a Redlock without the option
        `fenced`.
        """
        return _core.lease_fence(self._handle)

    @property
    def fences(self) -> dict[str, int]:
        """The fence of each name that the lease has."""
        names = getattr(self, "_names", None)  # that of a task is set for several names only
        if names is None:
            return {self.name: self.fence}
        return {name: _core.lease_part_fence(self._handle, i) for i, name in enumerate(names)}

    @property
    def mode(self) -> str:  # No Literal: type checkers would not see that upgrade() changes it.
        """"read": together with other readers. "write": alone, as every lock except a read lock."""
        return "read" if _core.lease_mode(self._handle) == READ else "write"

    @property
    def hold_count(self) -> int:
        """Number of acquisitions of the owner of a reentrant lock when this one was granted.

        This one is included, and the number does not change afterwards. 1 if the lock was granted
        to a waiter, and for locks that are not reentrant.
        """
        return _core.lease_hold_count(self._handle)

    @property
    def permits(self) -> int:
        """Number of permits of a semaphore that this lease has; 1 for every other lock."""
        return _core.lease_permits(self._handle)

    @property
    def token(self) -> str:
        """The token that proves ownership to the server. Client.attach() takes it."""
        return _core.lease_token(self._handle).decode()

    @property
    def remaining(self) -> float:
        """Seconds of validity left, by the local clock, less the drift; 0.0 if it is not held."""
        return _core.lease_remaining_ms(self._handle) / 1000

    @property
    def held(self) -> bool:
        """True while the lease is held, by the local clock. Sends nothing."""
        return _core.lease_state(self._handle) == _HELD

    @property
    def lost(self) -> bool:
        """True if the lease ended without a release, and in a process forked from its owner."""
        return _WORDS.get(_core.lease_state(self._handle), "lost") == "lost"

    @property
    def lost_reason(self) -> Optional[LostReason]:
        """The reason of the loss; None if the lease is not lost, and in a forked process.

        It is also set after a release() that raised LockLost.
        """
        number = _core.lease_lost_reason(self._handle)
        return LostReason(number) if number != 0 else None

    @property
    def lost_text(self) -> str:
        """The reason of the loss in words; "" if the lease is not lost."""
        return to_text(_core.lease_lost_text(self._handle))

    @property
    def recall_count(self) -> int:
        """Number of times that this holder was asked to finish, by Client.recall().

        Without on_recall() a recall is heard with the next answer of the server, at the latest with
        that of a renewal. 0 in a process forked from the owner.
        """
        return _core.lease_recall_count(self._handle)

    @property
    def recall_reason(self) -> str:
        """The reason of the last recall: text of another party, without control characters.

        "" without a recall or a reason.
        """
        return _core.lease_recall_reason(self._handle).decode("utf-8", "replace")

    def check(self) -> None:
        """Raise LockLost, with the reason, if the lease is no longer held. Sends nothing.

        Raises NotHeld after release() and detach(). The check does not stop a thread that is paused
        between the check and its write: only a resource that refuses lower fences does.
        """
        error = self._loss()
        pass_on_log(self._client)
        if error is not None:
            raise error

    def _loss(self) -> Optional[Error]:
        """The reason why the lease is not held; None if it is."""
        err = new_error()
        status = _core.lease_check(self._handle, err)
        return None if status == Status.OK else error_of(status, _core.error_message(err))

    def _is_of_here(self) -> bool:
        """False if the parent of this forked process acquired it."""
        return _core.lease_state(self._handle) != 0

    def _is_detached(self) -> bool:
        return _core.lease_state(self._handle) == _DETACHED

    def _note_detached(self) -> None:
        """The lease is no longer held, even without an answer or after a cancelled wait."""
        if self._is_detached():
            self._is_given_back = True

    def _take_place_of(self, released: LeaseBase) -> None:
        """Become the lease of a block whose lease was released in it."""
        self._is_block = True

    def _settle(self, error: Error, exception: Optional[BaseException]) -> None:
        """Report that the release at the end of a block failed by `error`.

        `exception` is the one that ended the block, if any. It is not replaced.
        """
        if isinstance(error, NotHeld) and self._is_detached():
            return  # Another thread or task has detached it just now.
        if exception is not None:
            add_note(exception, f"redlatch: {error}")
        elif isinstance(error, _STILL_GOING_ON):
            # The block was protected to its end: an exception would call it a failure.
            logger.warning("release of %s: %s", shown(self.name), error)
        else:
            raise error

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._describe()}>"

    def _describe(self) -> str:
        word = _WORDS.get(_core.lease_state(self._handle), "of another process")
        text = f"{shown(self.name)} {word} fence={self.fence}"
        if word != "held":
            return text
        mode = " to read" if self.mode == "read" else ""
        return f"{shown(self.name)} held{mode} fence={self.fence} remaining={self.remaining:.1f}s"

    def __del__(
        self,
        # Bound here: at the end of the interpreter the module's names may be gone.
        _state: Callable[[_core.Lease], int] = _core.lease_state,
        _warn: Callable[..., None] = warnings.warn,
    ) -> None:
        if not getattr(self, "_is_given_back", True) and _state(self._handle) == _HELD:
            _warn(f"never released: {self!r}", ResourceWarning, stacklevel=2, source=self)


# The release is repeated in the background until the lease would have ended.
_STILL_GOING_ON = (OutcomeUnknown, Unavailable, ServerError, Denied)


@contextmanager
def ending(lease: LeaseBase, exception: Optional[BaseException] = None) -> Iterator[None]:
    """Around a call that also releases, as at the end of a block that `exception` has ended."""
    lease._is_given_back = True
    try:
        yield
    except NoMemory:
        lease._is_given_back = False
        raise
    except Error as error:
        lease._settle(error, exception)


class Lease(LeaseBase):
    """One acquisition of a lock. It is renewed in the background until it is released or lost.

    Any thread may use and release it. As a context manager it is released at the end of the block.
    `held`, `lost` and check() ask the local clock, not the server.
    """

    __slots__ = ()

    def on_recall(self, callback: Callback) -> None:
        """Call `callback` when the holder is asked to finish; at once if it has been asked.

            stop = threading.Event()
            lease.on_recall(stop.set)

        A recall forces nothing: finish early and release, or continue. Each callback is called
        once, however many recalls come, and not after the end of the lease. It has no arguments;
        `recall_reason` and `recall_count` have more. Recalls may be lost, and an attached lease
        hears none: they go to the client that acquired it.

        The callback runs in a thread of the package, which it must not hold up: the callbacks of
        other leases run there, too. Where gevent or eventlet has patched the program, that is a
        greenlet of the thread of the last call of on_recall(). The logger `redlatch` reports an
        exception of the callback.

        Sends nothing, and does not block. While a lease waits for a recall, a thread of the library
        reads the connection. Raises TypeError for an async function, Unsupported for a lease of a
        Redlock, Forked in a process forked from the owner.
        """
        check_callback(callback)
        self._recall_callbacks.append(callback)
        try:
            listener_here().watch(self)
        except BaseException:
            self._recall_callbacks.remove(callback)
            raise

    def wait_lost(self, timeout: Seconds = NO_LIMIT) -> bool:
        """Block until the lease is no longer held. Return True if it is lost.

        False: it was released or detached, or it was still held after `timeout` seconds.
        """
        wait_ms = to_wait_ms(timeout)
        end = None if wait_ms < 0 else time.monotonic() + wait_ms / 1000
        state = _HELD
        with self._waiter() as (wait, longest_ms):
            while state == _HELD:
                left_ms = longest_ms
                if end is not None:
                    left_ms = min(left_ms, max(to_ms(end - time.monotonic(), "timeout"), 0))
                state = wait(left_ms)
                pass_on_log(self._client)
                if left_ms == 0:
                    break
        if state < 0:
            raise error_of(state)
        return state == LOST

    @contextmanager
    def _waiter(self) -> Iterator[tuple[Callable[[int], int], int]]:
        """A function that waits some ms for the end of the lease, and the longest time for it.

        The function returns the state.
        """
        pump, lease = pump_here(), self._handle
        if pump is None:
            yield partial(_core.lease_wait_lost, lease), slice_ms()
            return
        with pump.lease_watched(lease) as event:

            def wait(wait_ms: int) -> int:
                if wait_ms != 0:
                    event.wait(wait_ms / 1000)
                return _core.lease_wait_lost(lease, 0)

            yield wait, LOG_SLICE_MS

    def release(self) -> bool:
        """Release the lock; the next waiter gets it at once.

        Return False if the owner of a reentrant lock has other leases, else True. Blocks for at
        most `command_timeout`; signals do not interrupt it. Raises

        - LockLost: the lease had ended before; others may have held the lock since;
        - NotHeld: it was released or detached before;
        - OutcomeUnknown: no answer came; the release continues in the background until the lease
          would have ended;
        - NoMemory: nothing was sent; the lease is held as before.
        """
        self._is_given_back = True
        try:
            return _RELEASE(self._client, self._handle) == _OK
        except NoMemory:
            self._is_given_back = False
            raise

    def upgrade(self, timeout: Seconds = NO_LIMIT) -> bool:
        """Turn this reader into the writer, without a release in between. Return True if it did.

        The only reader becomes the writer at once. Otherwise the upgrade waits at the head of the
        queue until the other readers have left, for at most `timeout` seconds. The lease continues
        to read if the result is False, and after Deadlock. The fence rises. Raises

        - Deadlock: another reader waits to upgrade, or the owner of this lease has another read
          lease; release this one;
        - LockLost: the lease had ended.
        """
        request = finished(UPGRADE, self._client, self._handle, to_wait_ms(timeout))
        # refusal_of() raises what is neither yes nor no.
        return _core.request_status(request) == _OK or not refusal_of(request)

    def downgrade(self) -> None:
        """Turn this writer into a reader, without a release in between.

        Readers that are next in the queue enter. Blocks for at most `command_timeout`. Raises
        LockLost if the lease had ended.
        """
        _DOWNGRADE(self._client, self._handle)

    def extend(self, ttl: Duration) -> None:
        """Extend the lease to `ttl` seconds from now; later renewals use this ttl.

        A ttl below the remaining one shortens only the deadline of this process. Blocks for at most
        `command_timeout`. Raises LockLost if the lease had ended.
        """
        _EXTEND(self._client, self._handle, to_ms(ttl, "ttl"))

    def detach(self) -> str:
        """Hand the lease over to another process. Return the token, which attach() there takes
        once.

        Renewal stops, and the lock stays until its ttl ends. Store `fence` beside the token. Blocks
        for at most `command_timeout`. Raises

        - LockLost: the lease was lost;
        - NotHeld: it was released or detached before;
        - OutcomeUnknown: no answer came; the lease is no longer held here, and another process may
          be able to attach it;
        - Unavailable, Denied, ServerError: the lease is held as before.
        """
        try:
            _DETACH(self._client, self._handle)
        finally:
            self._note_detached()
        return self.token

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self._leave(exception)

    def _leave(self, exception: Optional[BaseException]) -> None:
        """End a block. `exception` is the one that ended it, if any; it is not replaced."""
        if self._is_given_back:
            return
        try:
            self.release()
        except Error as error:
            self._settle(error, exception)
