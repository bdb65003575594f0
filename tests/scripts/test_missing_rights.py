# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a script that is refused in the middle leaves no key without an expiry, and no two holders.
Method: what clients do, as users that each lack one of the commands; the harness looks for keys
without an expiry after each script. A test tries each command, in a world of its own: a thousand
tests would take longer than what they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from support.resp import Connection, RespError

from .harness import TTL_MS, Client, Grant, Lock, World
from .test_acl import load_tool

COMMANDS = [name for name in load_tool().script_commands() if name not in ("publish", "scan")]


Without = Callable[[str], AbstractContextManager[tuple[World, Connection]]]


@pytest.fixture
def without(world: World, composed: tuple[object, dict[str, str]]) -> Without:
    """For a command: an empty world, and a connection whose user lacks the command."""

    @contextmanager
    def without(command: str) -> Iterator[tuple[World, Connection]]:
        fresh = World(world.server, composed[1], world.sharded)
        fresh.may_disagree = True  # A refused script may leave K and R different.
        try:
            with fresh.user("~*", "&*", "+@all", f"-{command}") as limited:
                yield fresh, limited
            assert fresh.broken == []
        except AssertionError as failed:
            raise AssertionError(f"without {command}: {failed}") from failed
        finally:
            fresh.close()

    return without


def attempt(*steps: Callable[[], object]) -> None:
    for step in steps:
        try:
            step()
        except RespError:
            continue


def clear(world: World) -> None:
    world.admin.cmd("FLUSHALL")
    world.load()


def take_turns(world: World, limited: Connection) -> None:
    """The writer's release serves two readers; each step is tried by the limited user."""
    holder, first, second = world.client(), world.client(), world.client()
    token = holder.hold()
    one, two = first.token(), second.token()
    attempt(
        lambda: first.read(one, connection=limited),
        lambda: second.read(two, connection=limited),
        lambda: holder.release(token, limited),
        lambda: world.serve_queue(limited),
        lambda: first.upgrade(one, connection=limited),
        lambda: first.extend_shared(one, TTL_MS),
    )
    clear(world)
    token, behind = holder.hold(), first.wait()
    second.wait_to_read()
    first.die()
    attempt(
        lambda: holder.extend(token, 60_000, "who", "a", "label", "b", "since", "1"),
        lambda: holder.detach(token, connection=limited),
        lambda: second.attach(token, "call", connection=limited),
        lambda: holder.downgrade(token, TTL_MS, limited),
        lambda: first.cancel(first.member(behind), limited),
        lambda: world.force_release("", limited),
    )
    first.subscribe()


def describe(world: World, limited: Connection) -> None:
    """No renewal is due: PEXPIRE of K is not what is refused."""
    lock, holder = world.lock, world.client()
    token = holder.hold(ttl_ms=60_000)
    words = (token, 1000, "who", "a", "label", "b", "since", "1")
    attempt(lambda: world.run("extend", [lock.k, lock.i], *words, connection=limited))


def upgrade_beside_the_dead(world: World, limited: Connection) -> None:
    """An upgrade that is granted to a dead reader is taken back."""
    (dead, waiting), (reader, other) = world.new_reader(), world.new_reader()
    dead.upgrade(waiting)
    dead.die()
    attempt(lambda: reader.release(other, limited))


def reenter(world: World, limited: Connection) -> None:
    string, world.lock = world.lock, Lock("app:", "orders", is_hash=True)
    first, second = world.client(owner="me"), world.client(owner="you")
    token = first.token()
    attempt(
        lambda: first.acquire(token, connection=limited),
        lambda: first.acquire(first.token(), connection=limited),
        lambda: second.acquire(second.token(), connection=limited),
        lambda: first.release(token, limited),
        lambda: world.serve_queue(limited),
    )
    world.lock = string


@pytest.mark.parametrize("work", [take_turns, describe, upgrade_beside_the_dead, reenter])
def test_nothing_is_left_without_an_expiry(
    without: Without, work: Callable[[World, Connection], None]
) -> None:
    for missing in COMMANDS:
        with without(missing) as (fresh, limited):
            work(fresh, limited)


def test_nothing_of_a_read_write_hash_is_left_without_an_expiry(
    world: World, without: Without, composed: tuple[object, dict[str, str]]
) -> None:
    texts, lock, client = composed[1], world.lock, world.client()
    keys: list[str | bytes] = [lock.k, lock.q, lock.f, lock.r]

    def call(name: str, connection: Connection, *args: object) -> None:
        text = texts[f"{name}.hash_rw" + (".sharded" if world.sharded else "")]
        words = [str(arg) for arg in args]
        attempt(lambda: connection.cmd("EVAL", text, len(keys), *keys, *words))
        left = [key for key in world.admin.cmd("KEYS", "*") if world.pttl(key.decode()) == -1]
        assert left == [], name

    def take_turns_of(order: str, limited: Connection) -> None:
        clear(world)
        tokens = [client.token() for _ in order]
        for token, mode in zip(tokens, order):
            name, more = ("acquire", ()) if mode == "x" else ("acquire_read", ("",))
            words = (token, 5000, client.member(token, mode), "", world.prefix)
            call(name, limited, *words, *more)
        for token in tokens:
            call("release", limited, token, world.prefix, 0, 0)
            call("release", world.admin, token, world.prefix, 0, 0)

    for missing in COMMANDS:
        with without(missing) as (_, limited):
            for order in ("xss", "sxs", "ssx"):
                take_turns_of(order, limited)


def take_from_the_notified(world: World, limited: Connection, work: str, is_hash: bool) -> None:
    """The grant by message is believed: a script that is refused behind it makes two holders."""
    world.lock = Lock("app:", "orders", is_hash=is_hash)
    holder, between, waiter = world.client(), world.client(), world.client()
    token, head = holder.hold(), between.wait()
    waiting = waiter.wait() if is_hash else waiter.wait_to_read()
    if work != "cancel":
        assert between.cancel(between.member(head))[0] == 1
    if work in ("serve_queue", "cancel"):
        world.expire()
    steps: dict[str, Callable[[], object]] = {
        "release": lambda: holder.release(token, limited),
        "serve_queue": lambda: world.serve_queue(limited),
        "cancel": lambda: between.cancel(between.member(head), limited),
        "force_release": lambda: world.force_release("", limited),
    }
    attempt(steps[work])
    if any(isinstance(message, Grant) for message in waiter.messages()):
        assert set(world.readers()) == {waiting}
        if is_hash:
            assert world.owners() == {waiting: 1}
        else:
            assert world.holder() == "rl:shared"


@pytest.mark.parametrize("work", ["release", "serve_queue", "cancel", "force_release"])
@pytest.mark.parametrize("is_hash", [False, True])
def test_notified_waiter_has_the_lock(without: Without, is_hash: bool, work: str) -> None:
    for missing in COMMANDS:
        with without(missing) as (fresh, limited):
            take_from_the_notified(fresh, limited, work, is_hash)


@pytest.mark.parametrize("is_reader", [False, True])
def test_a_detach_that_is_refused_leaves_no_mark(without: Without, is_reader: bool) -> None:
    """Its caller goes on holding, so the token cannot be attached."""
    for missing in COMMANDS:
        with without(missing) as (fresh, limited):
            holder, other = fresh.client(), fresh.client()
            token = holder.share() if is_reader else holder.hold()
            try:
                assert holder.detach(token, connection=limited) == 1
            except RespError:
                assert other.attach(token, "call") == (-1, 0)
