# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Hints for calls that other libraries have, and for those that newcomers try first."""

from __future__ import annotations

import functools
import opcode
import re
import sys
import warnings
from types import FrameType
from typing import TYPE_CHECKING, Any, Callable, NoReturn, TypeVar, cast

from ._convert import shown

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

URL = "redis://localhost:6379"

# By the keyword of redis-py.
_INSTEAD = {
    "blocking_timeout": "the time to wait is `timeout` here, and redis-py's `timeout` is `ttl`",
    "blocking": "one try is `timeout=0`",
    "sleep": "leave it out: a waiter is notified, and does not poll",
    "thread_local": "leave it out: any thread may release",
}


def instead_of(keyword: str) -> str:
    """A hint for a keyword of redis-py, as the end of a message; "" if there is none."""
    advice = _INSTEAD.get(keyword)
    return f": {advice}" if advice else ""


def no_keywords(keywords: dict[str, Any]) -> NoReturn:
    """Raise the TypeError of Python for unknown keywords, with a hint."""
    name = next(iter(keywords))
    said = f"acquire() got an unexpected keyword argument {shown(name)}"
    raise TypeError(said + instead_of(name))


# ---- what only calls of the package make ---------------------------------------------------------


class Made(type):
    """The type of a class that made() makes. A direct call raises an error with the right call."""

    if not TYPE_CHECKING:

        def __call__(cls, *arguments: Any, **keywords: Any) -> NoReturn:
            raise TypeError(f"redlatch.{cls.__name__} is made by {cls._MADE_BY}")


def made(kind: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
    return cast(T, type.__call__(cast(type, kind), *arguments, **keywords))


# ---- copies and pickles --------------------------------------------------------------------------


class Unique:
    """An object of one process. A copy is the same object."""

    __slots__ = ()

    _IN_ANOTHER_PROCESS: str

    def __copy__(self: T) -> T:
        return self

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        advice = self._IN_ANOTHER_PROCESS
        raise TypeError(f"a redlatch.{kind} cannot be sent to another process: {advice}")


# ---- connect() -----------------------------------------------------------------------------------


def takes_url(connect: F) -> F:
    """Let `connect` explain URLs to a call by host and port."""

    @functools.wraps(connect)
    def checked(*arguments: Any, **options: Any) -> Any:
        has_url = bool(arguments) or "url" in options
        by_host = [name for name in ("host", "port") if name in options]
        if by_host or not has_url or len(arguments) > 1:
            host, port = options.get("host", "localhost"), options.get("port", 6379)
            # Anything else may be a URL, with a password in it.
            is_name = isinstance(host, str) and re.fullmatch(r"[\w.-]+", host)
            named = is_name and isinstance(port, int)
            url = f"redis://{host}:{port}" if named else URL
            got = " and ".join(by_host) or f"{len(arguments)} positional arguments"
            raise TypeError(f"connect() takes one URL: redlatch.connect({url!r}) (got {got})")
        return connect(*arguments, **options)

    return cast(F, checked)


# ---- with client.acquire(..) ---------------------------------------------------------------------

_BEFORE = tuple(opcode.opmap.get(name, -1) for name in ("CACHE", "EXTENDED_ARG", "COPY"))
_ENTERS = tuple(
    opcode.opmap.get(name, -1) for name in ("SETUP_WITH", "BEFORE_WITH", "LOAD_SPECIAL")
)


def _enters_next(frame: FrameType) -> bool:
    """True if the result of the call that `frame` is in becomes the operand of `with`."""
    code, at = frame.f_code.co_code, frame.f_lasti + 2
    while at < len(code) and code[at] in _BEFORE:
        at += 2
    return at < len(code) and code[at] in _ENTERS


def warn_of_with(call: str, lock: str) -> None:
    """The call of two frames above returns None. Python's error would only name that.

    A warning and no error, because code in C may be between the two frames, and return something
    else.
    """
    caller = sys._getframe(1).f_back  # None: C called
    if caller is not None and _enters_next(caller):
        text = f"{call} returns None when the lock is busy: it is not for `with`; {lock} is"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
