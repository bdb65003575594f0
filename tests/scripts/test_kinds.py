# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what a mutex promises, readers and an owner's holds promise too: late copies change
nothing, waiters get in once, and dead ones are in the way of no other.
Method: one request at a time, for each kind of hold. What only one has is in the other files."""

from __future__ import annotations

import pytest

from .harness import (
    MAX_ENTRIES,
    MORE,
    PROVISIONAL_MS,
    QUEUE_TTL_MS,
    REFUSED,
    Busy,
    Grant,
    Head,
    Held,
    World,
    eventually,
    rid_of,
    as_busy,
)
from .kinds import Kind, not_shared, several

# ---- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("queueing", [True, False])
def test_resent_request_lengthens_and_never_shortens(
    kind: Kind, world: World, queueing: bool
) -> None:
    # The first reply was lost; the caller sends again.
    (client,) = kind.clients(1)
    send = kind.ask if queueing else kind.tries
    token = client.token()
    first = send(client, token, ttl_ms=10_000)
    longer = send(client, token, ttl_ms=20_000)
    assert 19_000 < world.pttl() <= 20_000
    assert kind.extend(client, token, 60_000) > 0
    late = send(client, token, ttl_ms=1000)
    assert world.pttl() > 59_000
    for reply in (first, longer, late):
        assert isinstance(reply, Held) and isinstance(first, Held)
        # Each answer about permits has a fence of its own.
        assert reply.fence == first.fence or kind.has_permits
        assert reply.count == 1
    assert kind.holders() == [token] and world.queue() == []


def test_late_copy_of_an_acquire_after_the_release_is_a_ghost_that_release_ends(
    kind: Kind, world: World
) -> None:
    # Why a token that was released is never sent again, and why RELEASE is repeated as long as a
    # copy may be under way.
    (client,) = kind.clients(1)
    token = kind.hold(client)
    client.release(token)
    assert isinstance(kind.ask(client, token), Held)
    assert client.release(token) == (1, 0)
    assert world.keys() == {world.lock.f}


def test_late_copy_of_a_release_leaves_the_next_holder_alone(kind: Kind) -> None:
    client, other = kind.clients(2)
    token = kind.hold(client)
    assert client.release(token) == (1, 0)
    assert client.release(token) == (-1, 0)
    held = kind.hold(other)
    assert client.release(token) == (-1, 0)
    assert kind.holders() == [held]


def test_late_copy_of_an_extend_never_shortens_and_never_brings_back(
    kind: Kind, world: World
) -> None:
    client, other = kind.clients(2)
    token = kind.hold(client, ttl_ms=60_000)
    assert kind.extend(client, token, 1000) > 0 and world.pttl() > 59_000
    client.release(token)
    assert kind.extend(client, token, 60_000) == 0 and world.keys() == {world.lock.f}
    held = kind.hold(other, ttl_ms=5000)
    # A holder of other permits did not take over those of the token.
    assert kind.extend(client, token, 60_000) == (0 if kind.has_permits else -1)
    assert kind.holders() == [held] and world.pttl() <= 5000


def test_lost_reply_gives_one_queue_place_and_the_same_ticket(kind: Kind, world: World) -> None:
    holder, waiter, second = kind.clients(3)
    held = holder.hold()
    token = waiter.token()
    first = as_busy(kind.ask(waiter, token))
    second.wait()
    again = as_busy(kind.ask(waiter, token))
    assert (again.ticket, again.rank) == (first.ticket, 0)
    assert world.queue().count(kind.member(waiter, token)) == 1 and len(world.queue()) == 2
    assert holder.release(held) == (2, 0)
    assert [type(message) for message in waiter.messages()] == [Grant]
    assert waiter.release(token) == (2, 0)
    assert waiter.messages() == [], "a second place was granted as well"


# ---- dead and overdue waiters --------------------------------------------------------------------


def test_dead_and_overdue_waiters_are_skipped_in_the_same_release(
    kind: Kind, world: World
) -> None:
    holder, dead, late, waiter = kind.clients(4)
    held = holder.hold()
    kind.wait(dead)
    token = kind.wait(waiter)
    # The last to queue, or another one would drop it.
    kind.ask(late, late.token(), wait_ms=1000, ticket=world.now_us() - 10_000_000)
    dead.die()
    assert holder.release(held) == (2, 0)
    assert kind.holders() == [token] and world.queue() == []
    assert late.messages() == []
    assert [type(message) for message in waiter.messages()] == [Grant]


def test_lock_is_free_when_all_waiters_are_dead(kind: Kind, world: World) -> None:
    holder, dead = kind.clients(2)
    held = holder.hold()
    for _ in range(3):
        kind.wait(dead)
    dead.die()
    assert holder.release(held) == (1, 0)
    assert world.keys() == {world.lock.f}


def test_dead_waiters_are_bounded_per_call(kind: Kind, world: World) -> None:
    holder, waiter = kind.clients(2)
    held = holder.hold()
    world.enqueue_dead(MAX_ENTRIES)
    token = kind.wait(waiter)
    assert holder.release(held) == (1, MORE) and kind.holders() == []
    assert world.serve_queue() == (1, 0) and kind.holders() == [token]


@not_shared
def test_try_takes_the_lock_when_all_queued_are_dead(kind: Kind, world: World) -> None:
    holder, dead, other = kind.clients(3)
    holder.hold()
    dead.wait()
    dead.wait()
    dead.die()
    world.expire()
    token = other.token()
    reply = other.try_acquire(token, ttl_ms=20_000)
    assert isinstance(reply, Held) and reply.count == 1
    assert kind.holders() == [token] and 19_000 < world.pttl() <= 20_000
    assert world.keys() - {world.lock.r} == {world.lock.k, world.lock.f}
    assert world.admin.cmd("GET", world.lock.f).decode() == reply.fence


@pytest.mark.parametrize("is_free", [False, True])
def test_new_head_is_notified_to_poll_after_the_claim(
    kind: Kind, world: World, is_free: bool
) -> None:
    # The granted one's host may be gone without its kernel having said so. What the last holder had
    # left does not count.
    holder, granted, second, third = kind.clients(4)
    held = kind.hold(holder, ttl_ms=60_000)
    token = granted.wait(provisional_ms=700)
    behind = second.wait()
    third.wait()
    if is_free:
        world.expire()
        assert world.serve_queue() == (1, 0)
    else:
        assert holder.release(held) == (2, 0)
    assert kind.holders() == [token] and 0 < world.pttl() <= 700
    assert isinstance(granted.messages()[-1], Grant)
    assert second.was_told(behind, 700)
    assert third.messages() == [], "only the head is told"


# ---- a refused publish ---------------------------------------------------------------------------


def test_refused_publish_keeps_the_waiter_and_frees_the_lock(kind: Kind, world: World) -> None:
    # No right to publish says nothing about who waits: it must never be read as dead.
    holder, waiter = kind.clients(2)
    held = holder.hold()
    token = kind.wait(waiter)
    queue = world.admin.cmd("ZRANGE", world.lock.q, 0, -1, "WITHSCORES")
    with world.user("~*", "resetchannels", "+@all") as limited:
        assert holder.release(held, connection=limited) == (1, REFUSED)
    assert kind.holders() == []
    assert world.admin.cmd("ZRANGE", world.lock.q, 0, -1, "WITHSCORES") == queue
    assert QUEUE_TTL_MS - 5000 < world.pttl(world.lock.q) <= QUEUE_TTL_MS
    assert waiter.messages() == []
    assert isinstance(kind.ask(waiter, token), Held) and kind.holders() == [token]


@not_shared
def test_refused_publish_grants_to_a_waiter_that_polls(kind: Kind, world: World) -> None:
    """A live one finds its grant, and a dead one keeps others waiting for its claim only."""
    holder, dead, waiter = kind.clients(3)
    dead.polls = waiter.polls = True
    held = holder.hold()
    dead_token = dead.wait(provisional_ms=20)
    token = waiter.wait()
    dead.die()
    with world.user("~*", "resetchannels", "+@all") as limited:
        assert holder.release(held, connection=limited) == (2, 0)
        assert kind.holders() == [dead_token] and 0 < world.pttl() <= 500
        assert world.queue() == [waiter.member(token)]
        eventually(lambda: world.pttl() == -2)
        assert world.serve_queue(limited) == (1, 0)
        assert kind.holders() == [token] and world.queue() == []
        assert isinstance(waiter.acquire(token, connection=limited), Held)
    assert world.pttl() > PROVISIONAL_MS and waiter.messages() == []


def test_refused_message_behind_a_grant_keeps_the_grant(kind: Kind, world: World) -> None:
    """The second waiter is the new head, or, of readers, the next one to get in."""
    holder, granted, second = kind.clients(3)
    held = holder.hold()
    token, behind = kind.wait(granted), kind.wait(second)
    with world.user("~*", "resetchannels", f"&{granted.channel}", "+@all") as limited:
        assert holder.release(held, connection=limited) == (2, REFUSED)
    assert kind.holders() == [token] and world.queue() == [kind.member(second, behind)]


# ---- cancels -------------------------------------------------------------------------------------


def test_cancel_removes_the_entry_and_the_next_head_looks(kind: Kind, world: World) -> None:
    holder, waiter, second = kind.clients(3)
    held = holder.hold(ttl_ms=5000)
    token, behind = kind.wait(waiter), second.wait()
    assert waiter.cancel(kind.member(waiter, waiter.token())) == (0, 0)
    assert waiter.cancel(kind.member(waiter, token)) == (1, 0)
    assert waiter.cancel(kind.member(waiter, token)) == (0, 0), "a late copy"
    assert world.queue() == [second.member(behind)] and kind.holders() == [held]
    head, *_ = second.messages()
    assert isinstance(head, Head) and head.rid == rid_of(behind) and 4000 < head.ms <= 5000
    assert holder.release(held) == (2, 0)
    assert waiter.messages() == [] and kind.holders() == [behind]


def test_cancel_that_crosses_a_grant_says_so_and_keeps_it(kind: Kind, world: World) -> None:
    holder, waiter, second = kind.clients(3)
    held = holder.hold()
    token, behind = kind.wait(waiter), second.wait()
    holder.release(held)
    assert waiter.cancel(kind.member(waiter, token)) == (2, 0)
    assert kind.holders() == [token] and world.pttl() > 0
    assert waiter.release(token) == (2, 0)
    assert kind.holders() == [behind]


# ---- other formats -------------------------------------------------------------------------------

OF_OTHERS = {
    "string": ("SET", "token"),
    "hash": ("HSET", "uuid:1", "1"),
    "read": ("HSET", "mode", "read", "uuid:1", "1"),
    "write": ("HSET", "mode", "write", "uuid:1", "1"),
}


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("mutex", "hash"),
        ("mutex", "write"),
        ("readers", "hash"),
        ("readers", "read"),
        ("owners", "string"),
        ("owners", "read"),
        ("owners", "write"),
    ],
    indirect=["kind"],
)
def test_lock_of_another_format_is_busy_and_never_written(
    kind: Kind, world: World, other: str
) -> None:
    command, *words = OF_OTHERS[other]
    world.admin.cmd(command, world.lock.k, *words)
    world.admin.cmd("PEXPIRE", world.lock.k, 50_000)
    before = world.admin.cmd("DUMP", world.lock.k)
    client = world.client(owner="uuid:1" if kind.is_hash else "")
    token = client.token()
    for rank, reply in ((0, kind.ask(client, token)), (-1, kind.tries(client, client.token()))):
        assert isinstance(reply, Busy)
        assert (reply.rank, reply.holder) == (rank, b"")
        assert reply.kind == ("string" if other == "string" else "hash")
        assert 49_000 < reply.pttl <= 50_000
    assert client.release(token) == (-1, 0) and kind.extend(client, token, 60_000) == 0
    if not kind.is_hash:
        assert client.upgrade(token) == -1 and client.downgrade(token) == (0, 0)
    assert world.serve_queue() == (0, 0) and world.force_release() == (-1, 0)
    assert client.cancel(kind.member(client, token)) == (1, 0)
    assert world.admin.cmd("DUMP", world.lock.k) == before and world.pttl() > 49_000


# ---- several holds -------------------------------------------------------------------------------


@several
def test_a_hold_that_has_ended_takes_no_other_along(kind: Kind, world: World) -> None:
    """As when the process that has it crashes."""
    crashed, living = (world.client(owner="o" if kind.is_hash else "") for _ in range(2))
    over = kind.hold(crashed, ttl_ms=60_000)
    token = kind.hold(living, ttl_ms=20_000)
    world.end_lease(over)
    assert crashed.extend_shared(over) <= 0 and crashed.release(over) == (-1, 0)
    assert living.extend_shared(token, 30_000) > 0
    assert kind.holders() == [token] and 29_000 < world.pttl() <= 30_000
    again = kind.ask(crashed, over)
    assert isinstance(again, Held) and len(kind.holders()) == 2, "as a new hold"
    assert not kind.is_hash or again.count == 2
    assert living.release(token) == ((0 if kind.is_hash else 1), 0) and kind.holders() == [over]


@several
def test_waiter_behind_a_crashed_holder_gets_in_at_its_expiry(kind: Kind, world: World) -> None:
    crashed, waiter = kind.clients(2)
    over, last = kind.hold(crashed), kind.hold(crashed)
    behind = waiter.wait()
    world.end_lease(over)
    world.end_lease(last, in_ms=30)
    eventually(lambda: isinstance(waiter.acquire(behind), Held))
    assert kind.holders() == [behind]


@several
def test_key_lives_as_long_as_the_latest_hold_and_the_head_is_notified(
    kind: Kind, world: World
) -> None:
    client, waiter = kind.clients(2)
    longest = kind.hold(client, ttl_ms=60_000)
    kind.hold(client, ttl_ms=5000)
    assert world.pttl() > 59_000
    behind = waiter.wait()
    assert client.release(longest) == ((0 if kind.is_hash else 1), 0)
    assert 4000 < world.pttl() <= 5000 and 4000 < world.pttl(world.lock.r) <= 5000
    assert waiter.was_told(behind, 5000, 1000)
    reply = waiter.acquire(behind)
    assert isinstance(reply, Busy) and 4000 < reply.pttl <= 5000


@several
def test_holds_left_over_by_a_lost_key_do_not_come_back(kind: Kind, world: World) -> None:
    # K was evicted or deleted, another holder came and went: for the hold that is a gap.
    lost, between, other = kind.clients(3)
    over = kind.hold(lost, ttl_ms=60_000)
    world.admin.cmd("DEL", world.lock.k)
    assert lost.extend_shared(over) == 0
    between.release(between.hold())
    token = kind.hold(other, ttl_ms=5000)
    assert lost.extend_shared(over) == -1 and lost.release(over) == (-1, 0)
    assert kind.holders() == [token] and world.pttl() <= 5000
    if kind.is_shared:
        assert lost.upgrade(over) == -1
        assert isinstance(other.upgrade(token, queues=False), Held), "it reads alone"
    other.release(token)
    again = kind.hold(lost)
    assert lost.extend_shared(over) <= 0 and kind.holders() == [again]
