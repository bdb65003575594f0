# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: Redisson's waiters learn of a free lock, and get it every other time.
Method: a subscriber where they would wait; they are played by the commands of their scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.resp import Connection

from .harness import QUEUE_TTL_MS, Busy, Held, Lock, World, eventually

WINDOW_MS = 5000
TURN_MS = 10
TURN_MS = 10


def channel_of(world: World) -> str:
    key = world.lock.k
    return "redisson_lock__channel:" + (key if "{" in key else "{" + key + "}")


@contextmanager
def redisson(world: World) -> Iterator[Connection]:
    """A waiter of theirs."""
    with world.server.connect(protocol=3) as connection:
        connection.send("SUBSCRIBE", channel_of(world))
        assert connection.push(5.0) is not None
        yield connection


def heard(connection: Connection) -> list[bytes]:
    connection.cmd("PING")
    found = [push[2] for push in connection.pushes]
    connection.pushes.clear()
    return found


@pytest.mark.parametrize("name", ["orders", "{orders}", "a{b}c", "a{b", "b}"])
def test_free_lock_is_published_where_they_wait(hashed: World, name: str) -> None:
    hashed.lock = Lock("app:", name, is_hash=True)
    client = hashed.client(owner="o")
    tokens = [client.hold(), client.hold()]
    with redisson(hashed) as theirs:
        assert client.release(tokens[0]) == (0, 0) and heard(theirs) == []
        assert client.release(tokens[1]) == (1, 0) and heard(theirs) == [b"0"]
        assert client.release(tokens[1]) == (-1, 0) and heard(theirs) == []


def test_lock_that_is_handed_on_is_not_published(hashed: World) -> None:
    client, held = hashed.new_holder(owner="o")
    waiter, _ = hashed.new_waiter(owner="p")
    with hashed.server.connect(protocol=3) as theirs:
        # One that waits by a pattern is none of Redisson's.
        theirs.send("PSUBSCRIBE", "redisson_lock__channel:*")
        assert theirs.push(5.0) is not None
        assert client.release(held) == (2, 0) and heard(theirs) == []


def test_forced_release_is_published(hashed: World) -> None:
    client, _ = hashed.new_holder(owner="o")
    with redisson(hashed) as theirs:
        assert hashed.force_release() == (1, 0) and heard(theirs) == [b"0"]
        assert hashed.force_release() == (0, 0) and heard(theirs) == []


def test_their_turn_comes_after_each_of_ours_when_they_wait(hashed: World) -> None:
    client, held = hashed.new_holder(owner="o")
    waiter, behind = hashed.new_waiter(owner="p")
    with redisson(hashed) as theirs:
        assert client.release_with_turn(held, 1, WINDOW_MS) == (1, 0)
        assert heard(theirs) == [b"0"]
        assert hashed.owners() == {}
        assert hashed.admin.cmd("GET", hashed.lock.w).endswith(b" 5000")
        assert 0 < hashed.pttl(hashed.lock.w) <= QUEUE_TTL_MS
        assert waiter.was_told(behind, 0)
        for token in (behind, waiter.token()):
            reply = waiter.acquire(token)
            assert isinstance(reply, Busy) and reply.kind == "none" and 0 < reply.pttl <= WINDOW_MS
        assert hashed.owners() == {}


def test_their_turn_is_short_and_leaves_no_mark(hashed: World) -> None:
    client, held = hashed.new_holder(owner="o")
    waiter, behind = hashed.new_waiter(owner="p")
    with redisson(hashed):
        assert client.release(held) == (1, 0)
        # No key of ours is needed for longer.
        assert hashed.pttl(hashed.lock.w) <= TURN_MS
        assert waiter.was_told(behind, TURN_MS)
    eventually(lambda: hashed.admin.cmd("GET", hashed.lock.w) is None)
    assert isinstance(waiter.acquire(behind), Held)


