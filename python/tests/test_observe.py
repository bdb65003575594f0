# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: an observer sees the present leader first and then each change, over an outage, until it is
cancelled or its client is closed.

Method: one server, most tests in both worlds (both.py). Observers note what they see while other
clients lead and resign.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from typing import Optional

import redlatch
from support.servers import Server

from .both import Both, raises, until
from .conftest import Forking, Run, Starter
from .test_election import election_of, queued


class Observer:
    """Notes what it sees, until it has seen the last id."""

    def __init__(self, both: Both, client: redlatch.Client, last: Optional[str] = "end") -> None:
        self.seen: list[Optional[redlatch.Leader]] = []
        self._client = client
        self._last = last
        self._leaders: AsyncIterator[Optional[redlatch.Leader]] = both.of(client).observe("report")

    async def watch(self) -> None:
        async for leader in self._leaders:
            self.seen.append(leader)
            if leader is not None and leader.id == self._last:
                return

    @property
    def ids(self) -> list[Optional[str]]:
        return [None if leader is None else leader.id for leader in self.seen]

    def has_seen(self, *ids: Optional[str]) -> Callable[[], bool]:
        return lambda: self.ids == [*ids]

    def check_rising(self) -> None:
        terms = [leader.term for leader in self.seen if leader is not None]
        assert terms == sorted(set(terms))


def test_an_observer_sees_the_present_leader_and_each_change(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def main() -> None:
        election = election_of(both, client, "a")
        async with election.term() as term:
            observer = Observer(both, other)
            watching = both.begin(observer.watch)
            await until(observer.has_seen("a"))
            assert observer.seen[0] == await election.leader()
        await until(observer.has_seen("a", None))
        async with election.term():  # again
            await until(observer.has_seen("a", None, "a"))
        async with both.of(other).lock("report"):
            await until(observer.has_seen("a", None, "a", None))
        async with election_of(both, other, "end").term():
            await watching
        assert observer.ids == ["a", None, "a", None, "end"]
        observer.check_rising()
        assert term.lost is False

    both.run(main())


def test_an_observer_without_a_leader_begins_with_none(
    both: Both, client: redlatch.Client
) -> None:
    async def main() -> None:
        observer = Observer(both, client)
        watching = both.begin(observer.watch)
        await until(observer.has_seen(None))
        async with election_of(both, client, "end").term():
            await watching
        assert observer.ids == [None, "end"]

    both.run(main())


def test_an_observer_sees_a_leader_that_waited(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def stand_by() -> None:
        async with election_of(both, client, "end").term():
            await until(observer.has_seen("a", "end"))

    async def main() -> None:
        async with election_of(both, client, "a").term():
            watching = both.begin(observer.watch)
            await until(observer.has_seen("a"))
            standing_by = both.begin(stand_by)
            await queued(other, "end")
        await standing_by
        await watching
        observer.check_rising()

    observer = Observer(both, other)
    both.run(main())


def test_an_observer_waits_for_a_restarted_server(
    both: Both, client: redlatch.Client, other: redlatch.Client, server: Server
) -> None:
    async def lead() -> None:
        async with election_of(both, client, "a", ttl=3).term() as term:
            await until(lambda: observer.ids[-1:] == ["a"])  # maybe without a leader before
            server.restart()
            await term.wait_lost()

    async def main() -> None:
        watching = both.begin(observer.watch)
        await raises(redlatch.LockLost, lead())
        async with election_of(both, client, "end").term():
            await watching
        observer.check_rising()
        ids = [id for id in observer.ids if id is not None]
        assert ids == ["a", "end"]

    observer = Observer(both, other)
    both.run(main())


def test_a_closed_client_ends_observers(both: Both, server: Server) -> None:
    async def main(client: redlatch.Client) -> None:
        observer = Observer(both, client)
        watching = both.begin(observer.watch)
        await until(observer.has_seen(None))
        await asyncio.to_thread(client.close)
        await raises(redlatch.Closed, watching)
        await raises(redlatch.Closed, Observer(both, client).watch())

    with redlatch.connect(server.url) as client:
        both.run(main(client))


def test_a_cancelled_step_is_repeated(run: Run, client: redlatch.Client) -> None:
    async def main() -> None:
        leaders = client.aio.observe("report")
        assert await leaders.__anext__() is None
        task = asyncio.ensure_future(leaders.__anext__())
        await asyncio.sleep(0)
        task.cancel()
        await raises(asyncio.CancelledError, task)
        await raises(asyncio.TimeoutError, asyncio.wait_for(leaders.__anext__(), 0.01))
        async with client.aio.election("report", "a").term():
            leader = await leaders.__anext__()
            assert leader is not None and leader.id == "a"

    run(main())


def test_ctrl_c_ends_an_observer(script: Starter) -> None:
    observer = script(
        """
client = redlatch.connect(url)
try:
    for leader in client.observe("report"):
        print(leader)
except KeyboardInterrupt:
    print("interrupted")
print(next(client.observe("report")))
"""
    )
    assert observer.read() == "None"
    observer.process.send_signal(signal.SIGINT)
    assert observer.end() == ("interrupted\nNone\n", "")


def test_a_forked_child_observes(forking: Forking) -> None:
    forking(
        """
client = redlatch.connect(url)
with client.election("report", "a").term():
    leaders = client.observe("report")
    assert next(leaders).id == "a"
    def child():
        assert next(client.observe("report")).id == "a"
    in_child(child)
assert next(leaders) is None
"""
    )
