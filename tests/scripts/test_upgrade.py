# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a reader becomes the one writer without letting go, and two of them never wait for each
other. Method: one request at a time; ended, dead and overdue readers are played by hand."""

from __future__ import annotations

import pytest

from .harness import (
    FENCE_STEP,
    REFUSED,
    SHARED,
    Busy,
    Client,
    Grant,
    Head,
    Held,
    World,
    rid_of,
    as_held,
)


def wait_to_upgrade(client: Client, token: str, provisional_ms: int = 3000) -> Busy:
    reply = client.upgrade(token, provisional_ms=provisional_ms)
    assert isinstance(reply, Busy) and reply.rank == 0
    client.messages()
    return reply


@pytest.mark.parametrize("queueing", [True, False])
def test_only_reader_becomes_the_writer_at_once(world: World, queueing: bool) -> None:
    client = world.client()
    token = client.token()
    read = as_held(client.read(token, ttl_ms=5000))
    reply = as_held(client.upgrade(token, ttl_ms=20_000, queues=queueing))
    assert int(reply.fence) > int(read.fence)
    assert reply.fence == world.admin.cmd("GET", world.lock.f).decode()
    assert world.holder() == token and 19_000 < world.pttl() <= 20_000
    assert world.keys() == {world.lock.k, world.lock.f}
    assert client.release(token) == (1, 0)
    assert world.keys() == {world.lock.f}


def test_upgrade_keeps_what_is_left_of_a_longer_lease(world: World) -> None:
    client, token = world.new_reader(ttl_ms=60_000)
    assert isinstance(client.upgrade(token, ttl_ms=5000), Held)
    assert 59_000 < world.pttl() <= 60_000


def test_resent_upgrade_changes_nothing_and_never_shortens(world: World) -> None:
    client, token = world.new_reader()
    first = as_held(client.upgrade(token, ttl_ms=60_000))
    again = as_held(client.upgrade(token, ttl_ms=5000))
    assert again.fence == first.fence and world.pttl() > 59_000
    assert world.keys() == {world.lock.k, world.lock.f}
    assert isinstance(client.upgrade(token, ttl_ms=90_000, queues=False), Held)
    assert world.pttl() > 89_000


def test_upgrade_of_a_writer_is_done_already(world: World) -> None:
    client, other = world.client(), world.client()
    token = client.token()
    held = client.acquire(token)
    reply = client.upgrade(token)
    assert isinstance(held, Held) and isinstance(reply, Held) and reply.fence == held.fence
    assert other.upgrade(other.token()) == -1 and world.holder() == token


def test_upgrade_takes_the_only_readers_lock_past_a_writer_who_waits(world: World) -> None:
    client, token = world.new_reader()
    writer, behind = world.new_waiter()
    assert isinstance(client.upgrade(token), Held)
    assert world.holder() == token and world.queue() == [writer.member(behind)]


def test_only_a_reader_upgrades(world: World) -> None:
    client, other = world.client(), world.client()
    assert client.upgrade(client.token()) == -1 and world.keys() == set()
    other.share()
    assert client.upgrade(client.token()) == -1 and len(world.readers()) == 1
    assert world.queue() == [] and world.holder() == SHARED


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("queueing", [True, False])
def test_reader_that_expired_cannot_upgrade(world: World, others: int, queueing: bool) -> None:
    tokens = [world.client().share() for _ in range(others)]
    client, over = world.new_reader()
    world.admin.cmd("ZADD", world.lock.r, world.now_us() // 1000 - 1, over)
    world.may_disagree = True  # K is still there for a moment.
    assert client.upgrade(over, queues=queueing) == -1
    assert world.holder() == SHARED and list(world.readers()) == tokens and world.queue() == []


def test_late_copy_of_an_upgrade_after_the_release_changes_nothing(world: World) -> None:
    client, token = world.new_reader()
    client.upgrade(token)
    client.release(token)
    assert client.upgrade(token) == -1
    held = world.client().hold()
    assert client.upgrade(token) == -1 and world.holder() == held and world.queue() == []


def test_late_copy_of_the_acquire_does_not_undo_the_upgrade(world: World) -> None:
    client, token = world.new_reader()
    client.upgrade(token, ttl_ms=60_000)
    assert isinstance(client.read(token, ttl_ms=1000), Held)
    assert client.extend_shared(token, 1000) == 1
    assert world.holder() == token and world.pttl() > 59_000 and world.readers() == {}


def test_upgrade_waits_at_the_head_and_keeps_reading(world: World) -> None:
    client, other, writer = (world.client() for _ in range(3))
    token, rest = client.share(ttl_ms=60_000), other.share(ttl_ms=20_000)
    writer.wait()
    before = world.now_us()
    reply = client.upgrade(token)
    assert isinstance(reply, Busy) and (reply.rank, reply.holder) == (0, SHARED.encode())
    assert 19_000 < reply.pttl <= 20_000, "its own lease does not count"
    assert before <= int(reply.ticket) <= world.now_us()
    assert world.queue()[0] == client.member(token, "u") and len(world.queue()) == 2
    assert set(world.readers()) == {token, rest}
    assert client.extend_shared(token, 90_000) == 2


def test_resent_upgrade_that_waits_keeps_its_place_and_ticket(world: World) -> None:
    client, token = world.new_reader()
    world.client().share()
    first = wait_to_upgrade(client, token)
    again = client.upgrade(token)
    assert isinstance(again, Busy) and (again.ticket, again.rank) == (first.ticket, 0)
    world.admin.cmd("DEL", world.lock.q)
    again = client.upgrade(token, ticket=first.ticket)
    assert isinstance(again, Busy) and (again.ticket, again.rank) == (first.ticket, 0)
    assert len(world.queue()) == 1


def test_last_other_reader_hands_over_to_the_upgrade(world: World) -> None:
    client, other, third, writer = (world.client() for _ in range(4))
    token, rest = client.share(ttl_ms=2000), other.share()
    last = third.share()
    behind = writer.wait()
    wait_to_upgrade(client, token, provisional_ms=3000)
    fence = int(world.admin.cmd("GET", world.lock.f))
    assert other.release(rest) == (1, 0) and world.holder() == SHARED
    client.messages(), writer.messages()
    assert third.release(last) == (2, 0)
    assert world.holder() == token and 2500 < world.pttl() <= 3000, "a claim"
    (grant,) = client.messages()
    assert isinstance(grant, Grant) and (grant.mode, grant.rid) == ("u", rid_of(token))
    assert int(grant.fence) >= fence + FENCE_STEP
    assert world.readers() == {} and world.queue() == [writer.member(behind)]
    assert writer.was_told(behind, 3000)
    assert client.extend(token, 60_000) == 1


def test_granted_upgrade_keeps_what_is_left_of_its_lease(world: World) -> None:
    # The claim is shorter: what the reader relies on must not be cut.
    client, other, writer = (world.client() for _ in range(3))
    token, rest = client.share(ttl_ms=60_000), other.share()
    behind = writer.wait()
    wait_to_upgrade(client, token, provisional_ms=1000)
    writer.messages()
    assert other.release(rest) == (2, 0)
    assert 59_000 < world.pttl() <= 60_000
    (head,) = writer.messages()
    assert isinstance(head, Head) and head.rid == rid_of(behind) and head.ms > 59_000


def test_upgrade_gets_in_when_the_other_reader_has_ended(world: World) -> None:
    (client, token), (crashed, over) = world.new_reader(), world.new_reader()
    wait_to_upgrade(client, token)
    world.end_lease(over)
    assert isinstance(client.upgrade(token, ttl_ms=20_000), Held)
    assert world.holder() == token and world.queue() == [] and client.messages() == []
    assert crashed.extend_shared(over) == -1


def test_try_to_upgrade_never_queues(world: World) -> None:
    client, token = world.new_reader()
    world.client().share()
    reply = client.upgrade(token, queues=False)
    assert isinstance(reply, Busy) and (reply.rank, reply.ticket) == (-1, "")
    assert len(world.readers()) == 2 and world.queue() == []


@pytest.mark.parametrize("queueing", [True, False])
def test_second_upgrade_is_refused(world: World, queueing: bool) -> None:
    (client, token), (second, other) = world.new_reader(), world.new_reader()
    wait_to_upgrade(client, token)
    assert second.upgrade(other, queues=queueing) == -2
    assert world.queue() == [client.member(token, "u")] and len(world.readers()) == 2
    assert second.release(other) == (2, 0) and world.holder() == token


def test_second_upgrade_is_refused_without_publish(world: World) -> None:
    # An error of PUBLISH says nothing about the first.
    (client, token), (second, other) = world.new_reader(), world.new_reader()
    wait_to_upgrade(client, token)
    with world.user("~*", "resetchannels", "+@all") as limited:
        assert second.upgrade(other, connection=limited) == -2
    assert world.queue() == [client.member(token, "u")]


def test_late_copy_of_an_earlier_upgrade_is_no_other_reader(world: World) -> None:
    client, token = world.new_reader()
    world.client().share()
    wait_to_upgrade(client, token, provisional_ms=1000)
    first = wait_to_upgrade(client, token)
    assert world.queue() == [client.member(token, "u")]
    # A try, and one that comes behind the call: the call's next request has its place again.
    assert isinstance(client.upgrade(token, queues=False), Busy)
    assert world.queue() == [client.member(token, "u")]
    wait_to_upgrade(client, token, provisional_ms=1000)
    again = client.upgrade(token, ticket=first.ticket)
    assert isinstance(again, Busy) and (again.ticket, again.rank) == (first.ticket, 0)
    assert world.queue() == [client.member(token, "u")]


@pytest.mark.parametrize("end", ["cancel", "granted", "try"])
def test_late_copy_of_an_earlier_upgrade_ends_with_the_call(world: World, end: str) -> None:
    (client, token), (second, other) = world.new_reader(), world.new_reader()
    wait_to_upgrade(client, token)
    wait_to_upgrade(client, token, provisional_ms=1000)
    if end == "cancel":
        assert client.cancel(client.member(token, "u")) == (1, 0)
        wait_to_upgrade(second, other)
        assert second.cancel(second.member(other, "u")) == (1, 0)
    elif end == "granted":
        assert second.release(other) == (2, 0)
        assert isinstance(client.upgrade(token), Held)
    else:
        world.end_lease(other)
        assert isinstance(client.upgrade(token, queues=False), Held)
    assert world.queue() == []


@pytest.mark.parametrize("why", ["dead", "overdue", "no reader any more"])
def test_impossible_upgrade_does_not_block_the_next(world: World, why: str) -> None:
    (client, token), (second, other) = world.new_reader(), world.new_reader()
    world.client().share()
    past = world.now_us() - 10_000_000
    if why == "overdue":
        client.upgrade(token, wait_ms=1000, ticket=past)
    else:
        wait_to_upgrade(client, token)
    if why == "dead":
        client.die()
        assert isinstance(second.upgrade(other, queues=False), Busy)
    elif why != "overdue":
        world.end_lease(token)
    wait_to_upgrade(second, other)
    assert world.queue() == [second.member(other, "u")] and client.messages() == []
    assert len(world.readers()) == (2 if why == "no reader any more" else 3)


def test_queued_upgrade_whose_reader_has_ended_is_dropped(world: World) -> None:
    client, second, writer = (world.client() for _ in range(3))
    token, other = client.share(), second.share()
    behind = writer.wait()
    wait_to_upgrade(client, token)
    world.end_lease(token)
    assert second.release(other) == (2, 0)
    assert world.holder() == behind and world.queue() == [] and client.messages() == []
    assert client.upgrade(token) == -1


def test_queued_upgrade_behind_an_exclusive_holder_is_dropped(world: World) -> None:
    client, token = world.new_reader()
    second, _ = world.new_reader()
    wait_to_upgrade(client, token)
    world.force_release()
    writer, held = world.new_holder()
    reader = second.wait_to_read()
    assert writer.release(held) == (2, 0)
    assert list(world.readers()) == [reader] and world.queue() == []


def test_dead_waiter_to_upgrade_keeps_reading(world: World) -> None:
    # Its connection may only be broken for a moment: the lease is what counts.
    client, second, writer = (world.client() for _ in range(3))
    token, other = client.share(ttl_ms=20_000), second.share(ttl_ms=60_000)
    behind = writer.wait()
    wait_to_upgrade(client, token)
    client.die()
    writer.messages()
    assert second.release(other) == (1, 0)
    assert world.holder() == SHARED and list(world.readers()) == [token]
    assert 19_000 < world.pttl() <= 20_000 and world.queue() == [writer.member(behind)]
    assert writer.was_told(behind, 20_000, 10_000)
    client.subscribe()
    assert client.extend_shared(token) == 2
    assert isinstance(client.upgrade(token), Held)


def test_refused_publish_keeps_the_upgrade_in_its_place(world: World) -> None:
    client, second = world.client(), world.client()
    token, other = client.share(ttl_ms=20_000), second.share(ttl_ms=60_000)
    wait_to_upgrade(client, token)
    queue = world.admin.cmd("ZRANGE", world.lock.q, 0, -1, "WITHSCORES")
    with world.user("~*", "resetchannels", "+@all") as limited:
        assert second.release(other, connection=limited) == (1, REFUSED)
    assert list(world.readers()) == [token] and world.holder() == SHARED
    assert 19_000 < world.pttl() <= 20_000
    assert world.admin.cmd("ZRANGE", world.lock.q, 0, -1, "WITHSCORES") == queue
    assert isinstance(client.upgrade(token), Held) and world.queue() == []


def test_upgrade_that_polls_is_not_taken_for_dead(world: World) -> None:
    client, second = world.client(polls=True), world.client()
    token, other = client.share(), second.share()
    wait_to_upgrade(client, token)
    client.die()
    assert second.upgrade(other) == -2
    assert world.queue() == [client.member(token, "u")]


def test_refused_publish_upgrades_one_that_polls(world: World) -> None:
    """It has K for what is left of its lease as a reader, which it believes."""
    client, second = world.client(polls=True), world.client()
    token, other = client.share(ttl_ms=20_000), second.share(ttl_ms=60_000)
    wait_to_upgrade(client, token)
    with world.user("~*", "resetchannels", "+@all") as limited:
        assert second.release(other, connection=limited) == (2, 0)
    assert world.holder() == token and world.queue() == [] and world.readers() == {}
    assert 19_000 < world.pttl() <= 20_000
    assert isinstance(client.upgrade(token), Held)


def test_newcomers_wait_behind_an_upgrade_and_siblings_do_not(world: World) -> None:
    client, second, late = (world.client() for _ in range(3))
    token, other = client.share(), second.share()
    wait_to_upgrade(client, token)
    reply = late.read(late.token())
    assert isinstance(reply, Busy) and reply.rank == 1
    sibling = second.token()
    assert isinstance(second.read(sibling, sibling=other), Held)
    assert set(world.readers()) == {token, other, sibling}


def test_upgrade_at_the_head_gets_the_ttl_of_the_other_readers(world: World) -> None:
    client, token = world.new_reader(ttl_ms=90_000)
    world.client().share(ttl_ms=20_000)
    third, last = world.new_reader(ttl_ms=60_000)
    wait_to_upgrade(client, token)
    assert third.release(last) == (1, 0)
    assert client.was_told(token, 20_000, 1000)


def test_cancelled_upgrade_reads_on_and_lets_readers_in(world: World) -> None:
    client, second, late = (world.client() for _ in range(3))
    token, other = client.share(), second.share()
    wait_to_upgrade(client, token)
    last = late.wait_to_read()
    member = client.member(token, "u")
    assert client.cancel(member) == (1, 0)
    assert set(world.readers()) == {token, other, last} and world.queue() == []
    assert client.cancel(member) == (0, 0) and len(world.readers()) == 3


def test_cancel_of_a_granted_upgrade_says_so(world: World) -> None:
    (client, token), (second, other) = world.new_reader(), world.new_reader()
    wait_to_upgrade(client, token)
    second.release(other)
    assert client.cancel(client.member(token, "u")) == (2, 0)
    assert world.holder() == token
    assert client.downgrade(token) == (1, 0) and list(world.readers()) == [token]


def test_released_reader_leaves_no_upgrade_that_could_be_granted(world: World) -> None:
    (client, token), (second, other) = world.new_reader(), world.new_reader()
    wait_to_upgrade(client, token)
    assert client.release(token) == (1, 0)
    assert second.release(other) == (1, 0)
    assert world.keys() == {world.lock.f} and client.messages() == []


def test_lost_queue_does_not_let_two_writers_in(world: World) -> None:
    (client, token), (second, other) = world.new_reader(), world.new_reader()
    first = wait_to_upgrade(client, token)
    world.admin.cmd("DEL", world.lock.q)
    wait_to_upgrade(second, other)
    assert client.upgrade(token, ticket=first.ticket) == -2
    assert client.release(token) == (2, 0) and world.holder() == other


def test_lost_readers_end_in_no_upgrade(world: World) -> None:
    client, token = world.new_reader()
    world.client().share()
    wait_to_upgrade(client, token)
    world.admin.cmd("DEL", world.lock.r)
    world.may_disagree = True
    assert client.upgrade(token) == -1
    assert world.serve_queue() == (0, 0)
    assert world.keys() == {world.lock.f}
