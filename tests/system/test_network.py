# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a network that is slow, broken or absent costs time within limits, and tells what is wrong.

Method: a proxy that slices, delays, stops, garbles and drops; addresses where nobody answers.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest
from support.servers import Server
from support.wait import SLACK_S, wait_until

from .actor import HELD, Actor, Spawn
from .conftest import queue_length
from .proxy import FaultProxy


LIMIT_S = 0.3
LIMITS = "?command_timeout=300ms&connect_timeout=300ms"


# ---- a bad network ----


def test_single_bytes(
    shared_server: Server, proxy: FaultProxy, spawn: Spawn, name: str
) -> None:
    """Goal: how replies and requests are cut into packets makes no difference.
    Method: one byte at a time in both directions; every script, a push among them."""
    proxy.slices = True
    actor, other = spawn(proxy.url + "?command_timeout=10s"), spawn(shared_server.url)
    actor.ok("acquire", name=name, wait=0, label="sliced")
    actor.ok("extend", ttl_ms=20_000)
    assert actor.ok("inspect", name=name)["holder"] == actor.ok("look")["token"]
    actor.ok("release")
    other.ok("acquire", name=name, wait=0)
    assert actor.call("acquire", name=name, wait=0).status == "RL_BUSY"
    assert actor.call("acquire", name=name, wait=50).status == "RL_TIMEOUT"
    waiting = actor.begin("acquire", name=name, wait=-1)
    wait_until(lambda: queue_length(shared_server, name) == 1)
    other.ok("release")
    assert waiting.get().status == "RL_OK"
    actor.ok("force", name=name)
    assert actor.call("release").status == "RL_E_LOST"


def test_delay_is_taken_off_the_lease(proxy: FaultProxy, spawn: Spawn, name: str) -> None:
    """Goal: validity counts from the moment of sending; a lease shorter than that is refused.
    Method: 60 ms in each direction."""
    actor = spawn(proxy.url)
    actor.ok("connect")
    proxy.delay = 0.06
    reply = actor.ok("acquire", name=name, wait=0, ttl_ms=5000)
    assert reply.seconds >= 0.12
    assert actor.ok("look").number("remaining") < 5000 - 120
    actor.ok("release")
    reply = actor.call("acquire", name=name, wait=2000, ttl_ms=100)
    assert reply.status == "RL_E_INVALID" and "ttl must be well above" in reply.message, reply
    proxy.delay = 0.0
    actor.ok("acquire", name=name, wait=2000, ttl_ms=100)


@pytest.mark.parametrize("fault", ["hang", "drops_replies", "garbles", "refuses"])
def test_a_network_that_recovers(
    shared_server: Server, proxy: FaultProxy, spawn: Spawn, name: str, fault: str
) -> None:
    """Goal: while it lasts, limits are kept and nothing is granted twice; afterwards all goes on,
    for callers that are connected, new, holding and waiting.
    Method: switch the fault on, time calls, switch it off."""
    holder, new = spawn(proxy.url + LIMITS), spawn(proxy.url + LIMITS)
    other = spawn(shared_server.url)
    holder.ok("acquire", name=name, wait=0)
    other.ok("acquire", name=name + "2", wait=0)
    waiting = holder.begin("acquire", thread=1, lease=1, name=name + "2", wait=-1)
    wait_until(lambda: queue_length(shared_server, name + "2") == 1)
    if fault == "hang":
        proxy.hang()
    else:
        setattr(proxy, fault, True)
        proxy.cut()
    for actor in (holder, new):
        for wait in (0, 300):
            reply = actor.call("acquire", thread=2, lease=2, name=name, wait=wait)
            honest = ("RL_E_UNAVAILABLE", "RL_E_OUTCOME_UNKNOWN", "RL_E_UNSUPPORTED")
            assert reply.status in honest, reply
            assert reply.seconds < max(wait / 1000, 2 * LIMIT_S) + SLACK_S
    assert other.call("acquire", lease=1, name=name, wait=0).status == "RL_BUSY"
    riding = new.begin("acquire", thread=3, lease=3, name=name + "3", wait=20_000)
    proxy.go_on() if fault == "hang" else setattr(proxy, fault, False)
    proxy.cut()
    if fault != "garbles":  # which looks like a server that speaks another protocol
        assert riding.get().status == "RL_OK"
        assert holder.ok("look").number("state") == HELD
        holder.ok("extend", ttl_ms=30_000)
        other.ok("release")
        assert waiting.get().status == "RL_OK"
    wait_until(lambda: holder.call("inspect", name=name).status == "RL_OK")
    holder.ok("release")
    new.ok("acquire", name=name, wait=5000)


# ---- no server ----


@contextlib.contextmanager
def full_listener() -> Iterator[int]:
    """A port that answers no attempt to connect: its queue of connections is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(8):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(listener.getsockname())
        yield listener.getsockname()[1]


def check_unreachable(actor: Actor, where: str, why: str, name: str) -> None:
    """One try ends within the limit of connecting, a wait with its limit, and both say why."""
    for command, wait, limit in (
        ("connect", 0, LIMIT_S),
        ("acquire", 0, LIMIT_S),
        ("inspect", 0, LIMIT_S),
        ("acquire", 500, 0.5),
        ("connect", 500, 0.5),
    ):
        reply = actor.call(command, name=name, wait=wait)
        assert reply.status == "RL_E_UNAVAILABLE", reply
        assert where in reply.message and why in reply.message, reply
        assert wait / 1000 <= reply.seconds < limit + SLACK_S, (command, reply)


def test_no_server_answers(spawn: Spawn, name: str) -> None:
    """Goal: an address that swallows packets costs the limit of connecting and no more.
    Method: a listener whose queue is full; another caller of the same client meanwhile."""
    with full_listener() as port:
        actor = spawn(f"redis://127.0.0.1:{port}{LIMITS}")
        behind = actor.begin("acquire", thread=1, lease=1, name=name, wait=900)
        check_unreachable(actor, f"127.0.0.1:{port}", "timed out", name)
        reply = behind.get()
        assert reply.status == "RL_E_UNAVAILABLE"
        assert 0.9 <= reply.seconds < 0.9 + SLACK_S


@pytest.mark.parametrize(
    ("url", "where", "why"),
    [
        ("unix:///nowhere/sock", "/nowhere/sock", "No such file"),
        ("redis://nowhere.invalid:6379", "nowhere.invalid", ""),  # of a reserved domain
    ],
)
def test_no_such_address(spawn: Spawn, name: str, url: str, where: str, why: str) -> None:
    """Goal: a socket that is not there, or a host that no server knows, is named in time."""
    check_unreachable(spawn(url + LIMITS), where, why, name)


def test_each_connection_of_resp2_has_a_limit_of_its_own(
    proxy: FaultProxy, spawn: Spawn, name: str
) -> None:
    """Goal: the time that the second connection takes is not taken from the first one.
    Method: replies that are slow, and within the limit on each connection, not on both together."""
    limit_s = 2.0

    def slowly(command: list[bytes]) -> list[bytes]:
        if command[0] in (b"HELLO", b"SSUBSCRIBE", b"SUBSCRIBE"):
            time.sleep(0.35 * limit_s)
        return command

    proxy.rewrite = slowly
    actor = spawn(f"{proxy.url}?protocol=2&command_timeout={limit_s:.0f}s")
    actor.ok("connect")
    assert actor.ok("acquire", name=name, wait=0).status == "RL_OK"
