# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a server that is out of memory refuses new locks and nothing else: no lease is lost and no
lock stays held because of it. Method: `maxmemory 1`, with which a server denies a script's first
write if it may need memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.resp import RespError

from .harness import SHARED, Busy, Grant, Held, World, member_of
from .kinds import Kind, not_shared


def is_refused(call: Callable[[], object]) -> bool:
    # Before 7.0 the code stands within the message: "ERR Error running script ... -OOM ...".
    with pytest.raises(RespError) as refused:
        call()
    return "OOM" in str(refused.value)


@not_shared
def test_acquire_is_refused_and_leaves_nothing(kind: Kind, world: World) -> None:
    (client,) = kind.clients(1)
    with world.out_of_memory():
        assert is_refused(lambda: kind.ask(client, client.token()))
        assert is_refused(lambda: kind.tries(client, client.token()))
    assert world.keys() == set()


def test_queueing_is_refused_and_leaves_nothing(world: World) -> None:
    holder, waiter = world.client(), world.client()
    held = holder.hold()
    with world.out_of_memory():
        assert is_refused(lambda: waiter.acquire(waiter.token()))
        assert isinstance(waiter.try_acquire(waiter.token()), Busy)
    assert world.keys() == {world.lock.k, world.lock.f} and world.holder() == held


def test_refresh_and_extend_work(kind: Kind, world: World) -> None:
    (client,) = kind.clients(1)
    token = kind.hold(client, ttl_ms=5000)
    with world.out_of_memory():
        assert isinstance(kind.ask(client, token, ttl_ms=20_000), Held) and world.pttl() > 19_000
        assert kind.extend(client, token, 60_000) > 0
    assert world.pttl() > 59_000


def test_poll_by_a_waiter_works(kind: Kind, world: World) -> None:
    holder, waiter = kind.clients(2)
    holder.hold()
    token = kind.wait(waiter)
    with world.out_of_memory():
        assert isinstance(kind.ask(waiter, token), Busy)
        world.expire()
        assert isinstance(kind.ask(waiter, token), Held)
        assert isinstance(kind.ask(waiter, token), Held)
    assert kind.holders() == [token]


def test_poll_that_grants_another_works(world: World) -> None:
    world.client().hold()
    first = world.client().wait()
    second, token = world.new_waiter()
    world.expire()
    with world.out_of_memory():
        assert isinstance(second.acquire(token), Busy)
    assert world.holder() == first


def test_release_frees(kind: Kind, world: World) -> None:
    (client,) = kind.clients(1)
    token = kind.hold(client)
    with world.out_of_memory():
        assert client.release(token) == (1, 0)
    assert kind.holders() == []


def test_release_hands_over(kind: Kind, world: World) -> None:
    holder, dead, waiter = kind.clients(3)
    held = holder.hold()
    kind.wait(dead)
    token = kind.wait(waiter)
    dead.die()
    with world.out_of_memory():
        assert holder.release(held) == (2, 0)
    assert kind.holders() == [token]
    assert [type(message) for message in waiter.messages()] == [Grant]


def test_release_with_a_refused_publish_keeps_the_waiter(world: World) -> None:
    holder, held = world.new_holder()
    token = world.client().wait()
    with world.user("~*", "resetchannels", "+@all") as limited, world.out_of_memory():
        assert holder.release(held, connection=limited)[0] == 1
    assert world.queue() == [member_of(token)] and world.holder() is None


def test_extend_works(world: World) -> None:
    client, token = world.new_holder(ttl_ms=5000)
    with world.out_of_memory():
        assert client.extend(token, 20_000) == 1
        assert client.extend(token, 30_000, "host", "a") == 1
        assert client.extend(token, 10_000, "host", "b") == 1, "nothing to lengthen, yet to write"
        assert client.extend(token, 40_000, info=True) == 1
    assert world.pttl() > 39_000 and world.pttl(world.lock.i) > 39_000
    assert world.admin.cmd("HGET", world.lock.i, "host") == b"b"


def test_fence_is_raised_when_there_is_memory_again(world: World) -> None:
    # This belongs to taking a lock.
    client, token = world.new_holder()
    fence = int(world.admin.cmd("GET", world.lock.f))
    with world.out_of_memory():
        assert is_refused(lambda: client.raise_fence(token, fence + 1))
        assert client.raise_fence(token, fence) == 1, "nothing to write"
        assert client.raise_fence(client.token(), fence + 1) == 0
    assert int(world.admin.cmd("GET", world.lock.f)) == fence
    assert client.raise_fence(token, fence + 1) == 1


