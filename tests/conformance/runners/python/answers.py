# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""What the Python runners answer, from what the package returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from datetime import datetime, timezone

import redlatch
from redlatch import Status

Values = dict[str, bytes]
Answer = tuple[Status, dict[str, object]]

STATES = {state: number for number, state in enumerate(redlatch.LockState)}


def fields(prefix: str, row: object) -> dict[str, object]:
    """Every field under the name that the C ABI has for it."""
    found: dict[str, object] = {}
    for field in dataclasses.fields(row):  # type: ignore[arg-type]
        name, value = field.name, getattr(row, field.name)
        if name in ("since", "server_time"):
            name = {"since": "since_ms", "server_time": "server_ms"}[name]
            value = ms_of(value)
        elif name == "remaining":
            name, value = "remaining_ms", -1 if value is None else round(value * 1000)
        elif name == "cap_remaining":
            continue
        elif name == "state":
            value = STATES[value]
        elif name == "mode":
            value = value.upper()
        elif name == "hold_count":
            name = "holding"
        found[prefix + name] = value
    return found


def ms_of(time: datetime | None) -> int:
    start = datetime(1970, 1, 1, tzinfo=timezone.utc)
    return round((time - start).total_seconds() * 1000) if time else 0


def levels_of(findings: tuple[redlatch.Finding, ...]) -> Answer:
    return Status.OK, {one.id.replace("-", "_"): one.level.name.lower() for one in findings}


def shown_of(info: redlatch.LockInfo) -> Answer:
    shown = fields("", info)
    shown["rows"] = 1
    for prefix, key in (("holder_", "holders"), ("first_", "waiters")):
        rows = shown.pop(key)
        assert isinstance(rows, tuple)
        shown[prefix + "rows"] = len(rows)
        # What is not there is 0 or "", as in C.
        texts = ("token", "who", "label", "candidate")
        shown |= dict.fromkeys([prefix + text for text in texts], "")
        shown[prefix + "mode"] = "NONE"
        shown |= fields(prefix, rows[0]) if rows else {}
    marks = shown.pop("marks")
    assert isinstance(marks, tuple)
    shown["mark_rows"] = len(marks)
    shown |= fields("mark_", marks[0]) if marks else {}
    return Status.OK, shown


def names_of(locks: Iterable[redlatch.LockInfo]) -> Answer:
    names = sorted(info.name for info in locks)
    return Status.OK, {
        "rows": len(names),
        "first": names[0] if names else "",
        "last": names[-1] if names else "",
    }


def stats_of(stats: redlatch.SemaphoreStats) -> Answer:
    shown = dataclasses.asdict(stats)
    return Status.OK, {**shown, "cap": -1 if stats.cap is None else stats.cap}
