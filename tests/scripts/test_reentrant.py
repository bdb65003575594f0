# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: an owner holds as often as it likes, each hold with a token and a lease of its own, and a
copy of a request never counts twice. Method: one request at a time, hash format."""

from __future__ import annotations

import pytest

from .harness import FENCE_STEP, Busy, Client, Grant, Held, Lock, World, rid_of, as_held


def hold(client: Client, count: int, *, ttl_ms: int = 30_000) -> str:
    token = client.token()
    reply = client.acquire(token, ttl_ms=ttl_ms)
    assert isinstance(reply, Held) and reply.count == count
    return token


def stranger(world: World, *fields: object, ms: int = 60_000) -> None:
    world.put("HSET", world.lock.k, *(str(field) for field in fields), ms=ms)


def test_free_lock_is_taken_for_the_owner(hashed: World) -> None:
    client = hashed.client(owner="worker 7")
    token = hold(client, 1, ttl_ms=20_000)
    assert hashed.owners() == {"worker 7": 1} and list(hashed.readers()) == [token]
    assert 19_000 < hashed.pttl() <= 20_000 and 19_000 < hashed.pttl(hashed.lock.r) <= 20_000
    assert hashed.keys() == {hashed.lock.k, hashed.lock.f, hashed.lock.r}
    assert client.release(token) == (1, 0) and hashed.keys() == {hashed.lock.f}


def test_without_an_owner_the_token_owns_it(hashed: World) -> None:
    client, other = hashed.client(), hashed.client()
    token = hold(client, 1)
    assert hashed.owners() == {token: 1}
    reply = client.acquire(client.token())
    assert isinstance(reply, Busy) and (reply.holder, reply.kind) == (token.encode(), "hash")
    waiting = other.wait()
    client.messages()
    assert client.release(token) == (2, 0)
    assert list(hashed.readers()) != [waiting], "the first who waited"


def test_owner_takes_it_again_from_wherever_it_is(hashed: World) -> None:
    here, there = hashed.client(owner="o"), hashed.client(owner="o")
    first, second = here.token(), there.token()
    held, again = here.acquire(first), there.acquire(second)
    assert isinstance(held, Held) and isinstance(again, Held)
    assert (held.count, again.count) == (1, 2) and again.fence == held.fence
    assert hashed.owners() == {"o": 2} and set(hashed.readers()) == {first, second}
    assert isinstance(reply := there.try_acquire(there.token()), Held) and reply.count == 3


def test_owner_takes_it_again_past_the_queue(hashed: World) -> None:
    client, waiter = hashed.client(owner="o"), hashed.client(owner="other")
    hold(client, 1)
    behind = waiter.wait()
    hold(client, 2)
    assert hashed.queue() == [waiter.member(behind)]


def test_owner_in_the_queue_leaves_it_when_its_other_hold_is_there(hashed: World) -> None:
    first, here, there = (hashed.client(owner=name) for name in ("x", "o", "o"))
    held = hold(first, 1)
    token, other = here.wait(), there.wait()
    assert first.release(held) == (3, 0), "both holds of the next owner"
    assert hashed.owners() == {"o": 2} and set(hashed.readers()) == {token, other}
    (one,), (two,) = here.messages(), there.messages()
    assert isinstance(one, Grant) and isinstance(two, Grant) and one.fence == two.fence


def test_every_other_owner_is_busy(hashed: World) -> None:
    client, other = hashed.client(owner="o"), hashed.client(owner="O")
    token = hold(client, 1)
    for reply in (other.acquire(other.token()), other.try_acquire(other.token())):
        assert isinstance(reply, Busy) and (reply.holder, reply.kind) == (token.encode(), "hash")
    assert hashed.owners() == {"o": 1}


@pytest.mark.parametrize("owner", ["", "x", "w" * 256, "a b\r\n%d{}", "ü\x00\x7f"])
def test_any_owner_gets_its_turn(hashed: World, owner: str) -> None:
    first, client = hashed.client(owner="first"), hashed.client(owner=owner)
    held = hold(first, 1)
    token = client.wait()
    assert first.release(held) == (2, 0)
    (grant,) = client.messages()
    assert isinstance(grant, Grant) and grant.rid == rid_of(token)
    assert hashed.owners() == {owner or token: 1}
    reply = client.acquire(token)
    assert isinstance(reply, Held) and (reply.fence, reply.count) == (grant.fence, 1)
    assert client.extend_shared(token) == 1 and client.release(token) == (1, 0)


def test_resent_acquire_counts_once(hashed: World) -> None:
    client = hashed.client(owner="o")
    first = hold(client, 1)
    token = client.token()
    held = as_held(client.acquire(token, ttl_ms=60_000))
    again = as_held(client.acquire(token, ttl_ms=1000))
    assert (held.count, again.count, again.fence) == (2, 2, held.fence)
    assert hashed.owners() == {"o": 2} and set(hashed.readers()) == {first, token}
    assert hashed.pttl() > 59_000


def test_resent_release_counts_once(hashed: World) -> None:
    # With a plain counter the copy freed a lock that had one hold left.
    client, waiter = hashed.client(owner="o"), hashed.client(owner="other")
    first, second, third = hold(client, 1), hold(client, 2), hold(client, 3)
    waiter.wait()
    assert client.release(third) == (0, 0) and hashed.owners() == {"o": 2}
    assert client.release(third) == (-1, 0) and hashed.owners() == {"o": 2}
    assert client.release(first) == (0, 0) and hashed.owners() == {"o": 1}
    assert client.release(first) == (-1, 0) and hashed.owners() == {"o": 1}
    assert list(hashed.readers()) == [second]
    assert client.release(second) == (2, 0) and hashed.owners() == {"other": 1}
    assert client.release(second) == (-1, 0) and hashed.owners() == {"other": 1}


def test_release_names_the_token_and_the_owner(hashed: World) -> None:
    client, other = hashed.client(owner="o"), hashed.client(owner="p")
    token = hold(client, 1)
    assert other.release(token) == (-1, 0) and other.extend_shared(token) == -1
    assert client.release(client.token()) == (-1, 0)
    assert hashed.owners() == {"o": 1}


def test_holds_left_over_do_not_pass_to_a_stranger(hashed: World) -> None:
    client, namesake = hashed.client(owner="o"), hashed.client(owner="uuid:1")
    over = hold(client, 1)
    hashed.admin.cmd("DEL", hashed.lock.k)
    stranger(hashed, "uuid:1", 3)
    before = hashed.admin.cmd("DUMP", hashed.lock.k)
    for asking in (client, namesake):
        reply = asking.try_acquire(asking.token())
        assert isinstance(reply, Busy) and reply.holder == b"uuid:1"
    assert client.release(over) == (-1, 0) and client.extend_shared(over) == -1
    assert hashed.serve_queue() == (0, 0)
    assert hashed.admin.cmd("DUMP", hashed.lock.k) == before and hashed.pttl() > 59_000


def test_lost_holds_leave_the_owner_in_peace_until_its_key_ends(hashed: World) -> None:
    # Without R the key is nobody's we know: nobody of ours gets in, the owner neither.
    client, other = hashed.client(owner="o"), hashed.client(owner="p")
    token = hold(client, 1)
    hashed.admin.cmd("DEL", hashed.lock.r)
    for asking in (client, other):
        assert isinstance(asking.try_acquire(asking.token()), Busy)
    assert client.extend_shared(token) == 0 and client.release(token) == (-1, 0)
    assert hashed.owners() == {"o": 1}


def test_fence_rises_with_each_owner_and_stays_with_its_holds(hashed: World) -> None:
    first, second = hashed.client(owner="o"), hashed.client(owner="p")
    token = first.token()
    held = first.acquire(token)
    again = first.acquire(other := first.token())
    waiting = second.wait()
    first.release(token)
    first.release(other)
    (grant,) = second.messages()[-1:]
    assert isinstance(held, Held) and isinstance(again, Held) and isinstance(grant, Grant)
    assert again.fence == held.fence and int(grant.fence) >= int(held.fence) + FENCE_STEP
    second.release(waiting)
    last = first.acquire(first.token())
    assert isinstance(last, Held) and int(last.fence) >= int(grant.fence) + FENCE_STEP


def test_re_entry_without_the_fence_key_mints_a_higher_one(hashed: World) -> None:
    client = hashed.client(owner="o")
    held = client.acquire(client.token())
    hashed.admin.cmd("DEL", hashed.lock.f)
    again = client.acquire(client.token())
    assert isinstance(held, Held) and isinstance(again, Held) and again.fence > held.fence


def test_forced_release_takes_all_holds_or_the_named_one(hashed: World) -> None:
    client, waiter = hashed.client(owner="o"), hashed.client(owner="p")
    tokens = [hold(client, 1), hold(client, 2), hold(client, 3)]
    assert hashed.force_release(client.token()) == (-1, 0)
    assert hashed.force_release(tokens[0]) == (1, 0) and hashed.owners() == {"o": 2}
    assert client.extend_shared(tokens[0]) == 0 and client.extend_shared(tokens[1]) == 1
    waiter.wait()
    assert hashed.force_release() == (1, 0) and hashed.owners() == {"p": 1}
    assert client.extend_shared(tokens[1]) == -1
    assert hashed.force_release("p") == (1, 0), "by the owner that K shows"
    assert hashed.owners() == {} and hashed.force_release() == (0, 0)


def test_forced_release_by_the_owner_takes_all_its_holds(hashed: World) -> None:
    client = hashed.client(owner="o")
    tokens = [hold(client, 1), hold(client, 2)]
    assert hashed.force_release("o") == (1, 0)
    assert hashed.owners() == {} and client.extend_shared(tokens[0]) == 0


def test_strangers_owner_is_respected(hashed: World) -> None:
    # Redisson's lock, also one that names an owner of ours.
    client = hashed.client(owner="uuid:1")
    stranger(hashed, "uuid:1", 2)
    before = hashed.admin.cmd("DUMP", hashed.lock.k)
    token = client.token()
    for reply in (client.acquire(token), client.try_acquire(client.token())):
        assert isinstance(reply, Busy) and (reply.holder, reply.kind) == (b"uuid:1", "hash")
        assert 59_000 < reply.pttl <= 60_000
    assert client.extend_shared(token) == 0 and client.release(token) == (-1, 0)
    assert hashed.serve_queue() == (0, 0) and hashed.force_release("other") == (-1, 0)
    assert client.cancel(client.member(token)) == (1, 0)
    assert hashed.admin.cmd("DUMP", hashed.lock.k) == before and hashed.pttl() > 59_000
    assert hashed.force_release() == (1, 0) and hashed.owners() == {}


def test_stranger_who_counts_up_our_owner_changes_nothing_for_us(hashed: World) -> None:
    client = hashed.client(owner="o")
    token = hold(client, 1)
    hashed.admin.cmd("HINCRBY", hashed.lock.k, "o", 1)
    assert client.release(token) == (1, 0) and hashed.owners() == {}


def test_the_two_formats_exclude_each_other_on_one_key(world: World) -> None:
    hashed = world.client(Lock("app:", "orders", is_hash=True), owner="o")
    text, held = world.new_holder()
    reply = hashed.acquire(mine := hashed.token())
    assert isinstance(reply, Busy) and (reply.holder, reply.kind) == (b"", "string")
    assert text.release(held) == (1, 0)
    assert isinstance(hashed.acquire(mine), Held)
    reply = text.acquire(behind := text.token())
    assert isinstance(reply, Busy) and (reply.holder, reply.kind) == (b"", "hash")
    assert hashed.release(mine) == (1, 0), "and serves no queue of the other format"
    assert text.messages() == [] and isinstance(text.acquire(behind), Held)


def test_fences_of_the_two_formats_rise_together(world: World) -> None:
    text = world.client()
    hashed = world.client(Lock("app:", "orders", is_hash=True), owner="o")
    fences = []
    for client in (text, hashed) * 3:
        token = client.token()
        reply = client.acquire(token)
        assert isinstance(reply, Held)
        fences.append(int(reply.fence))
        client.release(token)
    assert all(b >= a + FENCE_STEP for a, b in zip(fences, fences[1:]))
