# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Several names for one acquisition, and paths as such names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Union, get_args

from . import _core
from ._convert import Name, shown, to_bytes, to_text
from ._errors import Error, error_of, invalid, new_error, raise_of
from ._mode import READ, WRITE, HoldMode
from ._status import Status

_MOST = _core.constant(b"RL_MAX_NAMES", 0)

NameAndMode = Union[Name, tuple[Name, HoldMode]]


class Names:
    """Names and their modes, in the order of the caller."""

    __slots__ = ("handle", "bytes")

    def __init__(self, names: Iterable[NameAndMode]) -> None:
        if isinstance(names, (str, bytes)):
            raise TypeError(f"names must be a list of names (got {type(names).__name__})")
        self._open()
        for each in names:
            name, mode = _parts_of(each)
            err = new_error()
            _core.names_add(self.handle, name, mode, err)
            raise_of(err)
            self.bytes.append(name)
        if not self.bytes:
            raise invalid(f"names must be 1 to {_MOST} (got 0)")

    @classmethod
    def of_path(cls, path: Name) -> Names:
        """A writer of the path, and readers of all that it is in."""
        names = cls.__new__(cls)
        names._open()
        whole, err = to_bytes(path, "path"), new_error()
        _core.names_add_path(names.handle, whole, err)
        raise_of(err)
        parts = whole.split(b"/")
        names.bytes = [whole, *(b"/".join(parts[:i]) for i in range(1, len(parts)))]
        return names

    def _open(self) -> None:
        handle = _core.names_new()
        if handle is None:
            raise error_of(Status.E_NO_MEMORY)
        self.handle = handle
        self.bytes: list[bytes] = []

    @property
    def texts(self) -> list[str]:
        return [to_text(name) for name in self.bytes]


def _parts_of(each: NameAndMode) -> tuple[bytes, int]:
    """The name and the mode of an entry."""
    if not isinstance(each, tuple):
        return to_bytes(each, "name"), WRITE
    if len(each) != 2 or each[1] not in get_args(HoldMode):
        raise invalid(
            f"each of names must be a name, (name, 'read') or (name, 'write') (got {shown(each)})"
        )
    return to_bytes(each[0], "name"), READ if each[1] == "read" else WRITE


def no_names() -> Error:
    """Why a Redlock has none."""
    return error_of(
        Status.E_UNSUPPORTED,
        "several names need one server or cluster: the nodes of a Redlock have no common order of "
        "waiters",
    )
