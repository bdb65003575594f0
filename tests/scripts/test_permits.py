# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: never more permits are out than the limit that each holder named, no waiter overtakes, and
the permits of a dead holder come back. Method: one request at a time, permits format."""

from __future__ import annotations

import pytest

from .harness import (
    CLOCK_SLACK_MS,
    Busy,
    Client,
    Grant,
    Head,
    Held,
    Lock,
    World,
    as_busy,
    rid_of,
)


@pytest.fixture
def pool(world: World) -> World:
    """A world whose lock is a semaphore."""
    world.lock = Lock("app:", "orders", has_permits=True)
    return world


def out(world: World) -> int:
    """How many permits K says are out."""
    holder = world.holder()
    return 0 if holder is None else int(holder.removeprefix("rl:permits:").partition("/")[0])


def asker(world: World, permits: int, limit: int) -> Client:
    return world.client(owner=f"{permits}/{limit}")


def test_permits_are_out_up_to_the_limit(pool: World) -> None:
    clients = [asker(pool, 1, 3) for _ in range(4)]
    tokens = [client.hold() for client in clients[:3]]
    assert out(pool) == 3 and set(pool.readers()) == set(tokens)
    busy = as_busy(clients[3].try_acquire(clients[3].token()))
    assert (busy.holder, busy.kind) == (b"rl:permits:3/3", "string")
    assert clients[1].release(tokens[1]) == (1, 0) and out(pool) == 2
    assert isinstance(clients[3].try_acquire(clients[3].token()), Held)
    assert out(pool) == 3


def test_the_keys_are_gone_with_the_last_holder(pool: World) -> None:
    first, second = asker(pool, 2, 5), asker(pool, 3, 5)
    tokens = first.hold(), second.hold()
    assert out(pool) == 5 and pool.keys() == {pool.lock.k, pool.lock.f, pool.lock.r}
    first.release(tokens[0])
    second.release(tokens[1])
    assert pool.keys() == {pool.lock.f}


def test_fences_rise_with_each_grant(pool: World) -> None:
    fences = []
    for _ in range(3):
        client = asker(pool, 1, 3)
        reply = client.acquire(client.token())
        assert isinstance(reply, Held)
        fences.append(reply.fence)
    assert fences == sorted(set(fences))


def test_one_client_may_have_several_leases(pool: World) -> None:
    client = asker(pool, 1, 2)
    tokens = client.hold(), client.hold()
    assert out(pool) == 2 and set(pool.readers()) == set(tokens)
    assert isinstance(client.try_acquire(client.token()), Busy)


def test_a_small_request_does_not_overtake_a_big_one(pool: World) -> None:
    holders = [asker(pool, 1, 3) for _ in range(3)]
    tokens = [holder.hold() for holder in holders]
    big, small = asker(pool, 2, 3), asker(pool, 1, 3)
    wanted = big.wait()
    behind = small.wait()
    assert holders[0].release(tokens[0]) == (1, 0)
    assert out(pool) == 2 and pool.queue() == [big.member(wanted), small.member(behind)]
    assert isinstance(small.try_acquire(small.token()), Busy), "a try does not overtake either"
    assert holders[1].release(tokens[1]) == (2, 0)
    assert [type(message) for message in big.messages()] == [Head, Grant] and out(pool) == 3
    assert holders[2].release(tokens[2]) == (2, 0)
    assert [type(message) for message in small.messages()][-1] is Grant


def test_one_release_serves_all_that_fit(pool: World) -> None:
    holder = asker(pool, 3, 3)
    token = holder.hold()
    waiters = [asker(pool, 1, 3) for _ in range(4)]
    for waiter in waiters:
        waiter.wait()
    assert holder.release(token) == (4, 0) and out(pool) == 3
    for waiter in waiters[:3]:
        grants = [message for message in waiter.messages() if isinstance(message, Grant)]
        assert len(grants) == 1
    assert len(pool.queue()) == 1


def test_a_release_that_is_not_enough_finds_a_dead_head(pool: World) -> None:
    holders = [asker(pool, 1, 3) for _ in range(3)]
    tokens = [holder.hold() for holder in holders]
    dead, waiter = asker(pool, 3, 3), asker(pool, 1, 3)
    dead.wait()
    waiter.wait()
    dead.die()
    assert holders[0].release(tokens[0]) == (2, 0)
    assert [type(message) for message in waiter.messages()][-1] is Grant


def test_the_head_hears_when_it_fits_at_the_latest(pool: World) -> None:
    for ttl_ms in (20_000, 60_000, 40_000):
        asker(pool, 1, 3).hold(ttl_ms=ttl_ms)
    first, second = asker(pool, 2, 3), asker(pool, 1, 3)
    token = first.token()
    busy = as_busy(first.acquire(token))
    assert 39_000 < busy.pttl <= 40_000, "two leases have to end"
    behind = second.wait()
    assert first.cancel(first.member(token)) == (1, 0)
    assert second.was_told(behind, 20_000, slack_ms=1000)


def test_permits_of_a_dead_holder_come_back_when_its_lease_ends(pool: World) -> None:
    dead, living = asker(pool, 2, 3), asker(pool, 1, 3)
    over, held = dead.hold(), living.hold(ttl_ms=60_000)
    waiter = asker(pool, 2, 3)
    token = waiter.token()
    assert isinstance(waiter.acquire(token), Busy)
    pool.end_lease(over)
    assert isinstance(waiter.acquire(token), Held)
    assert out(pool) == 3 and set(pool.readers()) == {held, token}


def test_each_caller_is_judged_by_its_own_limit(pool: World) -> None:
    wide = [asker(pool, 1, 4) for _ in range(3)]
    tokens = [client.hold() for client in wide]
    narrow = asker(pool, 1, 2)
    waiting = narrow.wait()
    assert isinstance(asker(pool, 1, 4).try_acquire(wide[0].token()), Busy), "behind the narrow one"
    wide[0].release(tokens[0])
    assert pool.queue() == [narrow.member(waiting)]
    assert wide[1].release(tokens[1]) == (2, 0) and out(pool) == 2


def test_a_wish_above_its_own_limit_leaves_the_queue(pool: World) -> None:
    holder = asker(pool, 1, 1)
    token = holder.hold()
    absurd, waiter = asker(pool, 5, 2), asker(pool, 1, 1)
    absurd.wait()
    waiter.wait()
    assert holder.release(token) == (2, 0)
    assert [type(message) for message in waiter.messages()][-1] is Grant
    assert absurd.messages() == [] and pool.queue() == []


def test_a_lease_is_extended_alone(pool: World) -> None:
    first, second = asker(pool, 1, 2), asker(pool, 1, 2)
    tokens = first.hold(ttl_ms=10_000), second.hold(ttl_ms=20_000)
    assert first.extend_shared(tokens[0], 60_000) == 1 and pool.pttl() > 59_000
    assert first.extend_shared(tokens[0], 1000) == 1 and pool.pttl() > 59_000
    assert second.release(tokens[1]) == (1, 0)
    assert second.extend_shared(tokens[1], 60_000) == 0, "what others have was not taken over"


def test_an_extension_drops_what_has_ended_and_counts_it(pool: World) -> None:
    first, dead = asker(pool, 1, 5), asker(pool, 3, 5)
    token, over = first.hold(ttl_ms=60_000), dead.hold()
    pool.end_lease(over)
    assert first.extend_shared(token, 60_000) == 1
    assert out(pool) == 1 and list(pool.readers()) == [token]
    assert isinstance(asker(pool, 4, 5).try_acquire(dead.token()), Held)


def test_a_lease_changes_hands_with_its_permits(pool: World) -> None:
    giver, taker = asker(pool, 2, 3), asker(pool, 2, 3)
    token = giver.hold()
    assert taker.attach(token, "call 1") == (-1, 0)
    assert giver.detach(token) == 1
    assert taker.attach(token, "call 1") == (1, 2)
    assert asker(pool, 1, 3).attach(token, "call 2")[0] == 0, "with another number of permits"
    assert taker.release(token) == (1, 0) and out(pool) == 0


def test_force_release_of_one_token_or_all(pool: World) -> None:
    first, second = asker(pool, 2, 4), asker(pool, 1, 4)
    tokens = first.hold(), second.hold()
    assert pool.force_release(tokens[0]) == (1, 0) and out(pool) == 1
    assert pool.force_release(tokens[0]) == (-1, 0)
    assert pool.force_release() == (1, 0) and pool.keys() == {pool.lock.f}


def test_another_use_of_the_key_is_busy_and_untouched(pool: World) -> None:
    pool.may_disagree = True
    client = asker(pool, 1, 2)
    for command, words in (("SET", ("7",)), ("HSET", ("uuid:1", "1"))):
        pool.put(command, pool.lock.k, *words, ms=60_000)
        assert isinstance(client.try_acquire(client.token()), Busy)
        assert pool.force_release() == (-1, 0) and pool.admin.cmd("EXISTS", pool.lock.k) == 1
        pool.admin.cmd("DEL", pool.lock.k)


def test_inspect_lists_holders_with_their_permits(pool: World) -> None:
    first, second = asker(pool, 2, 3), asker(pool, 1, 3)
    tokens = first.hold(ttl_ms=20_000), second.hold(ttl_ms=10_000)
    waiter = asker(pool, 3, 3)
    waiting = waiter.wait()
    reply = pool.inspect()
    assert (reply[1], reply[2], reply[8], reply[10]) == (b"string", b"rl:permits:3/3", 2, 3)
    assert [entry.decode() for entry in reply[9][::2]] == [tokens[1] + "1", tokens[0] + "2"]
    assert reply[6][0].decode() == waiter.member(waiting)


def test_without_memory_nothing_is_granted_and_all_is_released(pool: World) -> None:
    holder, waiter = asker(pool, 1, 1), asker(pool, 1, 1)
    token = holder.hold()
    waiting = waiter.wait()
    with pool.out_of_memory():
        assert holder.release(token)[0] in (1, 2)
    assert waiter.release(waiting)[0] >= -1 and rid_of(waiting)


def test_a_dead_head_is_dropped(pool: World) -> None:
    holder, dead, waiter = asker(pool, 1, 1), asker(pool, 1, 1), asker(pool, 1, 1)
    token = holder.hold()
    dead.wait()
    waiting = waiter.wait()
    dead.die()
    assert holder.release(token) == (2, 0)
    assert list(pool.readers()) == [waiting]
    assert not any(isinstance(message, Head) for message in waiter.messages())


def alone(token: str, permits: int, limit: int) -> str:
    return f"rl:permits:{permits}/{limit} {token}{permits}"


def test_the_only_holder_is_in_the_key_of_the_lock(pool: World) -> None:
    client = asker(pool, 2, 5)
    token = client.hold()
    assert pool.holder() == alone(token, 2, 5) and pool.keys() == {pool.lock.k, pool.lock.f}
    for ttl_ms in (120_000, 1000):  # the second one is a late copy, which shortens nothing
        assert client.extend_shared(token, ttl_ms=ttl_ms) == 1
        assert pool.holder() == alone(token, 2, 5) and abs(pool.pttl() - 120_000) < 5000
    now, shown = pool.inspect()[0], pool.inspect()[9]
    assert shown[0].decode() == f"{token}2" and abs(int(shown[1]) - now - 120_000) < 5000
    assert client.release(client.token()) == (-1, 0), "another token has nothing"
    assert client.release(token) == (1, 0) and pool.keys() == {pool.lock.f}


def test_a_second_holder_moves_the_first_one(pool: World) -> None:
    first, second = asker(pool, 2, 3), asker(pool, 1, 3)
    token = first.hold(ttl_ms=50_000)
    ends = int(pool.inspect()[9][1])
    # What another run has left behind holds nothing.
    pool.put("zadd", pool.lock.r, 2_000_000_000_000, f"{second.token()}1", ms=60_000)
    other = second.hold()
    found = pool.readers()
    assert set(found) == {token, other} and abs(found[token] - ends) < CLOCK_SLACK_MS
    assert out(pool) == 3 and pool.holder() == "rl:permits:3/3"
    assert second.release(other) == (1, 0) and out(pool) == 2
    assert first.release(token) == (1, 0) and pool.keys() == {pool.lock.f}


def test_the_only_holder_needs_no_memory(pool: World) -> None:
    first, second = asker(pool, 2, 3), asker(pool, 2, 3)
    token = first.hold()
    wanted = second.token()
    pool.put("zadd", pool.lock.q, 1, second.member(wanted), ms=60_000)
    with pool.out_of_memory():
        assert first.extend_shared(token, ttl_ms=120_000) == 1
        assert (pool.holder() or "").startswith("rl:permits:2/3 ")
        assert first.release(token)[0] == 2
    assert [type(message) for message in second.messages()] == [Grant]


def test_a_mutex_waits_for_the_only_holder(world: World, pool: World) -> None:
    token = asker(pool, 1, 1).hold()
    client = world.client(Lock("app:", "orders"))
    busy = as_busy(client.try_acquire(client.token()))
    assert busy.holder.startswith(b"rl:permits:1/1 ")
    assert world.client(Lock("app:", "orders")).release(token) == (-1, 0)
