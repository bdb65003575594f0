# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A small RESP2/RESP3 client for tests. Every read has a deadline; no test can hang in it.

Tests use this and not a client library, because a client library retries, reconnects and decodes,
which are the very things that must be visible here.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Generator, Sequence
from typing import Any

Argument = bytes | str | int | float


class RespError(Exception):
    """An error reply. `code` is its first word, such as NOSCRIPT."""

    @property
    def code(self) -> str:
        return str(self).split(" ", 1)[0]


class Push(list[Any]):
    """A RESP3 push frame."""


def encode(*args: Argument) -> bytes:
    """One command as the bytes of a RESP request."""
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        data = arg if isinstance(arg, bytes) else str(arg).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


class Connection:
    """One connection to `url` (redis://host:port or unix:///path). Not thread-safe.

    Bulk strings are bytes, simple strings are str, errors are RespError, sets are lists.
    """

    def __init__(self, url: str, *, protocol: int = 2, timeout: float = 10.0) -> None:
        self.timeout = timeout
        self.pushes: deque[list[Any]] = deque()
        self._buffer = bytearray()
        self._position = 0
        self._parser: Generator[None, None, Any] | None = None
        self._socket = _connect(url, timeout)
        if protocol != 2:
            self.cmd("HELLO", protocol)

    def cmd(self, *args: Argument, timeout: float | None = None) -> Any:
        """Send one command and return its reply; an error reply is raised."""
        self.send(*args)
        reply = self.read(timeout)
        if isinstance(reply, RespError):
            raise reply
        return reply

    def pipe(
        self, commands: Sequence[Sequence[Argument]], timeout: float | None = None
    ) -> list[Any]:
        """Send all commands at once and return all replies; errors are returned, not raised."""
        self.send_raw(b"".join(encode(*command) for command in commands))
        return [self.read(timeout) for _ in commands]

    def send(self, *args: Argument) -> None:
        self.send_raw(encode(*args))

    def send_raw(self, data: bytes) -> None:
        self._socket.settimeout(self.timeout)
        self._socket.sendall(data)

    def read(self, timeout: float | None = None) -> Any:
        """The next reply, which may be a RespError. RESP3 pushes before it go to `pushes`."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            frame = self._read_frame(end)
            if not isinstance(frame, Push):
                return frame
            self.pushes.append(frame)

    def push(self, timeout: float = 0.0) -> list[Any] | None:
        """The next pushed frame, or None if there is none within `timeout` seconds.

        Works on a RESP2 connection too when no reply is outstanding: there a message looks like a
        reply.
        """
        if self.pushes:
            return self.pushes.popleft()
        try:
            frame = self._read_frame(time.monotonic() + timeout)
        except TimeoutError:
            return None
        if not isinstance(frame, list):
            raise AssertionError(f"expected a push, got {frame!r}")
        return frame

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_frame(self, end: float) -> Any:
        # The parser survives a TimeoutError, so that half a frame is never lost.
        if self._parser is None:
            self._parser = self._parse()
        while True:
            try:
                next(self._parser)
            except StopIteration as done:
                self._parser = None
                del self._buffer[: self._position]
                self._position = 0
                return done.value
            self._receive(end)

    def _receive(self, end: float) -> None:
        left = end - time.monotonic()
        try:
            # A zero time-out means non-blocking: what the kernel already has is still returned.
            self._socket.settimeout(max(left, 0.0))
            data = self._socket.recv(1 << 16)
        except BlockingIOError:
            raise TimeoutError("no reply in time") from None
        if not data:
            raise ConnectionError("closed by the server")
        self._buffer += data

    def _parse(self) -> Generator[None, None, Any]:
        line = yield from self._parse_line()
        kind, rest = line[:1], line[1:]
        match kind:
            case b"+":
                return rest.decode()
            case b"-":
                return RespError(rest.decode(errors="replace"))
            case b":" | b"(":
                return int(rest)
            case b"_":
                return None
            case b",":
                return float(rest)
            case b"#":
                return rest == b"t"
            case b"$" | b"=" | b"!":
                return (yield from self._parse_bulk(kind, int(rest)))
            case b"*" | b"~" | b">":
                return (yield from self._parse_array(kind, int(rest)))
            case b"%" | b"|":
                flat = yield from self._parse_array(b"*", 2 * int(rest))
                if kind == b"|":  # Attributes describe the frame that follows.
                    return (yield from self._parse())
                return dict(zip(flat[::2], flat[1::2]))
        raise AssertionError(f"not RESP: {line!r}")

    def _parse_line(self) -> Generator[None, None, bytes]:
        while (end := self._buffer.find(b"\r\n", self._position)) < 0:
            yield
        line = bytes(self._buffer[self._position : end])
        self._position = end + 2
        return line

    def _parse_bulk(self, kind: bytes, size: int) -> Generator[None, None, Any]:
        if size < 0:
            return None
        while len(self._buffer) - self._position < size + 2:
            yield
        data = bytes(self._buffer[self._position : self._position + size])
        self._position += size + 2
        if kind == b"!":
            return RespError(data.decode(errors="replace"))
        return data[4:].decode() if kind == b"=" else data

    def _parse_array(self, kind: bytes, size: int) -> Generator[None, None, Any]:
        if size < 0:
            return None
        items = []
        for _ in range(size):
            items.append((yield from self._parse()))
        return Push(items) if kind == b">" else items


def _connect(url: str, timeout: float) -> socket.socket:
    if url.startswith("unix://"):
        unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        unix.settimeout(timeout)
        try:
            unix.connect(url.removeprefix("unix://"))
        except OSError:
            unix.close()
            raise
        return unix
    host, port = url.removeprefix("redis://").rsplit(":", 1)
    tcp = socket.create_connection((host, int(port)), timeout)
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return tcp
