# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: INSPECT shows the whole lock and changes nothing. Method: every state, with and without
the parts that may be missing."""

from __future__ import annotations

from .harness import Busy, Held, World, member_of


def test_free_lock(world: World) -> None:
    now, kind, value, pttl, fence, count, waiters, info = world.inspect()
    assert abs(now * 1000 - world.now_us()) < 5_000_000
    assert (kind, value, pttl, fence, count, waiters, info) == (b"none", b"", -2, b"", 0, [], [])
    assert world.keys() == set()


def test_held_lock_with_waiters_and_description(world: World) -> None:
    holder, waiters = world.client(), [world.client() for _ in range(3)]
    token = holder.token()
    held = holder.acquire(token, lease_ms=20_000)
    holder.extend(token, 20_000, "host", "a")
    expected: list[bytes] = []
    for client in waiters:
        behind = client.token()
        reply = client.acquire(behind)
        assert isinstance(reply, Busy)
        expected += [member_of(behind).encode(), reply.ticket.encode()]
    _, kind, value, pttl, fence, count, listed, info = world.inspect()
    assert isinstance(held, Held)
    assert (kind, value, fence, count) == (b"string", token.encode(), held.fence.encode(), 3)
    assert 19_000 < pttl <= 20_000
    assert listed == expected
    assert info == [b"token", token.encode(), b"host", b"a"]
    assert world.inspect(2)[5:7] == [3, expected[:4]]
    assert world.inspect(0)[5:7] == [3, []]


def test_round_tickets_are_shown_with_all_digits(world: World) -> None:
    holder, waiter = world.client(), world.client()
    holder.hold()
    waiter.acquire(waiter.token(), ticket="1900000000000000")
    assert world.inspect()[6][1] == b"1900000000000000"


def test_at_most_256_waiters_are_listed(world: World) -> None:
    world.client().hold()
    world.enqueue_dead(300)
    reply = world.inspect(1000)
    assert reply[5] == 300 and len(reply[6]) == 512
    assert world.inspect(-1)[6] == []


def test_description_of_an_earlier_holder_is_not_shown(world: World) -> None:
    first, second = world.client(), world.client()
    token = first.hold()
    first.extend(token, 30_000, "host", "a")
    first.release(token)
    assert world.inspect()[7] == []
    second.hold()
    assert world.inspect()[7] == []


def test_strangers_value_is_cut(world: World) -> None:
    world.admin.cmd("SET", world.lock.k, b"\xff" * 1000, "PX", 5000)
    reply = world.inspect()
    assert (reply[1], reply[2]) == (b"string", b"\xff" * 256)


def test_other_format_is_shown_by_its_type(world: World) -> None:
    world.admin.cmd("HSET", world.lock.k, "owner", "1")
    world.admin.cmd("PEXPIRE", world.lock.k, 5000)
    reply = world.inspect()
    assert (reply[1], reply[2], reply[7]) == (b"hash", b"", [])


def test_inspect_writes_nothing(world: World) -> None:
    holder, dead = world.client(), world.client()
    token = holder.hold()
    holder.extend(token, 30_000, "host", "a")
    dead.wait_overdue()
    dead.die()
    # A user without any right to write can run it.
    with world.user("~*", "-@all", "+@read", "+evalsha", "+time", "+auth") as limited:
        lock = world.lock
        keys = [lock.k, lock.q, lock.f, lock.i, lock.r]
        reply = world.run("inspect", keys, 10, connection=limited)
    assert reply[5] == 1 and len(world.queue()) == 1
