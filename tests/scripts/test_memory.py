# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a server that is out of memory refuses new locks and nothing else: no lease is lost and no
lock stays held because of it. Method: `maxmemory 1`, with which a server denies a script's first
write if it may need memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.resp import RespError

from .harness import Busy, Grant, Held, World, member_of


def is_refused(call: Callable[[], object]) -> bool:
    # Before 7.0 the code stands within the message: "ERR Error running script ... -OOM ...".
    with pytest.raises(RespError) as refused:
        call()
    return "OOM" in str(refused.value)


def test_acquire_is_refused_and_leaves_nothing(world: World) -> None:
    client = world.client()
    with world.out_of_memory():
        assert is_refused(lambda: client.acquire(client.token()))
        assert is_refused(lambda: client.try_acquire(client.token()))
    assert world.keys() == set()


def test_queueing_is_refused_and_leaves_nothing(world: World) -> None:
    holder, waiter = world.client(), world.client()
    held = holder.hold()
    with world.out_of_memory():
        assert is_refused(lambda: waiter.acquire(waiter.token()))
        assert isinstance(waiter.try_acquire(waiter.token()), Busy)
    assert world.keys() == {world.lock.k, world.lock.f} and world.holder() == held


def test_refresh_works(world: World) -> None:
    client = world.client()
    token = client.hold(lease_ms=5000)
    with world.out_of_memory():
        assert isinstance(client.acquire(token, lease_ms=20_000), Held)
    assert world.pttl() > 19_000


def test_poll_by_a_waiter_works(world: World) -> None:
    holder, waiter = world.client(), world.client()
    holder.hold()
    token = waiter.wait()
    with world.out_of_memory():
        assert isinstance(waiter.acquire(token), Busy)
        world.expire()
        assert isinstance(waiter.acquire(token), Held)


def test_poll_that_grants_another_works(world: World) -> None:
    holder, head, second = world.client(), world.client(), world.client()
    holder.hold()
    first = head.wait()
    token = second.wait()
    world.expire()
    with world.out_of_memory():
        assert isinstance(second.acquire(token), Busy)
    assert world.holder() == first


def test_release_frees(world: World) -> None:
    client = world.client()
    token = client.hold()
    with world.out_of_memory():
        assert client.release(token) == (1, 0)
    assert world.holder() is None


def test_release_hands_over(world: World) -> None:
    holder, dead, waiter = world.client(), world.client(), world.client()
    held = holder.hold()
    dead.wait()
    token = waiter.wait()
    dead.die()
    with world.out_of_memory():
        assert holder.release(held) == (2, 0)
    assert world.holder() == token
    assert [type(message) for message in waiter.messages()] == [Grant]


def test_release_with_a_refused_publish_keeps_the_waiter(world: World) -> None:
    holder, waiter = world.client(), world.client()
    held = holder.hold()
    token = waiter.wait()
    with world.user("~*", "resetchannels", "+@all") as limited, world.out_of_memory():
        assert holder.release(held, connection=limited)[0] == 1
    assert world.queue() == [member_of(token)] and world.holder() is None


def test_extend_works(world: World) -> None:
    client = world.client()
    token = client.hold(lease_ms=5000)
    with world.out_of_memory():
        assert client.extend(token, 20_000) == 1
        assert client.extend(token, 30_000, "host", "a") == 1
        assert client.extend(token, 10_000, "host", "b") == 1, "nothing to lengthen, yet to write"
        assert client.extend(token, 40_000, info=True) == 1
    assert world.pttl() > 39_000 and world.pttl(world.lock.i) > 39_000
    assert world.admin.cmd("HGET", world.lock.i, "host") == b"b"


def test_cancel_works_and_hands_over(world: World) -> None:
    holder, waiter, second = world.client(), world.client(), world.client()
    holder.hold()
    token = waiter.wait()
    behind = second.wait()
    with world.out_of_memory():
        assert second.cancel(member_of(second.token())) == (0, 0)
        world.expire()
        assert waiter.cancel(member_of(token)) == (1, 0)
    assert world.holder() == behind


def test_kick_works(world: World) -> None:
    holder, waiter = world.client(), world.client()
    holder.hold()
    token = waiter.wait()
    with world.out_of_memory():
        assert world.kick() == (0, 0)
        world.expire()
        assert world.kick() == (1, 0)
    assert world.holder() == token


def test_force_release_works(world: World) -> None:
    holder, waiter = world.client(), world.client()
    holder.hold()
    token = waiter.wait()
    with world.out_of_memory():
        assert world.force_release() == (1, 0)
        assert world.holder() == token
        assert world.force_release() == (1, 0)
        assert world.force_release() == (0, 0)
    assert world.holder() is None


def test_inspect_and_probe_work(world: World) -> None:
    client = world.client()
    client.hold()
    with world.out_of_memory():
        assert world.inspect()[1] == b"string"
        assert world.run("probe", [], client.channel, world.prefix + "unused") == [1, 0]
