# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""For Python programs that tests start: what they call of redlatch is written down, as record.h
does it for programs in C. tests/history/README.md says what the records mean.

    record.install()  # does nothing unless REDLATCH_HISTORY names a folder
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

Value = bytes | str | int

_OUTCOMES = {
    "OK": "ok",
    "BUSY": "busy",
    "TIMEOUT": "timeout",
    "CANCELLED": "cancelled",
    "STILL_HELD": "still_held",
    "E_LOST": "lost",
    "E_NOT_HELD": "not_held",
    "E_DEADLOCK": "deadlock",
    "E_ALREADY_HELD": "already_held",
    "E_OUTCOME_UNKNOWN": "unknown",
}


# Keys of records for what the library calls otherwise, and its numbers.
_KEYS = {"local_burst": "burst"}
_FORMAT_HASH = 2
_MODE_READ = 2


def _words(values: dict[str, Value]) -> str:
    pairs = ((k, v if isinstance(v, bytes) else str(v).encode()) for k, v in values.items())
    return " ".join(f"{key}={quote_from_bytes(value, safe=':,')}" for key, value in pairs)


# Of records with one name in one process: their numbers must differ.
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
        """These were in the server's queue, first in line first."""
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
    """From now on until it is done a server may forget all locks."""

    def __init__(self) -> None:
        self._record = _of_driver()
        self._number = self._record.call("force") if self._record else ""

    def done(self) -> None:
        if self._record:
            self._record.returned(self._number, "ok")
            self._record.close()


def install() -> None:
    if folder := os.environ.get("REDLATCH_HISTORY"):
        _Recorder(Record(Path(folder) / f"{os.getpid()}.log", str(os.getpid())))


Done = Callable[[Any], None]


