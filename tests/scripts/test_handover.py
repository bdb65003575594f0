# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: by one detach exactly one attach goes on with a lease.
Method: detach and attach in every order, repeated, late, and beside descriptions and readers."""

from __future__ import annotations

import pytest
from support.resp import RespError

from .harness import TTL_MS, World, error_of


def test_attach_uses_up_the_mark_of_a_detach(world: World) -> None:
    holder, second, third = world.client(), world.client(), world.client()
    token = holder.hold()
    assert second.attach(token, "call-a") == (-1, 0)
    assert holder.detach(token) == 1
    assert second.attach(token, "call-a", 60_000) == (1, 2)
    assert world.pttl() > TTL_MS + 1000
    assert third.attach(token, "call-b") == (-1, 0)
    assert second.detach(token, 2) == 1
    assert third.attach(token, "call-b") == (1, 4)
    assert second.attach(token, "call-a") == (-1, 0)


def test_repetitions_change_nothing(world: World) -> None:
    holder, second, third = world.client(), world.client(), world.client()
    token = holder.hold()
    assert [holder.detach(token) for _ in range(3)] == [1, 1, 1]
    assert [second.attach(token, "1call") for _ in range(3)] == [(1, 2)] * 3
    # A late copy of the first detach marks nothing.
    assert holder.detach(token) == 2
    assert third.attach(token, "2call") == (-1, 0)
    assert second.detach(token, 2) == 1
    assert holder.detach(token) == 2


def test_late_attach_leaves_the_mark_of_a_later_detach(world: World) -> None:
    clients = [world.client() for _ in range(11)]
    token = clients[0].hold()
    assert clients[0].detach(token) == 1
    for number in range(1, 11):
        count = 2 * number
        assert clients[number].attach(token, f"call-{number}") == (1, count)
        assert clients[number].detach(token, count) == 1
        for late in range(max(number - 7, 1), number + 1):
            assert clients[late].attach(token, f"call-{late}") == (-1, 0)
    mark: bytes = world.admin.cmd("HGET", world.lock.i, token)
    assert len(mark) < 100, "the names of old calls are dropped"


def test_mark_of_an_earlier_version_is_used_up(world: World) -> None:
    """It has no names while the lease is detached, and one afterwards."""
    holder, other = world.client(), world.client()
    token = holder.hold()
    assert holder.detach(token) == 1
    world.admin.cmd("HSET", world.lock.i, token, "3")
    assert other.attach(token, "call") == (1, 4)
    world.admin.cmd("HSET", world.lock.i, token, "4:call")
    assert other.attach(token, "call") == (1, 4)
    assert holder.attach(token, "other") == (-1, 0)
    assert other.detach(token, 4) == 1 and other.attach(token, "call") == (-1, 0)


def test_token_that_has_nothing_is_neither_detached_nor_attached(world: World) -> None:
    holder, other = world.client(), world.client()
    token = holder.hold()
    assert holder.detach(token) == 1
    world.expire()
    assert holder.detach(token) == 0 and other.attach(token, "call") == (0, 0)
    held = other.hold()
    assert holder.detach(token) == 0 and other.attach(token, "call") == (0, 0)
    assert world.holder() == held


def test_attach_never_shortens_and_the_mark_lasts_as_long(world: World) -> None:
    holder, other = world.client(), world.client()
    token = holder.hold(ttl_ms=60_000)
    assert holder.detach(token) == 1
    assert 59_000 < world.pttl(world.lock.i) <= 60_000
    assert other.attach(token, "call", 5000) == (1, 2)
    assert world.pttl() > 59_000 and world.pttl(world.lock.i) > 59_000


def test_description_of_the_new_holder_keeps_the_mark(world: World) -> None:
    holder, other = world.client(), world.client()
    token = holder.hold()
    assert holder.extend(token, TTL_MS, "who", "a", "label", "x", "since", "1") == 1
    assert holder.detach(token) == 1
    assert other.attach(token, "call") == (1, 2)
    assert other.extend(token, TTL_MS, "who", "b", "label", "", "since", "2") == 1
    info = world.inspect()[7]
    assert info[info.index(b"who") + 1] == b"b"
    assert holder.detach(token) == 2
    assert other.attach(token, "other") == (-1, 0)


def test_mark_of_an_earlier_holder_means_nothing(world: World) -> None:
    first, token = world.new_holder()
    assert first.detach(token) == 1
    assert world.force_release(token) == (1, 0)
    second, held = world.new_holder()
    assert first.attach(held, "call") == (-1, 0)
    assert second.detach(held) == 1 and first.attach(held, "call") == (1, 2)


def test_readers_are_handed_over_one_by_one(world: World) -> None:
    first, second, third = world.client(), world.client(), world.client()
    one, two = first.share(), second.share()
    assert first.detach(one) == 1
    assert third.attach(two, "call") == (-1, 0)
    assert third.attach(one, "call", 60_000) == (2, 2)
    assert second.detach(two) == 1
    assert first.detach(one) == 2
    assert third.attach(two, "call two") == (2, 2)
    assert world.readers().keys() == {one, two}


def test_mark_of_an_attached_reader_lasts_as_long_as_its_lease(world: World) -> None:
    """A late copy of the DETACH must find it."""
    holder, second, third = world.client(), world.client(), world.client()
    token = holder.share()
    assert holder.detach(token) == 1
    assert second.attach(token, "call", 2_000) == (2, 2)
    assert second.extend_shared(token, 2 * TTL_MS, is_marked=True) == 2
    assert world.pttl(world.lock.i) > 2 * TTL_MS - 2_000
    assert holder.detach(token) == 2
    assert third.attach(token, "another call") == (-1, 0)


@pytest.mark.parametrize("is_reader", [False, True])
def test_release_of_a_detached_lease_still_works(world: World, is_reader: bool) -> None:
    holder = world.client()
    token = holder.share() if is_reader else holder.hold()
    assert holder.detach(token) == 1
    assert holder.release(token) == (1, 0)
    assert world.holder() is None


def test_hold_of_an_owner_can_be_detached(hashed: World) -> None:
    client, token = hashed.new_holder(owner="me")
    assert client.detach(token) == 1
    client.owner = "you"
    assert client.detach(token) == 0


def test_without_memory_a_lease_is_handed_over(world: World) -> None:
    holder, other = world.client(), world.client()
    token = holder.hold()
    with world.out_of_memory():
        assert holder.detach(token) == 1
        assert other.attach(token, "call") == (1, 2)


def test_without_the_right_to_mark_nothing_is_done(world: World) -> None:
    holder, other = world.client(), world.client()
    token = holder.hold()
    for missing in ("hset", "pexpire"):
        with world.user("~*", "&*", "+@all", f"-{missing}") as limited:
            with pytest.raises(RespError):
                holder.detach(token, connection=limited)
    assert other.attach(token, "call") == (-1, 0)
    assert holder.detach(token) == 1
    with world.user("~*", "&*", "+@all", "-hset") as limited:
        code = error_of(lambda: other.attach(token, "call", connection=limited))
        assert code in ("ERR", "NOPERM")
    assert other.attach(token, "call") == (1, 2)


@pytest.mark.parametrize("is_reader", [False, True])
def test_marks_of_the_past_do_not_pile_up(world: World, is_reader: bool) -> None:
    stays = world.client()
    if is_reader:
        stays.share(ttl_ms=60_000)
    for _ in range(100):
        holder, other = stays, stays
        token = holder.share() if is_reader else holder.hold()
        assert holder.detach(token) == 1
        assert other.attach(token, "call") == (2 if is_reader else 1, 2)
        other.release(token)
    assert world.admin.cmd("HLEN", world.lock.i) <= 34
