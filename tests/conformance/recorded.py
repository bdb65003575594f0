# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Runners whose calls and answers are written down, for the checkers of tests/history.

What is recorded is what a language answers its users, so a defect of a binding is in the record as
one of the library is. A lease is believed from the answer that grants it to the line that gives it
back; how long it still is, `show` says, which asks no server.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
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
    said: list[dict[str, Value]]  # what an acquire of it says, for each of its names
    token: str = ""  # of its last lease
    other_fences: list[str] = field(default_factory=list)  # of its names but the first
    # Calls that have not returned, one for each name, and what they are.
    started: tuple[list[str], str] = field(default_factory=lambda: ([], ""))


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
        calls, kind = lock.started if op in ("poll", "cancel") else ([], "")
        if op in TAKING:
            calls, kind = self._take(lock, op, values), TAKING[op]
        elif op in CHANGING and lock.token:
            times = {k: v for k, v in values.items() if k.endswith("_ms")}
            looks, kind = self._look(target, lock), CHANGING[op]
            calls = [self._record.call(kind, **look, **times) for look in looks]
        reply = super().call(line, seconds)
        if op == "check" and lock.token:
            for look in self._look(target, lock):
                self._record.look(**look)
        if op.startswith("start"):
            lock.started = calls, kind
        elif calls and not reply.startswith("PENDING"):
            self._end(target, lock, calls, kind, reply)
            if op in ("poll", "cancel"):
                lock.started = [], ""
        return reply

    def _take(self, lock: _Lock, op: str, values: dict[str, str]) -> list[str]:
        asked: dict[str, Value] = {"client": self.pid}
        if op == "attach":
            asked |= {"name": lock.said[0]["name"], "token": values["token"], "ttl_ms": 30_000}
            return [self._record.call(op, **asked)]
        asked |= {"wait_ms": values["wait_ms"], "mode": "read" if op.endswith("read") else "write"}
        return [self._record.call("acquire", **(asked | said)) for said in lock.said]

    def _end(self, target: str, lock: _Lock, calls: list[str], kind: str, reply: str) -> None:
        outcome = _outcome(reply)
        if outcome != "ok" or kind not in GRANTING:
            for number in calls:
                self._record.returned(number, outcome)
            return
        values = dict(word.split("=", 1) for word in reply.split()[1:])
        lock.token = values.get("token", lock.token)
        more: dict[str, Value] = {}
        if kind == "attach":
            more["mode"] = values["mode"].lower()
        elif kind == "acquire":  # Its mode is what was asked for: that is believed.
            more["holds"] = values["hold_count"]
            lock.other_fences = [values["second_fence"]] if "second_fence" in values else []
        for number, look in zip(calls, self._look(target, lock), strict=True):
            self._record.returned(number, outcome, **look, **more)

    def _look(self, target: str, lock: _Lock) -> list[dict[str, Value]]:
        """Until when the last lease of a lock is believed, for each of its names; 0 is not any
        more. Only the first one has the token of the lease."""
        now = time.monotonic_ns()
        reply = super().call(f"{target} show")
        values = dict(word.split("=", 1) for word in reply.split()[1:])
        left = int(values["remaining_ms"]) if values["state"] == "HELD" else 0
        until = now + left * 1_000_000 if left > 0 else 0
        looks: list[dict[str, Value]] = [
            {"token": lock.token, "fence": values["fence"], "until": until}
        ]
        for i, fence in enumerate(lock.other_fences, 1):
            looks.append({"token": f"{lock.token}.{i}", "fence": fence, "until": until})
        return looks


def _made(values: dict[str, str]) -> _Lock:
    said: dict[str, Value] = {"ttl_ms": 30_000, "burst": 16, "renew": 1}
    said["name"] = unquote_to_bytes(values["name"])
    said |= {_OPTIONS[k]: unquote_to_bytes(v) for k, v in values.items() if k in _OPTIONS}
    said["reentrant"] = int(values["kind"] == "reentrant")
    if values["kind"] == "semaphore":  # Its permits are not passed on inside a client.
        said |= {"burst": 0, "permits": values.get("permits", "1"), "limit": values["limit"]}
    if values["kind"] != "all":
        return _Lock([said])
    parts = [part.partition(":") for part in values["names"].split(",")]
    return _Lock(
        [
            {**said, "name": unquote_to_bytes(name), "mode": mode or "write", "part": 1}
            for name, _, mode in parts
        ]
    )


def _outcome(reply: str) -> str:
    return OUTCOMES.get(reply.split()[0], "error")
