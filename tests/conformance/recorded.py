# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Runners whose calls and answers are written down, for the checkers of tests/history.

What is recorded is what a language answers its users, so a defect of a binding is in the record as
one of the library is. A lease is believed from the answer that grants it to the line that gives it
back; how long it still is, `show` says, which asks no server.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_to_bytes

from support.record import Record, Value

from .runners import REPLY_SECONDS, Runner

OUTCOMES = {
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
# What operations of a lock are called in a record.
TAKING = dict.fromkeys(("acquire", "acquire_read", "acquire_write"), "acquire")
TAKING |= dict.fromkeys(("start", "start_read", "start_write"), "acquire") | {"attach": "attach"}
CHANGING = {name: name for name in ("upgrade", "downgrade", "extend", "release", "detach")}
CHANGING |= {"start_upgrade": "upgrade"}
GRANTING = {"acquire", "attach", "upgrade", "downgrade", "extend"}
_OPTIONS = {"ttl_ms": "ttl_ms", "max_local_handoffs": "burst", "renew": "renew", "owner": "owner"}


@dataclass
class _Lock:
    name: bytes
    said: dict[str, Value]  # what an acquire of it says
    token: str = ""  # of its last lease
    started: tuple[str, str] = ("", "")  # the call that has not returned, and what it is


class RecordedRunner(Runner):
    """`folder` is that of a history."""

    def __init__(self, command: list[str], defect: str, folder: Path) -> None:
        super().__init__(command, defect)
        self._record = Record(folder / f"{self.pid}.log", str(self.pid))
        self._locks: dict[str, _Lock] = {}

    def call(self, line: str, seconds: float = REPLY_SECONDS) -> str:
        target, op, *words = line.split()
        values = dict(word.split("=", 1) for word in words)
        lock = self._locks.get(target)
        if lock is not None:
            return self._call_lock(target, lock, op, values, line, seconds)
        if op == "lock":
            self._locks[values["id"]] = _made(values)
        number = ""
        if op in ("force_release", "force_release_any"):
            number = self._record.call("force", name=unquote_to_bytes(values["name"]))
        elif op == "shutdown":
            self._record.call("close", client=self.pid)
        reply = super().call(line, seconds)
        if number:
            self._record.returned(number, _outcome(reply))
        return reply

    def kill(self) -> None:
        super().kill()
        self._record.close()

    def _call_lock(
        self, target: str, lock: _Lock, op: str, values: dict[str, str], line: str, seconds: float
    ) -> str:
        number, kind = lock.started if op in ("poll", "cancel") else ("", "")
        if op in TAKING:
            number, kind = self._take(lock, op, values), TAKING[op]
        elif op in CHANGING and lock.token:
            said = self._look(target, lock) | {k: v for k, v in values.items() if k.endswith("_ms")}
            number, kind = self._record.call(CHANGING[op], **said), CHANGING[op]
        reply = super().call(line, seconds)
        if op.startswith("start"):
            lock.started = number, kind
        elif number and not reply.startswith("PENDING"):
            self._end(target, lock, number, kind, reply)
            if op in ("poll", "cancel"):
                lock.started = "", ""
        return reply

    def _take(self, lock: _Lock, op: str, values: dict[str, str]) -> str:
        if op == "attach":
            token, ttl_ms = values["token"], 30_000
            return self._record.call(
                op, client=self.pid, name=lock.name, token=token, ttl_ms=ttl_ms
            )
        mode = "read" if op.endswith("read") else "write"
        said = lock.said | {"wait_ms": values["wait_ms"], "mode": mode}
        return self._record.call("acquire", client=self.pid, name=lock.name, **said)

    def _end(self, target: str, lock: _Lock, number: str, kind: str, reply: str) -> None:
        outcome = _outcome(reply)
        if outcome != "ok" or kind not in GRANTING:
            self._record.returned(number, outcome)
            return
        values = dict(word.split("=", 1) for word in reply.split()[1:])
        lock.token = values.get("token", lock.token)
        said = self._look(target, lock)
        if kind == "attach":
            said["mode"] = values["mode"].lower()
        elif kind == "acquire":  # Its mode is what was asked for: that is believed.
            said["holds"] = values["hold_count"]
        self._record.returned(number, outcome, **said)

    def _look(self, target: str, lock: _Lock) -> dict[str, Value]:
        """Until when the last lease of a lock is believed; 0 is not any more."""
        now = time.monotonic_ns()
        reply = super().call(f"{target} show")
        values = dict(word.split("=", 1) for word in reply.split()[1:])
        left = int(values["remaining_ms"]) if values["state"] == "HELD" else 0
        until = now + left * 1_000_000 if left > 0 else 0
        return {"token": lock.token, "fence": values["fence"], "until": until}


def _made(values: dict[str, str]) -> _Lock:
    said: dict[str, Value] = {"ttl_ms": 30_000, "burst": 16, "renew": 1}
    said |= {_OPTIONS[k]: unquote_to_bytes(v) for k, v in values.items() if k in _OPTIONS}
    said["reentrant"] = int(values["kind"] == "reentrant")
    if values["kind"] == "semaphore":  # Its permits are not passed on inside a client.
        said |= {"burst": 0, "permits": values.get("permits", "1"), "limit": values["limit"]}
    return _Lock(unquote_to_bytes(values["name"]), said)


def _outcome(reply: str) -> str:
    return OUTCOMES.get(reply.split()[0], "error")
