# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: LIST finds every lock of ours and nothing else, whatever else stands in the database.

Method: locks among values that look nearly like one, keys of other types, and keys that the user
may not read; walked to the end of the cursor."""

from __future__ import annotations

import os

from support.resp import Connection

from .harness import World


def walk(world: World, pattern: str, connection: Connection | None = None) -> list[str]:
    cursor, found = b"0", set()
    while True:
        cursor, keys = world.run("list", [], cursor, pattern, 16, connection=connection)
        found |= {key.decode() for key in keys}
        if cursor == b"0":
            return sorted(found)


def test_only_held_locks_of_ours_are_listed(world: World) -> None:
    world.client().hold()
    world.client().wait()
    world.may_be_immortal |= {"hex", "almost", "hash", "list", "text"}
    world.admin.cmd("SET", "hex", "5e3b2f4ac6d911f0a1b20242ac120002")  # redis-py
    world.admin.cmd("SET", "almost", "!" * 32)
    world.admin.cmd("SET", "text", os.urandom(64))
    world.admin.cmd("HSET", "hash", "a", "b")
    world.admin.cmd("RPUSH", "list", "a")
    assert walk(world, "*") == [world.lock.k]


def test_names_that_no_lock_has_are_left_out(world: World) -> None:
    """Or many of them, made by others, would be a reply that no client takes."""
    token = world.client().token()
    longest, longer = "n" * 1152, "n" * 1153
    world.admin.cmd("SET", longest, token, "PX", 60_000)
    world.admin.cmd("SET", longer, token, "PX", 60_000)
    assert walk(world, "n*") == [longest]


def test_all_of_many_are_found_by_pattern(world: World) -> None:
    token = world.client().token()
    for number in range(500):
        world.admin.cmd("SET", f"app:many-{number}", token, "PX", 60_000)
    assert len(walk(world, "app:many-*")) == 500
    assert walk(world, "app:many-49[0-2]") == ["app:many-490", "app:many-491", "app:many-492"]
    assert walk(world, "other:*") == []


def test_what_the_user_may_not_read_is_left_out(world: World) -> None:
    world.client().hold()
    token = world.client().token()
    world.admin.cmd("SET", "secret", token, "PX", 60_000)
    world.admin.cmd("ACL", "SETUSER", "looker", "reset", "on", ">pw", "~app:*", "+@all")
    with world.server.connect() as connection:
        connection.cmd("AUTH", "looker", "pw")
        assert walk(world, "*", connection) == [world.lock.k]
    world.admin.cmd("ACL", "DELUSER", "looker")
