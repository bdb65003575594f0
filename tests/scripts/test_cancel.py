# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: CANCEL takes an entry out of the queue, and nothing is lost by that.
Method: cancels before, during and after a grant."""

from __future__ import annotations

from .harness import Busy, Grant, Head, Held, World, member_of, rid_of


def test_cancel_on_an_unknown_lock_writes_nothing(world: World) -> None:
    client = world.client()
    assert client.cancel(member_of(client.token())) == (0, 0)
    assert world.keys() == set()


def test_cancel_of_a_free_lock_hands_it_to_the_next(world: World) -> None:
    world.client().hold()
    waiter, token = world.new_waiter()
    second, behind = world.new_waiter()
    world.expire()
    assert waiter.cancel(member_of(token)) == (1, 0)
    assert world.holder() == behind and waiter.messages() == []
    (grant,) = second.messages()
    assert isinstance(grant, Grant) and grant.rid == rid_of(behind)


def test_cancel_of_a_gone_entry_repairs_a_free_lock(world: World) -> None:
    holder, waiter, second = world.client(), world.client(), world.client()
    holder.hold()
    behind = second.wait()
    world.expire()
    assert waiter.cancel(member_of(waiter.token())) == (0, 0)
    assert world.holder() == behind


def test_cancel_of_the_last_entry_of_a_free_lock_leaves_it_free(world: World) -> None:
    world.client().hold()
    waiter, token = world.new_waiter()
    world.expire()
    assert waiter.cancel(member_of(token)) == (1, 0)
    assert world.keys() == {world.lock.f}


def test_cancelled_head_forwards_the_claim_to_the_next(world: World) -> None:
    # Only the head knew that a claim, far shorter than the lease before, is running. If the
    # granted host is gone, nobody else would look in time.
    holder, held = world.new_holder()
    world.client().wait(provisional_ms=700)
    head, second = world.new_waiter()
    third, behind = world.new_waiter()
    holder.release(held)
    assert head.was_told(second, 700)
    assert third.messages() == []
    assert head.cancel(member_of(second)) == (1, 0)
    assert third.was_told(behind, 700, 400)


def test_dead_new_head_is_dropped_and_the_next_one_notified(world: World) -> None:
    held = world.client().hold()
    head, token = world.new_waiter()
    dead, _ = world.new_waiter()
    last, behind = world.new_waiter()
    dead.die()
    assert head.cancel(member_of(token)) == (1, 0)
    assert world.queue() == [member_of(behind)] and world.holder() == held
    (told,) = last.messages()
    assert isinstance(told, Head) and told.rid == rid_of(behind)


def test_cancel_behind_the_head_notifies_no_waiter(world: World) -> None:
    world.client().hold()
    head, _ = world.new_waiter()
    second, token = world.new_waiter()
    third, _ = world.new_waiter()
    assert second.cancel(member_of(token)) == (1, 0)
    assert head.messages() == [] and third.messages() == []


def test_head_that_leaves_behind_a_key_without_expiry(world: World) -> None:
    head, second = world.client(), world.client()
    world.may_be_immortal.add(world.lock.k)
    world.admin.cmd("SET", world.lock.k, "peer")
    token, behind = head.token(), second.token()
    head.acquire(token)
    second.acquire(behind)
    assert head.cancel(member_of(token)) == (1, 0)
    assert second.was_told(behind, 0)


def test_cancel_with_another_member_does_not_remove(world: World) -> None:
    # The member is fixed for one call; another wait or claim is another entry.
    world.client().hold()
    waiter, token = world.new_waiter()
    assert waiter.cancel(member_of(token, wait_ms=1)) == (0, 0)
    assert world.queue() == [member_of(token)]


def test_late_poll_after_a_cancel_is_undone_by_release(world: World) -> None:
    # A copy of ACQUIRE overtaken by the CANCEL: a stale place. Its owner answers the grant for a
    # finished call with RELEASE.
    holder, held = world.new_holder()
    stale, token = world.new_waiter()
    stale.cancel(member_of(token))
    assert isinstance(stale.acquire(token), Busy)
    behind = world.client().wait()
    holder.release(held)
    (grant,) = stale.messages()
    assert isinstance(grant, Grant) and grant.rid == rid_of(token)
    assert stale.release(token) == (2, 0)
    assert world.holder() == behind


def test_cancel_by_the_holder_who_took_it_by_reply(world: World) -> None:
    client = world.client()
    token = client.token()
    assert isinstance(client.acquire(token), Held)
    assert client.cancel(member_of(token)) == (2, 0)
    assert world.holder() == token
