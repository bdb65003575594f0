# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what goes wrong around sentinels costs a caller its wait at most: sentinels that are
silent, hostile or gone, a fork, and a new primary whose clock is behind, of which the log warns.

Method: real groups; sentinels of the test's own; a server whose clock a shim sets.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from support.clock import Clock
from support.sentinel import NAME, NEVER_MS, SentinelGroup
from support.servers import Server
from support.wait import SLACK_S, wait_until

from .actor import HELD, Actor, Spawn
from .conftest import aux_key, queue_length
from .hostile import Command, HostileServer, sentinel_hello

LIMIT_S = 1.0
LIMITS = "connect_timeout=1s&command_timeout=1s"
# A reply may take 1 MiB; an allocator keeps some more.
MEMORY_KIB = 8 * 1024


# ---- a clock that is behind ----


class GroupWithClock(SentinelGroup):
    """Its replica has a clock of its own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        super().__init__("redis", replicas=1, down_after_ms=NEVER_MS)

    def _server(self, i: int) -> Server:
        if i == 0:
            return super()._server(i)
        server = Server(self.kind, self._args, env=self._clock.env)
        server.forgets = False
        return server


WARNING = "behind that of the primary before"


def log_of(actor: Actor, *words: str) -> list[str]:
    """The lines that have one of the words, of those that are new."""
    lines = actor.ok("log")["lines"].splitlines()
    return [line for line in lines if any(word in line for word in words)]


@pytest.mark.parametrize(("offset_s", "is_warned"), [(-1.0, True), (0.0, False), (1.0, False)])
def test_a_new_primary_whose_clock_is_behind(
    tmp_path: Path, spawn: Spawn, name: str, offset_s: float, is_warned: bool
) -> None:
    """Goal: one warning, from 100 ms on; none for a clock that is ahead, though on the way back the
    clock of the old primary is then the one that is behind. Method: a failover there and back."""
    clock = Clock(tmp_path / "clock", offset_s)
    with contextlib.closing(clock), GroupWithClock(clock) as group:
        actor = spawn(group.url())
        actor.ok("connect")
        log_of(actor)
        for expected in (is_warned, offset_s > 0):
            actor.ok("acquire", name=name, wait=20_000, ttl_ms=8000)
            group.await_same()
            old = group.primary
            new = group.failover()
            group.await_left(old)
            # The release is an answer of the new primary: it is connected, and has been measured.
            actor.ok("release")
            # The warning is the line behind the one about the connection.
            found = wait_until(lambda: log_of(actor, "connected to", WARNING))
            if expected and WARNING not in found[-1]:
                found += wait_until(lambda: log_of(actor, WARNING))
            said = [line for line in found if WARNING in line]
            assert len(said) == expected, found
            if expected:
                behind = int(said[0].split(" ms behind")[0].rsplit(" ", 1)[1])
                assert 500 < behind < 1500, said
                assert f"{new.host}:{new.port}" in said[0]
            group.await_ready()


# ---- a fork ----


def check_child(actor: Actor, url: str) -> None:
    """Fork; the child calls everything with the parent's handles, and then on its own account."""
    reply = actor.ok("fork", thread=7, url=url, lease=0, request=0)
    assert reply.number("result") == 0, reply
    calls = dict(part.split(":") for part in reply["calls"].split(",") if part)
    assert len(calls) == 17
    for call, status in calls.items():
        assert status == ("RL_OK" if call.startswith("own_") else "RL_E_FORKED"), (call, status)


def test_a_fork_under_sentinels(spawn: Spawn, name: str) -> None:
    """Goal: in the child each call is RL_E_FORKED, and a client of its own works; the parent keeps
    its lock and its watch, also through a failover. Method: forks before and after it."""
    with SentinelGroup(down_after_ms=NEVER_MS) as group:
        actor, other = spawn(group.url()), spawn(group.url())
        actor.ok("acquire", name=name, wait=0, ttl_ms=8000)
        other.ok("acquire", name="b", wait=0, ttl_ms=8000)
        actor.ok("start", name="b", wait=-1)
        waiting = actor.begin("acquire", thread=1, lease=1, name="b", wait=-1)
        wait_until(lambda: queue_length(group.primary, "b") >= 1)
        check_child(actor, group.url())
        group.await_same()
        old = group.primary
        group.failover()
        group.await_left(old)
        check_child(actor, group.url())
        assert actor.ok("look").number("state") == HELD
        assert not waiting.is_done
        other.ok("release")
        actor.ok("wait", wait=20_000)
        actor.ok("free_request")
        assert waiting.get().status == "RL_OK"
        actor.ok("release", lease=1)
        actor.ok("release")