def test_cancel_works_and_hands_over(kind: Kind, world: World) -> None:
    holder, waiter, second = kind.clients(3)
    holder.hold()
    token, behind = waiter.wait(), kind.wait(second)
    with world.out_of_memory():
        assert second.cancel(kind.member(second, second.token())) == (0, 0)
        world.expire()
        assert waiter.cancel(waiter.member(token)) == (1, 0)
    assert kind.holders() == [behind]


def test_kick_works(kind: Kind, world: World) -> None:
    holder, waiter = kind.clients(2)
    holder.hold()
    token = kind.wait(waiter)
    with world.out_of_memory():
        assert world.serve_queue() == (0, 0)
        world.expire()
        assert world.serve_queue() == (1, 0)
    assert kind.holders() == [token]


def test_force_release_works(kind: Kind, world: World) -> None:
    holder, waiter = kind.clients(2)
    holder.hold()
    token = kind.wait(waiter)
    with world.out_of_memory():
        assert world.force_release() == (1, 0)
        assert kind.holders() == [token]
        assert world.force_release() == (1, 0)
        assert world.force_release() == (0, 0)
    assert kind.holders() == []


def test_inspect_and_probe_work(world: World) -> None:
    client, _ = world.new_holder()
    with world.out_of_memory():
        assert world.inspect()[1] == b"string"
        channels = (client.channel, world.prefix + "unused")
        assert world.run("probe", channels[:1], *channels) == [1, 0]


def test_readers_are_served_like_writers(world: World) -> None:
    holder, dead, reader, second = (world.client() for _ in range(4))
    held = holder.hold()
    dead.wait_to_read()
    tokens = {reader.wait_to_read(), second.wait_to_read()}
    dead.die()
    with world.out_of_memory():
        assert holder.release(held) == (3, 0)
        assert set(world.readers()) == tokens and world.holder() == SHARED
        assert all(reader.extend_shared(token, 60_000) == 2 for token in tokens)
        assert world.pttl() > 59_000
        assert reader.extend_shared(reader.token()) == -1


def test_readers_end_one_by_one_and_let_the_writer_in(world: World) -> None:
    first, second, writer = (world.client() for _ in range(3))
    tokens = first.share(ttl_ms=60_000), second.share(ttl_ms=5000)
    behind = writer.wait()
    with world.out_of_memory():
        assert first.release(tokens[0]) == (1, 0) and world.pttl() <= 5000
        assert world.serve_queue() == (0, 0)
        assert second.release(tokens[1]) == (2, 0)
    assert world.holder() == behind


def test_upgrade_and_downgrade_work(world: World) -> None:
    client, token = world.new_reader()
    with world.out_of_memory():
        assert isinstance(client.upgrade(token, queues=False), Held)
        assert isinstance(client.upgrade(token), Held)
    reader, last = world.new_waiting_reader()
    with world.out_of_memory():
        assert client.downgrade(token) == (1, 0) and client.downgrade(token) == (1, 0)
        assert set(world.readers()) == {token, last}
        assert isinstance(client.upgrade(token, queues=False), Busy)
        reply = client.upgrade(token)
        assert isinstance(reply, Busy) and reply.rank == 0
        assert reader.upgrade(last) == -2
        assert reader.release(last) == (2, 0)
    assert world.holder() == token


@pytest.mark.parametrize("is_gone", [True, False])
def test_upgrade_that_cannot_be_handed_over_reads_on(world: World, is_gone: bool) -> None:
    (client, token), (other, last) = world.new_reader(), world.new_reader()
    assert isinstance(client.upgrade(token), Busy)
    if is_gone:
        client.die()
    rules = ("~*", "resetchannels", "&*" if is_gone else "&other", "+@all")
    with world.user(*rules) as limited, world.out_of_memory():
        assert other.release(last, connection=limited)[0] == 1
    assert list(world.readers()) == [token] and len(world.queue()) == (0 if is_gone else 1)


def test_cancel_and_forced_release_serve_readers(world: World) -> None:
    token = world.client().share()
    writer, behind = world.new_waiter()
    last = world.client().wait_to_read()
    with world.out_of_memory():
        assert writer.cancel(writer.member(behind)) == (1, 0)
        assert set(world.readers()) == {token, last}
        assert world.force_release(token) == (1, 0) and list(world.readers()) == [last]
        assert world.force_release() == (1, 0)
    assert world.holder() is None


def test_holds_of_an_owner_end_one_by_one(hashed: World) -> None:
    client = hashed.client(owner="o")
    tokens = [client.hold(), client.hold(), client.hold()]
    with hashed.out_of_memory():
        assert client.release(tokens[0]) == (0, 0) and hashed.owners() == {"o": 2}
        assert hashed.force_release(tokens[1]) == (1, 0) and hashed.owners() == {"o": 1}
        assert client.release(tokens[2]) == (1, 0)
    assert hashed.owners() == {} and hashed.readers() == {}
