# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The messages that scripts send to waiters."""

from __future__ import annotations

from dataclasses import dataclass

from .texts import check_of


@dataclass(frozen=True)
class Grant:
    """A `g` message: the lock is yours."""

    rid: str
    provisional_ms: int
    fence: str
    now: int
    mode: str = "x"


@dataclass(frozen=True)
class Head:
    """An `n` message: you are the head, poll after `ms`."""

    rid: str
    ms: int


@dataclass(frozen=True)
class Told:
    """A `v` message: the value that you wait for is there."""

    rid: str


@dataclass(frozen=True)
class Recalled:
    """An `r` message: somebody asks you to finish; a waiter has no reason."""

    rid: str
    reason: str | None = None


def parse(text: str, key: str | bytes) -> Grant | Head | Told | Recalled:
    if text[0] == "r":
        assert len(text) == 11 or text[11] == ":"
        return Recalled(text[1:11], text[12:] if len(text) > 11 else None)
    if text[0] == "v":
        assert len(text) == 11
        return Told(text[1:11])
    if text[0] == "n":
        assert len(text) == 16
        return Head(text[1:11], int(text[11:]))
    assert len(text) == 54 and text[0] == "g" and text[11] in "xsuv"
    assert text[46:] == check_of(key)
    return Grant(text[1:11], int(text[12:17]), text[17:33], int(text[33:46]), text[11])
