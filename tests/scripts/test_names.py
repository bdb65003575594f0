# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: locks with similar names share nothing, and a namespace is a whole right.
Method: two locks that collided under earlier key names."""

from __future__ import annotations

import pytest

from .harness import Grant, Held, Lock, World, member_of

PAIRS = [("a", "{a}"), ("{a}b", "{{a}b}"), ("{}", "{{}}"), ("a", "A"), ("a}", "{a}}")]


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("namespace", ["", "app:"])
def test_similar_names_share_no_key(one: str, other: str, namespace: str) -> None:
    first, second = Lock(namespace, one), Lock(namespace, other)
    ours = {first.k, first.q, first.f, first.i}
    theirs = {second.k, second.q, second.f, second.i}
    assert len(ours) == len(theirs) == 4 and not ours & theirs


@pytest.mark.parametrize("name", ["a", "{a}", "{a}b", "a{}b", "}{", "{", "a}b{c}d"])
def test_all_keys_begin_with_the_namespace(name: str) -> None:
    lock = Lock("app:", name)
    assert all(key.startswith("app:") for key in (lock.k, lock.q, lock.f, lock.i))


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
