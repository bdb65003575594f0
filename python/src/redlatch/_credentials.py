# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Credentials from a callable."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any, Callable, NamedTuple, Optional, Union

from . import _core
from ._convert import Seconds, shown, to_bytes, to_ms
from ._errors import error_of, invalid, new_error, raise_of
from ._hub import start_daemon, wait_for_tags
from ._status import Status

_WANTED, _END = 1, 2
_NO_END = -1
_MIN_MS = _core.constant(b"RL_MIN_CREDENTIALS_MS", 0)
_MAX_REASON = 400
_PAUSE = 1.0


class Credentials(NamedTuple):
    """User and password, as the callable `credentials` of connect() returns them.

    user      "": the default user
    password  or a token
    valid     seconds from now for which they can be used; None: no end
    """

    user: Union[str, bytes]
    password: Union[str, bytes]
    valid: Optional[Seconds] = None

    def __repr__(self) -> str:
        return f"Credentials(user={self.user!r}, password=***, valid={self.valid!r})"


# A tuple of two or three is good, too.
Provider = Callable[[], Union[Credentials, "tuple[Any, ...]"]]
# User, password and validity in milliseconds; or why there are none.
Answer = Union["tuple[bytes, bytes, int]", str]


def provide(handle: _core.Client, provider: Provider) -> Callable[[], object]:
    """Call `provider` in a thread or greenlet of its own when `handle` wants credentials.

    Returns a function that ends this. The end of the handle does so too.
    """
    err = new_error()
    queue = _core.queue_new(err)
    raise_of(err)
    assert queue is not None
    arguments = (weakref.ref(handle), queue, provider)
    # Before the first call that connects.
    status = _core.client_credentials_watch(handle, queue, _WANTED)
    if status != Status.OK:
        raise error_of(Status(status))
    end = weakref.finalize(handle, _core.queue_post, queue, _END)
    end.atexit = False
    if not start_daemon(_run, *arguments):
        name = "redlatch-credentials"
        threading.Thread(target=_run, args=arguments, name=name, daemon=True).start()
    return end


def _run(handle: weakref.ref[_core.Client], queue: _core.Queue, provider: Provider) -> None:
    # Without a reference to the handle while it waits, so that the handle can be collected.
    while wait_for_tags(queue) == [_WANTED]:
        # The library asks once, and again only after an answer.
        while not _is_answered(handle, provider):
            time.sleep(_PAUSE)


def _is_answered(handle: weakref.ref[_core.Client], provider: Provider) -> bool:
    """False if there was no memory for the answer."""
    try:
        answer = _answer_of(provider)
        client = handle()
        if client is None:
            return True
        err = new_error()
        if not isinstance(answer, str):
            _core.client_credentials_set(client, *answer, err)
            if _core.error_status(err) == Status.OK:
                return True
            answer = _core.error_message(err)
        text = answer[:_MAX_REASON].encode("utf-8", "replace")
        return _core.client_credentials_fail(client, text, err) != Status.E_NO_MEMORY
    except MemoryError:
        return False


def _answer_of(provider: Provider) -> Answer:
    """The arguments of the call that sets the credentials, or the reason why there are none."""
    try:
        answer = provider()
    except BaseException as error:  # SystemExit and CancelledError are no reason to stop, either.
        return f"{type(error).__name__}: {_text_of(error)}"
    try:
        if not isinstance(answer, tuple) or len(answer) not in (2, 3):
            # Not its value, which may be a secret.
            return f"credentials() must return redlatch.Credentials (got {type(answer).__name__})"
        made = Credentials(*answer)
        return to_bytes(made.user, "user"), to_bytes(made.password, "password"), _ms_of(made.valid)
    except BaseException as error:
        return _text_of(error)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return "(without a text)"


def _ms_of(valid: Optional[Seconds]) -> int:
    if valid is None:
        return _NO_END
    valid_ms = to_ms(valid, "valid")
    if valid_ms < _MIN_MS:  # -1 ms would be no end
        allowed = f"{_MIN_MS / 1000:g} s or more, or None for no end"
        raise invalid(f"valid must be {allowed} (got {shown(valid)} s)")
    return valid_ms
