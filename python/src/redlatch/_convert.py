# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Python's values as the C ABI takes them: names are bytes, durations are milliseconds."""

from __future__ import annotations

import math
import threading
from datetime import timedelta
from typing import Optional, Union

from ._errors import invalid

Name = Union[str, bytes]
Duration = Union[float, timedelta]
Seconds = Optional[Duration]

NO_LIMIT = -1
# Past this, a wait has no limit: three hundred years in ms, far inside what C takes.
_LONGEST_MS = 10**13
# What C takes.
_LARGEST = 2**63 - 1


def to_bytes(value: Name, what: str) -> bytes:
    """The bytes of a str, as UTF-8; a surrogate is the byte that it stands for in a file name."""
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{what} must be str or bytes (got {type(value).__name__})")
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        # The text is not shown: it may be a password.
        reason = f"{error.reason} (character {error.start})"
        raise invalid(f"{what} must be valid as UTF-8: {reason}") from None


# The token of a forced release that was not passed.
ANY_HOLDER = object()


def check_fence(fence: int) -> int:
    """Refuse a number that C cannot take. The library checks the range."""
    if isinstance(fence, bool) or not isinstance(fence, int):
        raise TypeError(f"fence must be int (got {type(fence).__name__})")
    return max(-_LARGEST - 1, min(fence, _LARGEST))


def shown(value: object) -> str:
    """The text for a message, shortened if it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write a huge int
        text = "a number of more than 4,300 digits"
    return text if len(text) <= 80 else f"{text[:64]}'.."


def to_text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def to_ms(value: Duration, what: str) -> int:
    """Whole milliseconds, away from zero, which often has a meaning of its own."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        allowed = "a number of seconds, such as 0.5 or 2, or a timedelta"
        raise TypeError(f"{what} must be {allowed} (got {shown(value)})")
    if value != value:  # math.isnan() takes no integer that is no float
        raise invalid(f"{what} must be a number of seconds (got nan)")
    ms = min(max(value, -_LONGEST_MS), _LONGEST_MS) * 1000
    ms = round(ms, 6) or ms  # 1.1 * 1000 is a little more than 1100
    return math.floor(ms) if ms < 0 else math.ceil(ms)


def to_wait_ms(timeout: Seconds, what: str = "timeout") -> int:
    """The wait that threading means by `timeout`: -1, or None, is no limit."""
    if timeout is None or timeout == NO_LIMIT:
        return NO_LIMIT
    wait_ms = to_ms(timeout, what)
    if wait_ms < 0:
        raise invalid(f"{what} must be -1 (no limit), 0 (one try) or more (got {timeout!r})")
    return wait_ms if wait_ms < _LONGEST_MS else NO_LIMIT


def check_limit(timeout: Seconds) -> None:
    """Raise what threading raises for a timeout above its limit."""
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if seconds is not None and seconds > threading.TIMEOUT_MAX:
        raise OverflowError(
            f"timeout must be -1 (no limit) or 0 to {threading.TIMEOUT_MAX:.0f} seconds"
            f" (got {timeout!r})"
        )
