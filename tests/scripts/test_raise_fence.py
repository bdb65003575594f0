# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: RAISE_FENCE makes the next owner's fence higher, and never lowers one.
Method: fences of another server, late copies, lost locks and lost fences."""

from __future__ import annotations

import pytest

from support.resp import RespError

from .harness import FENCE_STEP, FENCE_TTL_MS, Held, World, error_of, as_held

AHEAD = 8_000_000_000_000_000  # Of a server whose clock is decades ahead.


def fence_of(world: World) -> int:
    text = world.admin.cmd("GET", world.lock.f)
    assert len(text) == 16
    return int(text)


def test_fence_rises_and_the_next_owner_is_above_it(world: World) -> None:
    first, second = world.client(), world.client()
    token = first.hold()
    assert first.raise_fence(token, AHEAD) == 1
    assert fence_of(world) == AHEAD and world.keys() == {world.lock.k, world.lock.f}
    assert FENCE_TTL_MS - 5000 < world.pttl(world.lock.f) <= FENCE_TTL_MS
    first.release(token)
    held = second.acquire(second.token())
    assert isinstance(held, Held) and int(held.fence) == AHEAD + FENCE_STEP


def test_lower_fence_changes_nothing(world: World) -> None:
    client = world.client()
    token = client.token()
    held = as_held(client.acquire(token))
    for fence in (int(held.fence) - 1, int(held.fence)):
        assert client.raise_fence(token, f"{fence:016d}") == 1
        assert fence_of(world) == int(held.fence)
    assert client.raise_fence(token, int(held.fence) + 1) == 1
    assert fence_of(world) == int(held.fence) + 1


def test_late_copy_does_not_lower_a_later_fence(world: World) -> None:
    client, token = world.new_holder()
    assert client.raise_fence(token, AHEAD) == 1 and client.raise_fence(token, AHEAD + 7) == 1
    assert client.raise_fence(token, AHEAD) == 1 and fence_of(world) == AHEAD + 7


def test_late_copy_behind_the_release_writes_nothing(world: World) -> None:
    first, second = world.client(), world.client()
    token = first.hold()
    first.release(token)
    before = fence_of(world)
    assert first.raise_fence(token, AHEAD) == 0 and fence_of(world) == before
    held = second.acquire(second.token())
    assert first.raise_fence(token, AHEAD) == 0
    assert isinstance(held, Held) and fence_of(world) == int(held.fence)


def test_other_token_writes_nothing(world: World) -> None:
    holder, other = world.client(), world.client()
    held = holder.acquire(holder.token())
    assert other.raise_fence(other.token(), AHEAD) == 0
    assert isinstance(held, Held) and fence_of(world) == int(held.fence)


def test_lock_that_is_gone_leaves_no_key(world: World) -> None:
    client, token = world.new_holder()
    world.expire()
    world.admin.cmd("DEL", world.lock.f)
    assert client.raise_fence(token, AHEAD) == 0 and world.keys() == set()


def test_reader_writes_nothing(world: World) -> None:
    reader, token = world.new_reader()
    before = fence_of(world)
    assert reader.raise_fence(token, AHEAD) == 0 and fence_of(world) == before


@pytest.mark.parametrize("low", [None, "0", "12"])
def test_lost_or_low_fence_is_replaced(world: World, low: str | None) -> None:
    client, token = world.new_holder()
    world.admin.cmd("DEL", world.lock.f)
    if low is not None:
        world.admin.cmd("SET", world.lock.f, low, "PX", 5000)
    assert client.raise_fence(token, AHEAD) == 1 and fence_of(world) == AHEAD
    assert world.pttl(world.lock.f) > FENCE_TTL_MS - 5000


@pytest.mark.parametrize("spoilt", ["", "abc", "inf", "-1", "9223372036854775808"])
def test_spoilt_fence_is_left_to_an_operator(world: World, spoilt: str) -> None:
    client, token = world.new_holder()
    world.admin.cmd("SET", world.lock.f, spoilt, "PX", 5000)
    with pytest.raises(RespError, match="must be a whole number"):
        client.raise_fence(token, AHEAD)
    assert world.admin.cmd("GET", world.lock.f).decode() == spoilt


def test_lease_stays_as_it_is(world: World) -> None:
    client, token = world.new_holder(ttl_ms=5000)
    assert client.raise_fence(token, AHEAD) == 1
    assert 4000 < world.pttl() <= 5000 and world.holder() == token


def test_lock_of_another_type_is_not_ours(world: World) -> None:
    client = world.client()
    world.may_disagree = True
    world.put("HSET", world.lock.k, "a", "b", ms=5000)
    assert client.raise_fence(client.token(), AHEAD) == 0
    assert world.keys() == {world.lock.k}


def test_fence_of_another_type_is_an_error(world: World) -> None:
    client, token = world.new_holder()
    world.admin.cmd("DEL", world.lock.f)
    world.put("HSET", world.lock.f, "a", "b", ms=5000)
    # Before 7.0 the code stands within the message.
    assert error_of(lambda: client.raise_fence(token, AHEAD)) in ("WRONGTYPE", "ERR")
    assert world.admin.cmd("HGETALL", world.lock.f) == [b"a", b"b"]


@pytest.mark.parametrize("fence", ["", "abc"])
def test_no_number_is_an_error(world: World, fence: str) -> None:
    client, token = world.new_holder()
    before = fence_of(world)
    assert error_of(lambda: client.raise_fence(token, fence)) == "ERR"
    assert fence_of(world) == before and world.holder() == token
