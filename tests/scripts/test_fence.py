# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: fences rise with every change of the owner, whatever happens to F and to the clock.
Method: every way to become the owner, with F lost, ahead and spoilt."""

from __future__ import annotations

import pytest
from support.resp import Argument, RespError

from .harness import (
    FENCE_STEP,
    FENCE_TTL_MS,
    REFUSED,
    TURN,
    Busy,
    Grant,
    Head,
    Held,
    World,
    rid_of,
    as_held,
)


def fence_of(world: World) -> str:
    fence: str = world.admin.cmd("GET", world.lock.f).decode()
    return fence


def test_fence_is_the_servers_time_in_microseconds(world: World) -> None:
    client = world.client()
    before = world.now_us()
    held = as_held(client.acquire(client.token()))
    assert before <= int(held.fence) <= world.now_us()


def test_fence_rises_over_every_way_to_own(world: World) -> None:
    first, second, third = world.client(), world.client(), world.client()
    fences = []

    def note(reply: Held | Busy) -> None:
        assert isinstance(reply, Held)
        fences.append(reply.fence)

    token = first.token()
    note(first.acquire(token))
    behind, last = second.wait(), third.wait()
    first.release(token)  # By push, from a release.
    (grant,) = second.messages()
    assert isinstance(grant, Grant)
    fences.append(grant.fence)
    world.expire()
    note(third.acquire(last))  # By reply, from the queue.
    world.force_release()
    fences.append(fence_of(world))
    note(first.try_acquire(first.token()))
    second.wait()
    second.die()
    world.expire()
    note(third.try_acquire(third.token()))  # Behind a dead one.
    second.subscribe()
    behind = second.wait()
    world.expire()
    world.serve_queue()
    (grant,) = second.messages()[-1:]
    assert isinstance(grant, Grant)
    fences.append(grant.fence)
    assert second.release(behind) == (1, 0)
    assert len(fences) == 7
    assert all(int(b) >= int(a) + FENCE_STEP for a, b in zip(fences, fences[1:]))


def test_fence_rises_by_a_step_when_the_key_is_ahead_of_the_clock(world: World) -> None:
    # As after a backward step of the clock. The 31 numbers between are the holder's own.
    holder, waiter = world.client(), world.client()
    ahead = 9_000_000_000_000_000
    world.admin.cmd("SET", world.lock.f, ahead, "PX", 5000)
    token = holder.token()
    held = holder.acquire(token)
    assert isinstance(held, Held) and int(held.fence) == ahead + FENCE_STEP
    assert world.pttl(world.lock.f) > FENCE_TTL_MS - 5000
    waiter.wait()
    holder.release(token)
    (grant,) = waiter.messages()
    assert isinstance(grant, Grant) and int(grant.fence) == ahead + 2 * FENCE_STEP
    world.force_release()
    assert int(fence_of(world)) == ahead + 3 * FENCE_STEP


def test_fence_is_at_least_a_step_above_one_of_this_moment(world: World) -> None:
    client = world.client()
    last = world.now_us() + 20
    world.admin.cmd("SET", world.lock.f, last, "PX", 5000)
    held = client.acquire(client.token())
    assert isinstance(held, Held) and int(held.fence) >= last + FENCE_STEP


def test_fence_rises_when_the_key_was_lost(world: World) -> None:
    client = world.client()
    fences = []
    for _ in range(5):
        token = client.token()
        held = client.acquire(token)
        assert isinstance(held, Held)
        fences.append(held.fence)
        client.release(token)
        world.admin.cmd("DEL", world.lock.f)
    assert fences == sorted(set(fences))


def test_fast_cycles_in_one_pipeline_still_rise(world: World) -> None:
    # Faster than a step of the clock allows.
    client = world.client()
    commands: list[list[Argument]] = []
    for _ in range(500):
        keys: list[Argument] = [5, *world.lock.keys, world.lock.w, client.token()]
        commands.append(["EVALSHA", world.sha["acquire"], *keys, 5000, "", "", world.prefix])
        commands.append(["EVALSHA", world.sha["release"], *keys, world.prefix, *TURN])
    replies = client.connection.pipe(commands)
    fences = [int(reply[1]) for reply in replies[::2]]
    assert all(reply[0] == 1 for reply in replies)
    assert all(b >= a + FENCE_STEP for a, b in zip(fences, fences[1:]))


@pytest.mark.parametrize("small", ["0", "12", "0000000000000031"])
def test_small_fence_key_is_raised_to_the_clock(world: World, small: str) -> None:
    client = world.client()
    world.admin.cmd("SET", world.lock.f, small, "PX", 5000)
    held = client.acquire(client.token())
    assert isinstance(held, Held) and fence_of(world) == held.fence
    assert int(held.fence) > 10**15


SPOILT = (
    "",
    "abc",
    "-1",
    "1.5",
    "inf",
    "nan",
    "1e400",
    "0x10",
    " 12",
    "9007199254740960",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
)


def spoil(world: World, value: str) -> None:
    world.admin.cmd("SET", world.lock.f, value, "PX", 5000)


@pytest.mark.parametrize("value", SPOILT)
def test_nothing_is_granted_by_a_spoilt_fence_key(world: World, value: str) -> None:
    client = world.client()
    spoil(world, value)
    for ask in (client.acquire, client.try_acquire, client.read):
        with pytest.raises(RespError, match="fence key app:.* must be a whole number"):
            ask(client.token())
    assert fence_of(world) == value and world.holder() is None and world.queue() == []


@pytest.mark.parametrize("value", ["inf", "9223372036854775808"])
def test_a_release_beside_a_spoilt_fence_key_frees_the_lock(world: World, value: str) -> None:
    holder, token = world.new_holder()
    waiter, behind = world.new_waiter()
    spoil(world, value)
    assert holder.release(token) == (1, REFUSED)
    assert world.holder() is None and world.queue() == [waiter.member(behind)]
    assert waiter.messages() == [Head(rid_of(behind), 0)]  # And its own ACQUIRE says why.
    with pytest.raises(RespError, match="must be a whole number"):
        waiter.acquire(behind)
    world.admin.cmd("DEL", world.lock.f)
    assert isinstance(waiter.acquire(behind), Held)


def test_force_release_beside_a_spoilt_fence_key_changes_nothing(world: World) -> None:
    token = world.client().hold()
    spoil(world, "-5")
    with pytest.raises(RespError, match="must be a whole number"):
        world.force_release(token)
    assert world.holder() == token and fence_of(world) == "-5"


def test_holder_continues_beside_a_spoilt_fence_key(world: World) -> None:
    holder, reader = world.client(), world.client()
    token = holder.hold()
    spoil(world, "nan")
    assert holder.extend(token) == 1
    assert holder.downgrade(token)[0] == 1
    with pytest.raises(RespError, match="must be a whole number"):
        reader.read(reader.token())
    with pytest.raises(RespError, match="must be a whole number"):
        holder.upgrade(token)
    assert world.readers().keys() == {token}
    assert holder.release(token) == (1, 0)


def test_an_owner_enters_no_second_time_beside_a_spoilt_fence_key(hashed: World) -> None:
    client, token = hashed.new_holder(owner="me")
    spoil(hashed, "1e400")
    with pytest.raises(RespError, match="must be a whole number"):
        client.acquire(client.token())
    assert hashed.owners() == {"me": 1} and client.release(token) == (1, 0)


def test_fence_key_of_another_type_grants_nothing(world: World) -> None:
    holder, token = world.new_holder()
    waiter, behind = world.new_waiter()
    world.admin.cmd("DEL", world.lock.f)
    world.put("RPUSH", world.lock.f, "x", ms=5000)
    assert holder.release(token) == (1, REFUSED)
    assert world.holder() is None and len(world.queue()) == 1
    with pytest.raises(RespError, match="WRONGTYPE"):
        waiter.acquire(behind)


def test_fence_survives_the_lease_and_ends_by_itself(world: World) -> None:
    client = world.client()
    client.release(client.hold(ttl_ms=1000))
    assert world.keys() == {world.lock.f}
    assert FENCE_TTL_MS - 5000 < world.pttl(world.lock.f) <= FENCE_TTL_MS


def test_refused_acquire_leaves_the_fence_alone(world: World) -> None:
    holder, other = world.client(), world.client()
    held = holder.acquire(holder.token())
    other.wait()
    other.try_acquire(other.token())
    assert isinstance(held, Held) and fence_of(world) == held.fence
