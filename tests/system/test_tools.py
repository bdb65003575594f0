# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what disturbs in these tests does what it says. What judges is tested in tests/history.

Method: a plain connection through the proxy.
"""

from __future__ import annotations

import time

import pytest
from support.resp import Connection
from support.servers import Server

from .actor import Actor
from .hostile import HostileServer
from .proxy import FaultProxy, Frames


def test_frames_are_taken_apart() -> None:
    """Goal: the proxy finds the ends of commands and replies wherever they are cut.
    Method: byte by byte."""
    data = b"*2\r\n$4\r\na\r\nb\r\n:1\r\n>1\r\n+p\r\n%1\r\n+k\r\n_\r\n-ERR x\r\n$-1\r\n"
    frames = Frames()
    found = [frame for i in range(len(data)) for frame in frames.feed(data[i : i + 1])]
    assert found[:2] == [[b"a\r\nb", 1], ["p"]]
    assert str(found[3]) == "ERR x" and found[4] is None and len(found) == 5


@pytest.fixture
def through(proxy: FaultProxy) -> Connection:
    return Connection(proxy.url, timeout=0.5)


def test_a_lost_reply_is_carried_out(
    shared_server: Server, proxy: FaultProxy, through: Connection, name: str
) -> None:
    """Goal: the script runs, its reply is noted and never arrives, the connection is reset.
    Method: EVAL that writes; commands before it pass."""
    loss = proxy.lose_reply()
    assert through.cmd("PING") == "PONG"
    with pytest.raises((ConnectionError, TimeoutError)):
        through.cmd("EVAL", "return redis.call('SET', KEYS[1], 1, 'PX', 1000)", 1, name)
    assert loss.done.wait(5.0)
    assert loss.reply == "OK" and loss.command[3].decode() == name
    with shared_server.connect() as connection:
        assert connection.cmd("GET", name) == b"1"
    with Connection(proxy.url) as again:
        assert again.cmd("EVAL", "return 1", 0) == 1


def test_a_lost_request_is_not_carried_out(
    shared_server: Server, proxy: FaultProxy, through: Connection, name: str
) -> None:
    """Goal: the script does not run. Method: as before; silence instead of the cut."""
    loss = proxy.lose_request(then_cut=False)
    with pytest.raises(TimeoutError):
        through.cmd("EVAL", "return redis.call('SET', KEYS[1], 1, 'PX', 1000)", 1, name)
    assert loss.done.is_set()
    with shared_server.connect() as connection:
        assert connection.cmd("GET", name) is None


def test_other_faults_of_the_proxy(proxy: FaultProxy, through: Connection) -> None:
    """Goal: each fault does what its name says, and ends.
    Method: PING through each of them."""
    proxy.slices = True
    assert through.cmd("ECHO", "x" * 100) == b"x" * 100
    proxy.slices = False
    proxy.delay = 0.05
    began = time.monotonic()
    through.cmd("PING")
    assert time.monotonic() - began >= 0.1
    proxy.delay = 0.0
    proxy.hang()
    through.send("PING")
    with pytest.raises(TimeoutError):
        through.read(0.2)
    proxy.go_on()
    assert through.read() == "PONG"
    proxy.drops_replies = True
    with pytest.raises(TimeoutError):
        through.cmd("PING")
    proxy.drops_replies = False
    proxy.cut()
    with pytest.raises(OSError):
        through.cmd("PING")
    proxy.refuses = True
    with pytest.raises(OSError):
        Connection(proxy.url).cmd("PING")
    proxy.refuses = False
    with Connection(proxy.url) as again:
        proxy.garbles = True
        again.send("PING")
        assert again._socket.recv(100) != b"+PONG\r\n"


def test_the_polite_server_is_believed(name: str) -> None:
    """Goal: a client takes the fake server for a real one until it misbehaves: else the hostile
    tests would test the handshake only.
    Method: acquire, look, release."""
    with HostileServer(lambda command: None) as server, Actor(server.url) as actor:
        assert actor.ok("acquire", name=name, wait=0).number("fence") == 1790000000000000
        actor.ok("look")


def test_an_actor_that_dies_is_noticed() -> None:
    """Goal: a crash of the library would fail a test, and not look like an answer.
    Method: a slot that does not exist ends the actor."""
    with Actor() as actor, pytest.raises(AssertionError, match="ended with 99"):
        actor.call("look", lease=999)
