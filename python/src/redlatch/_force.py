# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The holders that a forced release removes."""

from __future__ import annotations

from typing import Optional

from ._convert import ANY_HOLDER, shown, to_bytes
from ._errors import Error, error_of
from ._info import LockInfo, LockState
from ._status import Status

# A lock that is handed on between the look and the release has another token. After as many it is
# certainly a lock in use, and all its holders are removed.
TRIES = 3


def check_arguments(token: object, is_any: bool) -> None:
    if is_any and token is not ANY_HOLDER:
        raise TypeError("any=True must not be given with a token")


def token_of(info: LockInfo) -> Optional[bytes]:
    """The token of the only holder of a lock of redlatch; None if there are several."""
    if info.is_free:
        raise _nothing(info)
    if info.state is not LockState.HELD:
        raise error_of(
            Status.E_WRONG_TYPE,
            f"the key of lock {shown(info.name)} must be a lock of redlatch (got a {info.type} of "
            "another program); force_release(name, any=True) also removes others' locks and data",
        )
    is_alone = len(info.holders) == info.hold_count == 1
    return to_bytes(info.holders[0].token, "token") if is_alone else None


def _nothing(info: LockInfo) -> Error:
    return error_of(Status.E_NOT_HELD, f"lock {shown(info.name)} is free: nothing to release")
