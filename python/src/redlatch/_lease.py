# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""One hold of a lock: what all kinds of leases share, and that of threads."""

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
    """Treat it as GONE, the usual reason after a forced release. Rare: the lease was removed from
    the server, which then granted a late request of the same waiter."""
    MAX_HOLD = _core.constant(b"RL_LOST_MAX_HOLD", 0)
    NO_MAJORITY = _core.constant(b"RL_LOST_NO_MAJORITY", 0)
    """Too few servers of a Redlock still have it."""
    CLOSED = _core.constant(b"RL_LOST_CLOSED", 0)
    """Its client ended without a shutdown. Programs do not see this."""
    DEFECT = _core.constant(b"RL_LOST_DEFECT", 0)
    """A defect of redlatch; the log has more."""
    GONE = _core.constant(b"RL_LOST_GONE", 0)
    """The server no longer has the lease: a restart or a failover without the data, DEL or
    FLUSHALL, a forced release, an eviction or an expiry has removed it. No other holder was
    seen."""


class LeaseBase(Unique):
    """What is known of a hold without asking the server."""

    __slots__ = ("_handle", "_client", "_is_given_back", "__weakref__")

    _IN_ANOTHER_PROCESS = "send the token that detach() returns, and call client.attach() there"

    def __init__(self, handle: _core.Lease, client: _core.Client) -> None:
        self._handle = handle
        # As long as the lease is there, nobody collects the client, which would release it.
        self._client = client
        self._is_given_back = False

    @property
    def name(self) -> str:
        return to_text(_core.lease_name(self._handle))

    @property
    def fence(self) -> int:
        """Rises with every exclusive holder of this name: let what you write to refuse a lower one.

        An attached lease has the number that was passed to attach(). 0 with a Redlock that is not
        fenced: the numbers of different nodes do not rise together.
        """
        return _core.lease_fence(self._handle)

    @property
    def mode(self) -> str:  # No Literal: type checkers would not see that upgrade() changes it.
        """"read", together with others, or "write", alone, as of every lock but a read lock."""
        return "read" if _core.lease_mode(self._handle) == READ else "write"

    @property
    def hold_count(self) -> int:
        """How often the owner of a reentrant lock held it when this was granted, this included.

        As far as the grant says it: 1 when another owner handed it over, and for other locks.
        """
        return _core.lease_hold_count(self._handle)

    @property
    def token(self) -> str:
        """What proves ownership: see Client.attach()."""
        return _core.lease_token(self._handle).decode()

    @property
    def remaining(self) -> float:
        """Seconds for which it is still valid, drift taken off; 0.0 when it is not held."""
        return _core.lease_remaining_ms(self._handle) / 1000

    @property
    def held(self) -> bool:
        return _core.lease_state(self._handle) == _HELD

    @property
    def lost(self) -> bool:
        """Whether it ended without a release. True in a process forked from its owner."""
        return _WORDS.get(_core.lease_state(self._handle), "lost") == "lost"

    @property
    def lost_reason(self) -> Optional[LostReason]:
        """Why it was lost; None if it was not, or in a process forked from its owner.

        Also after a release() that raised LockLost.
        """
        number = _core.lease_lost_reason(self._handle)
        return LostReason(number) if number != 0 else None

    @property
    def lost_text(self) -> str:
        """The same for people; "" if it was not lost."""
        return to_text(_core.lease_lost_text(self._handle))

    def check(self) -> None:
        """Raise LockLost, with the reason, if the lock is not certainly ours any more."""
        error = self._loss()
        pass_on_log(self._client)
        if error is not None:
            raise error

    def _loss(self) -> Optional[Error]:
        """Why it is not held."""
        err = new_error()
        status = _core.lease_check(self._handle, err)
        return None if status == Status.OK else error_of(status, _core.error_message(err))

    def _is_detached(self) -> bool:
        return _core.lease_state(self._handle) == _DETACHED

    def _note_detached(self) -> None:
        """The lease is no longer held, even without an answer or after a cancelled wait."""
        if self._is_detached():
            self._is_given_back = True

    def _settle(self, error: Error, exception: Optional[BaseException]) -> None:
        """The release at the end of a block failed by `error`; the block ended by `exception`,
        which is not ours to replace.
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


class Lease(LeaseBase):
    """One hold of a lock: whoever has this object may release it, from any thread.

    As a context manager it releases itself at the end of the block. The lease is renewed in the
    background; `lost` and `check()` say, by the local clock, whether it still holds.
    """

    __slots__ = ()

    def wait_lost(self, timeout: Seconds = NO_LIMIT) -> bool:
        """Wait until it stops being held, for `timeout` seconds at most; whether it is lost."""
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
        """A function and the longest time for one call of it: it waits some ms for the end of the
        lease, and returns the state.
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
        """Give the lock back; the next waiter has it at once. False: its owner has other leases.

        Takes at most `command_timeout`, whatever signals come: a release is not left half done.
        Raises LockLost if the lease had ended before, NotHeld if it was released before. After
        OutcomeUnknown the release continues in the background.
        """
        self._is_given_back = True
        return _RELEASE(self._client, self._handle) == _OK

    def upgrade(self, timeout: Seconds = NO_LIMIT) -> bool:
        """Let this reader become the writer, without letting go in between: whether it does.

        The only reader becomes it at once; else it waits for the others in front of the queue, for
        `timeout` seconds at most. False: it reads on. Raises Deadlock, and it reads on, if another
        reader waits for the same: release or downgrade. Raises LockLost if it had ended. The fence
        rises.
        """
        request = finished(UPGRADE, self._client, self._handle, to_wait_ms(timeout))
        # refusal_of() raises what is neither yes nor no.
        return _core.request_status(request) == _OK or not refusal_of(request)

    def downgrade(self) -> None:
        """Let this writer become a reader, without letting go in between; other readers enter."""
        _DOWNGRADE(self._client, self._handle)

    def extend(self, ttl: Duration) -> None:
        """Let the lease last `ttl` seconds from now; renewal uses it from then on."""
        _EXTEND(self._client, self._handle, to_ms(ttl, "ttl"))

    def detach(self) -> str:
        """Hand the lease to another process; returns the token for its Client.attach(), once.

        Renewal stops, and the lock stays until the ttl ends. Takes at most `command_timeout`.
        Raises LockLost if the lease was lost, NotHeld if it was released or detached before. After
        OutcomeUnknown the lease is no longer held here, and may be attachable with its `token`.
        After Unavailable, Denied and ServerError it is held as before.
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
        """End a block that may have ended by `exception`, which is not ours to replace."""
        if self._is_given_back:
            return
        try:
            self.release()
        except Error as error:
            self._settle(error, exception)
