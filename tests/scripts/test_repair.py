# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: SERVE QUEUE, FORCE_RELEASE and PROBE do what an operator and a repairing client rely on.
Method: locks left free with a queue, held by tokens, strangers and other formats."""

from __future__ import annotations

from .harness import TTL_MS, MORE, Busy, Grant, Held, World, member_of, as_held


def test_kick_grants_a_free_lock_to_the_head(world: World) -> None:
    world.client().hold()
    waiter, token = world.new_waiter(provisional_ms=900)
    world.expire()
    assert world.serve_queue() == (1, 0)
    assert world.holder() == token and 0 < world.pttl() <= 900
    assert [type(message) for message in waiter.messages()] == [Grant]


def test_kick_of_nothing_writes_nothing(world: World) -> None:
    assert world.serve_queue() == (0, 0)
    assert world.keys() == set()


def test_kick_leaves_a_held_lock_alone(world: World) -> None:
    held = world.client().hold()
    token = world.client().wait()
    assert world.serve_queue() == (0, 0)
    assert world.holder() == held and world.queue() == [member_of(token)]
    assert world.pttl() > TTL_MS - 1000


def test_kick_of_a_held_lock_tells_the_first_live_head(world: World) -> None:
    world.client().hold(ttl_ms=5000)
    dead, _ = world.new_waiter()
    waiter, token = world.new_waiter()
    dead.die()
    assert world.serve_queue() == (0, 0)
    assert waiter.was_told(token, 5000, 1000)
    assert world.queue() == [member_of(token)]


def test_kick_when_all_are_dead_leaves_the_lock_free(world: World) -> None:
    world.client().hold()
    dead, _ = world.new_waiter()
    dead.die()
    world.expire()
    assert world.serve_queue() == (0, 0)
    assert world.keys() == {world.lock.f}


def test_force_release_frees_and_raises_the_fence(world: World) -> None:
    client = world.client()
    token = client.token()
    held = as_held(client.acquire(token))
    assert world.force_release() == (1, 0)
    assert world.holder() is None
    assert world.admin.cmd("GET", world.lock.f).decode() > held.fence
    assert client.extend(token) == 0 and client.release(token) == (-1, 0)


def test_force_release_hands_to_the_head_with_a_higher_fence(world: World) -> None:
    holder, waiter, second = world.client(), world.client(), world.client()
    token = holder.token()
    held = holder.acquire(token)
    behind = waiter.wait()
    last = second.wait()
    assert world.force_release(token) == (1, 0)
    assert world.holder() == behind
    (grant,) = waiter.messages()
    assert isinstance(grant, Grant) and isinstance(held, Held) and grant.fence > held.fence
    assert grant.fence == world.admin.cmd("GET", world.lock.f).decode()
    assert second.was_told(last, 3000)


def test_force_release_of_another_holder_than_expected_is_refused(world: World) -> None:
    holder, held = world.new_holder()
    waiter, _ = world.new_waiter()
    fence = world.admin.cmd("GET", world.lock.f)
    assert world.force_release(holder.token()) == (-1, 0)
    assert world.holder() == held and waiter.messages() == []
    assert world.admin.cmd("GET", world.lock.f) == fence


def test_force_release_of_nothing_says_so_and_repairs(world: World) -> None:
    assert world.force_release() == (0, 0)
    assert world.keys() == set()
    held = world.client().hold()
    token = world.client().wait()
    world.expire()
    assert world.force_release(held) == (0, 0)
    assert world.holder() == token


def test_force_release_takes_a_strangers_lock(world: World) -> None:
    world.may_be_immortal.add(world.lock.k)
    world.admin.cmd("SET", world.lock.k, "peer")
    assert world.force_release("other") == (-1, 0)
    assert world.force_release("peer") == (1, 0)
    assert world.holder() is None


def test_probe_counts_receivers(world: World) -> None:
    client = world.client()
    assert world.run("probe", [client.channel], client.channel, world.prefix + "unused") == [1, 0]
    client.die()
    assert world.run("probe", [client.channel], client.channel, world.prefix + "unused") == [0, 0]


def test_probe_answers_minus_one_for_a_refused_channel(world: World) -> None:
    client = world.client()
    with world.user("~*", "resetchannels", f"&{client.channel}", "+@all") as limited:
        args = (client.channel, world.prefix + "unused")
        assert world.run("probe", [client.channel], *args, connection=limited) == [1, -1]


def test_a_thousand_dead_in_front_of_a_free_lock_take_a_few_calls(world: World) -> None:
    holder, waiter = world.client(), world.client()
    holder.hold()
    world.enqueue_dead(1500)
    token = waiter.token()
    reply = waiter.acquire(token)
    assert isinstance(reply, Busy) and reply.rank == 1500
    world.expire()
    replies = []
    while isinstance(reply, Busy):
        assert len(replies) < 7
        reply = waiter.acquire(token, ticket=reply.ticket)
        replies.append(reply)
    assert [reply.flags for reply in replies if isinstance(reply, Busy)] == [MORE] * 5
    assert world.holder() == token and world.queue() == []


def test_try_behind_the_dead_continues_where_the_last_one_ended(world: World) -> None:
    client = world.client()
    world.enqueue_dead(300)
    first = client.try_acquire(client.token())
    assert isinstance(first, Busy) and (first.kind, first.flags) == ("none", MORE)
    assert isinstance(client.try_acquire(client.token()), Held)
