# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Runs of once and flights, with both clients."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import redlatch
from answers import Answer, Values
from redlatch import Status


class Refused(Exception):
    """The error of a run, and of the one that computes."""


class Task:
    """The function of a line: what it is to do, and whether it has done it."""

    def __init__(self, values: Values) -> None:
        self.seconds = int(values.get("for_ms", 0)) / 1000
        self.fails = values.get("run") == b"fail"
        self.value = values.get("value", b"")
        self.has_run = False

    def result(self) -> bytes:
        self.has_run = True
        if self.fails:
            raise Refused(self.value.decode())
        return self.value

    def now(self) -> bytes:
        time.sleep(self.seconds)
        return self.result()

    async def later(self) -> bytes:
        await asyncio.sleep(self.seconds)
        return self.result()


# ---- once ----------------------------------------------------------------------------------------


def terms_of_once(options: Mapping[str, Any], values: Values) -> dict[str, Any]:
    wait_ms = int(values.get("wait_ms", -1))
    # Bytes are no template.
    terms = {"every": int(values["every_ms"]) / 1000, "key": values.get("key", b"")}
    terms["tries"] = int(values.get("tries", 3))
    limit = {"skip_if_busy": True} if wait_ms == 0 else {"timeout": in_seconds(wait_ms)}
    return {**terms, **limit, **options}


def in_seconds(wait_ms: int) -> float:
    return wait_ms if wait_ms == -1 else wait_ms / 1000


def ran(result: bytes | None) -> Answer:
    return (Status.SKIPPED, {}) if result is None else (Status.OK, {"ran": "ok"})


FAILED: Answer = (Status.OK, {"ran": "failed"})


def run_once(client: Any, name: bytes, options: Mapping[str, Any], values: Values) -> Answer:
    try:
        return ran(client.once(name, **terms_of_once(options, values))(Task(values).now)())
    except Refused:
        return FAILED


async def run_once_later(
    aio: Any, name: bytes, options: Mapping[str, Any], values: Values
) -> Answer:
    try:
        return ran(await aio.once(name, **terms_of_once(options, values))(Task(values).later)())
    except Refused:
        return FAILED


# ---- flights -------------------------------------------------------------------------------------


def terms_of_flight(options: Mapping[str, Any], values: Values) -> dict[str, Any]:
    terms: dict[str, Any] = {"ttl": int(values["ttl_ms"]) / 1000}
    terms["timeout"] = in_seconds(int(values.get("wait_ms", -1)))
    # The ttl of the lease has another name there.
    return {**terms, **{f"lease_{key}" if key == "ttl" else key: options[key] for key in options}}


def landed(value: bytes, task: Task) -> Answer:
    return Status.OK, {"value": value, "computed": int(task.has_run)}


def failed(error: Refused | redlatch.SingleFlightError) -> Answer:
    if isinstance(error, Refused):
        return Status.OK, {"failed": 1, "text": str(error)}
    return error.status, {"failed": 1, "text": error.text, "type": error.type}


def fly(client: Any, name: bytes, options: Mapping[str, Any], values: Values) -> Answer:
    task = Task(values)
    try:
        value = client.single_flight(name, f=task.now, **terms_of_flight(options, values))
        return landed(value, task)
    except (Refused, redlatch.SingleFlightError) as error:
        return failed(error)


async def fly_later(aio: Any, name: bytes, options: Mapping[str, Any], values: Values) -> Answer:
    task = Task(values)
    try:
        value = await aio.single_flight(name, f=task.later, **terms_of_flight(options, values))
        return landed(value, task)
    except (Refused, redlatch.SingleFlightError) as error:
        return failed(error)
