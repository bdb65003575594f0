# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The options of one acquisition."""

from __future__ import annotations

from typing import Callable, Optional

from . import _core
from ._convert import Name, to_bytes, to_ms
from ._errors import error_of, invalid
from ._status import Status


def _set(setter: Callable[..., int], options: _core.AcquireOptions, value: object) -> bool:
    status = setter(options, value)
    if status == Status.E_NO_MEMORY:
        raise error_of(status)
    return status == Status.OK


def _bound(name: str) -> int:
    return _core.constant(f"RL_{name}".encode(), 0)


def make_options(
    ttl: Optional[float],
    renew: bool,
    max_hold: Optional[float],
    confirm: bool,
    local_burst: Optional[int],
    label: Optional[Name],
) -> Optional[_core.AcquireOptions]:
    """None if all are the defaults."""
    if ttl is None and renew is True and max_hold is None and confirm is False:
        if local_burst is None and label is None:
            return None
    options = _core.acquire_options_new()
    if options is None:
        raise error_of(Status.E_NO_MEMORY)
    least, most = _bound("MIN_LEASE_MS") / 1000, _bound("MAX_LEASE_MS") // 1000
    if ttl is not None:
        if not _set(_core.acquire_options_set_lease_ms, options, to_ms(ttl, "ttl")):
            raise invalid(f"ttl={ttl!r}: allowed are {least} to {most} seconds (7 days)")
    if max_hold is not None:
        if not _set(_core.acquire_options_set_max_hold_ms, options, to_ms(max_hold, "max_hold")):
            raise invalid(f"max_hold={max_hold!r}: allowed are 0 (no limit) to {most} seconds")
    if local_burst is not None:
        top = _bound("MAX_LOCAL_BURST")
        if not 0 <= local_burst <= top:
            raise invalid(f"local_burst={local_burst!r}: allowed are 0 to {top}")
        _set(_core.acquire_options_set_local_burst, options, local_burst)
    if label is not None:
        text = to_bytes(label, "label")
        if not _set(_core.acquire_options_set_label, options, text):
            top = _bound("MAX_LABEL_BYTES")
            raise invalid(f"label of {len(text)} bytes: allowed are at most {top}")
    _set(_core.acquire_options_set_renew, options, renew)
    _set(_core.acquire_options_set_confirm, options, confirm)
    return options
