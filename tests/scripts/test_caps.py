# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the smaller one of the cap and a caller's limit counts from the next grant on, and only a
waiter that wants more than the cap is passed over. Method: one request at a time."""

from __future__ import annotations

import pytest

from .harness import Busy, Client, Grant, Held, Lock, World, as_busy

STANDING_MS = 7 * 24 * 3600 * 1000


@pytest.fixture
def pool(world: World) -> World:
    """A world whose lock is a semaphore."""
    world.lock = Lock("app:", "orders", has_permits=True)
    return world


def asker(world: World, permits: int, limit: int) -> Client:
    return world.client(owner=f"{permits}/{limit}")


def cap(world: World, number: int | str, ms: int | str = "") -> None:
    result, now, flags = world.run(
        "set_cap.permits", world.lock.keys, world.prefix, str(number), str(ms)
    )
    assert (result, flags) == (1, 0) and len(str(now)) == 13


def stats(world: World) -> list[int]:
    """used, seen, cap, cap_ms, waiting"""
    reply: list[int] = world.run("stats.permits", world.lock.keys)
    return reply[1:]


def grants(client: Client) -> int:
    return sum(isinstance(message, Grant) for message in client.messages())


def test_the_smaller_one_counts(pool: World) -> None:
    cap(pool, 2)
    clients = [asker(pool, 1, 5) for _ in range(3)]
    tokens = [client.hold() for client in clients[:2]]
    busy = as_busy(clients[2].try_acquire(clients[2].token()))
    assert (busy.holder, busy.kind) == (b"rl:permits:2/5/2", "string")
    clients[0].release(tokens[0])
    assert isinstance(clients[2].try_acquire(clients[2].token()), Held)
    cap(pool, 9)
    assert isinstance(asker(pool, 1, 2).try_acquire(clients[0].token()), Busy)


def test_a_lower_cap_takes_nothing_away(pool: World) -> None:
    holders = [asker(pool, 1, 3) for _ in range(3)]
    tokens = [holder.hold() for holder in holders]
    cap(pool, 1)
    waiter = asker(pool, 1, 3)
    waiter.wait()
    for i in (0, 1):
        assert holders[i].release(tokens[i]) == (1, 0)
    assert stats(pool)[:3] == [1, 3, 1] and grants(waiter) == 0
    assert holders[2].release(tokens[2]) == (2, 0) and grants(waiter) == 1


@pytest.mark.parametrize("how", ["raised", "cleared"])
def test_a_change_serves_the_queue(pool: World, how: str) -> None:
    cap(pool, 0)
    waiters = [asker(pool, 1, 2) for _ in range(3)]
    for waiter in waiters:
        waiter.wait()
    cap(pool, 5 if how == "raised" else "")
    assert [grants(waiter) for waiter in waiters] == [1, 1, 0]


def test_nobody_new_gets_in_at_0(pool: World) -> None:
    holder = asker(pool, 1, 2)
    token = holder.hold()
    cap(pool, 0)
    busy = as_busy(asker(pool, 1, 2).try_acquire(holder.token()))
    assert busy.holder == b"rl:permits:1/2/0"
    assert holder.extend_shared(token, 60_000) == 1, "holders stay"
    assert holder.release(token) == (1, 0)
    busy = as_busy(asker(pool, 1, 2).try_acquire(holder.token()))
    assert (busy.holder, busy.kind) == (b"rl:permits:0/2/0", "string")
    assert STANDING_MS - 60_000 < busy.pttl <= STANDING_MS


def test_who_wants_more_than_the_cap_is_passed_over_and_keeps_its_place(pool: World) -> None:
    holder = asker(pool, 3, 3)
    token = holder.hold()
    big, small, other = asker(pool, 3, 3), asker(pool, 1, 3), asker(pool, 2, 3)
    wanted = big.wait()
    behind = [small.wait(), other.wait()]
    cap(pool, 2)
    assert holder.release(token) == (2, 0)
    assert (grants(small), grants(big)) == (1, 0)
    assert pool.queue() == [big.member(wanted), other.member(behind[1])]
    cap(pool, "")
    assert (grants(big), grants(other)) == (0, 0), "behind the small one's lease"
    assert small.release(behind[0]) == (2, 0) and grants(big) == 1


def test_a_passed_over_head_serves_those_behind_it_when_a_lease_ends(pool: World) -> None:
    dead = asker(pool, 2, 3)
    over = dead.hold(ttl_ms=20_000)
    cap(pool, 2)
    big, small = asker(pool, 3, 3), asker(pool, 1, 3)
    token = big.token()
    busy = as_busy(big.acquire(token))
    assert 19_000 < busy.pttl <= 20_000, "it polls when the first lease ends"
    small.wait()
    pool.end_lease(over)
    assert isinstance(big.acquire(token), Busy) and grants(small) == 1


def test_a_dead_waiter_that_is_passed_over_stops_nobody(pool: World) -> None:
    holder = asker(pool, 2, 3)
    token = holder.hold()
    cap(pool, 2)
    big, small = asker(pool, 3, 3), asker(pool, 1, 3)
    big.wait()
    small.wait()
    big.die()
    assert holder.release(token) == (2, 0) and grants(small) == 1
    assert pool.serve_queue() == (0, 0) and pool.queue() == [], "the dead one is dropped"


def test_many_that_are_passed_over_are_looked_at_once(pool: World) -> None:
    """A script that asks to be called again for them would be called without end."""
    holder = asker(pool, 2, 3)
    token = holder.hold()
    cap(pool, 2)
    wide = asker(pool, 3, 3)
    for _ in range(300):
        wide.wait()
    assert holder.release(token) == (1, 0)


def test_a_cap_for_a_time_ends_then(pool: World) -> None:
    cap(pool, 1, 5000)
    holder = asker(pool, 1, 3)
    holder.hold()
    assert 4000 < stats(pool)[3] <= 5000, "no acquire moves its end"
    waiter = asker(pool, 1, 3)
    busy = as_busy(waiter.acquire(waiter.token()))
    assert 4000 < busy.pttl <= 5000, "the head polls at its end"
    pool.expire(pool.lock.w)
    assert pool.serve_queue() == (1, 0) and grants(waiter) == 1


def test_a_standing_cap_lasts_as_long_as_somebody_acquires(pool: World) -> None:
    cap(pool, 2)
    pool.admin.cmd("PEXPIRE", pool.lock.w, 10_000)
    asker(pool, 1, 3).hold()
    assert pool.pttl(pool.lock.w) > STANDING_MS - 60_000
    assert stats(pool) == [1, 3, 2, -1, 0]


def test_stats_count_what_has_not_ended(pool: World) -> None:
    assert stats(pool) == [0, 0, -1, -1, 0]
    dead, living = asker(pool, 2, 5), asker(pool, 1, 4)
    over = dead.hold()
    living.hold()
    asker(pool, 3, 5).wait()
    assert stats(pool) == [3, 4, -1, -1, 1]
    pool.end_lease(over)
    assert stats(pool) == [1, 4, -1, -1, 1]


def test_a_key_that_is_no_cap_is_none(pool: World) -> None:
    pool.put("SET", pool.lock.w, "many", ms=60_000)
    asker(pool, 3, 3).hold()
    pool.admin.cmd("DEL", pool.lock.w)
    pool.put("RPUSH", pool.lock.w, "1", ms=60_000)
    assert stats(pool)[:3] == [3, 3, -1]


def test_a_head_is_told_the_end_of_the_cap(pool: World) -> None:
    cap(pool, 1, 8000)
    holder, waiter = asker(pool, 1, 2), asker(pool, 1, 2)
    token = holder.hold(ttl_ms=60_000)
    gone = asker(pool, 1, 2)
    first = gone.wait()
    waiting = waiter.wait()
    assert gone.cancel(gone.member(first)) == (1, 0)
    assert waiter.was_told(waiting, 8000, slack_ms=1000)
    assert holder.release(token) == (2, 0)


def test_a_try_passes_who_wants_more_than_the_cap(pool: World) -> None:
    big, small = asker(pool, 3, 3), asker(pool, 1, 3)
    cap(pool, 1)
    waiting = big.wait()
    token = small.token()
    assert isinstance(small.try_acquire(token), Held), "who waits would get it, too"
    assert pool.queue() == [big.member(waiting)] and stats(pool)[0] == 1
    assert isinstance(small.try_acquire(small.token()), Busy), "no more than the cap"
    assert small.release(token)[0] == 1
    behind = asker(pool, 1, 3)
    first = small.hold()
    behind.wait()
    assert small.release(first)[0] == 2
    assert isinstance(small.try_acquire(small.token()), Busy), "not past who fits"


def test_stats_write_nothing(pool: World) -> None:
    dead, living = asker(pool, 2, 5), asker(pool, 1, 5)
    over = dead.hold()
    living.hold()
    pool.end_lease(over)
    before = pool.holder(), pool.readers()
    pool.admin.cmd("CONFIG", "SET", "min-replicas-to-write", 1)
    try:
        assert stats(pool) == [1, 5, -1, -1, 0]
    finally:
        pool.admin.cmd("CONFIG", "SET", "min-replicas-to-write", 0)
    assert (pool.holder(), pool.readers()) == before


def test_ended_leases_are_in_no_number(pool: World) -> None:
    dead, living = asker(pool, 2, 5), asker(pool, 1, 5)
    over = dead.hold()
    living.hold()
    assert pool.inspect()[8] == 2 and pool.inspect()[10] == 3
    pool.end_lease(over)
    assert pool.inspect()[8] == 1 and pool.inspect()[10] == 1 == stats(pool)[0]


def test_a_try_is_repeated_until_all_ended_leases_are_dropped(pool: World) -> None:
    client = asker(pool, 1, 600)
    for _ in range(600):
        client.hold()
    entries = pool.admin.cmd("ZRANGE", pool.lock.r, 0, -1)
    pool.admin.cmd("ZADD", pool.lock.r, *(word for entry in entries for word in (1, entry)))
    asker(pool, 1, 601).hold()
    big = asker(pool, 599, 600)
    busy = as_busy(big.try_acquire(big.token()))
    assert busy.flags == 1, "there are more"
    assert isinstance(big.try_acquire(big.token()), Held)
