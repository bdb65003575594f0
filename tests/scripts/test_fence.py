# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: fences rise with every change of the owner, whatever happens to F and to the clock.
Method: every way to become the owner, with F lost, ahead and spoilt."""

from __future__ import annotations

import pytest
from support.resp import Argument

from .harness import FENCE_STEP, FENCE_TTL_MS, Busy, Grant, Held, World


def fence_of(world: World) -> str:
    fence: str = world.admin.cmd("GET", world.lock.f).decode()
    return fence


def test_fence_is_the_servers_time_in_microseconds(world: World) -> None:
    client = world.client()
    before = world.now_us()
    held = client.acquire(client.token())
    assert isinstance(held, Held)
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
    world.kick()
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
        keys: list[Argument] = [4, *world.lock.keys, client.token()]
        commands.append(["EVALSHA", world.sha["acquire"], *keys, 5000, "", "", world.prefix])
        commands.append(["EVALSHA", world.sha["release"], *keys, world.prefix])
    replies = client.connection.pipe(commands)
    fences = [int(reply[1]) for reply in replies[::2]]
    assert all(reply[0] == 1 for reply in replies)
    assert all(b >= a + FENCE_STEP for a, b in zip(fences, fences[1:]))


@pytest.mark.parametrize("spoilt", ["", "abc", "12"])
def test_spoilt_fence_key_is_replaced(world: World, spoilt: str) -> None:
    client = world.client()
    world.admin.cmd("SET", world.lock.f, spoilt, "PX", 5000)
    held = client.acquire(client.token())
    assert isinstance(held, Held) and fence_of(world) == held.fence


def test_fence_survives_the_lease_and_ends_by_itself(world: World) -> None:
    client = world.client()
    client.release(client.hold(lease_ms=1000))
    assert world.keys() == {world.lock.f}
    assert FENCE_TTL_MS - 5000 < world.pttl(world.lock.f) <= FENCE_TTL_MS


def test_refused_acquire_leaves_the_fence_alone(world: World) -> None:
    holder, other = world.client(), world.client()
    held = holder.acquire(holder.token())
    other.wait()
    other.try_acquire(other.token())
    assert isinstance(held, Held) and fence_of(world) == held.fence
