# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: one candidate leads at a time and knows when it no longer does, terms rise, and a campaign
that fails never leads, for threads, tasks and processes.

Method: one server, clients of this process and of others, most tests in both worlds (both.py). The
candidates note what they see; another client asks the server.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Optional

import pytest
import redlatch
from redlatch.testing import expire
from support.servers import Server
from support.wait import wait_until

from .both import Both, free, raises, until
from .conftest import Forking, Run, Starter

CANDIDATES = 64


def election_of(
    both: Both, client: redlatch.Client, id: Optional[str] = None, **keywords: Any
) -> redlatch.AsyncElection:
    """A candidate whose task is not cancelled by a loss, because threads are not."""
    if both.has_tasks:
        keywords["on_lost"] = "ignore"
    return both.of(client).election("report", id, **keywords)


def leader_id(client: redlatch.Client) -> Optional[str]:
    leader = client.leader("report")
    return None if leader is None else leader.id


async def queued(client: redlatch.Client, *ids: str) -> None:
    """Wait until these are the waiters, in this order."""
    await until(lambda: tuple(w.candidate for w in client.inspect("report").waiters) == ids)


# ---- terms ---------------------------------------------------------------------------------------


def test_a_term(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        election = both.of(client).election("report", "a")
        assert await election.leader() is None and await election.participants() == []
        async with election.term() as term:
            assert term.is_leader() and term.held and term.remaining > 0
            assert (term.name, term.id, term.term) == ("report", "a", term.fence)
            leader = await election.leader()
            assert leader == await both.of(client).leader("report")
            assert leader is not None and leader.since is not None and term.term > 0
            since = client.inspect("report").holders[0].since
            assert leader == redlatch.Leader("report", "a", term.term, since)
        assert not term.is_leader() and not term.lost and free(client)
        assert await election.leader() is None

    both.run(main())


def test_terms_rise(both: Both, client: redlatch.Client, other: redlatch.Client) -> None:
    async def main() -> None:
        elections = [election_of(both, client, "a"), election_of(both, other, "b")]
        terms: list[int] = []
        for _ in range(5):
            for election in elections:
                async with election.term(timeout=0) as term:
                    terms.append(term.term)
        assert terms == sorted(set(terms)) and len(terms) == 10

    both.run(main())


def test_who_resigns_leaves_the_next_one_to_lead(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    terms: list[int] = []

    async def stand_by() -> None:
        async with election_of(both, other, "b").term() as term:
            terms.append(term.term)

    async def main() -> None:
        async with election_of(both, client, "a").term() as term:
            standing_by = both.begin(stand_by)
            await queued(client, "b")
            await term.resign()
            assert not term.is_leader()
            await standing_by
            await raises(redlatch.NotHeld, term.resign())
            await raises(redlatch.NotHeld, _checked(term))
        assert terms[0] > term.term and free(client)

    both.run(main())


async def _checked(term: redlatch.AsyncTerm) -> None:
    term.check()


def test_an_exception_of_the_block_resigns(both: Both, client: redlatch.Client) -> None:
    error = ValueError("no")

    async def lead() -> None:
        async with election_of(both, client, "a").term():
            raise error

    async def main() -> None:
        assert await raises(ValueError, lead()) is error
        assert free(client) and not hasattr(error, "__notes__")

    both.run(main())


def test_the_lock_of_the_name_excludes_leaders_and_is_none(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def lead() -> None:
        async with election_of(both, client, "a").term(timeout=0):
            raise AssertionError("two holders")

    async def main() -> None:
        async with both.of(other).lock("report"):
            error = await raises(redlatch.NotAcquired, lead(), "lock 'report' is busy")
            assert error.status is redlatch.Status.BUSY
            assert client.leader("report") is None
        async with election_of(both, client, "a").term():
            assert await both.of(other).acquire("report", timeout=0) is None

    both.run(main())


def test_a_campaign_in_its_own_term_is_refused(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        election = election_of(both, client, "a")
        async with election.term() as term:
            again = election.term(timeout=5)
            await raises(redlatch.AlreadyHeld, again.__aenter__(), "has taken it")
            await raises(redlatch.AlreadyHeld, election.term(timeout=0).__aenter__())
            assert term.is_leader()
        async with election.term(timeout=0):
            pass

    both.run(main())


def test_options_of_locks_reach_the_term(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        election = election_of(both, client, "a", ttl=700, label="blue", max_hold=1000)
        async with election.term() as term:
            [holder] = client.inspect("report").holders
            assert holder.label == "blue" and 600 < term.remaining <= 700

    both.run(main())


# ---- losses --------------------------------------------------------------------------------------


def test_a_forced_release_ends_the_term(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    async def lead() -> None:
        async with election_of(both, client, "a", ttl=3).term() as term:
            other.force_release("report")
            assert await term.wait_lost() is True
            assert not term.is_leader() and term.lost
            assert term.lost_reason is redlatch.LostReason.GONE

    async def main() -> None:
        await raises(redlatch.LockLost, lead(), "'report'")
        async with election_of(both, client, "a").term(timeout=0) as term:  # again
            assert term.is_leader()

    both.run(main())


def test_a_leader_stops_before_the_next_one_leads(
    both: Both, client: redlatch.Client, server: Server
) -> None:
    async def lead() -> None:
        async with election_of(both, client, "a", ttl=0.5).term() as term:
            server.pause()
            await until(lambda: not term.is_leader())
            server.resume()
            assert term.lost_reason is redlatch.LostReason.EXPIRED

    async def main() -> None:
        await raises(redlatch.LockLost, lead())

    both.run(main())


def test_a_loss_cancels_the_task_that_leads(run: Run, client: redlatch.Client) -> None:
    ended: list[bool] = []

    async def lead() -> None:
        async with client.aio.election("report", "a").term() as term:
            try:
                expire(client, "report")
                await asyncio.sleep(1000)
            finally:
                ended.append(term.is_leader())

    async def main() -> None:
        await raises(redlatch.LockLost, lead())
        assert ended == [False]
        with pytest.raises(redlatch.Invalid, match="on_lost must be"):
            client.aio.election("report", on_lost="raise")  # type: ignore[arg-type]

    run(main())


def test_the_next_one_leads_after_a_death(client: redlatch.Client, script: Starter) -> None:
    dying = script(
        """
with redlatch.connect(url).election("report", "a", ttl=3).term() as term:
    print(term.term)
    input()
"""
    )
    first = int(dying.read())
    assert client.leader("report") is not None and leader_id(client) == "a"
    dying.process.kill()
    with client.election("report", "b").term() as term:
        assert term.term > first and leader_id(client) == "b"


def test_a_forked_child_does_not_lead(forking: Forking) -> None:
    forking(
        """
client = redlatch.connect(url)
election = client.election("report")
parent = election.id
def child():
    assert not term.is_leader() and election.id != parent
    assert client.leader("report").id == parent
    raises(redlatch.NotAcquired, election.term(timeout=0).__enter__)
with election.term() as term:
    in_child(child)
    assert term.is_leader()
def lead():
    with election.term() as term:
        assert client.leader("report").id == election.id == term.id != parent
in_child(lead)
"""
    )


# ---- campaigns that fail -------------------------------------------------------------------------


async def refuse(client: redlatch.Client, server: Server) -> None:
    server.cmd("ACL", "SETUSER", "app", "-@all", "+auth", "+hello")


async def spoil(client: redlatch.Client, server: Server) -> None:
    server.cmd("LPUSH", "report", "data")


async def stop(client: redlatch.Client, server: Server) -> None:
    server.kill()


async def close(client: redlatch.Client, server: Server) -> None:
    client.close()


@pytest.mark.parametrize(
    "break_it, kind",
    [
        (refuse, redlatch.Denied),
        (spoil, redlatch.Error),
        (stop, redlatch.Error),
        (close, redlatch.Closed),
    ],
)
@pytest.mark.usefixtures("user_app")
def test_an_exception_while_campaigning_never_leads(
    both: Both,
    server: Server,
    break_it: Callable[[redlatch.Client, Server], Awaitable[None]],
    kind: type[redlatch.Error],
) -> None:
    led: list[bool] = []
    url = server.url.replace("redis://", "redis://app:S3cret@")

    async def main(client: redlatch.Client) -> None:
        await break_it(client, server)

        async def lead() -> None:
            async with election_of(both, client, "a").term(timeout=0.1) as term:
                led.append(term.is_leader())

        await raises(kind, lead())

    with redlatch.connect(url) as client:
        both.run(main(client))
    assert led == []
    if not server.is_running:
        server.start()


def test_a_closed_client_ends_campaigns(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    led: list[bool] = []

    async def stand_by() -> None:
        async with election_of(both, client, "b").term() as term:
            led.append(term.is_leader())

    async def main() -> None:
        async with election_of(both, other, "a").term():
            standing_by = both.begin(stand_by)
            await queued(other, "b")
            await asyncio.to_thread(client.close)
            await raises(redlatch.Closed, standing_by)
            await queued(other)
        assert led == [] and free(other)

    both.run(main())


def test_cancelled_tasks_leave_no_place_in_the_queue(
    run: Run, client: redlatch.Client, other: redlatch.Client
) -> None:
    led: list[str] = []

    async def stand_by(id: str) -> None:
        async with client.aio.election("report", id).term():
            led.append(id)

    async def main() -> None:
        async with other.aio.election("report", "leader").term() as term:
            ids = [f"c{i:02}" for i in range(CANDIDATES)]
            tasks = [asyncio.ensure_future(stand_by(id)) for id in ids]
            await until(lambda: other.inspect("report").waiting == CANDIDATES)
            assert sorted(await client.aio.election("report").participants())[:-1] == ids
            stay = tasks.pop()
            for task in tasks:
                task.cancel()
            for task in tasks:
                await raises(asyncio.CancelledError, task)
            await queued(other, ids[-1])
            assert term.is_leader()
        await stay
        assert led == ids[-1:] and free(other)

    run(main())


def test_sigterm_resigns_and_ends_a_campaign(client: redlatch.Client, script: Starter) -> None:
    text = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
with redlatch.connect(url).election("report", "{}").term() as term:
    print("leads")
    while term.is_leader():
        time.sleep(0.01)
"""
    first, second = script(text.format("a")), None
    assert first.read() == "leads"
    second = script(text.format("b"))
    wait_until(lambda: client.election("report").participants() == ["a", "b"])
    second.process.send_signal(signal.SIGTERM)
    assert second.end() == ("", "") and second.process.returncode == 3
    assert client.election("report").participants() == ["a"]
    first.process.send_signal(signal.SIGTERM)
    assert first.end() == ("", "") and first.process.returncode == 3
    assert free(client)


# ---- several candidates --------------------------------------------------------------------------


def test_participants(both: Both, client: redlatch.Client, other: redlatch.Client) -> None:
    async def stand_by(id: str) -> None:
        async with election_of(both, client, id).term():
            pass

    async def take() -> None:
        async with both.of(client).lock("report"):
            pass

    async def main() -> None:
        watching = election_of(both, other)
        async with election_of(both, other, "b").term():
            tasks: list[Awaitable[None]] = []
            for count, id in enumerate("caz"):
                tasks.append(both.begin(lambda id=id: stand_by(id)))  # type: ignore[misc]
                await until(lambda: other.inspect("report").waiting == count + 1)
            tasks.append(both.begin(take))  # which is no candidate
            await until(lambda: other.inspect("report").waiting == 4)
            assert await watching.participants() == ["b", "c", "a", "z"]
        for task in tasks:
            await task
        assert await watching.participants() == []

    both.run(main())


def test_64_candidates_lead_one_after_the_other(
    both: Both, client: redlatch.Client, other: redlatch.Client
) -> None:
    terms: list[tuple[int, str]] = []
    leading: list[str] = []
    numbers = iter(range(CANDIDATES))

    async def lead() -> None:
        number = next(numbers)
        election = election_of(both, client if number % 2 else other, f"c{number}")
        async with election.term() as term:
            assert leading == [] and term.is_leader()
            leading.append(term.id)
            terms.append((term.term, term.id))
            leader = await election.leader()
            assert leader is not None and (leader.term, leader.id) == terms[-1]
            leading.remove(term.id)

    both.run(both.together(lead, CANDIDATES))
    assert terms == sorted(terms) and len({term for term, _ in terms}) == CANDIDATES
    assert {id for _, id in terms} == {f"c{number}" for number in range(CANDIDATES)}
    assert free(client)


# ---- ids and arguments ---------------------------------------------------------------------------


def test_the_default_id(client: redlatch.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    own = f"{socket.gethostname()}:{os.getpid()}"
    for pod, id in ((None, own), ("", own), ("pod-7", "pod-7")):
        if pod is None:
            monkeypatch.delenv("POD_NAME", raising=False)
        else:
            monkeypatch.setenv("POD_NAME", pod)
        with client.election("report").term() as term:
            assert leader_id(client) == term.id == client.election("report").id == id
    with client.election("report", b"mine").term():
        assert leader_id(client) == "mine"


@pytest.mark.parametrize(
    "id, said",
    [
        ("", r"option 'id' must be 1 to 256 bytes \(got"),
        ("x" * 257, r"option 'id' must be 1 to 256 bytes \(got"),
        ("\ud800", "id must be valid as UTF-8"),
    ],
)
def test_a_wrong_id_is_refused(client: redlatch.Client, id: str, said: str) -> None:
    for of in (client, client.aio):
        with pytest.raises(redlatch.Invalid, match=said):
            of.election("report", id)


def test_options_that_an_election_has_not(client: redlatch.Client) -> None:
    of: Any
    for of in (client.election, client.aio.election):
        for keywords in ({"owner": "me"}, {"reentrant": True}, {"format": "hash"}):
            [name] = keywords
            said = rf"election\(\) got an unexpected keyword argument '{name}'"
            with pytest.raises(TypeError, match=said):
                of("report", **keywords)
        with pytest.raises(redlatch.Invalid, match=r"must be 0 for election\(\) \(got 4\)"):
            of("report", max_local_handoffs=4)
        with pytest.raises(TypeError, match="id must be str or bytes"):
            of("report", 7)
        with pytest.raises(redlatch.Invalid, match="ttl"):
            of("report", ttl=0.001)
    with pytest.raises(redlatch.Invalid, match="timeout must be"):
        client.election("report").term(timeout=-2)


def test_wrong_names_are_refused(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        aio = both.of(client)
        await raises(redlatch.Invalid, aio.leader(""), "name must be")
        await raises(redlatch.Invalid, aio.observe("").__anext__(), "name must be")
        await raises(redlatch.Invalid, aio.election("").term().__aenter__(), "name must be")

    both.run(main())


def test_a_redlock_has_none(run: Run) -> None:
    with redlatch.Redlock(["redis://h"]) as redlock:
        for of in (redlock, redlock.aio):
            for call in (of.election, of.leader, of.observe):
                with pytest.raises(redlatch.Unsupported, match="an election is not possible"):
                    call("report")


def test_repr(client: redlatch.Client) -> None:
    election = client.election("report", "a")
    assert repr(election) == "<Election 'report' id='a'>"
    assert repr(client.aio.election("report", "a")) == "<AsyncElection 'report' id='a'>"
    with election.term() as term:
        assert repr(term).startswith("<Term 'report' held fence=")
    with pytest.raises(TypeError, match=r"redlatch.Election is made by client.election\(name\)"):
        redlatch.Election(client, "report")  # type: ignore[call-arg]
