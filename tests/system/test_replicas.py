# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: with min_replicas a caller gets a lock only when as many replicas have its grant; otherwise
it is released and the caller gets RL_E_NOT_REPLICATED. What blocks for replicas delays no renewal.

Method: a primary and two replicas, which are stopped and resumed; actors that acquire.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from support.sentinel import Replicated
from support.servers import available_kinds
from support.wait import wait_until

from .actor import HELD, Actor, Pending, Spawn
from .conftest import queue_length


class Counted(Replicated):
    """A primary and its replicas, whose locks and WAITs are counted."""

    def key_count(self) -> int:
        with self.primary.connect() as connection:
            return len(connection.cmd("KEYS", "lock*"))

    def waits(self) -> int:
        """How many WAITs were carried out."""
        with self.primary.connect() as connection:
            stats = connection.cmd("INFO", "commandstats").decode()
        found = [line for line in stats.splitlines() if line.startswith("cmdstat_wait:")]
        return int(found[0].split("calls=")[1].split(",")[0]) if found else 0

    def pause_replicas(self) -> None:
        for replica in self.replicas:
            replica.pause()

    def resume_replicas(self) -> None:
        for replica in self.replicas:
            replica.resume()


@pytest.fixture(params=available_kinds())
def replicated(request: pytest.FixtureRequest) -> Iterator[Counted]:
    with Counted(request.param) as running:
        yield running


@pytest.fixture
def one_replicated() -> Iterator[Counted]:
    with Counted(available_kinds()[0]) as running:
        yield running


def test_enough_replicas_and_too_few(replicated: Counted, spawn: Spawn) -> None:
    actor = spawn(replicated.primary.url)
    reply = actor.ok("acquire", name="lock", min_replicas=2, sync_timeout="10s")
    assert reply.seconds < 5
    for replica in replicated.replicas:
        with replica.connect() as connection:
            assert connection.cmd("EXISTS", "lock") == 1
    actor.ok("release")
    replicated.replicas[1].pause()
    reply = actor.call("acquire", name="lock", wait=20_000, min_replicas=2, sync_timeout="2s")
    assert reply.status == "RL_E_NOT_REPLICATED"
    assert "1 of 2 replicas confirmed within" in reply.message
    assert reply.seconds >= 0.19
    wait_until(lambda: replicated.key_count() == 0)
    actor.ok("acquire", name="lock", min_replicas=1)
    actor.ok("release")
    replicated.replicas[1].resume()
    actor.ok("acquire", name="lock", min_replicas=2, sync_timeout="20s")
    actor.ok("release")


CALLERS = 60


@pytest.mark.parametrize("is_one_name", [False, True])
def test_many_callers_share_the_wait(
    one_replicated: Counted, spawn: Spawn, is_one_name: bool
) -> None:
    """On names of their own, callers cost two WAITs at most, and a few for those that come late."""
    one_replicated.replicas[0].pause()
    actor = spawn(one_replicated.primary.url)
    actor.ok("acquire", name="other")
    actor.ok("release")
    before = one_replicated.waits()
    calls = [
        actor.begin(
            "acquire",
            thread=i + 1,
            lease=i + 1,
            name="lock" if is_one_name else f"lock{i}",
            wait=60_000,
            min_replicas=2,
            sync_timeout="300ms",
        )
        for i in range(CALLERS if not is_one_name else 4)
    ]
    for call in calls:
        assert call.get().status == "RL_E_NOT_REPLICATED"
    if is_one_name:
        # One each, and another one if it ended a little before the caller's time.
        assert 4 <= one_replicated.waits() - before <= 8
    else:
        assert one_replicated.waits() - before <= 6
    wait_until(lambda: one_replicated.key_count() == 0)


def test_waiter_gets_its_turn_after_a_refusal(one_replicated: Counted, spawn: Spawn) -> None:
    one_replicated.replicas[0].pause()
    careful, other = spawn(one_replicated.primary.url), spawn(one_replicated.primary.url)
    refused = careful.begin("acquire", name="lock", min_replicas=2, sync_timeout="500ms")
    wait_until(lambda: one_replicated.key_count() > 0)
    waiting = other.begin("acquire", name="lock", wait=30_000)
    assert refused.get().status == "RL_E_NOT_REPLICATED"
    assert waiting.get().status == "RL_OK"
    other.ok("release")


