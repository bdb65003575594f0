# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Requests to app.py by the test client of FastAPI."""

import asyncio

import redlatch
import reports
from app import app, client
from fastapi.testclient import TestClient
from redlatch.testing import assert_free, assert_locked, expire

LIMIT_S = 60.0


async def look() -> None:
    assert (await asyncio.to_thread(assert_locked, watching, "report")).holders


async def lose() -> None:
    await asyncio.to_thread(expire, watching, "report")
    await asyncio.sleep(LIMIT_S)
    raise AssertionError("the request was not cancelled")


with redlatch.from_env() as watching:
    with TestClient(app) as browser:
        reports.then = [look]
        assert browser.post("/report").status_code == 200
        assert_free(watching, "report")
        reports.then = [lose]
        answer = browser.post("/report")
        assert answer.status_code == 503 and "lost" in answer.json()["detail"], answer.text
        reports.then = []
        assert browser.post("/report").status_code == 200
    assert len(reports.fences) == 2 and reports.fences[0] < reports.fences[1]
    try:
        client.acquire("report")
    except redlatch.Closed:
        pass
    else:
        raise AssertionError("the client is open after the lifespan")
