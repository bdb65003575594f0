# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the printed ACL line is enough for a client, and for nothing else.
Method: set it on a real server, run every script as that user, then try what it must not do."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from support.resp import Connection

from .harness import (
    NAMES,
    REFUSED,
    ROOT,
    Busy,
    Client,
    Held,
    Lock,
    World,
    error_of,
    member_of,
)

TOOL = ROOT / "tools" / "acl.py"


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("acl", TOOL)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed(*args: str) -> list[str]:
    command = [sys.executable, str(TOOL), *args]
    line = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout
    assert line.endswith("\n") and line.count("\n") == 1
    return shlex.split(line)


def has_sharded_channels(world: World) -> bool:
    return "redis_version:6." not in world.admin.cmd("INFO", "server").decode()


@pytest.fixture
def limited(world: World) -> Iterator[Connection]:
    options = [] if has_sharded_channels(world) else ["--plain"]
    line = printed("locker", "secret", "app:", *options)
    assert world.admin.cmd(*line) == "OK"
    connection = world.server.connect()
    connection.cmd("HELLO", 2, "AUTH", "locker", "secret", "SETNAME", "redlatch")
    yield connection
    connection.close()
    world.admin.cmd("ACL", "DELUSER", "locker")


def test_commands_are_those_of_the_composed_texts(composed: tuple[Path, dict[str, str]]) -> None:
    called = set()
    for text in composed[1].values():
        called.update(re.findall(r"redis\.p?call\('([A-Z]+)'", text))
        assert len(re.findall(r"redis\.p?call\(", text)) == len(
            re.findall(r"redis\.p?call\('[A-Z]+'", text)
        )
    tool = load_tool()
    assert {*tool.script_commands(), "spublish"} == {name.lower() for name in called}


def test_every_script_works_for_the_user(world: World, limited: Connection) -> None:
    lock = world.lock
    first, second, third = (world.client() for _ in range(3))
    for name in NAMES:
        assert limited.cmd("SCRIPT", "LOAD", world.texts[name]).decode() == world.sha[name]
    for client in (first, second, third):
        client.connection.close()
        client.connection = world.server.connect()
        client.connection.cmd("AUTH", "locker", "secret")
    token = first.hold()
    waiting, last = second.wait(), third.wait()
    assert first.extend(token, 20_000, "host", "a") == 1
    assert first.extend(token, 30_000, info=True) == 1
    assert first.raise_fence(token, 8_000_000_000_000_000) == 1
    keys = [lock.k, lock.q, lock.f, lock.i, lock.r, lock.o]
    assert world.run("inspect", keys, 9, connection=limited)[5] == 2
    begin = (token, 0, "", 900, 3, 0)
    assert world.run("once_begin", [lock.k, lock.o], *begin, connection=limited)[0] == 1
    assert world.run("once_forget", [lock.o], connection=limited) == [1, 0]
    asked = world.run("recall", [lock.k, lock.r], world.prefix, "why", connection=limited)
    assert asked[0] == 1
    assert limited.cmd("SCAN", 0, "MATCH", "*", "TYPE", "string")[0] == b"0"
    assert limited.cmd("GETRANGE", lock.k, 0, 32).decode() == token
    assert first.release(token) == (2, 0)
    assert second.cancel(member_of(waiting)) == (2, 0)
    assert world.force_release(waiting, limited) == (1, 0)
    assert world.holder() == last
    assert isinstance(third.acquire(last), Held)
    waiting = second.wait()
    world.expire()
    assert world.serve_queue(limited) == (1, 0)
    assert isinstance(first.try_acquire(first.token()), Held) is False
    args = (second.channel, world.prefix + "unused")
    assert world.run("probe", [second.channel], *args, connection=limited) == [1, 0]
    world.admin.cmd("DEL", lock.k)
    world.admin.cmd("HSET", lock.k, "a", "b")
    world.admin.cmd("PEXPIRE", lock.k, 5000)
    assert not isinstance(first.acquire(first.token()), Held)


def log_in(client: Client) -> None:
    client.connection.close()
    client.connection = client.world.server.connect()
    client.connection.cmd("AUTH", "locker", "secret")


