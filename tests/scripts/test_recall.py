# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a recall reaches the client of each holder and no other one, in every format, and changes
nothing. Method: one request at a time; the keys before and after."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.resp import Argument, Connection, RespError

from .harness import (
    TTL_MS,
    Client,
    Held,
    Lock,
    Recalled,
    World,
    rid_of,
)
from .kinds import Kind, several

MAX_REASON_BYTES = 128
OTHER_FORMAT = -1


def recall(world: World, reason: Argument = "why", connection: Connection | None = None) -> int:
    """How many holders have heard it. No key may differ afterwards."""
    lock, before = world.lock, contents(world)
    heard, now = world.run(
        lock.script("recall"), [lock.k, lock.r], world.prefix, reason, connection=connection
    )
    assert len(str(now)) == 13
    assert contents(world) == before
    return int(heard)


def contents(world: World) -> dict[str, tuple[bytes, int]]:
    """Each key with its dump, and the time at which it expires."""
    admin = world.admin
    return {key: (admin.cmd("DUMP", key), admin.cmd("PEXPIRETIME", key)) for key in world.keys()}


def heard_by(client: Client, token: str, reason: str = "why") -> bool:
    return client.messages() == [Recalled(rid_of(token), reason)]


# ---- every kind of lock --------------------------------------------------------------------------


def test_the_holder_hears_it(kind: Kind, world: World) -> None:
    holder, other = kind.clients(2)
    token = kind.hold(holder)
    assert recall(world) == 1
    assert heard_by(holder, token) and other.messages() == []
    assert holder.release(token) == (1, 0)


def test_each_recall_is_sent(kind: Kind, world: World) -> None:
    (holder,) = kind.clients(1)
    token = kind.hold(holder)
    for reason in ("first", "", "third"):
        assert recall(world, reason) == 1
        assert heard_by(holder, token, reason)


def test_a_free_lock_has_no_holders(kind: Kind, world: World) -> None:
    (client,) = kind.clients(1)
    assert recall(world) == 0
    client.release(kind.hold(client))
    assert recall(world) == 0
    assert client.messages() == []


def test_a_waiter_hears_nothing(kind: Kind, world: World) -> None:
    holder, waiter = kind.clients(2)
    token = holder.hold()
    kind.wait(waiter)
    waiter.messages()
    assert recall(world) == 1
    assert heard_by(holder, token) and waiter.messages() == []
    assert len(world.queue()) == 1


def test_a_holder_whose_client_is_gone_does_not_count(kind: Kind, world: World) -> None:
    (holder,) = kind.clients(1)
    token = kind.hold(holder)
    holder.die()
    assert recall(world) == 0
    assert holder.release(token) == (1, 0)


def test_a_token_that_can_be_recalled_has_its_digit(kind: Kind, world: World) -> None:
    """The client of a lock that may be retained is asked like any other."""
    (holder,) = kind.clients(1)
    token = holder.token(is_recallable=True)
    assert isinstance(kind.ask(holder, token), Held)
    assert recall(world) == 1
    assert heard_by(holder, token) and rid_of(token) > "8"


@pytest.mark.parametrize(
    "reason",
    ["", ":", "a:b", "two\r\nlines", "é\0\x1b[31m%s", "x" * MAX_REASON_BYTES],
    ids=["empty", "colon", "colons", "lines", "bytes", "longest"],
)
def test_the_reason_may_be_any_bytes(kind: Kind, world: World, reason: str) -> None:
    (holder,) = kind.clients(1)
    token = kind.hold(holder)
    assert recall(world, reason) == 1
    assert heard_by(holder, token, reason)


# ---- several holders -----------------------------------------------------------------------------


def hold_together(kind: Kind, world: World, count: int) -> list[tuple[Client, str]]:
    """Clients that read, that are processes of one owner, or that have a permit each."""
    owner = f"1/{count}" if kind.has_permits else kind.owner(0)
    clients = [world.client(owner=owner) for _ in range(count)]
    return [(client, kind.hold(client)) for client in clients]


together = pytest.mark.parametrize("kind", ["readers", "owners", "permits"], indirect=True)


@together
def test_all_holders_hear_it(kind: Kind, world: World) -> None:
    holders = hold_together(kind, world, 3)
    assert recall(world) == 3
    assert all(heard_by(client, token) for client, token in holders)


