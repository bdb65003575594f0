# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a key whose type no lock has is reported by that type, in every format; nothing is queued
or written because of it. Method: each such type, each script that meets it; then the same key in
place of a lock that is held and waited for."""

from __future__ import annotations

from typing import Any

import pytest
from support.resp import Argument

from .harness import TTL_MS, Busy, Client, World, check_of

KINDS: dict[str, tuple[Argument, ...]] = {
    "list": ("RPUSH", "x"),
    "set": ("SADD", "x"),
    "zset": ("ZADD", "1", "x"),
    "stream": ("XADD", "*", "a", "b"),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def make(world: World, kind: str) -> bytes:
    """The key in place of a lock; its dump."""
    command, *words = KINDS[kind]
    world.may_disagree = True
    world.admin.cmd("DEL", world.lock.k)
    world.admin.cmd(command, world.lock.k, *words)
    world.admin.cmd("PEXPIRE", world.lock.k, 50_000)
    dump: bytes = world.admin.cmd("DUMP", world.lock.k)
    return dump


def check_untouched(world: World, dump: bytes) -> None:
    assert world.keys() == {world.lock.k}, "and no other key"
    assert world.admin.cmd("DUMP", world.lock.k) == dump
    assert 49_000 < world.pttl() <= 50_000


def check_refused(reply: object, kind: str) -> None:
    assert isinstance(reply, Busy)
    assert (reply.kind, reply.holder, reply.ticket, reply.rank) == (kind, b"", "", -1)
    assert 49_000 < reply.pttl <= 50_000 and (reply.flags, reply.reader) == (0, b"")


@every_kind
def test_string_format(world: World, kind: str) -> None:
    client, dump = world.client(), make(world, kind)
    for reply in (
        client.acquire(client.token()),
        client.acquire(client.token(), ticket=1),
        client.try_acquire(client.token()),
        client.read(client.token()),
        client.read(client.token(), queues=False),
    ):
        check_refused(reply, kind)
        check_untouched(world, dump)
    for expected in ("", client.token()):
        assert world.force_release(expected) == (-2, 0)
    token = client.token()
    assert client.release(token) == (-1, 0) and client.extend(token) == 0
    assert client.extend_shared(token) == 0 and world.serve_queue() == (0, 0)
    assert client.cancel(client.member(token)) == (0, 0)
    assert world.inspect()[1:3] == [kind.encode(), b""]
    check_untouched(world, dump)


@every_kind
def test_vote(world: World, kind: str) -> None:
    lock, client, dump = world.lock, world.client(), make(world, kind)
    keys, token = [*lock.keys, lock.w], client.token()
    reply = world.run("vote", keys, token, TTL_MS, "", "", world.prefix)
    assert (reply[0], reply[3:8]) == (0, [b"", -1, check_of(lock.k).encode(), b"", kind.encode()])
    check_untouched(world, dump)


def test_force_release_keeps_a_field_without_a_count(hashed: World) -> None:
    hashed.put("HSET", hashed.lock.k, "colour", "red", ms=50_000)
    before = hashed.admin.cmd("DUMP", hashed.lock.k)
    assert hashed.force_release() == (-1, 0)
    check_untouched(hashed, before)
    hashed.admin.cmd("HSET", hashed.lock.k, "colour", "3")
    assert hashed.force_release() == (1, 0)


@every_kind
def test_hash_format(hashed: World, kind: str) -> None:
    client, dump = hashed.client(owner="o"), make(hashed, kind)
    for reply in (client.acquire(client.token()), client.try_acquire(client.token())):
        check_refused(reply, kind)
    for expected in ("", client.token()):
        assert hashed.force_release(expected) == (-2, 0)
    token = client.token()
    assert client.extend_shared(token) == 0 and client.release(token) == (-1, 0)
    assert hashed.serve_queue() == (0, 0) and client.cancel(client.member(token)) == (0, 0)
    check_untouched(hashed, dump)


@every_kind
def test_hash_rw_format(
    world: World, composed: tuple[object, dict[str, str]], kind: str
) -> None:
    lock, client, dump = world.lock, world.client(), make(world, kind)
    keys = [lock.k, lock.q, lock.f, lock.r, lock.w]

    def call(name: str, *words: Argument) -> Any:
        text = composed[1][f"{name}.hash_rw" + (".sharded" if world.sharded else "")]
        return client.connection.cmd("EVAL", text, len(keys), *keys, *words)

    for name, more in (("acquire", ()), ("acquire_read", ("",))):
        for member in (client.member(client.token()), ""):
            reply = call(name, client.token(), TTL_MS, member, "", world.prefix, *more)
            assert (reply[0], reply[3:5], reply[6:9]) == (0, [b"", -1], [b"", kind.encode(), 0])
            check_untouched(world, dump)
    reply = call("force_release", "", world.prefix)
    assert reply[0] == -2 and reply[2:] == [0, kind.encode()]
    check_untouched(world, dump)


def test_waiters_learn_of_it_one_after_the_other(world: World) -> None:
    """A lock that is held and waited for becomes a list: the head sees it with its next poll, and
    its CANCEL notifies the next waiter."""
    waiters: list[tuple[Client, str, str]] = []
    world.client().hold()
    for _ in range(3):
        client = world.client()
        client.subscribe()
        reply = client.acquire(token := client.token())
        assert isinstance(reply, Busy) and reply.ticket
        waiters.append((client, token, reply.ticket))
    dump = make(world, "list")
    for place, (client, token, ticket) in enumerate(waiters):
        client.messages() if place == 0 else None
        assert place == 0 or client.was_told(token, 0)
        check_refused(client.acquire(token, ticket=ticket), "list")
        assert client.cancel(client.member(token)) == (1, 0)
    assert world.queue() == [] and world.admin.cmd("DUMP", world.lock.k) == dump


def test_a_holder_has_lost_it(world: World) -> None:
    client, token = world.new_holder()
    dump = make(world, "set")
    assert client.extend(token) == 0 and client.release(token) == (-1, 0)
    assert client.downgrade(token)[0] == 0 and client.upgrade(token) == -1
    assert client.detach(token) == 0 and client.attach(token, "1")[0] == 0
    assert world.admin.cmd("DUMP", world.lock.k) == dump