def test_pushed_grant(replicated: Counted, spawn: Spawn) -> None:
    first, second = spawn(replicated.primary.url), spawn(replicated.primary.url)
    first.ok("acquire", name="lock")
    waiting = second.begin("acquire", name="lock", wait=30_000, min_replicas=2, sync_timeout="10s")
    wait_until(lambda: queue_length(replicated.primary, "lock") == 1)
    before = replicated.waits()
    first.ok("release")
    assert waiting.get().status == "RL_OK"
    # Replicas that are slow to answer are waited for once more.
    assert replicated.waits() > before
    second.ok("release")


def test_renewals_keep_their_time_while_a_wait_blocks(
    one_replicated: Counted, spawn: Spawn
) -> None:
    """A lease of 600 ms is renewed although a WAIT blocks for 5 s."""
    one_replicated.pause_replicas()
    actor = spawn(one_replicated.primary.url)
    actor.ok("acquire", name="lock-short", lease=0, ttl_ms=600)
    blocked = actor.begin(
        "acquire", thread=1, lease=1, name="lock-blocked", min_replicas=2, sync_timeout="3s"
    )
    assert blocked.get().status == "RL_E_NOT_REPLICATED"
    assert blocked.get().seconds > 2.9
    assert actor.call("look", lease=0).number("state") == HELD
    actor.ok("release", lease=0)


# ---- what happens while the replicas are waited for ----


def begin_unconfirmed(replicated: Counted, spawn: Spawn) -> tuple[Actor, Pending]:
    """An acquisition that waits for its replicas, which are stopped."""
    replicated.pause_replicas()
    actor = spawn(replicated.primary.url)
    pending = actor.begin(
        "acquire", thread=1, name="lock", lease=1, wait=-1, min_replicas=2, sync_timeout="60s"
    )
    wait_until(lambda: replicated.key_count() > 0)
    return actor, pending


def check_confirmed(replicated: Counted, actor: Actor, pending: Pending) -> None:
    """It waits, and is granted when the replicas are there again."""
    assert not pending.is_done
    replicated.resume_replicas()
    assert pending.get().status == "RL_OK"
    actor.ok("release", lease=1)


def test_primary_that_restarts_in_the_middle(one_replicated: Counted, spawn: Spawn) -> None:
    """It has forgotten the lock, so the caller must not get it."""
    _, pending = begin_unconfirmed(one_replicated, spawn)
    one_replicated.primary.restart()
    assert pending.get().status == "RL_E_NOT_REPLICATED"
    assert one_replicated.key_count() == 0


def test_close_in_the_middle(one_replicated: Counted, spawn: Spawn) -> None:
    actor, pending = begin_unconfirmed(one_replicated, spawn)
    before = time.monotonic()
    actor.ok("shutdown")
    assert pending.get().status == "RL_E_CLOSED"
    assert time.monotonic() - before < 10
    wait_until(lambda: one_replicated.key_count() == 0)


def test_fork_in_the_middle(one_replicated: Counted, spawn: Spawn) -> None:
    """The child can do nothing with the client, and the parent gets its lock."""
    actor, pending = begin_unconfirmed(one_replicated, spawn)
    assert actor.ok("fork", url=one_replicated.primary.url).number("result") == 0
    check_confirmed(one_replicated, actor, pending)


def test_connection_at_the_side_that_is_killed(one_replicated: Counted, spawn: Spawn) -> None:
    """EXTEND and WAIT are repeated on the next one."""
    actor, pending = begin_unconfirmed(one_replicated, spawn)

    def blocked() -> list[str]:
        with one_replicated.primary.connect() as connection:
            clients = connection.cmd("CLIENT", "LIST").decode().splitlines()
        return [line.split()[0].removeprefix("id=") for line in clients if "cmd=wait" in line]

    for _ in range(2):
        (one,) = wait_until(blocked)
        with one_replicated.primary.connect() as connection:
            assert connection.cmd("CLIENT", "KILL", "ID", one) == 1
        wait_until(lambda one=one: one not in blocked())
    check_confirmed(one_replicated, actor, pending)
