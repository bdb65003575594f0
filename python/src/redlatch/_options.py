# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The options of one acquisition."""

from __future__ import annotations

from typing import Callable, Optional

from . import _core
from ._convert import Name, to_bytes, to_ms
from ._errors import error_of, invalid
from ._status import Status


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


def make_options(
    ttl: Optional[float],
    renew: bool,
    max_hold: Optional[float],
    confirm: bool,
    local_burst: Optional[int],
    foreign_burst: Optional[int],
    foreign_window: Optional[float],
    label: Optional[Name],
) -> Optional[_core.AcquireOptions]:
    """None if all are the defaults."""
    if ttl is None and max_hold is None and renew is True and confirm is False and label is None:
        if local_burst is None and foreign_burst is None and foreign_window is None:
            return None
    made = _core.acquire_options_new()
    if made is None:
        raise error_of(Status.E_NO_MEMORY)
    least, most = _bound("MIN_LEASE_MS") / 1000, _bound("MAX_LEASE_MS") // 1000
    burst = f"0 to {_bound('MAX_LOCAL_BURST')}"
    _set_ms(_core.acquire_options_set_lease_ms, made, "ttl", ttl, f"{least} to {most}")
    _set_ms(_core.acquire_options_set_max_hold_ms, made, "max_hold", max_hold, f"0 to {most}")
    _set_count(_core.acquire_options_set_local_burst, made, "local_burst", local_burst, burst)
    foreign = "0 (never) to 1000000"
    _set_count(
        _core.acquire_options_set_foreign_burst, made, "foreign_burst", foreign_burst, foreign
    )
    window = "0.001 to 60"
    _set_ms(
        _core.acquire_options_set_foreign_window_ms, made, "foreign_window", foreign_window, window
    )
    _set_count(_core.acquire_options_set_renew, made, "renew", renew, "True and False")
    _set_count(_core.acquire_options_set_confirm, made, "confirm", confirm, "True and False")
    if label is not None:
        text = to_bytes(label, "label")
        if not _set(_core.acquire_options_set_label, made, text):
            most_bytes = _bound("MAX_LABEL_BYTES")
            raise invalid(f"label of {len(text)} bytes: allowed are at most {most_bytes}")
    return made
