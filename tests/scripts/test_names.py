# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: locks with similar names share nothing, and a namespace is a whole right.
Method: two locks that collided under earlier key names."""

from __future__ import annotations

import pytest

from .harness import SHARED, Grant, Held, Lock, World, member_of

PAIRS = [("a", "{a}"), ("{a}b", "{{a}b}"), ("{}", "{{}}"), ("a", "A"), ("a}", "{a}}")]


def keys_of(lock: Lock) -> set[str]:
    return {lock.k, lock.q, lock.f, lock.i, lock.r, lock.w}


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("namespace", ["", "app:"])
def test_similar_names_share_no_key(one: str, other: str, namespace: str) -> None:
    first, second = Lock(namespace, one), Lock(namespace, other)
    ours, theirs = keys_of(first), keys_of(second)
    assert len(ours) == len(theirs) == 6 and not ours & theirs
    hashed = Lock(namespace, one, is_hash=True)
    assert keys_of(hashed) & ours == {first.k, first.f}, "the formats exclude each other"
    assert len(keys_of(hashed)) == 6 and not keys_of(hashed) & theirs


@pytest.mark.parametrize("name", ["a", "{a}", "{a}b", "a{}b", "}{", "{", "a}b{c}d"])
def test_all_keys_begin_with_the_namespace(name: str) -> None:
    for is_hash in (False, True):
        lock = Lock("app:", name, is_hash=is_hash)
        assert all(key.startswith("app:") for key in keys_of(lock))


def test_locks_a_and_braced_a_are_two_locks(world: World) -> None:
    # With one suffix for both they shared a queue, and a lock was granted twice.
    plain, braced = Lock("", "a"), Lock("", "{a}")
    first, waiter = world.client(plain), world.client(plain)
    stranger = world.client(braced)
    held, token = first.hold(), waiter.wait()
    assert isinstance(stranger.acquire(stranger.token()), Held)
    assert waiter.messages() == []
    assert world.admin.cmd("GET", "a").decode() == held
    assert first.release(held) == (2, 0)
    (grant,) = waiter.messages()
    assert isinstance(grant, Grant)
    assert world.admin.cmd("GET", "a").decode() == token
    assert world.admin.cmd("GET", "{a}").decode() != token


def test_queues_of_two_locks_are_apart(world: World) -> None:
    one, other = Lock("", "job"), Lock("", "{job}")
    holder, waiter = world.client(one), world.client(one)
    other_holder, other_waiter = world.client(other), world.client(other)
    held = holder.hold()
    other_holder.hold()
    other_waiter.wait()
    token = waiter.wait()
    assert world.admin.cmd("ZRANGE", one.q, 0, -1) == [member_of(token).encode()]
    assert holder.release(held) == (2, 0)
    assert other_waiter.messages() == []


@pytest.mark.parametrize(("one", "other"), PAIRS[:3])
def test_readers_of_two_locks_are_apart(world: World, one: str, other: str) -> None:
    first, second = Lock("", one), Lock("", other)
    reader, stranger = world.client(first), world.client(second)
    token, held = reader.share(), stranger.hold()
    assert reader.upgrade(token) != -1 and stranger.downgrade(held) == (1, 0)
    assert world.admin.cmd("GET", first.k).decode() == token
    assert world.admin.cmd("GET", second.k).decode() == SHARED
    assert world.admin.cmd("ZRANGE", second.r, 0, -1) == [held.encode()]
    assert world.admin.cmd("EXISTS", first.r) == 0


def test_holds_and_queues_of_two_locks_are_apart(world: World) -> None:
    one, other = Lock("", "a", is_hash=True), Lock("", "{a}", is_hash=True)
    first, waiter = world.client(one, "o"), world.client(one, "p")
    stranger = world.client(other, "o")
    held, behind, theirs = first.hold(), waiter.wait(), stranger.hold()
    assert stranger.release(theirs) == (1, 0) and waiter.messages() == []
    assert first.release(held) == (2, 0)
    assert world.admin.cmd("ZRANGE", one.r, 0, -1) == [f"{behind}p".encode()]
    assert world.admin.cmd("EXISTS", other.k, other.r, other.q) == 0
