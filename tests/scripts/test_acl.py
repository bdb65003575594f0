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

from .harness import NAMES, REFUSED, ROOT, Held, Lock, World, error_of, member_of

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
    keys = [lock.k, lock.q, lock.f, lock.i, lock.r]
    assert world.run("inspect", keys, 9, connection=limited)[5] == 2
    assert world.run("list", [], 0, "*", 256, connection=limited) == [b"0", [lock.k.encode()]]
    assert first.release(token) == (2, 0)
    assert second.cancel(member_of(waiting)) == (2, 0)
    assert world.force_release(waiting, limited) == (1, 0)
    assert world.holder() == last
    assert isinstance(third.acquire(last), Held)
    waiting = second.wait()
    world.expire()
    assert world.kick(limited) == (1, 0)
    assert isinstance(first.try_acquire(first.token()), Held) is False
    args = (second.channel, world.prefix + "unused")
    assert world.run("probe", [], *args, connection=limited) == [1, 0]
    world.admin.cmd("DEL", lock.k)
    world.admin.cmd("HSET", lock.k, "a", "b")
    world.admin.cmd("PEXPIRE", lock.k, 5000)
    assert not isinstance(first.acquire(first.token()), Held)


def test_connection_commands_work(world: World, limited: Connection) -> None:
    assert limited.cmd("PING") == "PONG"
    assert limited.cmd("SELECT", 0) == "OK"
    assert limited.cmd("CLIENT", "SETNAME", "redlatch") == "OK"
    assert limited.cmd("EVAL", world.texts["kick"], 4, *world.lock.keys, world.prefix)[0] == 0
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
    assert world.run("probe", [], "other:rl1:x", "app:x", connection=limited) == [-1, -1]
    command = "SSUBSCRIBE" if world.sharded else "SUBSCRIBE"
    for channel in ("other:rl1:x", "app:events", "rl1:x"):
        assert error_of(lambda: limited.cmd(command, channel)) == "NOPERM"
    holder, waiter = world.client(), world.client()
    held = holder.hold()
    waiter.wait()
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
