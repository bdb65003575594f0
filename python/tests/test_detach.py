# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a lease goes from one client to another, once for each detach, and a detach that fails says
what is still held. Method: clients of this process, in threads and in event loops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Callable

import pytest
import redlatch
from redlatch.testing import expire
from support.servers import Server

from .both import raises, until
from .conftest import Run
from .test_aio import lease_of


def test_detached_lease_continues_elsewhere(
    client: redlatch.Client, other: redlatch.Client
) -> None:
    lease = client.acquire("report")
    assert lease is not None
    token, fence = lease.detach(), lease.fence
    assert "detached" in repr(lease) and fence > 0
    with pytest.raises(redlatch.Invalid):
        other.attach("report", token + "0")
    for wrong in (-1, -5, 1 << 53, 1 << 70):
        said = rf"fence must be 0 to 9007199254740991 \(got {min(wrong, (1 << 63) - 1)}\)"
        with pytest.raises(redlatch.Invalid, match=said):
            other.attach("report", token, fence=wrong)
    with pytest.raises(TypeError, match="fence"):
        other.attach("report", token, fence="7")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="format"):
        other.attach("report", token, format="hash")  # type: ignore[call-arg]
    attached = other.attach("report", token, fence=fence, ttl=3600, label="next")
    assert attached.name == "report" and attached.remaining > 3000
    attached.release()


def is_attached(client: redlatch.Client, token: str) -> bool:
    """Whether it could be attached now; it is released then."""
    try:
        return client.attach("report", token).release()
    except redlatch.NotHeld:
        return False


def test_block_whose_lease_is_detached_releases_nothing(
    client: redlatch.Client, other: redlatch.Client
) -> None:
    with client.lock("report") as lease:
        token = lease.detach()
    assert not client.inspect("report").is_free
    # Another thread detaches it while the block ends.
    with other.attach("report", token) as lease:
        lease.detach()
        lease._is_given_back = False
    client.attach("report", token).release()


# ---- asyncio -------------------------------------------------------------------------------------


def test_detach_does_not_hold_up_the_loop(run: Run, server: Server) -> None:
    """Method: the server is stopped, and time goes on in the loop while the detach is under way."""

    async def main() -> None:
        with redlatch.connect(server.url) as client, redlatch.connect(server.url) as other:
            lease = await lease_of(client, "report")
            other.inspect("report")
            server.pause()
            task = asyncio.ensure_future(lease.detach())
            await asyncio.sleep(0.05)
            assert not task.done() and not lease.held
            task.cancel()
            await raises(asyncio.CancelledError, task)
            assert lease._is_given_back and not lease.lost
            server.resume()
            # It was sent, and its wait alone was cancelled.
            await until(lambda: is_attached(other, lease.token))

    run(main())


def test_asking_does_not_hold_up_the_loop(run: Run, server: Server) -> None:
    """Method: the server is stopped, and time goes on in the loop while each call is under way."""

    async def names(aio: Any, pattern: str) -> list[str]:
        return [info.name async for info in aio.list(pattern)]

    async def main() -> None:
        with redlatch.connect(server.url) as client, redlatch.connect(server.url) as other:
            lease = await lease_of(client, "report")
            token, fence, aio = await lease.detach(), lease.fence, other.aio
            calls: list[Callable[[], Coroutine[Any, Any, Any]]] = [
                lambda: aio.inspect("report"),
                lambda: names(aio, "rep*"),
                lambda: aio.attach("report", token, fence=fence, ttl=600),
                lambda: aio.force_release("report", token),
            ]
            await aio.connect()
            results = []
            for call in calls:
                server.pause()
                task = asyncio.ensure_future(call())
                await asyncio.sleep(0.02)
                assert not task.done()
                server.resume()
                results.append(await task)
            info, listed, attached, _ = results
            assert info.holders[0].token == token and listed == ["report"]
            assert attached.fence == fence
            await raises(redlatch.LockLost, attached.release())
            await raises(redlatch.NotHeld, aio.force_release("report"))
            await raises(redlatch.Invalid, aio.force_release("report", ""))
            assert await names(aio, "rep*") == [] and (await aio.inspect("report")).is_free

    run(main())


def test_cancelled_attach_is_undone(run: Run, server: Server) -> None:
    async def main() -> None:
        with redlatch.connect(server.url) as client, redlatch.connect(server.url) as other:
            lease = await lease_of(client, "report")
            token = await lease.detach()
            await other.aio.connect()
            server.pause()
            task = asyncio.ensure_future(other.aio.attach("report", token))
            await asyncio.sleep(0.02)
            task.cancel()
            await raises(asyncio.CancelledError, task)
            server.resume()
            await until(lambda: is_attached(client, token))

    run(main())


def test_a_block_that_detaches_what_is_lost_ends_with_the_loss(
    run: Run, client: redlatch.Client
) -> None:
    async def main() -> None:
        with pytest.raises(redlatch.LockLost):
            async with client.aio.lock("report", on_lost="cancel") as lease:
                expire(client, "report")
                await asyncio.ensure_future(raises(redlatch.LockLost, lease.detach()))
                await asyncio.sleep(3600)

    run(main())