def test_every_script_of_readers_works_for_the_user(world: World, limited: Connection) -> None:
    first, second, third, fourth = (world.client() for _ in range(4))
    for client in (first, second, third, fourth):
        log_in(client)
    tokens = first.share(), second.share()
    assert isinstance(first.read(tokens[0]), Held)
    assert first.extend_shared(tokens[0]) == 2
    assert isinstance(first.upgrade(tokens[0]), Busy) and second.upgrade(tokens[1]) == -2
    assert world.inspect()[8] == 2
    asked = world.run("recall", [world.lock.k, world.lock.r], world.prefix, "", connection=limited)
    assert asked[0] == 2
    reader, writer = third.wait_to_read(), fourth.wait()
    assert second.release(tokens[1]) == (2, 0) and world.holder() == tokens[0]
    assert first.downgrade(tokens[0]) == (1, 0) and set(world.readers()) == {tokens[0], reader}
    assert third.cancel(third.member(reader, "s"), limited) == (2, 0)
    assert world.force_release(reader, limited) == (1, 0)
    assert world.serve_queue(limited) == (0, 0)
    assert first.release_with_turn(tokens[0], 9, 1000) == (2, 0) and world.holder() == writer


def test_every_script_of_the_hash_format_works_for_the_user(
    hashed: World, limited: Connection
) -> None:
    client, waiter = hashed.client(owner="o"), hashed.client(owner="p")
    log_in(client)
    log_in(waiter)
    tokens = client.hold(), client.hold()
    behind = waiter.wait()
    assert client.extend_shared(tokens[0]) == 1
    lock = hashed.lock
    keys = [lock.k, lock.q, lock.f, lock.i, lock.r]
    assert hashed.run("inspect.hash", keys, 9, connection=limited)[8] == 2
    asked = hashed.run("recall.hash", [lock.k, lock.r], hashed.prefix, "", connection=limited)
    assert asked[0] == 2
    assert hashed.serve_queue(limited) == (0, 0)
    assert client.release(tokens[0]) == (0, 0)
    assert client.release_with_turn(tokens[1], 0, 1000) == (2, 0)
    assert waiter.cancel(waiter.member(behind)) == (2, 0)
    assert hashed.force_release("p", limited) == (1, 0) and hashed.owners() == {}


def test_a_recall_of_permits_works_for_the_user(world: World, limited: Connection) -> None:
    world.lock = Lock("app:", "orders", has_permits=True)
    alone, beside = world.client(owner="1/2"), world.client(owner="1/2")
    keys, args = [world.lock.k, world.lock.r], (world.prefix, "")
    alone.hold()
    assert world.run("recall.permits", keys, *args, connection=limited)[0] == 1
    beside.hold()
    assert world.run("recall.permits", keys, *args, connection=limited)[0] == 2


def test_a_recall_needs_no_command_of_its_own(
    composed: tuple[Path, dict[str, str]]
) -> None:
    """Those of ACQUIRE and INSPECT, as docs/wire.md promises, for each format and channel."""
    texts = composed[1]
    calls = {name: set(re.findall(r"redis\.p?call\('([A-Z]+)'", texts[name])) for name in texts}
    recalls = [name for name in texts if name.partition(".")[0] == "recall"]
    assert len(recalls) > 4
    for name in recalls:
        inspected = calls[name.replace("recall", "inspect").removesuffix(".sharded")]
        assert calls[name] <= calls[name.replace("recall", "acquire")] | inspected, name


def test_keys_of_all_formats_are_within_the_namespace(world: World, limited: Connection) -> None:
    for is_hash in (False, True):
        lock = Lock("app:", "orders", is_hash=is_hash)
        for key in (lock.k, lock.q, lock.f, lock.i, lock.r, lock.w):
            assert limited.cmd("EXISTS", key) == 0


def test_refused_publish_drops_no_reader_and_no_upgrade(world: World) -> None:
    first, second, third, writer = (world.client() for _ in range(4))
    tokens = first.share(), second.share()
    behind = writer.wait()
    first.upgrade(tokens[0])
    with world.user("~app:*", "resetchannels", "+@all") as limited:
        assert isinstance(third.read(third.token(), connection=limited), Busy)
        assert world.serve_queue(limited) == (0, REFUSED)
        assert second.upgrade(tokens[1], connection=limited) == -2
        assert second.release(tokens[1], limited) == (1, REFUSED)
        assert first.cancel(first.member(tokens[0], "u"), limited) == (1, REFUSED)
        assert first.release(tokens[0], limited) == (1, REFUSED)
    assert [member[32] for member in world.queue()] == ["x", "s"]
    assert world.queue()[0] == writer.member(behind) and world.holder() is None


