# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""User and password that a callable gives when they are wanted."""

from __future__ import annotations

import threading
import weakref
from typing import Any, Callable, NamedTuple, Optional, Union

from . import _core
from ._convert import Seconds, to_bytes, to_ms
from ._errors import error_of, new_error, raise_of
from ._status import Status

_WANTED, _END = 1, 2
_MAX_REASON = 400


class Credentials(NamedTuple):
    """What the callable `credentials` of connect() returns.

    user      "" is the default user
    password  or a token
    valid     seconds from now for which they can be used, at least 1; None is no end
    """

    user: Union[str, bytes]
    password: Union[str, bytes]
    valid: Optional[Seconds] = None

    def __repr__(self) -> str:
        return f"Credentials(user={self.user!r}, password=***, valid={self.valid!r})"


# A tuple of two or three is good, too.
Provider = Callable[[], Union[Credentials, "tuple[Any, ...]"]]


def provide(handle: _core.Client, provider: Provider) -> Callable[[], object]:
    """Have `provider` called in a thread of its own when `handle` wants credentials.

    Returns what ends that thread, which the end of the handle does as well.
    """
    err = new_error()
    queue = _core.queue_new(err)
    raise_of(err)
    assert queue is not None
    arguments = (weakref.ref(handle), queue, provider)
    thread = threading.Thread(target=_run, args=arguments, name="redlatch-credentials", daemon=True)
    # Before the first call that connects.
    status = _core.client_credentials_watch(handle, queue, _WANTED)
    if status != Status.OK:
        raise error_of(Status(status))
    end = weakref.finalize(handle, _core.queue_post, queue, _END)
    end.atexit = False
    thread.start()
    return end


def _run(handle: weakref.ref[_core.Client], queue: _core.Queue, provider: Provider) -> None:
    # Without a reference to the handle while it waits, so that the handle can be collected.
    while _core.queue_wait(queue) == _WANTED:
        _give(handle, _answer_of(provider))


def _give(handle: weakref.ref[_core.Client], answer: Union[tuple[bytes, bytes, int], str]) -> None:
    client = handle()
    if client is None:
        return
    err = new_error()
    if isinstance(answer, str):
        return _fail(client, answer, err)
    _core.client_credentials_set(client, *answer, err)
    if _core.error_status(err) != Status.OK:
        _fail(client, _core.error_message(err), err)


def _fail(client: _core.Client, reason: str, err: _core.Error) -> None:
    text = reason[:_MAX_REASON].encode("utf-8", "replace")
    _core.client_credentials_fail(client, text, err)


def _answer_of(provider: Provider) -> Union[tuple[bytes, bytes, int], str]:
    """The arguments of the call that gives them, or why there are none."""
    try:
        answer = provider()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if not isinstance(answer, tuple) or len(answer) not in (2, 3):
        # Not its value, which may be a secret.
        return f"credentials() must return redlatch.Credentials (got {type(answer).__name__})"
    made = Credentials(*answer)
    try:
        valid_ms = -1 if made.valid is None else to_ms(made.valid, "valid")
        return to_bytes(made.user, "user"), to_bytes(made.password, "password"), valid_ms
    except Exception as error:
        return str(error)