@together
def test_at_most_256_holders_are_asked(kind: Kind, world: World) -> None:
    """Those whose leases end first."""
    count, most = 300, 256
    client = world.client(owner=f"1/{count}" if kind.has_permits else kind.owner(0))
    tokens = [kind.hold(client, ttl_ms=TTL_MS + 1000 * i) for i in range(count)]
    tokens = tokens[1:] + tokens[:1]
    assert kind.extend(client, tokens[-1], TTL_MS + 1000 * count) >= 1
    assert recall(world) == most
    heard = [message.rid for message in client.messages() if isinstance(message, Recalled)]
    assert heard == [rid_of(token) for token in tokens[:most]]


@together
def test_those_count_whose_client_is_there(kind: Kind, world: World) -> None:
    (first, token), (dead, _), (last, other) = hold_together(kind, world, 3)
    dead.die()
    assert recall(world) == 2
    assert heard_by(first, token) and heard_by(last, other)


@together
def test_one_that_was_released_hears_nothing(kind: Kind, world: World) -> None:
    (first, token), (second, other) = hold_together(kind, world, 2)
    assert first.release(token) == ((0, 0) if kind.is_hash else (1, 0))
    assert recall(world) == 1
    assert first.messages() == [] and heard_by(second, other)


@together
def test_one_whose_lease_has_ended_hears_nothing(kind: Kind, world: World) -> None:
    (first, token), (second, other) = hold_together(kind, world, 2)
    world.may_disagree = True  # Its entry stays until the next script that writes.
    world.end_lease(token)
    assert recall(world) == 1
    assert first.messages() == [] and heard_by(second, other)


@together
def test_a_client_hears_it_for_each_of_its_leases(kind: Kind, world: World) -> None:
    client = world.client(owner="1/2" if kind.has_permits else kind.owner(0))
    tokens = [kind.hold(client), kind.hold(client)]
    assert recall(world) == 2
    heard = client.messages()
    assert sorted(rid_of(token) for token in tokens) == sorted(
        message.rid for message in heard if isinstance(message, Recalled)
    )


def test_more_permits_are_one_holder(world: World) -> None:
    world.lock = Lock("app:", "orders", has_permits=True)
    alone = world.client(owner="3/5")
    token = alone.hold()
    assert world.holder() == f"rl:permits:3/5 {token}3", "the value of K has it alone"
    assert recall(world) == 1 and heard_by(alone, token)
    beside = world.client(owner="2/5")
    other = beside.hold()
    assert recall(world) == 2
    assert heard_by(alone, token) and heard_by(beside, other)


@several
def test_the_rest_of_earlier_holders_hears_nothing(kind: Kind, world: World) -> None:
    """K has gone without its readers, and another client has taken it."""
    (first, _), (second, _) = hold_together(kind, world, 2)
    world.may_disagree = True
    world.admin.cmd("DEL", world.lock.k)
    assert recall(world) == 0
    if kind.is_hash:
        world.put("HSET", world.lock.k, "another", 1, ms=TTL_MS)
    else:
        world.put("SET", world.lock.k, "f" * 32, ms=TTL_MS)
    assert recall(world) == 0
    assert first.messages() == second.messages() == []


# ---- the format of read-write locks of Redisson --------------------------------------------------


class Redisson:
    """The lock in that format, whose scripts the world does not have."""

    def __init__(self, world: World, texts: dict[str, str]) -> None:
        self.world, self.texts = world, texts

    def call(self, name: str, keys: list[str], *words: Argument) -> list[int]:
        text = self.texts[f"{name}.hash_rw" + (".sharded" if self.world.sharded else "")]
        reply: list[int] = self.world.admin.cmd("EVAL", text, len(keys), *keys, *words)
        return reply

    def hold(self, client: Client, mode: str) -> str:
        lock, token = self.world.lock, client.token()
        keys = [lock.k, lock.q, lock.f, lock.r, lock.w]
        name, more = ("acquire", ()) if mode == "x" else ("acquire_read", ("",))
        words = (token, TTL_MS, client.member(token, mode), "", self.world.prefix, *more)
        assert self.call(name, keys, *words)[0] == 1
        return token

    def recall(self) -> int:
        world, before = self.world, contents(self.world)
        keys = [world.lock.k, world.lock.r]
        heard, now = self.call("recall", keys, world.prefix, "why")
        assert len(str(now)) == 13 and contents(world) == before
        return heard


