# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: an owner holds as often as it likes, each hold with a token and a lease of its own, and a
copy of a request never counts twice. Method: one request at a time, hash format."""

from __future__ import annotations

import pytest

from .harness import (
    FENCE_STEP,
    MAX_ENTRIES,
    MORE,
    REFUSED,
    Busy,
    Client,
    Grant,
    Head,
    Held,
    Lock,
    World,
    eventually,
    rid_of,
)


def hold(client: Client, count: int, *, ttl_ms: int = 30_000) -> str:
    token = client.token()
    reply = client.acquire(token, ttl_ms=ttl_ms)
    assert isinstance(reply, Held) and reply.count == count
    return token


def stranger(world: World, *fields: object, ms: int = 60_000) -> None:
    world.admin.cmd("HSET", world.lock.k, *(str(field) for field in fields))
    world.admin.cmd("PEXPIRE", world.lock.k, ms)


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
    held = client.acquire(token, ttl_ms=60_000)
    again = client.acquire(token, ttl_ms=1000)
    assert isinstance(held, Held) and isinstance(again, Held)
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


def test_crashed_process_takes_only_its_own_holds_along(hashed: World) -> None:
    crashed, living = hashed.client(owner="o"), hashed.client(owner="o")
    over, token = hold(crashed, 1, ttl_ms=60_000), hold(living, 2, ttl_ms=20_000)
    hashed.end_lease(over)
    assert crashed.extend_shared(over) == 0 and crashed.release(over) == (-1, 0)
    assert living.extend_shared(token, 30_000) == 1 and 29_000 < hashed.pttl() <= 30_000
    hold(living, 2)
    assert hashed.owners() == {"o": 2}
    assert living.release(token) == (0, 0) and hashed.owners() == {"o": 1}


def test_key_lives_as_long_as_the_latest_hold(hashed: World) -> None:
    client, waiter = hashed.client(owner="o"), hashed.client(owner="p")
    longest = hold(client, 1, ttl_ms=60_000)
    hold(client, 2, ttl_ms=5000)
    assert hashed.pttl() > 59_000
    behind = waiter.wait()
    assert client.release(longest) == (0, 0)
    assert 4000 < hashed.pttl() <= 5000
    (head,) = waiter.messages()
    assert isinstance(head, Head) and head.rid == rid_of(behind) and 4000 < head.ms <= 5000


def test_next_head_is_told_the_claim_of_who_got_it(hashed: World) -> None:
    # Not what the last owner had left: a host that is gone would cost the whole of that.
    client, granted, second = (hashed.client(owner=name) for name in "opq")
    token = hold(client, 1, ttl_ms=60_000)
    granted.wait(provisional_ms=700)
    behind = second.wait()
    assert client.release(token) == (2, 0)
    assert second.was_told(behind, 700) and 0 < hashed.pttl() <= 700


def test_next_head_of_a_free_lock_is_told_the_claim(hashed: World) -> None:
    client, granted, second = (hashed.client(owner=name) for name in "opq")
    hold(client, 1)
    granted.wait(provisional_ms=700)
    behind = second.wait()
    hashed.expire()
    assert hashed.serve_queue() == (1, 0)
    assert second.was_told(behind, 700)


def test_waiter_behind_a_crashed_owner_gets_in_at_its_expiry(hashed: World) -> None:
    crashed, waiter = hashed.client(owner="o"), hashed.client(owner="p")
    over = hold(crashed, 1), hold(crashed, 2)
    behind = waiter.wait()
    hashed.end_lease(over[0])
    hashed.end_lease(over[1], in_ms=30)
    eventually(lambda: isinstance(waiter.acquire(behind), Held))
    assert hashed.owners() == {"p": 1}


def test_late_copy_of_an_extend_never_shortens_and_never_brings_back(hashed: World) -> None:
    client, other = hashed.client(owner="o"), hashed.client(owner="p")
    token = hold(client, 1, ttl_ms=60_000)
    assert client.extend_shared(token, 1000) == 1 and hashed.pttl() > 59_000
    client.release(token)
    assert client.extend_shared(token) == 0 and hashed.keys() == {hashed.lock.f}
    hold(other, 1, ttl_ms=5000)
    assert client.extend_shared(token) == -1 and hashed.owners() == {"p": 1}
    assert hashed.pttl() <= 5000


def test_late_copy_of_an_acquire_after_the_release_is_a_ghost_that_release_ends(
    hashed: World,
) -> None:
    client = hashed.client(owner="o")
    token = hold(client, 1)
    client.release(token)
    assert isinstance(client.acquire(token), Held)
    assert client.release(token) == (1, 0) and hashed.keys() == {hashed.lock.f}


def test_holds_left_over_by_a_lost_key_do_not_come_back(hashed: World) -> None:
    client, other = hashed.client(owner="o"), hashed.client(owner="p")
    over = hold(client, 1, ttl_ms=60_000)
    hashed.admin.cmd("DEL", hashed.lock.k)
    assert client.extend_shared(over) == 0
    token = hold(other, 1, ttl_ms=5000)
    assert client.extend_shared(over) == -1 and client.release(over) == (-1, 0)
    assert list(hashed.readers()) == [token] and hashed.pttl() <= 5000
    other.release(token)
    again = hold(client, 1)
    assert client.extend_shared(over) == 0 and list(hashed.readers()) == [again]


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


def test_dead_and_overdue_waiters_are_skipped(hashed: World) -> None:
    client, dead, late, waiter = (hashed.client(owner=name) for name in "oxyz")
    token = hold(client, 1)
    late.wait_overdue()
    dead.wait()
    behind = waiter.wait()
    dead.die()
    assert client.release(token) == (2, 0)
    assert hashed.owners() == {"z": 1} and list(hashed.readers()) == [behind]
    assert late.messages() == [] and hashed.queue() == []


def test_lock_is_free_when_all_waiters_are_dead(hashed: World) -> None:
    client, dead = hashed.client(owner="o"), hashed.client(owner="x")
    token = hold(client, 1)
    for _ in range(3):
        dead.wait()
    dead.die()
    assert client.release(token) == (1, 0) and hashed.keys() == {hashed.lock.f}


def test_many_dead_waiters_are_bounded_per_call(hashed: World) -> None:
    client, waiter = hashed.client(owner="o"), hashed.client(owner="p")
    token = hold(client, 1)
    hashed.enqueue_dead(MAX_ENTRIES)
    waiter.wait()
    assert client.release(token) == (1, MORE) and hashed.owners() == {}
    assert hashed.serve_queue() == (1, 0) and hashed.owners() == {"p": 1}


def test_refused_publish_keeps_the_waiter_and_frees_the_lock(hashed: World) -> None:
    client, waiter = hashed.client(owner="o"), hashed.client(owner="p")
    token, behind = hold(client, 1), waiter.wait()
    with hashed.user("~*", "resetchannels", "+@all") as limited:
        assert client.release(token, connection=limited) == (1, REFUSED)
    assert hashed.owners() == {} and hashed.queue() == [waiter.member(behind)]
    assert isinstance(waiter.acquire(behind), Held) and hashed.owners() == {"p": 1}


def test_refused_publish_grants_to_a_waiter_that_polls(hashed: World) -> None:
    client, waiter = hashed.client(owner="o"), hashed.client(owner="p", polls=True)
    token, behind = hold(client, 1), waiter.wait()
    with hashed.user("~*", "resetchannels", "+@all") as limited:
        assert client.release(token, connection=limited) == (2, 0)
    assert hashed.owners() == {"p": 1} and hashed.queue() == []
    assert isinstance(waiter.acquire(behind), Held) and hashed.owners() == {"p": 1}


def test_try_takes_the_lock_when_all_queued_are_dead(hashed: World) -> None:
    client, dead, other = (hashed.client(owner=name) for name in "oxp")
    hold(client, 1)
    dead.wait()
    dead.die()
    hashed.expire()
    reply = other.try_acquire(other.token())
    assert isinstance(reply, Held) and reply.count == 1 and hashed.owners() == {"p": 1}


def test_cancel_names_what_was_granted(hashed: World) -> None:
    client, waiter, second = (hashed.client(owner=name) for name in "opq")
    token = hold(client, 1)
    behind, last = waiter.wait(), second.wait()
    assert second.cancel(second.member(last)) == (1, 0)
    assert second.cancel(second.member(last)) == (0, 0)
    client.release(token)
    assert waiter.cancel(waiter.member(behind)) == (2, 0) and hashed.owners() == {"p": 1}
    assert waiter.release(behind) == (1, 0)


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


@pytest.mark.parametrize("mode", ["read", "write"])
def test_read_write_locks_of_others_are_busy_and_never_written(hashed: World, mode: str) -> None:
    client = hashed.client(owner="uuid:1")
    stranger(hashed, "mode", mode, "uuid:1", 1)
    before = hashed.admin.cmd("DUMP", hashed.lock.k)
    token = client.token()
    for reply in (client.acquire(token), client.try_acquire(client.token())):
        assert isinstance(reply, Busy) and (reply.holder, reply.kind) == (b"", "hash")
    assert client.extend_shared(token) == 0 and client.release(token) == (-1, 0)
    assert hashed.serve_queue() == (0, 0) and hashed.force_release() == (-1, 0)
    assert client.cancel(client.member(token)) == (1, 0)
    assert hashed.admin.cmd("DUMP", hashed.lock.k) == before and hashed.pttl() > 59_000


def test_a_string_is_busy_and_never_written(hashed: World) -> None:
    client = hashed.client(owner="o")
    hashed.admin.cmd("SET", hashed.lock.k, "token", "PX", 50_000)
    before = hashed.admin.cmd("DUMP", hashed.lock.k)
    token = client.token()
    for reply in (client.acquire(token), client.try_acquire(client.token())):
        assert isinstance(reply, Busy) and (reply.holder, reply.kind) == (b"", "string")
        assert 49_000 < reply.pttl <= 50_000
    assert client.extend_shared(token) == 0 and client.release(token) == (-1, 0)
    assert hashed.serve_queue() == (0, 0) and hashed.force_release() == (-1, 0)
    assert client.cancel(client.member(token)) == (1, 0)
    assert hashed.admin.cmd("DUMP", hashed.lock.k) == before and hashed.pttl() > 49_000


def test_the_two_formats_exclude_each_other_on_one_key(world: World) -> None:
    text = world.client()
    hashed = world.client(Lock("app:", "orders", is_hash=True), owner="o")
    held = text.hold()
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
