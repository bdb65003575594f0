# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: readers share the lock and end one by one; nobody overtakes a writer who waits.
Method: one request at a time; crashed readers, dead waiters and copies are played by hand."""

from __future__ import annotations

import pytest

from .harness import (
    FENCE_STEP,
    TTL_MS,
    MAX_ENTRIES,
    MORE,
    PROVISIONAL_MS,
    SHARED,
    Busy,
    Grant,
    Held,
    World,
    rid_of,
)


def fence_of(reply: Held | Busy | int) -> int:
    assert isinstance(reply, Held)
    return int(reply.fence)


def test_first_reader_takes_the_free_lock(world: World) -> None:
    client = world.client()
    token = client.token()
    reply = client.read(token, ttl_ms=20_000)
    assert isinstance(reply, Held) and world.holder() == SHARED
    assert list(world.readers()) == [token]
    assert reply.now + 19_990 <= world.readers()[token] <= reply.now + 20_000
    assert 19_000 < world.pttl() <= 20_000 and 19_000 < world.pttl(world.lock.r) <= 20_000
    assert world.keys() == {world.lock.k, world.lock.f, world.lock.r}


def test_readers_share_and_the_key_lives_as_long_as_the_latest(world: World) -> None:
    first, second, third = (world.client() for _ in range(3))
    tokens = {first.share(ttl_ms=20_000), second.share(ttl_ms=60_000)}
    assert 59_000 < world.pttl() <= 60_000
    tokens.add(third.share(ttl_ms=10_000))
    assert 59_000 < world.pttl() <= 60_000 and set(world.readers()) == tokens


def test_a_refusal_says_who_reads_alone(world: World) -> None:
    first, second, writer = (world.client() for _ in range(3))
    token = first.share()
    waiting = writer.acquire(writer.token())
    assert isinstance(waiting, Busy) and waiting.reader == token.encode()
    refused = writer.try_acquire(writer.token())
    assert isinstance(refused, Busy) and refused.reader == token.encode()
    behind = second.read(second.token())  # behind the writer
    assert isinstance(behind, Busy) and behind.reader == token.encode()


def test_a_refusal_names_no_reader_of_several(world: World) -> None:
    first, second, writer = (world.client() for _ in range(3))
    first.share()
    second.share()
    refused = writer.try_acquire(writer.token())
    assert isinstance(refused, Busy) and not refused.reader
    assert (refused.holder, refused.kind) == (SHARED.encode(), "string")


def test_fences_of_readers_stand_between_those_of_the_writers(world: World) -> None:
    client, other = world.client(), world.client()
    token = client.token()
    before = fence_of(client.acquire(token))
    client.release(token)
    readers = [client.token(), other.token()]
    fences = {fence_of(client.read(readers[0])), fence_of(other.read(readers[1]))}
    assert fences == {before + FENCE_STEP - 1}
    waiting = client.wait()
    for reader in readers:
        client.release(reader)
    grant = client.messages()[-1]
    assert isinstance(grant, Grant) and grant.rid == rid_of(waiting)
    assert int(grant.fence) >= before + FENCE_STEP


def test_granted_readers_stand_between_the_fences_of_the_writers(world: World) -> None:
    holder, reader, writer = (world.client() for _ in range(3))
    token = holder.token()
    fence = fence_of(holder.acquire(token))
    waiting = reader.wait_to_read()
    writer.wait()
    holder.release(token)
    (grant,) = reader.messages()
    assert isinstance(grant, Grant) and int(grant.fence) == fence + FENCE_STEP - 1
    writer.messages()
    reader.release(waiting)
    (last,) = writer.messages()
    assert isinstance(last, Grant) and int(last.fence) > int(grant.fence)


def test_low_fence_key_does_not_stop_readers(world: World) -> None:
    client = world.client()
    world.admin.cmd("SET", world.lock.f, "12", "PX", 5000)
    assert isinstance(client.read(client.token()), Held)


def test_reader_does_not_overtake_a_writer_who_waits(world: World) -> None:
    first, writer, late = (world.client() for _ in range(3))
    first.share()
    waiting = writer.wait()
    reply = late.read(late.token())
    assert isinstance(reply, Busy) and (reply.rank, reply.holder) == (1, SHARED.encode())
    tried = late.read(late.token(), queues=False)
    assert isinstance(tried, Busy) and (tried.rank, tried.ticket) == (-1, "")
    assert len(world.readers()) == 1 and world.queue()[0] == writer.member(waiting)


def test_sibling_of_a_reader_passes_the_writer_who_waits(world: World) -> None:
    first, token = world.new_reader()
    world.client().wait()
    sibling = first.token()
    assert isinstance(first.read(sibling), Busy), "it queues, and finds out later"
    assert isinstance(first.read(sibling, sibling=token), Held)
    assert set(world.readers()) == {token, sibling} and len(world.queue()) == 1


def test_sibling_that_does_not_read_opens_no_way(world: World) -> None:
    first, second, writer = (world.client() for _ in range(3))
    over, other = first.share(), second.share()
    waiting = writer.wait()
    world.end_lease(over)
    for name in (over, first.token(), waiting, "rl:shared"):
        reply = first.read(first.token(), sibling=name, queues=False)
        assert isinstance(reply, Busy)
    assert list(world.readers()) == [other]


def test_sibling_does_not_pass_a_holder_who_writes(world: World) -> None:
    first, token = world.new_reader()
    first.release(token)
    held = world.client().hold()
    assert isinstance(first.read(first.token(), sibling=token, queues=False), Busy)
    assert isinstance(first.read(first.token(), sibling=held, queues=False), Busy)
    assert world.holder() == held


def test_writer_lets_all_readers_at_the_head_in_and_stops_at_a_writer(world: World) -> None:
    holder, held = world.new_holder()
    readers = [world.client() for _ in range(3)]
    tokens = [reader.wait_to_read(provisional_ms=900) for reader in readers]
    writer, behind = world.new_waiter()
    late, _ = world.new_waiting_reader()
    assert holder.release(held) == (4, 0)
    assert set(world.readers()) == set(tokens) and 0 < world.pttl() <= 900
    for reader in readers:
        (grant,) = reader.messages()
        assert isinstance(grant, Grant) and (grant.mode, grant.provisional_ms) == ("s", 900)
    assert writer.was_told(behind, 900), "it is the head now"
    assert late.messages() == [] and len(world.queue()) == 2


def test_last_reader_lets_the_writer_in(world: World) -> None:
    first, second, writer, late = (world.client() for _ in range(4))
    tokens = first.share(), second.share()
    behind = writer.wait(provisional_ms=1234)
    last = late.wait_to_read()
    writer.messages()
    assert first.release(tokens[0]) == (1, 0)
    assert world.holder() == SHARED
    writer.messages()
    assert second.release(tokens[1]) == (2, 0)
    assert world.holder() == behind and 1000 < world.pttl() <= 1234
    assert world.keys() == {world.lock.k, world.lock.f, world.lock.q}
    (grant,) = writer.messages()
    assert isinstance(grant, Grant) and grant.mode == "x"
    assert late.was_told(last, 1234)


def test_late_copy_of_a_release_leaves_the_other_readers_alone(world: World) -> None:
    (first, over), (second, token) = world.new_reader(), world.new_reader(ttl_ms=20_000)
    assert first.release(over) == (1, 0)
    before = world.readers()
    assert first.release(over) == (-1, 0)
    assert world.readers() == before and world.holder() == SHARED and world.pttl() > 19_000
    assert second.extend_shared(token) == 2


def test_dead_writer_in_the_queue_does_not_hold_readers_up(world: World) -> None:
    first, dead, late = (world.client() for _ in range(3))
    token = first.share()
    dead.wait()
    dead.die()
    other = late.token()
    assert isinstance(late.read(other, ttl_ms=20_000), Held)
    assert set(world.readers()) == {token, other} and world.queue() == []
    dead.subscribe()
    dead.wait()
    dead.die()
    assert isinstance(late.read(late.token(), queues=False), Held), "a try, too"


def test_overdue_writer_in_the_queue_does_not_hold_readers_up(world: World) -> None:
    first, overdue, late = (world.client() for _ in range(3))
    first.share()
    overdue.wait_overdue()
    assert isinstance(late.read(late.token()), Held)
    assert overdue.messages() == [] and world.queue() == []


def test_poll_of_a_free_lock_reads_with_the_full_lease_and_lets_the_next_in(world: World) -> None:
    holder, first, second, writer = (world.client() for _ in range(4))
    holder.hold()
    tokens = first.wait_to_read(), second.wait_to_read(provisional_ms=700)
    writer.wait()
    world.expire()
    assert isinstance(first.read(tokens[0], ttl_ms=20_000), Held)
    assert set(world.readers()) == set(tokens) and 19_000 < world.pttl() <= 20_000
    assert first.messages() == [] and [type(one) for one in second.messages()] == [Grant]


def test_extend_shared_of_a_writer_says_so(world: World) -> None:
    client, other = world.client(), world.client()
    token = client.hold(ttl_ms=5000)
    assert client.extend_shared(token, 60_000) == 1 and world.pttl() > 59_000
    assert client.extend_shared(token, 1000) == 1 and world.pttl() > 59_000
    assert other.extend_shared(other.token()) == -1
    assert world.readers() == {}


def test_plain_extend_of_a_reader_is_refused(world: World) -> None:
    client, token = world.new_reader(ttl_ms=5000)
    assert client.extend(token, 60_000) == -1 and world.pttl() <= 5000


def test_release_of_an_ended_lease_serves_the_queue_of_readers(world: World) -> None:
    first, second, writer, late = (world.client() for _ in range(4))
    over, rest = first.share(), second.share()
    writer.wait()
    last = late.wait_to_read()
    writer.die()
    world.end_lease(over)
    assert first.release(over) == (-1, 0)
    assert set(world.readers()) == {rest, last} and world.queue() == []


def test_300_readers_behind_one_writer_get_in_by_a_kick(world: World) -> None:
    holder, client, writer = (world.client() for _ in range(3))
    held = holder.hold()
    tokens = {client.wait_to_read() for _ in range(300)}
    behind = writer.wait()
    assert holder.release(held) == (1 + MAX_ENTRIES, MORE)
    assert len(world.readers()) == MAX_ENTRIES and world.holder() == SHARED
    assert writer.messages() == []
    assert world.serve_queue() == (300 - MAX_ENTRIES, 0)
    assert set(world.readers()) == tokens and world.queue() == [writer.member(behind)]
    messages = client.messages()
    assert len(messages) == 300 and {type(one) for one in messages} == {Grant}
    assert len({one.rid for one in messages}) == 300
    assert writer.was_told(behind, 3000)


def test_refused_publish_lets_in_all_readers_that_poll(world: World) -> None:
    reader, second, writer = (world.client(polls=True) for _ in range(3))
    holder, held = world.new_holder()
    tokens, last = (reader.wait_to_read(), second.wait_to_read()), writer.wait()
    with world.user("~*", "resetchannels", "+@all") as limited:
        assert holder.release(held, connection=limited) == (3, 0)
    assert set(world.readers()) == set(tokens) and world.queue() == [writer.member(last)]
    assert 0 < world.pttl() <= PROVISIONAL_MS
    assert isinstance(reader.read(tokens[0]), Held)
    assert set(world.readers()) == set(tokens)


def test_readers_left_over_do_not_come_back_by_a_grant(world: World) -> None:
    lost, over = world.new_reader(ttl_ms=60_000)
    world.admin.cmd("DEL", world.lock.k)
    writer, held = world.new_holder()
    token = world.client().wait_to_read()
    assert writer.release(held) == (2, 0)
    assert list(world.readers()) == [token] and lost.extend_shared(over) == -1


def test_writer_is_not_disturbed_by_readers_left_over(world: World) -> None:
    lost, over = world.new_reader(ttl_ms=60_000)
    world.admin.cmd("DEL", world.lock.k)
    held = world.client().hold()
    assert lost.extend_shared(over) == -1 and lost.release(over) == (-1, 0)
    assert lost.upgrade(over) == -1 and lost.downgrade(over) == (0, 0)
    assert isinstance(lost.read(over, queues=False), Busy)
    assert world.holder() == held


def test_cancel_of_the_writer_at_the_head_lets_readers_in(world: World) -> None:
    rest = world.client().share()
    writer, behind = world.new_waiter()
    late, last = world.new_waiting_reader()
    assert writer.cancel(writer.member(behind)) == (1, 0)
    assert set(world.readers()) == {rest, last} and world.queue() == []
    assert late.cancel(late.member(last, "s")) == (2, 0)
    assert late.release(last) == (1, 0) and list(world.readers()) == [rest]


def test_forced_release_of_one_reader_leaves_the_others(world: World) -> None:
    first, second = world.client(), world.client()
    token, rest = first.share(ttl_ms=60_000), second.share(ttl_ms=20_000)
    assert world.force_release(first.token()) == (-1, 0)
    assert world.force_release(token) == (1, 0)
    assert list(world.readers()) == [rest] and 19_000 < world.pttl() <= 20_000
    assert first.extend_shared(token) == -1 and second.extend_shared(rest) == 2


@pytest.mark.parametrize("expected", ["", SHARED])
def test_forced_release_of_all_readers(world: World, expected: str) -> None:
    first, second, writer = (world.client() for _ in range(3))
    tokens = first.share(), second.share()
    behind = writer.wait()
    fence = int(world.admin.cmd("GET", world.lock.f))
    assert world.force_release(expected) == (1, 0)
    assert world.holder() == behind and world.readers() == {}
    assert first.extend_shared(tokens[0]) == -1
    assert int(world.admin.cmd("GET", world.lock.f)) >= fence + FENCE_STEP


def test_strangers_are_respected(world: World) -> None:
    client = world.client()
    token = "5e3b2f4ac6d911f0a1b20242ac120002"
    world.admin.cmd("SET", world.lock.k, token, "PX", 60_000)
    reply = client.read(mine := client.token())
    assert isinstance(reply, Busy) and (reply.holder, reply.kind) == (token.encode(), "string")
    assert client.upgrade(mine) == -1 and client.downgrade(mine) == (0, 0)
    assert client.extend_shared(mine) == -1 and client.release(mine) == (-1, 0)
    assert world.serve_queue() == (0, 0)
    assert world.holder() == token and world.readers() == {} and world.pttl() > 59_000


def test_stranger_is_excluded_by_readers(world: World) -> None:
    world.client().share()
    assert world.admin.cmd("SET", world.lock.k, "peer", "NX", "PX", 5000) is None
    assert world.holder() == SHARED


def test_readers_are_kept_out_in_a_foreign_window(world: World) -> None:
    client, reader = world.client(), world.client()
    token = client.share()
    assert client.release_with_turn(token, 1, 5000) == (1, 0)
    assert world.admin.cmd("GET", world.lock.w).endswith(b" 5000")
    reply = reader.read(reader.token())
    assert isinstance(reply, Busy) and 0 < reply.pttl <= 5000 and reply.kind == "none"
    assert world.holder() is None


def test_reader_that_leaves_others_reading_opens_no_window(world: World) -> None:
    client, token = world.new_reader()
    world.client().share()
    assert client.release_with_turn(token, 1, 5000) == (1, 0)
    assert world.admin.cmd("GET", world.lock.w) is None and world.holder() == SHARED


def test_reader_extends_again_after_many_others(world: World) -> None:
    client = world.client()
    tokens = [client.share(ttl_ms=TTL_MS) for _ in range(50)]
    assert all(client.extend_shared(token) == 2 for token in tokens)
    for token in tokens[:-1]:
        assert client.release(token) == (1, 0)
    assert list(world.readers()) == [tokens[-1]] and world.holder() == SHARED
