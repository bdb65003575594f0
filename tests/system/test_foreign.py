# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: keys that others made under a lock's name are respected: foreign locks and other data.

Method: a plain connection makes, changes and removes them while clients try, wait and look.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from support.resp import Argument, Connection
from support.servers import Server
from support.wait import wait_until

from .actor import FREE, Spawn
from .conftest import aux_key, enqueue_dead


pytestmark = pytest.mark.not_judged

# A waiter in front of a foreign holder looks at least each 250 ms.
NOTICED_S = 0.5


@pytest.fixture
def connection(shared_server: Server) -> Iterator[Connection]:
    with shared_server.connect() as running:
        yield running


def test_a_foreign_lease_ends(
    shared_server: Server, spawn: Spawn, connection: Connection, name: str
) -> None:
    """Goal: a foreign lock that expires is free for ours.
    Method: SET NX PX 300, a waiter, and the time."""
    actor = spawn(shared_server.url)
    actor.ok("connect")
    connection.cmd("SET", name, "theirs", "NX", "PX", 300)
    reply = actor.ok("acquire", name=name, wait=5000)
    assert 0.2 < reply.seconds < 0.3 + NOTICED_S
    actor.ok("release")


@pytest.mark.parametrize("suffix", ["q", "f", "i"])
def test_spoiled_keys_beside_a_lock(
    shared_server: Server, spawn: Spawn, connection: Connection, name: str, suffix: str
) -> None:
    """Goal: other data under our auxiliary keys is told, and ends nobody's process or lock.
    Method: a list in place of queue, fence and description; all calls; remove it."""
    actor, other = spawn(shared_server.url), spawn(shared_server.url)
    actor.ok("acquire", name=name, wait=0)
    connection.cmd("DEL", aux_key(name, suffix))
    connection.cmd("RPUSH", aux_key(name, suffix), "v")
    for _ in range(2):
        for wait in (0, 100):
            reply = other.call("acquire", name=name, wait=wait)
            assert reply.status in ("RL_BUSY", "RL_TIMEOUT", "RL_E_WRONG_TYPE"), reply
            if reply.status == "RL_E_WRONG_TYPE":
                assert "WRONGTYPE" in reply.message and name in reply.message
        assert actor.call("inspect", name=name).status in ("RL_OK", "RL_E_WRONG_TYPE")
        actor.ok("extend", ttl_ms=30_000)
        assert actor.ok("look").number("remaining") > 20_000
    connection.cmd("DEL", aux_key(name, suffix))
    actor.ok("release")
    other.ok("acquire", name=name, wait=2000)
    assert other.ok("inspect", name=name).number("state") != FREE
    other.ok("release")


# ---- who looks when theirs goes ------------------------------------------------------------------

# How many stand in front of the first one who is alive.
IN_FRONT = [1, 3, 10, 1000]
# A lease that ends far later than what is waited for.
LONG_MS = 60_000
# By polling or by the timers of those further back it would be later.
AT_ONCE_S = 0.4

FORMATS = {"string": 1, "hash": 2, "hash-rw": 3}
HOLD: dict[str, tuple[Argument, ...]] = {
    "string": ("SET", "theirs"),
    "hash": ("HSET", "8743c9c0-0795-4907-87fd-6c719a6b4586:1", 1),
    "hash-rw": ("HSET", "mode", "write", "8743c9c0-0795-4907-87fd-6c719a6b4586:1:write", 1),
}


def hold(connection: Connection, name: str, form: str) -> str:
    """As another library does. The key of those who wait in this format."""
    connection.cmd(HOLD[form][0], name, *HOLD[form][1:])
    connection.cmd("PEXPIRE", name, LONG_MS)
    return aux_key(name, {"string": "", "hash": "h", "hash-rw": "m"}[form] + "q")


@pytest.mark.parametrize("in_front", IN_FRONT)
@pytest.mark.parametrize("form", FORMATS)
def test_the_first_one_alive_is_in_when_theirs_goes(
    shared_server: Server,
    spawn: Spawn,
    connection: Connection,
    name: str,
    form: str,
    in_front: int,
    figure: Callable[[str], None],
) -> None:
    """Goal: waiters that were killed behind a foreign holder cost those behind them next to no time
    when it goes.
    Method: entries of waiters that receive no messages; one who waits; a DEL."""
    actor = spawn(shared_server.url)
    actor.ok("connect")
    queue = hold(connection, name, form)
    enqueue_dead(connection, queue, in_front)
    waiting = actor.begin("acquire", name=name, wait=-1, format=FORMATS[form])
    wait_until(lambda: connection.cmd("ZCARD", queue) == in_front + 1)
    time.sleep(0.1)  # its answer, and what it asks for then
    removed = time.monotonic()
    connection.cmd("DEL", name)
    reply = waiting.get()
    late = reply.ended - removed
    figure(f"{form}: {in_front} dead behind a foreign holder: {late * 1e3:.1f} ms")
    assert reply.status == "RL_OK"
    assert late < AT_ONCE_S
    actor.ok("release")


@pytest.mark.parametrize("form", FORMATS)
def test_waiter_behind_ended_waits_gets_the_lock_on_foreign_release(
    shared_server: Server, spawn: Spawn, connection: Connection, name: str, form: str
) -> None:
    """Goal: heads whose wait ends behind a foreign holder leave news of its release to the next.
    Method: three waits that end, one that does not; a DEL."""
    actors = [spawn(shared_server.url) for _ in range(4)]
    queue = hold(connection, name, form)
    waiting = []
    for number, actor in enumerate(actors):
        wait = 2000 if number < 3 else -1  # long enough for all four to be in the queue
        waiting.append(actor.begin("acquire", name=name, wait=wait, format=FORMATS[form]))
        wait_until(lambda: connection.cmd("ZCARD", queue) > len(waiting) - 1)
    assert [pending.get().status for pending in waiting[:3]] == ["RL_TIMEOUT"] * 3
    wait_until(lambda: connection.cmd("ZCARD", queue) == 1)
    time.sleep(0.1)  # it is the head now
    removed = time.monotonic()
    connection.cmd("DEL", name)
    reply = waiting[3].get()
    assert reply.status == "RL_OK"
    assert reply.ended - removed < AT_ONCE_S
    actors[3].ok("release")
