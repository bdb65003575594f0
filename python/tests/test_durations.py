# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what is a number of seconds may be a timedelta."""

from __future__ import annotations

from datetime import timedelta

import pytest
import redlatch
from redlatch.testing import steal
from support.servers import Server

from .both import Both

HOUR = timedelta(hours=1)
TICK = timedelta(milliseconds=20)


def test_acquisitions_take_timedeltas(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        mine, theirs = both.of(client), both.of(other)
        async with mine.lock("report", ttl=HOUR, timeout=HOUR, max_hold=2 * HOUR) as lease:
            assert 3500 < lease.remaining <= 3600
            await lease.extend(2 * HOUR)
            assert 7100 < lease.remaining <= 7200
            assert await theirs.acquire("report", timeout=TICK) is None
            assert not await theirs.lock("report").acquire(timeout=TICK)
            assert await theirs.rwlock("report").acquire_read(timeout=TICK) is None
            assert not await lease.wait_lost(TICK)
        async with mine.rlock("report", ttl=HOUR, timeout=TICK) as nested:
            assert 3500 < nested.remaining <= 3600

    both.run(main())


def test_clients_take_timedeltas(server: Server) -> None:
    with redlatch.connect(server.url, wait=HOUR, command_timeout=3 * TICK) as client:
        assert client.option("command_timeout") == "60ms"
        with steal(client, "report", ttl=HOUR) as lease:
            assert 3500 < lease.remaining <= 3600
    with redlatch.Redlock(["redis://h"], restart_guard=HOUR, node_timeout=TICK) as redlock:
        assert redlock.option("restart_guard") == "3600000ms"


def test_timedeltas_out_of_range_are_refused(client: redlatch.Client) -> None:
    for ttl in (timedelta(0), timedelta(days=8), timedelta.max):
        with pytest.raises(redlatch.Invalid, match=r"'ttl' must be .* \(got datetime.timedelta\("):
            client.lock("report", ttl=ttl)
    with pytest.raises(redlatch.Invalid, match="timeout must be -1"):
        client.lock("report", timeout=-HOUR)
    with pytest.raises(OverflowError, match="timeout must be"):
        client.lock("report").acquire(timeout=timedelta.max)
    client.lock("report", timeout=timedelta.max)
    with pytest.raises(TypeError, match="yield_every must be a number"):
        client.lock("report", yield_every=HOUR)  # type: ignore[arg-type]
