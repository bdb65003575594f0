# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Writes the records of tests into a history: calls of runners, killed processes, tokens in queues.
tests/history/README.md defines the records; record.h writes them for programs in C.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from pathlib import Path
from urllib.parse import quote_from_bytes

Value = bytes | str | int

def _words(values: dict[str, Value]) -> str:
    pairs = ((k, v if isinstance(v, bytes) else str(v).encode()) for k, v in values.items())
    return " ".join(f"{key}={quote_from_bytes(value, safe=':,')}" for key, value in pairs)


# Several Record objects of one process may have one name, and their numbers must differ.
_starts = itertools.count(1, 1_000_000)


class Record:
    """A file of one process, `process` in the records; each record is one write."""

    def __init__(self, path: Path, process: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._process = process
        self._numbers = itertools.count(next(_starts))

    def call(self, op: str, **values: Value) -> str:
        """The number that the return of this call must name."""
        number = f"{self._process}.{next(self._numbers)}"
        caller = threading.get_native_id()
        self._put(f"call {number} {time.monotonic_ns()} {op} {_words(values)} caller={caller}")
        return number

    def returned(self, number: str, outcome: str, **values: Value) -> None:
        self._put(f"return {number} {time.monotonic_ns()} {outcome} {_words(values)}")

    def look(self, **values: Value) -> None:
        self._put(f"look {self._process} {time.monotonic_ns()} {_words(values)}")

    def queue(self, name: str, tokens: list[str]) -> None:
        """These tokens were in the server's queue, in this order."""
        said = _words({"name": name, "tokens": ",".join(tokens)})
        self._put(f"queue {self._process} {time.monotonic_ns()} {said}")

    def gone(self, process: int) -> None:
        """A process was killed, and its sockets are closed."""
        self._put(f"gone {process} {time.monotonic_ns()}")

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _put(self, line: str) -> None:
        os.write(self._file, line.encode() + b"\n")


def _of_driver() -> Record | None:
    folder = os.environ.get("REDLATCH_HISTORY")
    return Record(Path(folder) / "driver.log", "driver") if folder else None


def note_gone(process: int) -> None:
    """For a driver that has killed a process."""
    if record := _of_driver():
        record.gone(process)
        record.close()


class Forgetting:
    """From now until done() a server may forget all locks."""

    def __init__(self) -> None:
        self._record = _of_driver()
        self._number = self._record.call("force") if self._record else ""

    def done(self) -> None:
        if self._record:
            self._record.returned(self._number, "ok")
            self._record.close()