def test_connection_commands_work(world: World, limited: Connection) -> None:
    assert limited.cmd("PING") == "PONG"
    assert limited.cmd("SELECT", 0) == "OK"
    assert limited.cmd("CLIENT", "SETNAME", "redlatch") == "OK"
    assert limited.cmd("WAIT", 0, 1) == 0
    text = world.texts["serve_queue"]
    assert limited.cmd("EVAL", text, 4, *world.lock.keys, world.prefix)[0] == 0
    kinds = ["SSUBSCRIBE", "SUNSUBSCRIBE"] if world.sharded else ["SUBSCRIBE", "UNSUBSCRIBE"]
    for command in kinds:
        assert limited.cmd(command, world.prefix + "me")[1] == b"app:rl1:me"


def test_foreign_keys_are_refused(world: World, limited: Connection) -> None:
    foreign = Lock("other:", "orders")
    args = ("t" * 32, 1000, "", "", world.prefix)
    run = world.run
    assert error_of(lambda: run("acquire", foreign.keys, *args, connection=limited)) == "NOPERM"
    for key in (foreign.k, "orders", "{app:}x", "*"):
        assert error_of(lambda: limited.cmd("GET", key)) == "NOPERM"
    assert world.keys() == set()


def test_foreign_channels_are_refused(world: World, limited: Connection) -> None:
    args = ("other:rl1:x", "app:x")
    assert world.run("probe", ["app:rl1:x"], *args, connection=limited) == [-1, -1]
    assert error_of(lambda: world.run("probe", args[:1], *args, connection=limited)) == "NOPERM"
    command = "SSUBSCRIBE" if world.sharded else "SUBSCRIBE"
    for channel in ("other:rl1:x", "app:events", "rl1:x"):
        assert error_of(lambda: limited.cmd(command, channel)) == "NOPERM"
    holder, held = world.new_holder()
    world.client().wait()
    world.prefix = "other:rl1:"
    assert holder.release(held, connection=limited) == (1, REFUSED)


@pytest.mark.parametrize(
    "command",
    "FLUSHALL|CONFIG GET maxmemory|SCRIPT FLUSH|CLIENT LIST|CLIENT PAUSE 1|KEYS *|FUNCTION LIST|"
    "ACL WHOAMI|DEBUG SLEEP 0|PSUBSCRIBE *|INFO|MONITOR|RENAME app:a app:b|PERSIST app:a|"
    "SHUTDOWN".split("|"),
)
def test_other_commands_are_refused(limited: Connection, command: str) -> None:
    assert error_of(lambda: limited.cmd(*command.split())) in ("NOPERM", "ERR")


def test_health_may_be_asked_with_its_rights(world: World) -> None:
    options = ["--health", *([] if has_sharded_channels(world) else ["--plain"])]
    assert world.admin.cmd(*printed("doctor", "secret", "app:", *options)) == "OK"
    try:
        with world.server.connect() as connection:
            connection.cmd("AUTH", "doctor", "secret")
            for command in ("TIME", "INFO memory", "CONFIG GET timeout", "CLIENT TRACKINGINFO"):
                assert connection.cmd(*command.split())
            for command in ("CONFIG SET timeout 0", "CLIENT LIST", "FLUSHALL"):
                assert error_of(lambda: connection.cmd(*command.split())) in ("NOPERM", "ERR")
    finally:
        world.admin.cmd("ACL", "DELUSER", "doctor")


def test_scripts_give_no_more_rights(limited: Connection) -> None:
    for call in ("'FLUSHALL'", "'GET', 'other:x'", "'CONFIG', 'GET', 'maxmemory'"):
        code = error_of(lambda: limited.cmd("EVAL", f"return redis.call({call})", 0))
        assert code in ("ERR", "NOPERM")


def test_wrong_password_is_refused(world: World, limited: Connection) -> None:
    with world.server.connect() as connection:
        assert error_of(lambda: connection.cmd("AUTH", "locker", "wrong")) == "WRONGPASS"


def test_line_shows_no_password_and_survives_odd_namespaces(world: World) -> None:
    tool = load_tool()
    namespace = 'a*b?[c]"\\é:'
    words = printed("locker", "secret", "app:")
    assert "secret" not in " ".join(words)
    rules = tool.rules("secret", namespace, sharded=has_sharded_channels(world))
    try:
        assert world.admin.cmd("ACL", "SETUSER", "odd", *rules) == "OK"
        with world.server.connect() as connection:
            connection.cmd("AUTH", "odd", "secret")
            assert connection.cmd("GET", namespace + "x") is None
            assert error_of(lambda: connection.cmd("GET", "aXXb" + namespace[3:])) == "NOPERM"
    finally:
        world.admin.cmd("ACL", "DELUSER", "odd")
    with pytest.raises(ValueError):
        tool.rules("secret", "a b")
