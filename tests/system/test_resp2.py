# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: without RESP3 a client waits and is told as with it, by a second connection.

Method: protocol=2 on real servers, servers that do not know HELLO; either connection is cut while
clients wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.servers import Server, available_kinds
from support.wait import wait_until

from .actor import HELD, Spawn
from .conftest import queue_length
from .hostile import HostileServer, array, bulk, integer
from .plays import MESSAGE_S, SECRET, add_user, own_queue, play_everything


@pytest.fixture(params=available_kinds())
def without_hello(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that does not know HELLO, as a proxy may not, and asks for a password."""
    with Server(request.param, ["--rename-command", "HELLO", "", "--requirepass", SECRET]) as it:
        yield it


def connection_count(server: Server, kind: str) -> int:
    with server.connect() as connection:
        return len(connection.cmd("CLIENT", "LIST", "TYPE", kind).splitlines())


def test_everything_works_and_by_push(server: Server, spawn: Spawn, name: str) -> None:
    """Goal: each call works over RESP2, and a hand-off waits for no poll.
    Method: the minimal user plays everything; the server's log of refusals stays empty."""
    url = add_user(server, "locker") + "&protocol=2&health=no"  # which asks for more
    assert play_everything(server, spawn(url), spawn(url), name).is_by_message
    assert connection_count(server, "pubsub") == 2
    with server.connect() as connection:
        assert connection.cmd("ACL", "LOG") == []


def test_passwords_without_hello(without_hello: Server, spawn: Spawn, name: str) -> None:
    """Goal: RESP2 is found without being asked for; passwords are checked as ever.
    Method: a server whose HELLO is renamed away."""
    url = without_hello.url.replace("://", f"://:{SECRET}@")
    spawn(url).ok("acquire", name=name, wait=0)
    for who in ("", ":wrong@", f"nobody:{SECRET}@"):
        reply = spawn(without_hello.url.replace("://", f"://{who}")).call("connect", wait=-1)
        assert reply.status == "RL_E_DENIED", reply
        assert "wrong" not in reply.message.replace("WRONGPASS", "") and SECRET not in reply.message


def test_a_password_is_not_in_the_words_of_a_server_without_auth(spawn: Spawn, name: str) -> None:
    """Goal: a server that knows neither HELLO nor AUTH, and quotes what it got, gives no password
    away.
    Method: one where both are renamed away."""
    away = ["--rename-command", "HELLO", "", "--rename-command", "AUTH", ""]
    with Server(available_kinds()[0], away) as server:
        reply = spawn(server.url.replace("://", "://:canary@")).call("connect", wait=0)
        assert reply.status != "RL_OK" and "canary" not in reply.message
        assert "refused the password" in reply.message, reply


def test_versions_are_checked_without_hello(spawn: Spawn, name: str) -> None:
    """Goal: a server that is too old is told by its INFO; one that tells nothing only on request.
    Method: fake servers."""
    old = b"# Server\r\nredis_version:5.0.14\r\nredis_mode:standalone\r\n"
    unknown = b"-ERR unknown command 'HELLO'\r\n"

    def answer(info: bytes) -> Callable[[list[bytes]], list[bytes] | None]:
        def reply(command: list[bytes]) -> list[bytes] | None:
            subscribed = array(bulk("subscribe"), bulk("channel"), integer(1))
            answers = {b"HELLO": unknown, b"INFO": info, b"SUBSCRIBE": subscribed}
            answers |= {b"SSUBSCRIBE": unknown, b"SPUBLISH": unknown}
            known = answers.get(command[0].upper())
            return None if known is None else [known]

        return reply

    with HostileServer(answer(bulk(old))) as server:
        for url in (server.url, server.url + "?protocol=2"):
            reply = spawn(url).call("connect", wait=-1)
            assert reply.status == "RL_E_UNSUPPORTED" and "'5.0.14'" in reply.message, reply
    with HostileServer(answer(b"-ERR unknown command 'INFO'\r\n")) as server:
        reply = spawn(server.url).call("connect", wait=-1)
        assert reply.status == "RL_E_UNSUPPORTED" and "protocol=2" in reply.message, reply
        spawn(server.url + "?protocol=2").ok("connect", wait=-1)


@pytest.mark.parametrize("kind", ["pubsub", "normal"])
def test_either_connection_may_be_cut(server: Server, spawn: Spawn, name: str, kind: str) -> None:
    """Goal: a waiter that loses one of its connections makes both anew, keeps its place and is
    still told; nothing is left open.
    Method: CLIENT KILL of that kind, several times, while one waits."""
    url = server.url + "?protocol=2"
    holder, waiter = spawn(server.url), spawn(url)
    holder.ok("acquire", name=name, wait=0)
    waiting = waiter.begin("acquire", name=name, wait=-1)
    wait_until(lambda: queue_length(server, name) == 1)
    before = waiter.descriptor_count
    for _ in range(5):
        with server.connect() as connection:
            ids = connection.cmd("CLIENT", "LIST", "TYPE", kind).decode().splitlines()
            own = int(connection.cmd("CLIENT", "ID"))
            for line in ids:
                number = int(line.split("id=", 1)[1].split()[0])
                if number != own and "name=redlatch" in line:
                    connection.cmd("CLIENT", "KILL", "ID", number)
        wait_until(lambda: connection_count(server, "pubsub") == 2)
    wait_until(lambda: waiter.descriptor_count == before)
    assert queue_length(server, name) == 1
    released = holder.ok("release")
    assert waiting.get().ended - released.began < MESSAGE_S
    assert waiter.ok("look").number("state") == HELD


def test_without_channels_both_protocols_look(server: Server, spawn: Spawn, name: str) -> None:
    """Goal: a refused subscription over RESP2 means looking, too, and no second connection.
    Method: a user without channels."""
    url = add_user(server, "lesser", "resetchannels") + "&protocol=2"
    holder, waiter = spawn(url), spawn(url)
    holder.ok("acquire", name=name, wait=0)
    waiting = waiter.begin("acquire", name=name, wait=-1)
    wait_until(lambda: own_queue(server, name) == 1)
    holder.ok("release")
    assert waiting.get().status == "RL_OK"
    assert connection_count(server, "pubsub") == 0
