# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: VOTE takes only a lock that ACQUIRE without a member would take at once, and UNVOTE gives
up only what RELEASE would free without serving a waiter; else they write nothing. A no of theirs is
one that ACQUIRE and RELEASE would give.
Method: each state in which another may have, wait for or be promised the lock."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.resp import Argument

from .harness import LEASE_MS, Busy, Client, Held, World

State = Callable[[World], None]


def vote(client: Client, token: str, *, lease_ms: int = LEASE_MS) -> int:
    return _brief(client, "vote", token, lease_ms)


def unvote(client: Client, token: str) -> int:
    return _brief(client, "unvote", token)


def _brief(client: Client, name: str, *args: Argument) -> int:
    lock = client.lock
    result = client.world.run(lock.script(name), [lock.k, lock.q, lock.w], *args)
    assert isinstance(result, int)
    return result


def snapshot(world: World) -> dict[str, bytes]:
    return {key: world.admin.cmd("DUMP", key) for key in world.keys()}


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
    world.admin.cmd("SET", world.lock.k, "of another library", "PX", LEASE_MS)


def of_another_type(world: World) -> None:
    world.may_disagree = True
    world.admin.cmd("HSET", world.lock.k, "owner", 1)
    world.admin.cmd("PEXPIRE", world.lock.k, LEASE_MS)


def test_free_lock_is_taken_for_the_lease_and_given_up(world: World) -> None:
    client = world.client()
    token = client.token()
    assert vote(client, token, lease_ms=5000) == 1
    assert world.holder() == token and 4000 < world.pttl() <= 5000
    assert world.keys() == {world.lock.k}, "no fence, and nothing else"
    assert unvote(client, token) == 1 and world.keys() == set()


@pytest.mark.parametrize(
    "state", [read, waited_for, left_to_others, marked, foreign, of_another_type]
)
def test_lock_that_is_not_simply_free_is_left_alone(world: World, state: State) -> None:
    client = world.client()
    state(world)
    before = snapshot(world)
    token = client.token()
    assert vote(client, token) == 0
    assert unvote(client, token) in (0, -1)
    assert snapshot(world) == before


def test_lock_of_another_token_is_refused_as_by_acquire(world: World) -> None:
    client, token = world.client(), world.client().token()
    held(world)
    before = snapshot(world)
    lock = client.lock
    refused = world.run(lock.script("vote"), [lock.k, lock.q, lock.w], token, LEASE_MS)
    asked = world.run(
        lock.script("acquire"),
        [lock.k, lock.q, lock.f, lock.r, lock.w],
        token,
        LEASE_MS,
        "",
        "",
        world.prefix,
    )
    assert isinstance(refused, list) and isinstance(asked, list)
    assert refused[0] == 0 and 0 < refused[1] <= LEASE_MS
    assert [refused[0], *refused[3:]] == [asked[0], *asked[3:]]
    assert unvote(client, token) == -1
    assert snapshot(world) == before


@pytest.mark.parametrize("state", [marked, left_to_others])
def test_lock_in_whose_turn_others_are_is_left_to_release(world: World, state: State) -> None:
    client = world.client()
    token = client.token()
    assert vote(client, token) == 1
    state(world)
    before = snapshot(world)
    assert unvote(client, token) == 0 and snapshot(world) == before


def test_waiters_are_left_to_release_which_serves_them(world: World) -> None:
    client, waiter = world.client(), world.client()
    token = client.token()
    assert vote(client, token) == 1
    waiting = waiter.wait()
    assert unvote(client, token) == 0 and world.holder() == token
    assert client.release(token)[0] == 2 and world.holder() == waiting


def test_repetition_changes_nothing(world: World) -> None:
    client = world.client()
    token = client.token()
    assert vote(client, token, lease_ms=20_000) == 1
    assert vote(client, token, lease_ms=5000) == 0
    assert world.pttl() > 15_000
    assert isinstance(client.try_acquire(token), Held), "ACQUIRE says that it is held"
    assert unvote(client, token) == 1 and unvote(client, token) == 0


def test_vote_is_a_hold_like_any_other(world: World) -> None:
    client, other = world.client(), world.client()
    token = client.token()
    assert vote(client, token) == 1
    assert isinstance(other.try_acquire(other.token()), Busy)
    assert client.extend(token, 60_000) == 1 and world.pttl() > LEASE_MS
    assert client.release(token)[0] == 1 and world.keys() == set()


def test_fence_of_the_next_owner_is_above_all_before(world: World) -> None:
    client, other = world.client(), world.client()
    first = other.acquire(other.token())
    assert isinstance(first, Held)
    world.admin.cmd("DEL", world.lock.k)
    token = client.token()
    assert vote(client, token) == 1 and unvote(client, token) == 1
    second = other.acquire(other.token())
    assert isinstance(second, Held) and int(second.fence) > int(first.fence)


def test_vote_of_who_was_forced_out_is_not_given_up(world: World) -> None:
    client, other = world.client(), world.client()
    token = client.token()
    assert vote(client, token) == 1
    world.admin.cmd("DEL", world.lock.k)
    assert unvote(client, token) == 0
    taken = other.token()
    assert vote(other, taken) == 1
    assert unvote(client, token) == -1 and world.holder() == taken