# ---- hostile sentinels ----

CHUNK = b"x" * (1 << 16)


def endless(first: bytes, megabytes: int = 100) -> Iterator[bytes]:
    yield first
    for _ in range(megabytes * 16):
        yield CHUNK


ATTACKS: dict[str, Callable[[], Iterable[bytes]]] = {
    "nothing": lambda: [],
    "garbage": lambda: [b"\x00\xff\x16\x03 garbage\r\n" * 100],
    "100 MB of text": lambda: endless(b"$104857600\r\n"),
    "100 MB of garbage": lambda: endless(b""),
    "100 MB of errors": lambda: (b"-ERR " + b"e" * 60_000 + b"\r\n" for _ in range(1700)),
    "a million sentinels": lambda: [b"*1000000\r\n", *(b"*0\r\n" * 1000 for _ in range(1000))],
    "an end": lambda: [b"*3\r\n$4\r\nab"],
}
# The first question, and one behind a polite beginning.
STAGES = (b"HELLO", b"SENTINEL")


def attacked(stage: bytes, attack: str) -> Callable[[Command], Iterable[bytes] | None]:
    def answer(command: Command) -> Iterable[bytes] | None:
        if command[0].upper() == stage:
            return ATTACKS[attack]()
        return [sentinel_hello()] if command[0].upper() == b"HELLO" else []

    return answer


@pytest.fixture(scope="module")
def quiet_group() -> Iterator[SentinelGroup]:
    with SentinelGroup(down_after_ms=NEVER_MS) as running:
        yield running


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.decode())
@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_sentinels(
    quiet_group: SentinelGroup, spawn: Spawn, name: str, attack: str, stage: bytes
) -> None:
    """Goal: alone it is an error within the limit, and little memory; in front of others it costs
    its share of the limit. Method: a sentinel that answers so, alone and before real ones."""
    with HostileServer(attacked(stage, attack)) as wrong:
        address = wrong.url.removeprefix("redis://")
        actor = spawn(f"redis-sentinel://{address}/{NAME}/0?{LIMITS}")
        before = actor.memory_kib
        running = [
            (actor.begin("connect", thread=1, wait=0), LIMIT_S),
            (actor.begin("acquire", thread=2, lease=2, name=name, wait=0), LIMIT_S),
            (actor.begin("acquire", thread=3, lease=3, name=name, wait=300), 0.3),
        ]
        for pending, limit in running:
            reply = pending.get()
            assert reply.status in ("RL_E_UNAVAILABLE", "RL_E_SERVER"), reply
            assert reply.seconds < limit + SLACK_S, reply
            assert reply.message.isprintable() and len(reply.message) < 1024, reply
            assert address in reply.message, reply
        assert actor.memory_kib - before < MEMORY_KIB
        actor.ok("close")
        url = quiet_group.url(connect_timeout="5s").replace("://", f"://{address},")
        actor = spawn(url)
        actor.ok("acquire", name=name, wait=0, ttl_ms=2000)
        assert quiet_group.cmd(quiet_group.primary, "EXISTS", name) == 1
        actor.ok("release")


# ---- a crowd without sentinels ----


def test_a_crowd_while_all_sentinels_are_down(spawn: Spawn, name: str) -> None:
    """Goal: 64 callers at once each end within their wait, and with one status; the same client
    works when the sentinels are there again. Method: dead sentinels, then stopped ones."""
    with SentinelGroup(down_after_ms=NEVER_MS, replicas=0) as group:
        actor = spawn(f"{group.url()}?{LIMITS}")
        for one in group.sentinels:
            one.kill()
        for do_hang in (False, True):
            if do_hang:
                for one in group.sentinels:
                    one.start()
                    one.pause()
            waits = [(100, 500, 1000, 2000)[i % 4] for i in range(64)]
            running = [
                actor.begin("acquire", thread=i, lease=i + 1, name=f"{name}{i}", wait=wait)
                for i, wait in enumerate(waits)
            ]
            for wait, pending in zip(waits, running):
                reply = pending.get()
                assert reply.status in ("RL_E_UNAVAILABLE", "RL_TIMEOUT"), reply
                assert reply.seconds < wait / 1000 + SLACK_S, (wait, reply)
        for one in group.sentinels:
            one.resume()
        for i in range(64):
            actor.begin("acquire", thread=i, lease=i + 1, name=f"{name}{i}", wait=20_000)
        for i in range(64):
            reply = actor.begin("release", thread=i, lease=i + 1).get()
            assert reply.status == "RL_OK", reply
        assert group.cmd(group.primary, "EXISTS", name + "0", aux_key(name + "0", "q")) == 0
