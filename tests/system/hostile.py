# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A server that speaks as a test tells it: politely until a certain command, then anything.

    with HostileServer(lambda command: [b"nonsense"] if command[0] == b"EVALSHA" else None) as it:
        actor = Actor(it.url)
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable

from .proxy import Frames

Command = list[bytes]
# The pieces to send, or None for the polite answer.
Answer = Callable[[Command], Iterable[bytes] | None]


def bulk(text: str | bytes) -> bytes:
    data = text if isinstance(text, bytes) else text.encode()
    return b"$%d\r\n%s\r\n" % (len(data), data)


def array(*items: bytes) -> bytes:
    return b"*%d\r\n%s" % (len(items), b"".join(items))


def integer(number: int) -> bytes:
    return b":%d\r\n" % number


def push(*items: bytes) -> bytes:
    return b">%d\r\n%s" % (len(items), b"".join(items))


def fake_hello(version: str, server: str = "redis") -> bytes:
    """The answer to HELLO 3 of a server of this kind and version."""
    fields = ["server", server, "version", version, "proto"]
    return b"%3\r\n" + b"".join(bulk(field) for field in fields) + integer(3)


def sentinel_hello() -> bytes:
    """The answer to HELLO 3 of a sentinel."""
    fields = ["server", "redis", "version", "7.4.0", "mode", "sentinel", "proto"]
    return b"%4\r\n" + b"".join(map(bulk, fields)) + integer(3)


def granted(fence: str = "1790000000000000") -> bytes:
    """The answer of ACQUIRE that gives the lock."""
    return array(integer(1), bulk(fence), integer(int(time.time() * 1000)))


def queued() -> bytes:
    """The answer of ACQUIRE that queues."""
    now = integer(int(time.time() * 1000))
    ticket, check, kind = bulk("1790000000000000"), bulk("00000000"), bulk("string")
    return array(
        integer(0), integer(10_000), now, ticket, integer(0), check, bulk("t" * 32), kind,
        integer(0),
    )


def polite(command: Command) -> bytes:
    """What a server of today answers while a client connects; scripts grant everything."""
    match command[0].upper():
        case b"HELLO":
            return fake_hello("7.4.0")
        case b"SCRIPT":
            return bulk("0" * 40)
        case b"SUBSCRIBE" | b"SSUBSCRIBE":
            return push(bulk(command[0].lower()), bulk(command[1]), integer(1))
        case b"EVAL":
            return array(integer(1), integer(0))
        case b"EVALSHA":
            return granted()
    return b"+OK\r\n"


class HostileServer:
    """Listens on a port of its own, with a thread for each connection."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self.connection_count = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def __enter__(self) -> HostileServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connection_count += 1
                self._connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        frames = Frames()
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := connection.recv(1 << 16):
                for command in frames.feed(data):
                    pieces = self._answer(command)
                    for piece in [polite(command)] if pieces is None else pieces:
                        connection.sendall(piece)
        connection.close()
