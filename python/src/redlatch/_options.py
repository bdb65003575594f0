# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The options of one acquisition."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from typing import Callable, Literal, Optional, TypedDict, Union

from . import _core
from ._convert import Name, shown, to_bytes, to_ms
from ._errors import error_of, invalid
from ._status import Status

Format = Literal["string", "hash", "hash-rw"]
RWFormat = Literal["string", "hash-rw"]

_FORMATS = {
    "string": _core.constant(b"RL_FORMAT_STRING", 0),
    "hash": _core.constant(b"RL_FORMAT_HASH", 0),
    "hash-rw": _core.constant(b"RL_FORMAT_HASH_RW", 0),
}
_INT32 = 2**31


def _bound(name: str) -> int:
    return _core.constant(f"RL_{name}".encode(), 0)


def _set(setter: Callable[..., int], options: _core.AcquireOptions, value: object) -> bool:
    status = setter(options, value)
    if status == Status.E_NO_MEMORY:
        raise error_of(status)
    return status == Status.OK


def _set_ms(
    setter: Callable[..., int],
    options: _core.AcquireOptions,
    what: str,
    value: Optional[float],
    allowed: str,
) -> None:
    if value is not None and not _set(setter, options, to_ms(value, what)):
        raise invalid(f"{what}={value!r}: allowed are {allowed} seconds")


def _set_count(
    setter: Callable[..., int],
    options: _core.AcquireOptions,
    what: str,
    value: Optional[int],
    allowed: str,
) -> None:
    if value is None:
        return
    if not isinstance(value, int):
        raise TypeError(f"{what} is {type(value).__name__}: allowed are {allowed}")
    if not -_INT32 <= value < _INT32 or not _set(setter, options, value):
        raise invalid(f"{what}={value!r}: allowed are {allowed}")


def _set_text(
    setter: Callable[..., int], options: _core.AcquireOptions, what: str, value: Name, allowed: str
) -> None:
    text = to_bytes(value, what)
    if not _set(setter, options, text):
        raise invalid(f"{what} of {len(text)} bytes: allowed are {allowed}")


class RedlockKeywords(TypedDict, total=False):
    """Of all that acquires. Client.lock() says what they do."""

    ttl: Optional[float]
    renew: bool
    max_hold: Optional[float]
    label: Optional[Name]


class Keywords(RedlockKeywords, total=False):
    """Of all that acquires from one server."""

    confirm: bool
    max_local_handoffs: Optional[int]
    yield_every: Optional[int]
    yield_for: Optional[float]


class LockKeywords(Keywords, total=False):
    """Of mutexes, and of what has its format."""

    format: Format


def _unexpected(keyword: str, known: type) -> TypeError:
    """In Python's words, about the function that the user called."""
    called, frame = "", sys._getframe(1)
    while frame and frame.f_globals.get("__name__", "").startswith("redlatch."):
        called, frame = frame.f_code.co_name, frame.f_back  # type: ignore[assignment]
    names = ["timeout", *known.__annotations__]
    for base in getattr(known, "__orig_bases__", ()):
        names += getattr(base, "__annotations__", {})
    near = get_close_matches(keyword, names, 1)
    hint = f". Did you mean '{near[0]}'?" if near else ""
    return TypeError(f"{called}() got an unexpected keyword argument {shown(keyword)}{hint}")


def make_options(
    ttl: Optional[float] = None,
    renew: bool = True,
    max_hold: Optional[float] = None,
    confirm: bool = False,
    max_local_handoffs: Optional[int] = None,
    yield_every: Optional[int] = None,
    yield_for: Optional[float] = None,
    label: Optional[Name] = None,
    format: Format = "string",
    **unknown: object,
) -> Optional[_core.AcquireOptions]:
    """None if all are the defaults."""
    if unknown:
        raise _unexpected(next(iter(unknown)), LockKeywords)
    if ttl is None and max_hold is None and renew is True and confirm is False and label is None:
        if max_local_handoffs is None and yield_every is None and yield_for is None:
            if format == "string":
                return None
    made = new_options()
    least, most = _bound("MIN_TTL_MS") / 1000, _bound("MAX_TTL_MS") // 1000
    burst = f"0 to {_bound('MAX_LOCAL_HANDOFFS')}"
    _set_ms(_core.acquire_options_set_ttl_ms, made, "ttl", ttl, f"{least} to {most}")
    _set_ms(_core.acquire_options_set_max_hold_ms, made, "max_hold", max_hold, f"0 to {most}")
    set_handoffs = _core.acquire_options_set_max_local_handoffs
    _set_count(set_handoffs, made, "max_local_handoffs", max_local_handoffs, burst)
    foreign = "0 (never) to 1000000"
    _set_count(
        _core.acquire_options_set_yield_every, made, "yield_every", yield_every, foreign
    )
    window = "0.001 to 60"
    _set_ms(
        _core.acquire_options_set_yield_ms, made, "yield_for", yield_for, window
    )
    _set_count(_core.acquire_options_set_renew, made, "renew", renew, "True and False")
    _set_count(_core.acquire_options_set_confirm, made, "confirm", confirm, "True and False")
    if label is not None:
        most_bytes = f"at most {_bound('MAX_LABEL_BYTES')}"
        _set_text(_core.acquire_options_set_label, made, "label", label, most_bytes)
    check_format(format, *_FORMATS)
    _core.acquire_options_set_format(made, _FORMATS[format])
    return made


def make_redlock_options(
    ttl: Optional[float] = None,
    renew: bool = True,
    max_hold: Optional[float] = None,
    label: Optional[Name] = None,
    **unknown: object,
) -> Optional[_core.AcquireOptions]:
    """Those of a Redlock, which has no others."""
    if unknown:
        raise _unexpected(next(iter(unknown)), RedlockKeywords)
    return make_options(ttl=ttl, renew=renew, max_hold=max_hold, label=label)


def check_format(format: str, *allowed: str) -> None:
    if format not in allowed:
        named = ", ".join(f'"{one}"' for one in allowed)
        raise invalid(f"format={shown(format)}: allowed are {named}")


def new_options() -> _core.AcquireOptions:
    made = _core.acquire_options_new()
    if made is None:
        raise error_of(Status.E_NO_MEMORY)
    return made


class OwnedOptions:
    """The options of a lock that tells owners apart, each time for one of them.

    Those of the last owner are kept: one who takes a lock again and again pays for them once.
    """

    __slots__ = ("_setter", "_keywords", "_last")

    def __init__(self, setter: Callable[..., int], keywords: Union[Keywords, LockKeywords]) -> None:
        self._setter = setter
        self._keywords = keywords
        make_options(**keywords)  # What is wrong with them shows now.
        self._last: tuple[Optional[bytes], Optional[_core.AcquireOptions]] = (None, None)

    def of(self, owner: Optional[bytes]) -> Optional[_core.AcquireOptions]:
        """None: of nobody."""
        last, options = self._last
        if owner != last or options is None:
            options = make_options(**self._keywords)
            if owner is not None:
                options = options if options is not None else new_options()
                if not _set(self._setter, options, owner):
                    raise error_of(Status.E_INTERNAL)
            # One step: threads share this object, and none of them changes what is in there.
            self._last = (owner, options)
        return options


def check_owner(owner: Name) -> bytes:
    """What was named as the owner."""
    allowed = f"1 to {_bound('MAX_OWNER_BYTES')}"
    _set_text(_core.acquire_options_set_owner, new_options(), "owner", owner, allowed)
    return to_bytes(owner, "owner")
