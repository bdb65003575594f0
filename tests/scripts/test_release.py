# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: RELEASE frees only what its token holds, and hands it to the first live waiter.
Method: queues with live, dead, overdue and silenced waiters."""

from __future__ import annotations

import pytest
from support.servers import Server

from .harness import (
    TTL_MS,
    MAX_ENTRIES,
    MORE,
    NO_LIMIT,
    PROVISIONAL_MS,
    REFUSED,
    Busy,
    Grant,
    Head,
    Held,
    World,
    eventually,
    member_of,
    rid_of,
    as_busy,
)


def test_a_client_at_a_replica_hears_no_grant(world: World) -> None:
    """Goal: a client that has stayed at a server which is a replica now believes no grant, because
    the release takes its grant back; it is told to ask.
    Method: the channels of two waiters have their only subscribers at a replica."""
    world.admin.cmd("CONFIG", "SET", "repl-diskless-sync-delay", 0)
    holder, first, second = world.client(), world.client(), world.client()
    held = holder.hold()
    tokens = [first.wait(), second.wait()]
    server = world.server
    with Server(server.kind, ["--replicaof", server.host, str(server.port)]) as replica:
        with replica.connect() as connection:
            eventually(lambda: b"master_link_status:up" in connection.cmd("INFO", "replication"))
            for client in (first, second):
                client.die()
                client.subscribe(replica)
            assert holder.release(held) == (1, 0)
            assert world.holder() is None and world.queue() == []
            eventually(lambda: connection.cmd("EXISTS", world.lock.k) == 0)
        for client, token in zip((first, second), tokens):
            assert client.messages() == [Head(rid_of(token), 0)]


@pytest.mark.parametrize("is_waited_for", [False, True])
def test_release_by_other_token_is_refused(world: World, is_waited_for: bool) -> None:
    waiter, other = world.client(), world.client()
    held = world.client().hold()
    if is_waited_for:
        waiter.wait()
    assert other.release(other.token()) == (-1, 0)
    assert world.holder() == held and world.pttl() > TTL_MS - 1000 and waiter.messages() == []


def test_release_hands_to_the_head_with_its_claim(world: World) -> None:
    holder, waiter = world.client(), world.client()
    token = holder.token()
    held = holder.acquire(token)
    behind = waiter.wait(provisional_ms=1234)
    assert holder.release(token) == (2, 0)
    assert world.holder() == behind
    assert 1000 < world.pttl() <= 1234
    (grant,) = waiter.messages()
    assert isinstance(grant, Grant) and isinstance(held, Held)
    assert (grant.rid, grant.provisional_ms) == (rid_of(behind), 1234)
    assert grant.fence > held.fence
    assert grant.fence == world.admin.cmd("GET", world.lock.f).decode()
    assert abs(grant.now * 1000 - world.now_us()) < 5_000_000
    assert world.queue() == [] and holder.messages() == []


def test_release_hands_over_in_order_of_arrival(world: World) -> None:
    clients = [world.client() for _ in range(5)]
    tokens = [clients[0].hold()] + [client.wait() for client in clients[1:]]
    for client, token, following in zip(clients, tokens, tokens[1:]):
        assert client.release(token) == (2, 0)
        assert world.holder() == following
    assert clients[-1].release(tokens[-1]) == (1, 0)


def test_granted_waiter_extends_under_the_fence_of_the_grant(world: World) -> None:
    (holder, held), (waiter, token) = world.new_holder(), world.new_waiter()
    holder.release(held)
    (grant,) = waiter.messages()
    assert waiter.extend(token, 20_000) == 1
    again = waiter.acquire(token)
    assert isinstance(again, Held) and isinstance(grant, Grant) and again.fence == grant.fence


def test_dead_second_head_is_dropped_and_the_next_one_notified(world: World) -> None:
    holder, held = world.new_holder()
    first = world.client().wait(provisional_ms=700)
    dead, _ = world.new_waiter()
    third, behind = world.new_waiter()
    dead.die()
    assert holder.release(held) == (2, 0)
    assert world.holder() == first
    assert world.queue() == [member_of(behind)], "the dead head is out of the queue"
    assert third.was_told(behind, 700)


def test_overdue_second_head_is_not_notified(world: World) -> None:
    holder, granted, late, third = (world.client() for _ in range(4))
    held = holder.hold()
    past = world.now_us() - 10_000_000
    granted.acquire(granted.token(), ticket=past - 1)
    late.acquire(late.token(), wait_ms=1000, ticket=past)
    behind = third.wait()
    assert holder.release(held) == (2, 0)
    assert late.messages() == [] and world.queue() == [member_of(behind)]
    assert third.was_told(behind, 3000)


def test_wait_counts_from_the_ticket(world: World) -> None:
    holder, waiter = world.client(), world.client()
    held = holder.hold()
    token = waiter.token()
    waiter.acquire(token, wait_ms=60_000, ticket=world.now_us() - 59_000_000)
    assert holder.release(held) == (2, 0)
    assert world.holder() == token


def test_release_by_a_late_owner_repairs_a_free_lock(world: World) -> None:
    holder, held = world.new_holder()
    waiter, token = world.new_waiter()
    world.expire()
    assert holder.release(held) == (-1, 0)
    assert world.holder() == token
    assert [type(message) for message in waiter.messages()] == [Grant]


def test_many_dead_waiters_are_bounded_per_call(world: World) -> None:
    holder, held = world.new_holder()
    world.enqueue_dead(100_000)
    token = world.client().wait()
    assert holder.release(held) == (1, MORE)
    assert world.holder() is None
    left = 100_000 - MAX_ENTRIES
    assert world.admin.cmd("ZCARD", world.lock.q) == left + 1
    world.admin.cmd("ZREMRANGEBYRANK", world.lock.q, 0, left - 600)
    served: list[tuple[int, int]] = []
    while not served or served[-1][1] == MORE:
        served.append(world.serve_queue())
    assert served == [(0, MORE), (0, MORE), (1, 0)]
    assert world.holder() == token


@pytest.mark.parametrize(
    ("dead", "result"), [(MAX_ENTRIES - 1, (2, 0)), (MAX_ENTRIES, (1, MORE))]
)
def test_bound_is_256_entries(world: World, dead: int, result: tuple[int, int]) -> None:
    holder, held = world.new_holder()
    world.enqueue_dead(dead)
    world.client().wait()
    assert holder.release(held) == result


def test_exactly_256_dead_entries_leave_nothing_to_do(world: World) -> None:
    holder, held = world.new_holder()
    world.enqueue_dead(MAX_ENTRIES)
    assert holder.release(held) == (1, 0)
    assert world.keys() == {world.lock.f}


def test_dead_heads_after_a_grant_count_toward_the_bound(world: World) -> None:
    holder, held = world.new_holder()
    world.client().wait()
    world.enqueue_dead(MAX_ENTRIES)
    last, behind = world.new_waiter()
    assert holder.release(held) == (2, MORE)
    assert len(world.queue()) == 2
    assert last.messages() == []
    assert world.serve_queue() == (0, 0)
    (head,) = last.messages()
    assert isinstance(head, Head) and head.rid == rid_of(behind) and head.ms <= 3000


def test_acquire_behind_many_dead_gives_up_after_the_bound(world: World) -> None:
    world.client().hold()
    world.enqueue_dead(MAX_ENTRIES + 10)
    waiter, token = world.new_waiter()
    world.expire()
    reply = as_busy(waiter.acquire(token))
    assert (reply.pttl, reply.rank, reply.kind, reply.holder) == (-2, 10, "none", b"")
    assert isinstance(waiter.acquire(token), Held)


def test_try_behind_many_dead_does_not_overtake_the_rest(world: World) -> None:
    holder, waiter, other = world.client(), world.client(), world.client()
    holder.hold()
    world.enqueue_dead(MAX_ENTRIES)
    token = waiter.wait()
    world.expire()
    reply = other.try_acquire(other.token())
    assert isinstance(reply, Busy) and reply.kind == "none"
    assert world.holder() is None
    assert world.serve_queue() == (1, 0)
    assert world.holder() == token


def test_every_script_reports_a_refused_publish(world: World) -> None:
    holder, _ = world.new_holder()
    token = world.client().wait()
    second, behind = world.new_waiter()
    world.expire()
    with world.user("~*", "resetchannels", "+@all") as limited:
        assert world.serve_queue(limited) == (0, REFUSED)
        assert world.force_release(connection=limited) == (0, REFUSED)
        assert holder.release(holder.token(), connection=limited) == (-1, REFUSED)
        assert holder.cancel(member_of(holder.token()), connection=limited) == (0, REFUSED)
        reply = second.acquire(behind, connection=limited)
        assert isinstance(reply, Busy)
        assert (reply.rank, reply.kind, reply.pttl) == (1, "none", -2)
        world.admin.cmd("SET", world.lock.k, "held", "PX", 5000)
        assert world.force_release(connection=limited) == (1, REFUSED)
    assert world.queue() == [member_of(token), member_of(behind)]
    assert world.holder() is None


def test_refused_publish_keeps_the_order(world: World) -> None:
    """The first waits for messages, and keeps the place before one that polls."""
    holder, first, second = world.client(), world.client(), world.client(polls=True)
    held = holder.hold()
    token, behind = first.wait(), second.wait()
    with world.user("~*", "resetchannels", "+@all") as limited:
        assert holder.release(held, connection=limited) == (1, REFUSED)
        assert isinstance(second.acquire(behind, connection=limited), Busy)
    assert world.holder() is None
    assert world.queue() == [first.member(token), second.member(behind)]


def test_waiter_that_polls_keeps_its_turn_though_no_message_reaches_it(world: World) -> None:
    """Other clients may publish. Method: two that poll, of which the first hears nothing."""
    holder, deaf, waiter = world.client(), world.client(polls=True), world.client(polls=True)
    held = holder.hold()
    token, behind = deaf.wait(), waiter.wait()
    deaf.die()
    assert holder.release(held) == (2, 0)
    assert world.holder() == token and world.queue() == [waiter.member(behind)]
    assert [type(text) for text in waiter.messages()] == [Head]
    world.expire()
    assert world.serve_queue() == (1, 0)
    (grant,) = waiter.messages()
    assert isinstance(grant, Grant)
    assert (grant.rid, grant.provisional_ms) == (rid_of(behind), PROVISIONAL_MS)


def test_head_that_polls_keeps_its_place_behind_another_library(world: World) -> None:
    waiter, late = world.client(polls=True), world.client()
    world.admin.cmd("SET", world.lock.k, "theirs", "PX", 5000)
    token = waiter.wait()
    waiter.die()
    late.wait()
    assert world.serve_queue() == (0, 0)
    assert world.queue()[0] == waiter.member(token)


def test_waiter_that_polls_has_time_to_do_so(world: World) -> None:
    holder, waiter = world.client(), world.client(polls=True)
    held = holder.hold()
    token = waiter.wait(provisional_ms=20)
    assert holder.release(held) == (2, 0)
    assert world.holder() == token and 400 < world.pttl() <= 500


def test_pattern_subscription_does_not_revive_the_dead(world: World) -> None:
    # A pattern counts as a receiver of PUBLISH, which is why SPUBLISH is used where there is one.
    with world.server.connect() as monitor:
        monitor.cmd("PSUBSCRIBE", "*")
        holder, dead, waiter = world.client(), world.client(), world.client()
        held = holder.hold()
        lost = dead.wait()
        token = waiter.wait()
        dead.die()
        assert holder.release(held) == (2, 0)
        assert world.holder() == (token if world.sharded else lost)


def test_waiter_that_ignores_its_grant_blocks_for_one_claim(world: World) -> None:
    # A paused host is subscribed and silent. The one behind was told, and its poll takes over; the
    # paused one comes back by its ticket.
    holder, paused, second = world.client(), world.client(), world.client()
    held = holder.hold()
    token = paused.token()
    queued = as_busy(paused.acquire(token, provisional_ms=30))
    behind = second.wait()
    holder.release(held)
    assert second.was_told(behind, 30)
    world.expire()
    assert isinstance(second.acquire(behind), Held)
    again = paused.acquire(token, provisional_ms=30, ticket=queued.ticket)
    assert isinstance(again, Busy) and (again.rank, again.ticket) == (0, queued.ticket)


@pytest.mark.parametrize(
    "junk",
    ["", "x", "t" * 32 + "x" + "00000" + str(NO_LIMIT), "t" * 32 + "x03000abc", "t" * 51],
)
def test_entry_of_foreign_making_does_not_stop_the_queue(world: World, junk: str) -> None:
    holder, waiter = world.client(), world.client()
    held = holder.hold()
    world.put("ZADD", world.lock.q, 1, junk, ms=5000)
    token = waiter.token()
    waiter.acquire(token)
    assert holder.release(held) == (2, 0)
    assert world.holder() == token and world.queue() == []
