# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: INSPECT shows the whole lock and changes nothing. Method: every state, with and without
the parts that may be missing."""

from __future__ import annotations

from .harness import Busy, World, member_of, as_held, as_busy


def test_free_lock(world: World) -> None:
    now, kind, value, pttl, fence, count, waiters, info, *shared = world.inspect()
    assert abs(now * 1000 - world.now_us()) < 5_000_000
    assert shared == [0, [], 0, [], []]
    assert (kind, value, pttl, fence, count, waiters, info) == (b"none", b"", -2, b"", 0, [], [])
    assert world.keys() == set()


def test_held_lock_with_waiters_and_description(world: World) -> None:
    holder, waiters = world.client(), [world.client() for _ in range(3)]
    token = holder.token()
    held = as_held(holder.acquire(token, ttl_ms=20_000))
    holder.extend(token, 20_000, "who", "a")
    expected: list[bytes] = []
    for client in waiters:
        behind = client.token()
        reply = client.acquire(behind)
        assert isinstance(reply, Busy)
        expected += [member_of(behind).encode(), reply.ticket.encode()]
    _, kind, value, pttl, fence, count, listed, info, *shared = world.inspect()
    assert (kind, value, fence, count) == (b"string", token.encode(), held.fence.encode(), 3)
    assert 19_000 < pttl <= 20_000
    assert listed == expected
    assert info == [b"token", token.encode(), b"who", b"a"]
    assert shared == [0, [], 0, [], []]
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


def test_huge_texts_of_others_are_cut(world: World) -> None:
    """A reply above 1 MiB would end the connection."""
    huge = "y" * (1 << 20)
    holder = world.client()
    token = holder.token()
    holder.acquire(token)
    holder.extend(token, 30_000, "who", huge, "label", huge, "more", huge)
    world.admin.cmd("SET", world.lock.f, huge, "PX", 60_000)
    pairs = [part for i in range(256) for part in (str(i), f"{i}" + "z" * 9000)]
    world.put("ZADD", world.lock.q, *pairs, ms=60_000)
    reply = world.inspect()
    assert reply[7] == [b"token", token.encode(), b"who", b"y" * 256, b"label", b"y" * 256]
    assert len(reply[4]) == 64 and reply[5] == 256
    assert sum(len(text) for text in reply[6]) < 256 * 400


def test_description_of_an_earlier_holder_is_not_shown(world: World) -> None:
    first, token = world.new_holder()
    first.extend(token, 30_000, "host", "a")
    first.release(token)
    assert world.inspect()[7] == []
    world.client().hold()
    assert world.inspect()[7] == []


def test_strangers_value_is_cut(world: World) -> None:
    world.admin.cmd("SET", world.lock.k, b"\xff" * 1000, "PX", 5000)
    reply = world.inspect()
    assert (reply[1], reply[2]) == (b"string", b"\xff" * 256)


def test_other_format_is_shown_by_its_type(world: World) -> None:
    world.put("HSET", world.lock.k, "owner", "1", ms=5000)
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


def test_readers_are_listed_with_the_end_of_each(world: World) -> None:
    first, second, writer, ended = (world.client() for _ in range(4))
    expected = [first.share(ttl_ms=20_000), second.share(ttl_ms=40_000)]
    world.end_lease(ended.share(ttl_ms=90_000))
    behind = writer.wait()
    reply = world.inspect()
    assert (reply[1], reply[2]) == (b"string", b"rl:shared") and 39_000 < reply[3] <= 40_000
    assert (reply[5], reply[8], reply[10]) == (1, 2, 0)
    assert [token.decode() for token in reply[9][::2]] == expected
    ends = [int(end) - reply[0] for end in reply[9][1::2]]
    assert 19_000 < ends[0] <= 20_000 and 39_000 < ends[1] <= 40_000
    assert reply[6][0].decode() == member_of(behind)
    assert world.inspect(1)[8:10] == [2, reply[9][:2]] and world.inspect(0)[8:10] == [2, []]


def test_upgrade_is_shown_at_the_head_with_its_ticket(world: World) -> None:
    first, token = world.new_reader()
    world.client().share()
    world.client().wait()
    reply = as_busy(first.upgrade(token))
    assert world.inspect()[6][:2] == [first.member(token, "u").encode(), reply.ticket.encode()]


def test_owner_and_its_holds_are_shown(hashed: World) -> None:
    client = hashed.client(owner="worker 7")
    tokens = [client.hold(ttl_ms=20_000), client.hold(ttl_ms=40_000)]
    other, _ = hashed.new_waiter(owner="worker 8")
    reply = hashed.inspect()
    assert (reply[1], reply[2], reply[5]) == (b"hash", b"worker 7", 1)
    assert 39_000 < reply[3] <= 40_000
    assert (reply[8], reply[10]) == (2, 2)
    assert [token.decode() for token in reply[9][::2]] == tokens
    assert reply[6][0].decode().endswith("worker 8")


def test_holds_of_an_earlier_owner_are_not_shown(hashed: World) -> None:
    hashed.client(owner="ours").hold()
    hashed.admin.cmd("DEL", hashed.lock.k)
    hashed.put("HSET", hashed.lock.k, "theirs:1", 3, ms=5000)
    reply = hashed.inspect()
    assert (reply[2], reply[8:]) == (b"theirs:1", [0, [], 3])


def test_fields_of_another_library_are_no_owner(hashed: World) -> None:
    hashed.put("HSET", hashed.lock.k, "mode", "read", "theirs:1", 1, ms=5000)
    reply = hashed.inspect()
    assert (reply[1], reply[2], reply[8:]) == (b"hash", b"", [0, [], 0])
