# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Writes that carry a fence, so that no write of an earlier holder follows one of a later holder.

    from redlatch.fenced import write_file

    with client.lock("report") as lease:
        if not write_file("report.txt", data, lease.fence):
            ...  # a later holder has written: stop

docs/fenced-writes.md has the same for databases.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Union

from ._convert import check_fence, shown
from ._errors import invalid

__all__ = ["write_file"]

_HIGHEST = 2**53 - 1
_DIGITS = 16


def write_file(path: Union[str, os.PathLike[str]], data: bytes, fence: int) -> bool:
    """Replace the content of a file, unless a write with a higher fence came before.

    path   a file, or a link to one; a missing file is created
    data   the whole new content
    fence  `lease.fence` of an exclusive lease

    Returns True if the file has `data` now, and False if the fence is too low: then nothing has
    changed. Readers see the old content or the new one, never a part. The highest fence is kept in
    the file `path` + ".fence", which is also the lock of the writers: never delete it.

    An exception leaves the old content, unless the last step failed, the sync of the folder. The
    same call may be repeated.
    """
    if not isinstance(data, bytes):
        raise TypeError(f"data must be bytes (got {type(data).__name__})")
    if not 1 <= check_fence(fence) <= _HIGHEST:
        raise invalid(f"fence must be 1 to {_HIGHEST} (got {shown(fence)})")
    target = os.path.realpath(os.fspath(path))
    with _locked(f"{target}.fence") as record:
        if fence < _highest_in(record, target):
            return False
        _raise_to(fence, record, target)
        _replace(target, data)
    return True


@contextmanager
def _locked(name: str) -> Iterator[int]:
    """The descriptor of a file, which one writer at a time has."""
    record = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(record, fcntl.LOCK_EX)
        yield record
    finally:
        # Not by closing it: a child that was forked meanwhile has the descriptor too.
        fcntl.flock(record, fcntl.LOCK_UN)
        os.close(record)


def _highest_in(record: int, target: str) -> int:
    """The highest fence so far; 0 before the first write."""
    text = os.pread(record, _DIGITS + 2, 0)
    if not text:
        return 0
    if len(text) != _DIGITS + 1 or not text[:_DIGITS].isdigit() or text[_DIGITS:] != b"\n":
        wanted = f"one line of {_DIGITS} digits"
        raise invalid(f"{target}.fence must be {wanted} (got {shown(text)})")
    return int(text)


def _raise_to(fence: int, record: int, target: str) -> None:
    """Write the fence to the disk. Before the data: a crash in between must not lower it."""
    is_first = os.fstat(record).st_size == 0
    os.pwrite(record, b"%0*d\n" % (_DIGITS, fence), 0)
    os.fsync(record)
    if is_first:
        _sync_folder_of(target)


def _replace(target: str, data: bytes) -> None:
    """One step for readers. A file that an earlier writer has left behind goes away."""
    new = f"{target}.fence.new"
    with suppress(FileNotFoundError):
        os.unlink(new)
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            with suppress(FileNotFoundError):
                os.fchmod(file.fileno(), stat.S_IMODE(os.stat(target).st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(new)
        raise
    _sync_folder_of(target)


def _sync_folder_of(target: str) -> None:
    folder = os.open(os.path.dirname(target), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
