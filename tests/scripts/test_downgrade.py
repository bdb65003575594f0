# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the writer becomes a reader without a gap, and those who may read with it get in.
Method: one request at a time; copies and dead waiters are played by hand."""

from __future__ import annotations

import pytest

from .harness import FENCE_STEP, REFUSED, SHARED, Busy, Grant, Held, World, rid_of, as_held


def test_writer_becomes_the_one_reader(world: World) -> None:
    client, other = world.client(), world.client()
    token = client.hold(ttl_ms=5000)
    assert client.downgrade(token, 20_000) == (1, 0)
    assert world.holder() == SHARED and list(world.readers()) == [token]
    assert 19_000 < world.pttl() <= 20_000 and 19_000 < world.pttl(world.lock.r) <= 20_000
    assert client.extend_shared(token, 30_000) == 2
    assert isinstance(other.read(other.token()), Held)
    assert client.release(token) == (1, 0) and world.holder() == SHARED


def test_resent_downgrade_changes_nothing_and_never_shortens(world: World) -> None:
    client, token = world.new_holder(ttl_ms=60_000)
    client.downgrade(token, 5000)
    rest = world.client().share(ttl_ms=1000)
    assert client.downgrade(token, 5000) == (1, 0)
    assert world.pttl() > 59_000 and set(world.readers()) == {token, rest}
    assert client.downgrade(token, 90_000) == (1, 0) and world.pttl() > 89_000


def test_downgrade_of_who_has_nothing_changes_nothing(world: World) -> None:
    client, other = world.client(), world.client()
    assert client.downgrade(client.token()) == (0, 0) and world.keys() == set()
    held = other.hold()
    assert client.downgrade(client.token()) == (0, 0) and world.holder() == held
    assert other.downgrade(held) == (1, 0)
    assert client.downgrade(client.token()) == (0, 0) and list(world.readers()) == [held]


def test_late_copy_after_the_lease_has_gone_changes_nothing(world: World) -> None:
    client, token = world.new_holder()
    world.expire()
    other, held = world.new_holder(ttl_ms=5000)
    assert client.downgrade(token) == (0, 0)
    assert world.holder() == held and world.readers() == {} and world.pttl() <= 5000
    other.release(held)
    assert client.downgrade(token) == (0, 0) and world.keys() == {world.lock.f}


def test_readers_at_the_head_get_in_and_a_writer_behind_them_does_not(world: World) -> None:
    client, first, second, writer, late = (world.client() for _ in range(5))
    token = client.token()
    held = client.acquire(token)
    tokens = first.wait_to_read(), second.wait_to_read(provisional_ms=900)
    behind = writer.wait()
    late.wait_to_read()
    assert client.downgrade(token, 20_000) == (1, 0)
    assert set(world.readers()) == {token, *tokens} and world.holder() == SHARED
    assert 29_000 < world.pttl() <= 30_000
    for reader in (first, second):
        (grant,) = reader.messages()
        assert isinstance(grant, Grant) and grant.mode == "s" and isinstance(held, Held)
        assert int(grant.fence) == int(held.fence) + FENCE_STEP - 1
    assert writer.was_told(behind, 30_000, 10_000) and late.messages() == []
    assert world.queue()[0] == writer.member(behind) and len(world.queue()) == 2


def test_writer_at_the_head_keeps_waiting_and_gets_the_new_ttl(world: World) -> None:
    client, token = world.new_holder(ttl_ms=5000)
    writer, behind = world.new_waiter()
    world.client().wait_to_read()
    assert client.downgrade(token, 20_000) == (1, 0)
    assert list(world.readers()) == [token] and writer.was_told(behind, 20_000)
    assert client.release(token) == (2, 0) and world.holder() == behind


def test_dead_waiters_are_skipped(world: World) -> None:
    client, token = world.new_holder()
    dead, _ = world.new_waiter()
    dead.wait_to_read()
    last = world.client().wait_to_read()
    dead.die()
    assert client.downgrade(token) == (1, 0)
    assert set(world.readers()) == {token, last} and world.queue() == []


def test_refused_publish_keeps_the_readers_waiting(world: World) -> None:
    (client, token), (reader, last) = world.new_holder(), world.new_waiting_reader()
    with world.user("~*", "resetchannels", "+@all") as limited:
        assert client.downgrade(token, connection=limited) == (1, REFUSED)
    assert list(world.readers()) == [token] and world.queue() == [reader.member(last, "s")]


def test_readers_left_over_do_not_come_back(world: World) -> None:
    lost, over = world.new_reader(ttl_ms=60_000)
    world.admin.cmd("DEL", world.lock.k)
    client, token = world.new_holder(ttl_ms=5000)
    assert client.downgrade(token, 5000) == (1, 0)
    assert list(world.readers()) == [token] and lost.extend_shared(over) == -1


def test_late_copy_of_the_acquire_does_not_undo_the_downgrade(world: World) -> None:
    client, token = world.new_holder()
    client.downgrade(token)
    reply = client.acquire(token, ttl_ms=1000)
    assert isinstance(reply, Held), "it has the lock, as a reader"
    assert client.extend(token, 60_000) == -1, "which only the writer may send"
    assert world.holder() == SHARED and list(world.readers()) == [token]


def test_late_copy_after_another_upgrade_changes_nothing(world: World) -> None:
    client, reader = world.client(), world.client()
    token = client.token()
    held = as_held(client.acquire(token))
    assert client.downgrade(token, fence=held.fence) == (1, 0)
    again = client.upgrade(token)
    assert isinstance(again, Held) and world.holder() == token
    assert client.downgrade(token, fence=held.fence) == (0, 0)
    assert world.holder() == token
    assert isinstance(reader.read(reader.token(), queues=False), Busy)
    assert client.downgrade(token, fence=again.fence) == (1, 0)
    assert list(world.readers()) == [token]


@pytest.mark.parametrize("passed_on", [0, FENCE_STEP - 1])
def test_fence_that_was_passed_on_or_lost_is_no_late_copy(world: World, passed_on: int) -> None:
    client = world.client()
    token = client.token()
    held = as_held(client.acquire(token))
    if passed_on == 0:
        world.admin.cmd("DEL", world.lock.f)
    assert client.downgrade(token, fence=str(int(held.fence) + passed_on)) == (1, 0)


def test_down_and_up_again_raises_the_fence(world: World) -> None:
    client = world.client()
    token = client.token()
    fences = []
    reply = client.acquire(token)
    for _ in range(5):
        assert isinstance(reply, Held)
        fences.append(int(reply.fence))
        assert client.downgrade(token) == (1, 0)
        answer = client.upgrade(token)
        assert isinstance(answer, Held)
        reply = answer
    assert all(b >= a + FENCE_STEP for a, b in zip(fences, fences[1:]))
    assert world.holder() == token and rid_of(token)