class _Recorder:
    """Stands around the methods of the package by which locks are taken and given back. Each method
    before_X() writes down the call, and returns what is to be told of its result or its error.
    """

    def __init__(self, record: Record) -> None:
        import redlatch
        from redlatch import _core

        self._core: Any = _core
        self._record = record
        self._options: dict[int, dict[str, Value]] = {}
        for name in ("_take", "attach", "force_release", "close"):
            self._wrap(redlatch.Client, name)
        self._wrap(redlatch.Aio, "_take")
        for kind in (redlatch.Lease, redlatch.AsyncLease):
            for name in ("release", "extend", "detach", "wait_lost", "__del__"):
                self._wrap(kind, name)
            for name in ("upgrade", "downgrade"):
                if hasattr(kind, name):
                    self._wrap(kind, name)
        self._watch_options()

    def _wrap(self, kind: type, name: str) -> None:
        made = getattr(kind, name)
        before = getattr(self, "before_" + name.strip("_"))

        def wrapped(this: Any, *args: Any, **values: Any) -> Any:
            done = before(this, *args, **values)
            try:
                result = made(this, *args, **values)
            except Exception as error:
                done(error)
                raise
            done(result)
            return result

        async def awaited(this: Any, *args: Any, **values: Any) -> Any:
            done = before(this, *args, **values)
            try:
                result = await made(this, *args, **values)
            except (Exception, asyncio.CancelledError) as error:
                done(error)
                raise
            done(result)
            return result

        setattr(kind, name, awaited if asyncio.iscoroutinefunction(made) else wrapped)

    def _watch_options(self) -> None:
        """The library has no function that tells what was set."""
        make = self._core.acquire_options_new
        defaults: dict[str, Value] = {"lease_ms": 30000, "burst": 16, "renew": 1}

        def new() -> Any:
            options = make()
            self._options[id(options)] = dict(defaults)
            return options

        def watched(name: str, setter: Callable[[Any, Any], int]) -> Callable[[Any, Any], int]:
            def set_it(options: Any, value: Value) -> int:
                said = self._options[id(options)]
                if name == "reentrant":
                    said |= {"owner": value, "format": _FORMAT_HASH}
                else:
                    said[name] = value if isinstance(value, bytes) else int(value)
                return setter(options, value)

            return set_it

        self._options[id(None)] = defaults
        self._core.acquire_options_new = new
        for name in ("lease_ms", "local_burst", "renew", "format", "owner", "reentrant"):
            function = f"acquire_options_set_{name}"
            setter = getattr(self._core, function)
            setattr(self._core, function, watched(_KEYS.get(name, name), setter))

    def _lease(self, lease: Any) -> dict[str, Value]:
        """Who it is, and until when it is believed by the local clock; 0 is not any more."""
        now = time.monotonic_ns()
        handle = lease._handle
        remaining = self._core.lease_remaining_ms(handle)
        return {
            "token": self._core.lease_token(handle),
            "fence": self._core.lease_fence(handle),
            "until": now + remaining * 1_000_000 if remaining > 0 else 0,
        }

    def _granted(self, lease: Any) -> dict[str, Value]:
        is_read = self._core.lease_mode(lease._handle) == _MODE_READ
        holds = self._core.lease_hold_count(lease._handle)
        return self._lease(lease) | {"mode": "read" if is_read else "write", "holds": holds}

    def _finish(self, number: str, lease: Any = None, refused: str = "ok") -> Done:
        """Writes down how the call ended; `refused` is what False means."""
        from redlatch import Error, Status
        from redlatch._lease import LeaseBase

        def done(result: Any) -> None:
            if isinstance(result, asyncio.CancelledError):
                self._record.returned(number, "cancelled")
            elif isinstance(result, Error):
                self._record.returned(number, _OUTCOMES.get(result.status.name, "error"))
            elif isinstance(result, Exception):
                pass  # Not the library's, so nothing was done.
            elif result is False:
                self._record.returned(number, refused)
            elif isinstance(result, LeaseBase) or lease is not None:
                self._record.returned(number, "ok", **self._granted(lease or result))
            else:
                # A refusal has a status, and a message.
                result = getattr(result, "status", result)
                status = result.name if isinstance(result, Status) else "OK"
                self._record.returned(number, _OUTCOMES.get(status, "error"))

        return done

    def before_take(
        self, client: Any, name: bytes, wait_ms: int, options: Any, start: Any = None
    ) -> Done:
        said = dict(self._options[id(options)])
        if said.pop("format", None) == _FORMAT_HASH and "owner" in said:
            said["reentrant"] = 1
        said["mode"] = "read" if start and "read" in start.__name__ else "write"
        # Client.aio is the client.
        client = getattr(client, "_client", client)
        return self._finish(
            self._record.call("acquire", client=id(client), name=name, wait_ms=wait_ms, **said)
        )

    def before_attach(self, client: Any, *args: Any) -> Done:
        name, token = args
        return self._finish(
            self._record.call("attach", client=id(client), name=name, token=token, lease_ms=30000)
        )

    def before_force_release(self, _: Any, *args: Any) -> Done:
        return self._finish(self._record.call("force", name=args[0]))

    def before_close(self, client: Any) -> Done:
        return self._finish(self._record.call("close", client=id(client)))

    def before_release(self, lease: Any) -> Done:
        number = self._record.call("release", **self._lease(lease))
        return self._finish(number, refused="still_held")

    def before_upgrade(self, lease: Any, timeout: float | None = None) -> Done:
        said = self._lease(lease) | {"wait_ms": 0 if timeout == 0 else -1}
        refused = "busy" if timeout == 0 else "timeout"
        return self._finish(self._record.call("upgrade", **said), lease, refused)

    def before_downgrade(self, lease: Any) -> Done:
        return self._finish(self._record.call("downgrade", **self._lease(lease)), lease)

    def before_extend(self, lease: Any, ttl: float) -> Done:
        said = self._lease(lease) | {"lease_ms": round(ttl * 1000)}
        return self._finish(self._record.call("extend", **said), lease)

    def before_detach(self, lease: Any) -> Done:
        return self._finish(self._record.call("detach", **self._lease(lease)))

    def before_wait_lost(self, lease: Any, *_: Any) -> Done:
        return lambda result: self._record.look(**self._lease(lease))

    def before_del(self, lease: Any, *_: Any) -> Done:
        """Of a lease that is held it is a release in the background, with no answer."""
        if hasattr(lease, "_handle") and (said := self._lease(lease))["until"]:
            self._record.call("release", **said)
        return lambda result: None
