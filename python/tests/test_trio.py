# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: in Trio an error says that there is asyncio only."""

from __future__ import annotations

import pytest
import redlatch

from .conftest import Starter
from .test_greenlets import result_of

PROGRAM = """
import trio
client = redlatch.connect(url)
async def use():
    async with client.aio.lock("report"):
        pass
async def main():
    lock, rwlock = client.aio.lock("report"), client.aio.rwlock("report")
    calls = [use(), lock.acquire(), lock.release(), client.aio.acquire("report")]
    calls += [client.aio.rlock("report").acquire(), rwlock.acquire_read()]
    calls += [rwlock.write().__aenter__(), client.aio.inspect("report")]
    texts = set()
    for call in calls:
        try:
            await call
        except RuntimeError as error:
            texts.add(str(error))
    print(texts)
trio.run(main)
"""
TEXT = (
    "the calls of `aio` must be awaited in asyncio, or in anyio on asyncio "
    "(got no running event loop of asyncio)"
)


def test_trio_is_refused(script: Starter, client: redlatch.Client) -> None:
    pytest.importorskip("trio")
    assert result_of(script(PROGRAM)) == f"{ {TEXT} }\n"
    assert client.inspect("report").is_free
