# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""One exception for each status that is a failure, and one for a lock that was not acquired."""

from __future__ import annotations

from . import _core
from ._status import Status


class Error(Exception):
    """Base class of the exceptions of redlatch. Branch on the class or on `status`.

    The message is for people, and may change between versions.
    """

    status: Status

    def __init__(self, message: str, status: Status) -> None:
        super().__init__(message)
        self.status = status

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions come home from worker processes in a pickle.
        return type(self), (self.args[0], self.status), self.__dict__


class NotAcquired(Error, TimeoutError):
    """The wait timed out, or one try found the lock busy: another holder has it."""


class AlreadyHeld(Error, RuntimeError):
    """This thread, task or named owner has the lock already, and would wait for itself."""


class NotHeld(Error, RuntimeError):
    """There is nothing to release: not held, or released or detached before."""


class LockLost(Error):
    """The lock was held and is no longer certain. Stop: another holder may have it."""


class Deadlock(Error):
    """Another reader is already waiting to upgrade: release, and let it write."""


class Unavailable(Error):
    """The server cannot be reached."""


class OutcomeUnknown(Error):
    """The call was sent, but no answer came. A cleanup continues in the background."""


class NotReplicated(Error):
    """The lock was granted, but too few replicas confirmed it. It was released."""


class Denied(Error):
    """The server refused the user, the password or the command, or did not prove its identity."""


class Unsupported(Error):
    """Not possible with this server or this build."""


class ServerError(Error):
    """The server answered with an error; the message has its words."""


class Invalid(Error, ValueError):
    """A bad argument; the message says which, and what is allowed."""


class Closed(Error):
    """The client was closed."""


class Forked(Error):
    """The lease belongs to the process that this one was forked from."""


class NoMemory(Error, MemoryError):
    """Out of memory. Nothing was acquired, nothing was lost."""


class InternalError(Error):
    """A bug in redlatch: please report it, with the message."""


class WrongType(Error):
    """The key of the lock holds data of a type that no lock has; the message names the type."""


class SingleFlightError(Error):
    """The function of the caller that computed the value of single_flight() has failed.

    The call itself has not: its `status` is OK.
    """

    type: str
    """The name of the type of its exception."""
    text: str
    """The text of its exception."""


CLASSES: dict[Status, type[Error]] = {
    Status.BUSY: NotAcquired,
    Status.TIMEOUT: NotAcquired,
    Status.E_ALREADY_HELD: AlreadyHeld,
    Status.E_NOT_HELD: NotHeld,
    Status.E_LOST: LockLost,
    Status.E_DEADLOCK: Deadlock,
    Status.E_UNAVAILABLE: Unavailable,
    Status.E_OUTCOME_UNKNOWN: OutcomeUnknown,
    Status.E_NOT_REPLICATED: NotReplicated,
    Status.E_DENIED: Denied,
    Status.E_UNSUPPORTED: Unsupported,
    Status.E_SERVER: ServerError,
    Status.E_INVALID: Invalid,
    Status.E_CLOSED: Closed,
    Status.E_FORKED: Forked,
    Status.E_NO_MEMORY: NoMemory,
    Status.E_INTERNAL: InternalError,
    Status.E_WRONG_TYPE: WrongType,
}


def error_of(status: int, message: str = "") -> Error:
    """The exception for `status`, to be raised."""
    known = Status(status)
    return CLASSES.get(known, Error)(message or known.text, known)


def invalid(message: str) -> Error:
    return error_of(Status.E_INVALID, message)


def new_error() -> _core.Error:
    """An object in which a call of the C ABI puts its status and message."""
    err = _core.error_new()
    if err is None:
        raise error_of(Status.E_NO_MEMORY)
    return err


def raise_of(err: _core.Error) -> None:
    """Raise the error in `err`, unless it is OK."""
    status = _core.error_status(err)
    if status != Status.OK:
        raise error_of(status, _core.error_message(err))


def add_note(exception: BaseException, note: str) -> None:
    """Add a note to an exception that must not be replaced."""
    if hasattr(exception, "add_note"):
        exception.add_note(note)
    else:  # Before 3.11: what pytest and others that print tracebacks look for.
        notes: list[str] = getattr(exception, "__notes__", [])
        exception.__notes__ = [*notes, note]  # type: ignore[attr-defined, unused-ignore]
