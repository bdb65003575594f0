# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the release of a flight stores its value only for the holder, and notifies the waiters; a
waiter that no message reaches gets the lock in its turn. Method: one request at a time."""

from __future__ import annotations

from .harness import NEVER, NO_LIMIT, PROVISIONAL_MS, Client, Grant, Told, World, rid_of

VALUE = "v0000000000000007body"


def store(world: World, token: str, value: str = VALUE, ms: int = 60_000) -> tuple[int, int]:
    keys = [*world.lock.keys, world.lock.w, world.lock.v]
    result, _, flags = world.run("release", keys, token, world.prefix, "v", value, ms, *NEVER)
    return int(result), int(flags)


def waits_for_value(client: Client, polls: bool = False) -> str:
    """Queue as a flight does; the token."""
    world, token = client.world, client.token()
    provisional = f"+{PROVISIONAL_MS:04d}" if polls else f"{PROVISIONAL_MS:05d}"
    member = f"{token}v{provisional}{NO_LIMIT:013d}"
    reply = world.run(
        "acquire", world.lock.keys, token, 30_000, member, "", world.prefix,
        connection=client.connection,
    )
    assert reply[0] == 0
    return token


def value(world: World) -> str | None:
    found = world.admin.cmd("GET", world.lock.v)
    return None if found is None else found.decode()


def test_the_holder_stores_the_value(world: World) -> None:
    client, token = world.new_holder()
    assert store(world, token) == (1, 0)
    assert value(world) == VALUE and 0 < world.pttl(world.lock.v) <= 60_000
    assert world.holder() is None


def test_a_late_release_stores_the_value_until_its_end(world: World) -> None:
    client, token = world.new_holder()
    now = world.now_us() // 1000
    assert store(world, token, ms=now + 5_000) == (1, 0)
    assert 0 < world.pttl(world.lock.v) <= 5_000
    client, token = world.new_holder()
    waiter = world.client()
    its = waits_for_value(waiter)
    assert store(world, token, ms=now - 1) == (1, 0) and value(world) is None
    assert waiter.messages() == [Told(rid_of(its))], "it acquires again"


def test_nobody_else_stores_one(world: World) -> None:
    first, token = world.new_holder()
    world.expire()
    assert store(world, token) == (-1, 0) and value(world) is None
    second, other = world.new_holder()
    assert store(world, token) == (-1, 0) and value(world) is None
    assert store(world, other, "v1") == (1, 0)
    assert store(world, other, "v2") == (-1, 0), "a late copy"
    assert value(world) == "v1"


def test_all_that_wait_for_the_value_are_told(world: World) -> None:
    holder, token = world.new_holder()
    waiters = [world.client() for _ in range(3)]
    tokens = [waits_for_value(waiter) for waiter in waiters]
    assert store(world, token) == (1, 0)
    assert world.queue() == [] and world.holder() is None
    for waiter, its in zip(waiters, tokens, strict=True):
        assert waiter.messages() == [Told(rid_of(its))]


def test_who_waits_for_the_lock_gets_it(world: World) -> None:
    holder, token = world.new_holder()
    first, mutex, last = (world.client() for _ in range(3))
    waits_for_value(first)
    locks = mutex.wait()
    waits_for_value(last)
    assert store(world, token) == (2, 0) and world.holder() == locks
    assert [type(client.messages()[0]) for client in (first, mutex, last)] == [Told, Grant, Told]
    assert world.queue() == []


def test_a_release_without_a_value_grants_the_lock(world: World) -> None:
    holder, token = world.new_holder()
    waiter = world.client()
    its = waits_for_value(waiter)
    assert holder.release(token) == (2, 0) and world.holder() == its
    (grant,) = waiter.messages()
    assert isinstance(grant, Grant) and grant.mode == "v"


def test_who_polls_gets_the_lock_in_its_turn(world: World) -> None:
    holder, token = world.new_holder()
    waiter = world.client()
    its = waits_for_value(waiter, polls=True)
    assert store(world, token) == (2, 0) and world.holder() == its


def test_who_is_gone_is_dropped(world: World) -> None:
    holder, token = world.new_holder()
    dead, alive = world.client(), world.client()
    waits_for_value(dead)
    waits_for_value(alive)
    dead.die()
    assert store(world, token) == (1, 0)
    assert world.queue() == [] and len(alive.messages()) == 1


def test_a_release_does_not_depend_on_the_value(world: World) -> None:
    holder, token = world.new_holder()
    waiter = world.client()
    its = waits_for_value(waiter)
    with world.out_of_memory():
        assert store(world, token) == (2, 4)
    assert world.holder() == its and value(world) is None
