# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: EXTEND only ever makes a lease that is still held longer.
Method: late copies, lost locks, and the description that follows the lease."""

from __future__ import annotations

import pytest
from support.resp import RespError

from .harness import TTL_MS, World, error_of


def info_of(world: World) -> dict[str, str]:
    flat = [value.decode() for value in world.admin.cmd("HGETALL", world.lock.i)]
    return dict(zip(flat[::2], flat[1::2]))


def test_extend_lengthens(world: World) -> None:
    client, token = world.new_holder(ttl_ms=1000)
    assert client.extend(token, 20_000) == 1
    assert 19_000 < world.pttl() <= 20_000
    assert world.keys() == {world.lock.k, world.lock.f}


def test_extend_that_lengthens_nothing_is_a_write(world: World) -> None:
    """WAIT counts replicas that have the last write of its connection."""

    def changes() -> int:
        info = world.admin.cmd("INFO", "persistence").decode()
        return int(info.split("rdb_changes_since_last_save:")[1].split()[0])

    client, token = world.new_holder(ttl_ms=60_000)
    before = changes()
    assert client.extend(token, 1000) == 1
    assert changes() > before


def test_extend_never_brings_back_a_lock(world: World) -> None:
    client, token = world.new_holder()
    world.expire()
    assert client.extend(token) == 0
    assert client.extend(token, TTL_MS, "host", "a", info=True) == 0
    assert world.keys() == {world.lock.f}


def test_extend_by_other_token_writes_nothing(world: World) -> None:
    holder, other = world.client(), world.client()
    held = holder.hold(ttl_ms=5000)
    assert other.extend(other.token(), 60_000, "host", "b") == -1, "another holder"
    assert world.holder() == held and world.pttl() <= 5000
    assert world.keys() == {world.lock.k, world.lock.f}


@pytest.mark.parametrize("lease", ["0", "-5"])
def test_extend_by_nothing_deletes_nothing(world: World, lease: str) -> None:
    # PEXPIRE with 0 or less deletes a key and answers 1.
    token = world.client().hold()
    assert world.run("extend", [world.lock.k], token, lease)[0] == 1
    assert world.holder() == token and world.pttl() > TTL_MS - 1000


@pytest.mark.parametrize("lease", ["abc", ""])
def test_extend_by_no_number_is_an_error(world: World, lease: str) -> None:
    token = world.client().hold()
    assert error_of(lambda: world.run("extend", [world.lock.k], token, lease)) == "ERR"
    assert world.holder() == token and world.pttl() > TTL_MS - 1000


def test_description_is_written_with_the_token_and_follows_the_lease(world: World) -> None:
    client, token = world.new_holder(ttl_ms=5000)
    assert client.extend(token, 20_000, "host", "a", "pid", "7") == 1
    assert info_of(world) == {"token": token, "host": "a", "pid": "7"}
    assert 19_000 < world.pttl(world.lock.i) <= 20_000 and world.pttl() > 19_000
    assert client.extend(token, 40_000, info=True) == 1
    assert 39_000 < world.pttl(world.lock.i) <= 40_000
    assert info_of(world) == {"token": token, "host": "a", "pid": "7"}


def test_description_lives_as_long_as_a_longer_lease(world: World) -> None:
    client, token = world.new_holder(ttl_ms=60_000)
    assert client.extend(token, 1000, "host", "a") == 1
    assert world.pttl(world.lock.i) > 59_000


def test_description_of_an_earlier_holder_does_not_mix_in(world: World) -> None:
    first, token = world.new_holder()
    first.extend(token, TTL_MS, "label", "old", "host", "a")
    first.release(token)
    second, token = world.new_holder()
    assert second.extend(token, TTL_MS, "host", "b") == 1
    assert info_of(world) == {"token": token, "host": "b"}


def test_description_of_an_earlier_holder_is_left_to_expire(world: World) -> None:
    first, second = world.client(), world.client()
    token = first.hold()
    first.extend(token, 5000, "host", "a")
    first.release(token)
    world.admin.cmd("PEXPIRE", world.lock.i, 5000)
    assert second.extend(second.hold(), 60_000, info=True) == 1
    assert world.pttl(world.lock.i) <= 5000


@pytest.mark.parametrize("command", ["SET", "RPUSH", "SADD"])
def test_a_foreign_key_at_the_description_costs_no_lease(world: World, command: str) -> None:
    """Goal: K is extended, and the key of another program stays as it is, without an expiry."""
    client, token = world.new_holder(ttl_ms=5000)
    world.admin.cmd(command, world.lock.i, "theirs")
    kind = world.admin.cmd("TYPE", world.lock.i)
    assert client.extend(token, 20_000, "who", "a") == 1
    assert client.extend(token, 30_000, info=True) == 1
    assert world.pttl() > 29_000
    assert world.admin.cmd("TYPE", world.lock.i) == kind
    assert world.admin.cmd("PTTL", world.lock.i) == -1
    with pytest.raises(RespError):
        client.detach(token)
    assert world.admin.cmd("PTTL", world.lock.i) == -1
    world.admin.cmd("DEL", world.lock.i)
    world.broken.clear()  # the key of the other program has no expiry


def test_extend_without_fields_makes_no_description(world: World) -> None:
    client = world.client()
    assert client.extend(client.hold(), info=True) == 1
    assert world.keys() == {world.lock.k, world.lock.f}


def test_extend_gives_a_lease_back_to_a_key_that_lost_its_expiry(world: World) -> None:
    client, token = world.new_holder()
    world.admin.cmd("PERSIST", world.lock.k)
    assert client.extend(token, 5000) == 1
    assert 4000 < world.pttl() <= 5000