@pytest.fixture
def redisson(world: World, composed: tuple[Path, dict[str, str]]) -> Iterator[Redisson]:
    world.may_disagree = True
    yield Redisson(world, composed[1])


def test_the_writer_of_a_read_write_hash_hears_it(redisson: Redisson) -> None:
    holder = redisson.world.client()
    token = redisson.hold(holder, "x")
    assert redisson.recall() == 1 and heard_by(holder, token)


def test_all_readers_of_a_read_write_hash_hear_it(redisson: Redisson) -> None:
    clients = [redisson.world.client() for _ in range(3)]
    tokens = [redisson.hold(client, "s") for client in clients]
    assert redisson.recall() == 3
    assert all(heard_by(client, token) for client, token in zip(clients, tokens))


@pytest.mark.parametrize("fields", ["mode write uuid:1:write 1", "mode read uuid:1 1"])
def test_threads_of_redisson_hear_nothing(redisson: Redisson, fields: str) -> None:
    world = redisson.world
    world.put("HSET", world.lock.k, *fields.split(), ms=TTL_MS)
    assert redisson.recall() == 0


# ---- keys of others ------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["f" * 32, "foreign", "", "rl:other"])
def test_another_library_hears_nothing(world: World, value: str) -> None:
    world.put("SET", world.lock.k, value, ms=TTL_MS)
    client = world.client()
    assert recall(world) == 0
    assert client.messages() == []


@pytest.mark.parametrize("rest", ["0123456789a", "012345678", "012345678G", " 0123456789"])
def test_a_value_that_only_begins_as_a_token_does_is_none(world: World, rest: str) -> None:
    client = world.client()
    world.may_disagree = True
    world.put("SET", world.lock.k, client.cid + rest, ms=TTL_MS)
    assert recall(world) == 0
    assert client.messages() == []


def test_a_lock_of_another_format_is_left_to_its_script(world: World) -> None:
    text, hashed = world.lock, Lock("app:", "orders", is_hash=True)
    permits = Lock("app:", "orders", has_permits=True)
    world.may_disagree = True
    for made, owner, asked in (
        (hashed, "o", (text, permits)),
        (text, "", (hashed,)),
        (permits, "1/1", (text, hashed)),
    ):
        world.lock = made
        holder = world.client(owner=owner)
        token = holder.hold()
        for lock in asked:
            world.lock = lock
            assert recall(world) == OTHER_FORMAT
        assert holder.messages() == []
        world.lock = made
        holder.release(token)


@pytest.mark.parametrize("command", ["RPUSH x", "SADD x", "ZADD 1 x", "XADD * a b", "HSET a b c d"])
def test_a_key_that_is_no_lock_is_left_alone(kind: Kind, world: World, command: str) -> None:
    word, *words = command.split()
    world.may_disagree = True
    world.put(word, world.lock.k, *words, ms=TTL_MS)
    assert recall(world) == OTHER_FORMAT


# ---- rights --------------------------------------------------------------------------------------


def test_it_needs_no_right_to_write(kind: Kind, world: World) -> None:
    (holder,) = kind.clients(1)
    token = kind.hold(holder)
    publish = "+spublish" if world.sharded else "+publish"
    with world.user("~*", "&*", "-@all", "+@read", "+evalsha", "+time", publish) as reader:
        assert recall(world, connection=reader) == 1
    assert heard_by(holder, token)


def test_a_user_that_may_not_publish_is_refused(kind: Kind, world: World) -> None:
    (holder,) = kind.clients(1)
    kind.hold(holder)
    with world.user("~*", "&none", "+@all") as limited:
        with pytest.raises(RespError, match="can't publish|ACL failure|NOPERM"):
            recall(world, connection=limited)
    assert holder.messages() == []


def test_it_needs_no_memory(kind: Kind, world: World) -> None:
    (holder,) = kind.clients(1)
    token = kind.hold(holder)
    with world.out_of_memory():
        assert recall(world) == 1
    assert heard_by(holder, token)
