# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: VOTE takes a lock that is simply free, without a fence, and is ACQUIRE in any other case.
Method: each state in which another may have, wait for or be promised the lock, twice: the reply and
the keys that VOTE leaves are those that ACQUIRE leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.resp import Argument

from .harness import TTL_MS, Busy, Client, Held, World, as_held

State = Callable[[World], None]


def ask(client: Client, script: str, token: str, *, ttl_ms: int = TTL_MS) -> Any:
    lock = client.lock
    args: list[Argument] = [token, ttl_ms, "", "", client.world.prefix]
    return client.world.run(lock.script(script), [*lock.keys, lock.w], *args)


def vote(client: Client, token: str, *, ttl_ms: int = TTL_MS) -> Any:
    return ask(client, "vote", token, ttl_ms=ttl_ms)


def held(world: World) -> None:
    world.client().hold()


def read(world: World) -> None:
    world.client().share()


def waited_for(world: World) -> None:
    """K has run out, and the waiter has not looked yet."""
    world.client().hold()
    world.client().wait()
    world.admin.cmd("DEL", world.lock.k)


def left_to_others(world: World) -> None:
    world.admin.cmd("SET", world.lock.w, f"0 0 {world.now_us() // 1000} 60000", "PX", 60_000)


def marked(world: World) -> None:
    world.admin.cmd("SET", world.lock.w, f"0 0 {world.now_us() // 1000} 0", "PX", 60_000)


def foreign(world: World) -> None:
    world.admin.cmd("SET", world.lock.k, "of another library", "PX", TTL_MS)


def of_another_type(world: World) -> None:
    world.may_disagree = True
    world.put("HSET", world.lock.k, "owner", 1, ms=TTL_MS)


def test_free_lock_is_taken_for_the_lease(world: World) -> None:
    client = world.client()
    token = client.token()
    assert vote(client, token, ttl_ms=5000) == 1
    assert world.holder() == token and 4000 < world.pttl() <= 5000
    assert world.keys() == {world.lock.k}, "no fence, and nothing else"
    assert client.release(token)[0] == 1 and world.keys() == set()


def outcome(world: World, state: State, script: str) -> tuple[Any, set[str], bytes]:
    """What the script says, without times, and what is left."""
    world.admin.cmd("FLUSHALL")
    state(world)
    reply = ask(world.client(), script, "t" * 32)
    said = [reply[0], *reply[3:]] if isinstance(reply, list) else reply
    return said, world.keys(), world.admin.cmd("TYPE", world.lock.k)


@pytest.mark.parametrize(
    "state", [held, read, waited_for, left_to_others, marked, foreign, of_another_type]
)
def test_lock_that_is_not_simply_free_is_left_to_acquire(world: World, state: State) -> None:
    said, keys, kind = outcome(world, state, "vote")
    assert isinstance(said, list)
    asked = outcome(world, state, "acquire")
    assert len(said) == len(asked[0])
    assert (said[0], keys, kind) == (asked[0][0], *asked[1:])


def test_repetition_changes_nothing(world: World) -> None:
    client = world.client()
    token = client.token()
    assert vote(client, token, ttl_ms=20_000) == 1
    late = vote(client, token, ttl_ms=5000)
    assert isinstance(late, list) and late[0] == 1, "it is held"
    assert world.pttl() > 15_000 and world.holder() == token
    assert isinstance(client.try_acquire(token), Held)


def test_vote_is_a_hold_like_any_other(world: World) -> None:
    client, other = world.client(), world.client()
    token = client.token()
    assert vote(client, token) == 1
    assert isinstance(other.try_acquire(other.token()), Busy)
    assert client.extend(token, 60_000) == 1 and world.pttl() > TTL_MS
    waiting = other.wait()
    assert client.release(token)[0] == 2 and world.holder() == waiting


def test_fence_of_the_next_owner_is_above_all_before(world: World) -> None:
    client, other = world.client(), world.client()
    first = as_held(other.acquire(other.token()))
    world.admin.cmd("DEL", world.lock.k)
    token = client.token()
    assert vote(client, token) == 1 and client.release(token)[0] == 1
    second = other.acquire(other.token())
    assert isinstance(second, Held) and int(second.fence) > int(first.fence)


def test_vote_of_who_was_forced_out_is_not_given_up(world: World) -> None:
    client, other = world.client(), world.client()
    token = client.token()
    assert vote(client, token) == 1
    world.admin.cmd("DEL", world.lock.k)
    taken = other.token()
    assert vote(other, taken) == 1
    assert client.release(token)[0] == -1 and world.holder() == taken
