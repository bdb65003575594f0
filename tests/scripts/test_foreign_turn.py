# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: after so many grants among ours the lock is left free for a while, for libraries that poll:
always if a client wants that, else where a holder of theirs was seen; a turn that was taken starts
the count anew, one that was not taken ends by itself.

Method: RELEASE with a burst and a window, and what ACQUIRE says before, in and after it."""

from __future__ import annotations

import pytest

from .harness import MAX_ENTRIES, QUEUE_TTL_MS, Busy, Client, Held, World, eventually, as_busy

WINDOW_MS = 5000
# Where one was seen, and how often what is left to them is offered in vain.
EVERY, LIMIT = 16, 6
THEIRS = "5e3b2f4ac6d911f0a1b20242ac120002"
AUTOMATIC, NEVER, SEARCHING = -1, 0, -2
SEARCH_MS = 60_000


def mark(world: World) -> tuple[int, int, int] | None:
    """Count, missed windows, and for how many ms there is one."""
    value = world.admin.cmd("GET", world.lock.w)
    if value is None:
        return None
    count, missed, since, length = (int(word) for word in value.split())
    assert since <= world.now_us() // 1000
    return count, missed, length


def has_window(world: World) -> bool:
    found = mark(world)
    return found is not None and found[2] > 0


def set_mark(world: World, count: int, missed: int = 0) -> None:
    """.. as if ours had the lock since long ago."""
    world.admin.cmd("SET", world.lock.w, f"{count} {missed} 0 0", "PX", 60_000)


def take_and_leave(world: World, client: Client) -> None:
    """A holder of theirs that a client of ours sees, long ago."""
    assert world.admin.cmd("SET", world.lock.k, THEIRS, "NX", "PX", 60_000) == "OK"
    assert isinstance(client.try_acquire(client.token()), Busy)
    assert mark(world) == (0, 0, 0) and 0 < world.pttl(world.lock.w) <= QUEUE_TTL_MS
    set_mark(world, 0)
    world.admin.cmd("DEL", world.lock.k)


def cycle(client: Client, grants: int = 1, burst: int = AUTOMATIC) -> None:
    token = client.hold()
    assert client.release_with_turn(token, burst, WINDOW_MS, grants) == (1, 0)


def open_window(world: World, window_ms: int = WINDOW_MS) -> None:
    client = world.client()
    token = client.token()
    assert isinstance(client.acquire(token), Held)
    assert client.release_with_turn(token, 1, window_ms) == (1, 0)


def test_every_nth_release_opens_a_window(world: World) -> None:
    clients = [world.client() for _ in range(3)]
    held = clients[0].hold()
    second, third = clients[1].wait(), clients[2].wait()
    assert clients[0].release_with_turn(held, 2, WINDOW_MS) == (2, 0)
    assert world.holder() == second and mark(world) == (1, 0, 0)
    clients[2].messages()
    assert clients[1].release_with_turn(second, 2, WINDOW_MS) == (1, 0)
    assert world.holder() is None
    assert has_window(world) and 0 < world.pttl(world.lock.w) <= QUEUE_TTL_MS
    # It looks at once, and has the key watched: who takes it was there.
    assert clients[2].was_told(third, 0) and world.queue()[0].startswith(third)


def test_those_next_to_the_head_look_when_a_window_is_over(world: World) -> None:
    # The head may be gone without a word.
    holder, *clients = [world.client() for _ in range(6)]
    held = holder.hold()
    waiting = [client.wait() for client in clients]
    assert holder.release_with_turn(held, 1, WINDOW_MS) == (1, 0)
    for place, (client, token) in enumerate(zip(clients[:4], waiting)):
        assert client.was_told(token, WINDOW_MS + 20 * place if place else 0)
    assert clients[4].messages() == []


def test_window_without_waiters(world: World) -> None:
    open_window(world)
    assert world.keys() == {world.lock.f, world.lock.w}


def test_our_clients_are_kept_out_in_the_window(world: World) -> None:
    open_window(world)
    client = world.client()
    token = client.token()
    reply = as_busy(client.acquire(token))
    assert 0 < reply.pttl <= WINDOW_MS and reply.kind == "none" and reply.rank == 0
    assert world.holder() is None
    assert world.admin.cmd("SET", world.lock.k, "theirs", "NX", "PX", 60_000) == "OK"


def test_window_of_another_time_is_ignored(world: World) -> None:
    # The server's clock went back.
    client, now = world.client(), world.now_us() // 1000
    value = f"0 0 {now + 60_000} {WINDOW_MS}"
    world.admin.cmd("SET", world.lock.w, value, "PX", 60_000)
    assert isinstance(client.acquire(client.token()), Held)


def test_turn_that_was_taken_ends_the_window(world: World) -> None:
    open_window(world)
    client = world.client()
    token = client.token()
    world.admin.cmd("SET", world.lock.k, THEIRS, "NX", "PX", 60_000)
    reply = client.acquire(token)
    assert isinstance(reply, Busy) and reply.kind == "string"
    assert mark(world) == (0, 0, 0)
    world.admin.cmd("DEL", world.lock.k)
    assert isinstance(client.acquire(token), Held)


def test_unused_turn_ends_by_itself(world: World) -> None:
    client = world.client()
    open_window(world, 30)
    token = client.token()
    eventually(lambda: isinstance(client.acquire(token), Held))
    assert world.holder() == token


def test_holder_of_ours_keeps_the_count(world: World) -> None:
    holder, waiter = world.client(), world.client()
    held = holder.hold()
    set_mark(world, 3)
    waiter.acquire(waiter.token())
    assert mark(world) == (3, 0, 0)
    assert holder.release_with_turn(held, 9, WINDOW_MS) == (2, 0)
    assert mark(world) == (4, 0, 0)


def test_stranger_neither_counts_nor_opens(world: World) -> None:
    holder, stranger = world.client(), world.client()
    held = holder.hold()
    assert stranger.release_with_turn(stranger.token(), 1, WINDOW_MS) == (-1, 0)
    assert world.holder() == held and world.admin.cmd("GET", world.lock.w) is None


def test_release_with_turn_works_without_memory(world: World) -> None:
    clients = [world.client() for _ in range(3)]
    held = clients[0].hold()
    second = clients[1].wait()
    clients[2].wait()
    with world.out_of_memory():
        assert clients[0].release_with_turn(held, 2, WINDOW_MS) == (2, 0)
        assert clients[1].release_with_turn(second, 2, WINDOW_MS) == (1, 0)
    assert world.holder() is None


def test_count_of_another_type_does_no_harm(world: World) -> None:
    holder = world.client()
    world.put("RPUSH", world.lock.w, "x", ms=60_000)
    token = holder.token()
    assert isinstance(holder.acquire(token), Held)
    assert holder.release_with_turn(token, 9, WINDOW_MS) == (1, 0)
    assert mark(world) == (1, 0, 0)


def test_dead_waiters_do_not_stop_the_turn(world: World) -> None:
    holder, held = world.new_holder()
    world.enqueue_dead(10)
    living, waiting = world.new_waiter()
    assert MAX_ENTRIES > 10
    assert holder.release_with_turn(held, 1, WINDOW_MS) == (1, 0)
    assert living.was_told(waiting, 0)
    assert world.queue()[0].startswith(waiting)


# ---- by itself -----------------------------------------------------------------------------------


def test_where_none_of_theirs_was_seen_there_is_no_window(world: World) -> None:
    client, waiter = world.client(), world.client()
    held = client.hold()
    for _ in range(EVERY + 1):
        behind = waiter.wait()
        assert client.release_with_turn(held, AUTOMATIC, WINDOW_MS, 31) == (2, 0)
        held, client, waiter = behind, waiter, client
    assert mark(world) is None


def test_holder_of_theirs_that_was_seen_is_followed_by_windows(world: World) -> None:
    client, waiter = world.client(), world.client()
    take_and_leave(world, client)
    held = client.hold()
    for _ in range(EVERY - 1):
        behind = waiter.wait()
        assert client.release_with_turn(held, AUTOMATIC, WINDOW_MS) == (2, 0)
        held, client, waiter = behind, waiter, client
    behind = waiter.wait()
    waiter.messages()
    assert client.release_with_turn(held, AUTOMATIC, WINDOW_MS) == (1, 0)
    assert has_window(world) and world.holder() is None and waiter.was_told(behind, 0)


def test_local_hand_off_counts(world: World) -> None:
    client = world.client()
    take_and_leave(world, client)
    cycle(client, EVERY - 1)
    assert not has_window(world)
    cycle(client)
    assert has_window(world)


def test_unused_windows_are_rarer_and_end(world: World) -> None:
    client = world.client()
    take_and_leave(world, client)
    for missed in range(LIMIT):
        cycle(client, EVERY * 2**missed - 1)
        assert not has_window(world)
        cycle(client)
        assert mark(world) == (0, missed + 1, WINDOW_MS)
        # .. and is over.
        set_mark(world, 0, missed + 1)
    cycle(client, EVERY * 2**LIMIT - 1)
    assert mark(world) is not None
    cycle(client)
    assert mark(world) is None and world.keys() == {world.lock.f}


def test_taken_window_starts_anew(world: World) -> None:
    client = world.client()
    take_and_leave(world, client)
    cycle(client, EVERY)
    assert mark(world) == (0, 1, WINDOW_MS)
    take_and_leave(world, client)
    assert mark(world) == (0, 0, 0)


def test_ours_have_it_for_as_long_as_they_leave_it(world: World) -> None:
    client = world.client()
    take_and_leave(world, client)
    since = world.now_us() // 1000
    world.admin.cmd("SET", world.lock.w, f"100 0 {since - 900_000} {900_000}", "PX", 60_000)
    cycle(client)
    assert mark(world) == (101, 0, 0)
    world.admin.cmd("SET", world.lock.w, f"100 0 {since - WINDOW_MS} 0", "PX", 60_000)
    cycle(client)
    assert mark(world) == (0, 1, WINDOW_MS)


def test_client_that_never_leaves_a_turn_neither_counts_nor_opens(world: World) -> None:
    client = world.client()
    take_and_leave(world, client)
    for _ in range(EVERY):
        cycle(client, 31, NEVER)
    assert mark(world) == (0, 0, 0)


def test_holder_of_ours_is_no_sign_of_theirs(world: World) -> None:
    holder, other = world.client(), world.client()
    for take in (holder.hold, holder.share):
        token = take()
        other.acquire(other.token())
        assert mark(world) is None
        holder.release(token)
        world.admin.cmd("DEL", world.lock.q, world.lock.k, world.lock.r)


def test_sign_of_theirs_is_not_needed_without_memory(world: World) -> None:
    client = world.client()
    world.admin.cmd("SET", world.lock.k, THEIRS, "PX", 60_000)
    with world.out_of_memory():
        assert isinstance(client.try_acquire(client.token()), Busy)
    assert mark(world) is None


@pytest.mark.parametrize("burst", [AUTOMATIC, 3])
def test_count_of_another_type_makes_no_window(world: World, burst: int) -> None:
    client = world.client()
    world.put("RPUSH", world.lock.w, "0 0 0 0", ms=60_000)
    cycle(client, 1, burst)
    assert mark(world) == ((1, 0, 0) if burst > 0 else None)


# ---- a search ------------------------------------------------------------------------------------


def test_a_search_leaves_the_lock_free_once_in_a_minute(world: World) -> None:
    clients = [world.client() for _ in range(4)]
    held = clients[0].hold()
    waiting = [client.wait() for client in clients[1:]]
    assert clients[0].release_with_turn(held, SEARCHING, WINDOW_MS) == (1, 0)
    # A window is at most one part of 400.
    least_ms = 400 * WINDOW_MS
    assert world.holder() is None and least_ms - 5000 < world.pttl(world.lock.w) <= least_ms
    assert clients[1].was_told(waiting[0], 0), "it looks at once"
    reply = clients[1].acquire(waiting[0], ticket=world.now_us())
    assert isinstance(reply, Busy) and reply.kind == "none" and 0 < reply.pttl <= WINDOW_MS
    value = world.admin.cmd("GET", world.lock.w)
    assert value.startswith(b"p 0 ")
    # The window is over; who releases then hands it over, and the next search is a minute later.
    world.admin.cmd("SET", world.lock.w, b"p 0 0 5000", "KEEPTTL")
    assert isinstance(clients[1].acquire(waiting[0], ticket=world.now_us()), Held)
    assert clients[1].release_with_turn(waiting[0], SEARCHING, WINDOW_MS) == (2, 0)
    assert clients[2].release_with_turn(waiting[1], AUTOMATIC, WINDOW_MS) == (2, 0)
    assert world.holder() == waiting[2] and world.admin.cmd("GET", world.lock.w) == b"p 0 0 5000"


@pytest.mark.parametrize("burst", [AUTOMATIC, NEVER])
def test_only_a_client_that_searches_leaves_it_free(world: World, burst: int) -> None:
    holder, held = world.new_holder()
    token = world.client().wait()
    assert holder.release_with_turn(held, burst, WINDOW_MS) == (2, 0)
    assert world.holder() == token and mark(world) is None


def test_without_a_waiter_there_is_no_search(world: World) -> None:
    cycle(world.client(), 1, SEARCHING)
    assert world.keys() == {world.lock.f}


def test_a_search_that_finds_one_becomes_a_mark(world: World) -> None:
    holder, held = world.new_holder()
    waiter, token = world.new_waiter()
    assert holder.release_with_turn(held, SEARCHING, WINDOW_MS) == (1, 0)
    assert world.admin.cmd("SET", world.lock.k, THEIRS, "NX", "PX", 60_000) == "OK"
    assert isinstance(waiter.acquire(token, ticket=world.now_us()), Busy)
    assert mark(world) == (0, 0, 0) and world.pttl(world.lock.w) <= QUEUE_TTL_MS


def test_the_next_search_is_a_minute_later(world: World) -> None:
    holder, held = world.new_holder()
    world.client().wait()
    assert holder.release_with_turn(held, SEARCHING, 150) == (1, 0)
    assert SEARCH_MS - 5000 < world.pttl(world.lock.w) <= SEARCH_MS


def test_a_turn_that_was_asked_for_ends_a_search(world: World) -> None:
    world.admin.cmd("SET", world.lock.w, "p 0 0 5000", "PX", SEARCH_MS)
    cycle(world.client(), 1, 2)
    assert mark(world) == (1, 0, 0)


# ---- who looks when theirs goes ------------------------------------------------------------------


def test_new_head_behind_theirs_looks_at_once(world: World) -> None:
    # Only its look has the key watched.
    first, second = world.client(), world.client()
    world.admin.cmd("SET", world.lock.k, THEIRS, "PX", 60_000)
    leaving, staying = first.wait(), second.wait()
    assert first.cancel(first.member(leaving)) == (1, 0)
    assert second.was_told(staying, 0)


def test_poll_behind_a_foreign_holder_removes_the_dead(world: World) -> None:
    world.admin.cmd("SET", world.lock.k, THEIRS, "PX", 60_000)
    world.enqueue_dead(3)
    first, token = world.new_waiter()
    second, behind = world.new_waiter()
    reply = second.acquire(behind, ticket=world.now_us())
    assert isinstance(reply, Busy) and reply.rank == 1
    assert first.was_told(token, 0)
    assert world.queue() == [first.member(token), second.member(behind)]
