# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: after so many grants among ours the lock is left free for a while, for libraries that poll;
a turn that was taken starts the count anew, one that nobody took ends by itself.

Method: RELEASE with a burst and a window, and what ACQUIRE says before, in and after it."""

from __future__ import annotations

from .harness import MAX_ENTRIES, Busy, Held, World, eventually

WINDOW_MS = 5000


def open_window(world: World, window_ms: int = WINDOW_MS) -> None:
    client = world.client()
    token = client.token()
    assert isinstance(client.acquire(token, leaves_turns=True), Held)
    assert client.release_with_turn(token, 1, window_ms) == (1, 0)


def test_every_nth_release_opens_a_window(world: World) -> None:
    clients = [world.client() for _ in range(3)]
    held = clients[0].hold()
    second, third = clients[1].wait(), clients[2].wait()
    assert clients[0].release_with_turn(held, 2, WINDOW_MS) == (2, 0)
    assert world.holder() == second and world.admin.cmd("GET", world.lock.w) == b"1"
    clients[2].messages()
    assert clients[1].release_with_turn(second, 2, WINDOW_MS) == (1, 0)
    assert world.holder() is None
    assert world.admin.cmd("GET", world.lock.w) == b"w"
    assert 0 < world.pttl(world.lock.w) <= WINDOW_MS
    (told,) = clients[2].messages()
    assert told.ms == WINDOW_MS and world.queue()[0].startswith(third)


def test_window_without_waiters(world: World) -> None:
    open_window(world)
    assert world.keys() == {world.lock.f, world.lock.w}


def test_nobody_of_ours_takes_the_lock_in_the_window(world: World) -> None:
    open_window(world)
    client = world.client()
    token = client.token()
    reply = client.acquire(token, leaves_turns=True)
    assert isinstance(reply, Busy)
    assert 0 < reply.pttl <= WINDOW_MS and reply.kind == "none" and reply.rank == 0
    assert world.holder() is None
    assert world.admin.cmd("SET", world.lock.k, "theirs", "NX", "PX", 60_000) == "OK"


def test_turn_that_was_taken_ends_the_window(world: World) -> None:
    open_window(world)
    client = world.client()
    token = client.token()
    world.admin.cmd("SET", world.lock.k, "5e3b2f4ac6d911f0a1b20242ac120002", "NX", "PX", 60_000)
    reply = client.acquire(token, leaves_turns=True)
    assert isinstance(reply, Busy) and reply.kind == "string"
    assert world.admin.cmd("GET", world.lock.w) is None
    world.admin.cmd("DEL", world.lock.k)
    assert isinstance(client.acquire(token, leaves_turns=True), Held)


def test_turn_that_nobody_takes_ends_by_itself(world: World) -> None:
    client = world.client()
    open_window(world, 30)
    token = client.token()
    eventually(lambda: isinstance(client.acquire(token, leaves_turns=True), Held))
    assert world.holder() == token


def test_holder_of_ours_keeps_the_count(world: World) -> None:
    holder, waiter = world.client(), world.client()
    held = holder.hold()
    world.admin.cmd("SET", world.lock.w, 3, "PX", 60_000)
    waiter.acquire(waiter.token(), leaves_turns=True)
    assert world.admin.cmd("GET", world.lock.w) == b"3"
    assert holder.release_with_turn(held, 9, WINDOW_MS) == (2, 0)
    assert world.admin.cmd("GET", world.lock.w) == b"4"


def test_stranger_neither_counts_nor_opens(world: World) -> None:
    holder, stranger = world.client(), world.client()
    held = holder.hold()
    assert stranger.release_with_turn(stranger.token(), 1, WINDOW_MS) == (-1, 0)
    assert world.holder() == held and world.admin.cmd("GET", world.lock.w) is None


def test_clients_without_turns_take_no_notice(world: World) -> None:
    open_window(world)
    world.client().hold()


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
    world.admin.cmd("RPUSH", world.lock.w, "x")
    world.admin.cmd("PEXPIRE", world.lock.w, 60_000)
    token = holder.token()
    assert isinstance(holder.acquire(token, leaves_turns=True), Held)
    assert holder.release_with_turn(token, 9, WINDOW_MS) == (1, 0)
    assert world.admin.cmd("GET", world.lock.w) == b"1"


def test_dead_waiters_do_not_stop_the_turn(world: World) -> None:
    holder, living = world.client(), world.client()
    held = holder.hold()
    world.enqueue_dead(10)
    waiting = living.wait()
    assert MAX_ENTRIES > 10
    assert holder.release_with_turn(held, 1, WINDOW_MS) == (1, 0)
    assert [message.ms for message in living.messages()] == [WINDOW_MS]
    assert world.queue()[0].startswith(waiting)
