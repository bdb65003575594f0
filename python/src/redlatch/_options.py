# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The options of one acquisition."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Callable, Literal, Optional, TypeVar, Union

from . import _core
from ._advice import instead_of
from ._convert import Name, shown, to_bytes, to_ms, to_text
from ._errors import error_of, invalid, new_error, raise_of
from ._option_table import (
    KINDS,
    MANUAL,
    OF_LOCK,
    OF_OWNED,
    OF_REDLOCK,
    WORDS,
    Keywords,
)
from ._status import Status

Value = Union[str, bytes, int, float, timedelta, "os.PathLike[str]", None]
T = TypeVar("T", bound=Callable[..., Any])

# The formats of a read-write lock.
RWFormat = Literal["string", "hash-rw"]

O = TypeVar("O")
Setter = Callable[[O, bytes, bytes, _core.Error], int]

_PATHS = ("PROGRAM", "FILE", "FILE_OR_FOLDER", "PASSWORD_FILE")


def documented(function: T) -> T:
    """Replace {client}, {acquire}, .. of a docstring by the texts of options.def."""
    for scope, manual in MANUAL.items():
        function.__doc__ = (function.__doc__ or "").replace(f"{{{scope}}}", manual.strip())
    return function


def option_text(name: str, value: object) -> bytes:
    """For a client: the text of a URL, or a value of the type that it has in Python."""
    kind = KINDS.get(name)
    if isinstance(value, os.PathLike) and kind in _PATHS:
        return os.fsencode(value)
    if value is False and name in WORDS:
        return WORDS[name]
    if isinstance(value, (str, bytes)) or kind is None:
        return to_bytes(value if isinstance(value, bytes) else str(value), name)
    return keyword_text(name, value)


def keyword_text(name: str, value: object) -> bytes:
    """The value of a keyword, of the type that it has in Python."""
    kind = KINDS[name]
    if kind == "DURATION":
        return f"{to_ms(value, name)}ms".encode()  # type: ignore[arg-type]
    if kind == "SWITCH" and value in (0, 1):
        return b"yes" if value else b"no"
    if kind in ("COUNT", "SWITCH"):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} must be a number (got {type(value).__name__})")
        return digits(value)
    return to_bytes(value, name)  # type: ignore[arg-type]


def set_option(setter: Setter[O], options: O, name: str, value: object, text: bytes) -> None:
    """Set an option. The error shows a refused number as the caller wrote it, not in ms."""
    err = new_error()
    status = setter(options, name.encode(), text, err)
    if status == Status.E_INVALID and isinstance(value, (int, float, timedelta)):
        message = _core.error_message(err)
        raise invalid(re.sub(r" \(got '[^']*'\)$", f" (got {shown(value)})", message))
    raise_of(err)


def _unexpected(keyword: str, known: frozenset[str]) -> TypeError:
    """A TypeError in the words of Python, about the function that the user called."""
    called, frame = "", sys._getframe(1)
    while frame and frame.f_globals.get("__name__", "").startswith("redlatch."):
        called, frame = frame.f_code.co_name, frame.f_back  # type: ignore[assignment]
    names = " ".join(["timeout", *sorted(known)]).encode()
    near = to_text(_core.nearest_word(to_bytes(keyword, "keyword"), names))
    hint = f". Did you mean '{near}'?" if near else ""
    hint = instead_of(keyword) or hint
    return TypeError(f"{called}() got an unexpected keyword argument {shown(keyword)}{hint}")


def make_options(**keywords: Value) -> Optional[_core.AcquireOptions]:
    """The options of an acquisition; None if all are the defaults."""
    return _made(keywords, OF_LOCK) if keywords else None


def make_redlock_options(**keywords: Value) -> Optional[_core.AcquireOptions]:
    """The same for a Redlock, which has fewer options."""
    return _made(keywords, OF_REDLOCK) if keywords else None


def make_permits_options(
    permits: int, limit: int, keywords: Mapping[str, Value]
) -> _core.AcquireOptions:
    """The options of an acquisition of a semaphore. The library checks the ranges."""
    if not _is_count(limit):
        raise invalid(f"limit must be an int from 1 (got {shown(limit)})")
    made = _made(keywords, OF_OWNED)
    for name, number in (("limit", limit), ("permits", permits)):
        set_option(_core.acquire_options_set, made, name, number, digits(number))
    return made


def make_once_options(**keywords: Value) -> _core.AcquireOptions:
    """The options of a run of once. Each run is an acquisition of its own on the server."""
    return _without_handoffs("once()", keywords)


def make_candidate_options(id: bytes, keywords: Mapping[str, Value]) -> _core.AcquireOptions:
    """The options of a candidate. Each one has its own place in the queue."""
    made = _without_handoffs("election()", keywords)
    set_option(_core.acquire_options_set, made, "id", id, id)
    return made


def _without_handoffs(what: str, keywords: Mapping[str, Value]) -> _core.AcquireOptions:
    _check_names(keywords, OF_OWNED)
    handoffs = keywords.get("max_local_handoffs")
    if handoffs not in (None, 0):
        raise invalid(f"option 'max_local_handoffs' must be 0 for {what} (got {shown(handoffs)})")
    return _made({**keywords, "max_local_handoffs": 0}, OF_OWNED)


def digits(number: int) -> bytes:
    """The text of a number. Python refuses that of a huge one, and so does the library."""
    largest = 1 << 63
    return str(max(min(number, largest), -largest)).encode()


def check_permits(permits: int) -> None:
    """Refuse what is no number, such as the `blocking` of threading.Lock."""
    if not _is_count(permits):
        advice = "; one try is blocking=False" if isinstance(permits, bool) else ""
        raise invalid(f"permits must be an int from 1 (got {shown(permits)}{advice})")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _made(keywords: Mapping[str, Value], known: frozenset[str]) -> _core.AcquireOptions:
    made = _core.acquire_options_new()
    if made is None:
        raise error_of(Status.E_NO_MEMORY)
    _check_names(keywords, known)
    for name, value in keywords.items():
        if value is not None:
            text = keyword_text(name, value)
            set_option(_core.acquire_options_set, made, name, value, text)
    return made


def _check_names(keywords: Mapping[str, Any], known: frozenset[str]) -> None:
    for name in keywords:
        if name not in known:
            raise _unexpected(name, known)


class OwnedOptions:
    """The options of a lock with several owners, made for one owner at a time.

    `keywords` are the user's, who must not set the owner and the format; `own` are of the lock
    itself. The options of the last owner are kept, which makes a repeated acquire cheaper.
    """

    __slots__ = ("_is_reentrant", "_keywords", "_last")

    def __init__(self, is_reentrant: bool, keywords: Keywords, **own: Value) -> None:
        self._is_reentrant = is_reentrant
        _check_names(keywords, OF_OWNED)
        self._keywords: dict[str, Any] = {**keywords, **own}
        self._last: tuple[Optional[bytes], Optional[_core.AcquireOptions]] = (
            None, make_options(**self._keywords)  # A mistake shows now.
        )

    def of(self, owner: Optional[bytes]) -> Optional[_core.AcquireOptions]:
        """The options for `owner`; without an owner for None."""
        last, options = self._last
        if owner != last or options is None:
            keywords = self._keywords
            if owner is not None:
                keywords = {**keywords, "owner": owner, "reentrant": self._is_reentrant}
            options = make_options(**keywords)
            # One step: threads share this object, and none of them changes what is in there.
            self._last = (owner, options)
        return options


def check_owner(owner: Name) -> bytes:
    """The name of an owner as bytes, checked."""
    make_options(owner=owner)
    return to_bytes(owner, "owner")