def test_their_turn_keeps_the_count(hashed: World) -> None:
    client, held = hashed.new_holder(owner="o")
    hashed.admin.cmd("SET", hashed.lock.w, "3 1 0 0", "PX", 60_000)
    with redisson(hashed):
        assert client.release(held) == (1, 0)
    count, missed, _, length = hashed.admin.cmd("GET", hashed.lock.w).split()
    assert (count, missed, length) == (b"4", b"1", b"10") and hashed.pttl(hashed.lock.w) > 60_000


def test_their_lock_ends_the_window(hashed: World) -> None:
    client, held = hashed.new_holder(owner="o")
    waiter, behind = hashed.new_waiter(owner="p")
    with redisson(hashed):
        client.release_with_turn(held, 1, WINDOW_MS)
    hashed.admin.cmd("HINCRBY", hashed.lock.k, "uuid:1", 1)
    hashed.admin.cmd("PEXPIRE", hashed.lock.k, 30_000)
    reply = waiter.acquire(behind)
    assert isinstance(reply, Busy) and (reply.holder, reply.kind) == (b"uuid:1", "hash")
    assert hashed.admin.cmd("GET", hashed.lock.w).startswith(b"0 0 ")
    hashed.admin.cmd("DEL", hashed.lock.k)
    assert isinstance(waiter.acquire(behind), Held)


def test_unused_turn_ends_by_itself(hashed: World) -> None:
    client, held = hashed.new_holder(owner="o")
    with redisson(hashed):
        client.release_with_turn(held, 1, 30)
    token = client.token()
    eventually(lambda: isinstance(client.acquire(token), Held))
    assert hashed.owners() == {"o": 1}


def test_no_window_opens_when_none_of_them_waits(hashed: World) -> None:
    client, held = hashed.new_holder(owner="o")
    waiter, behind = hashed.new_waiter(owner="p")
    assert client.release_with_turn(held, 0, WINDOW_MS) == (2, 0)
    assert hashed.owners() == {"p": 1} and hashed.admin.cmd("GET", hashed.lock.w) is None
    assert waiter.release_with_turn(behind, 0, WINDOW_MS) == (1, 0)
    assert hashed.admin.cmd("GET", hashed.lock.w) is None


def test_hold_that_is_not_the_last_opens_no_window(hashed: World) -> None:
    client = hashed.client(owner="o")
    tokens = [client.hold(), client.hold()]
    with redisson(hashed) as theirs:
        assert client.release_with_turn(tokens[0], 1, WINDOW_MS) == (0, 0)
        assert hashed.owners() == {"o": 1} and heard(theirs) == []
        assert hashed.admin.cmd("GET", hashed.lock.w) is None
        assert client.release_with_turn(client.token(), 1, WINDOW_MS) == (-1, 0)
        assert hashed.owners() == {"o": 1} and hashed.admin.cmd("GET", hashed.lock.w) is None


def test_owner_takes_its_lock_again_though_they_wait(hashed: World) -> None:
    client, _ = hashed.new_holder(owner="o")
    hashed.admin.cmd("SET", hashed.lock.w, "w", "PX", 5000)
    reply = client.acquire(client.token())
    assert isinstance(reply, Held) and reply.count == 2


def test_release_with_turn_works_without_memory(hashed: World) -> None:
    client, held = hashed.new_holder(owner="o")
    with redisson(hashed) as theirs, hashed.out_of_memory():
        assert client.release_with_turn(held, 1, WINDOW_MS) == (1, 0)
        assert heard(theirs) == [b"0"]
    assert hashed.owners() == {}


def test_release_frees_without_the_right_to_look_who_waits(hashed: World) -> None:
    # An error in the middle would leave the hold gone and the key there.
    client, held = hashed.new_holder(owner="o")
    with hashed.user("~*", "&*", "+@all", "-pubsub") as limited:
        client.connection.close()
        client.connection = limited
        assert client.release_with_turn(held, 0, WINDOW_MS) == (1, 0)
    assert hashed.keys() == {hashed.lock.f}


def test_release_frees_without_the_right_to_publish_there(hashed: World) -> None:
    client, held = hashed.new_holder(owner="o")
    with hashed.user("~*", "resetchannels", f"&{client.channel}", "+@all") as limited:
        assert client.release(held, connection=limited) == (1, 0)
    assert hashed.keys() == {hashed.lock.f}
