# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A TCP proxy in front of a server that loses, cuts, delays, slices, stops, garbles and lies.

    with FaultProxy(server.port) as proxy:
        proxy.lose_reply()            # of the next script: it is carried out, its reply vanishes
        actor = Actor(proxy.url)

A thread for each direction of each connection; they end with the proxy.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from support.resp import Push, RespError, encode

SCRIPT_COMMANDS = (b"EVAL", b"EVALSHA")
_CHUNK = 1 << 16


class Incomplete(Exception):
    """The bytes end in the middle of a frame."""


def parse_frame(data: bytes, at: int = 0) -> tuple[Any, int]:
    """One RESP frame and the place behind it. Raises Incomplete."""
    end = data.find(b"\r\n", at)
    if end < 0:
        raise Incomplete
    kind, rest, at = data[at : at + 1], data[at + 1 : end], end + 2
    if kind in b"$=!":
        size = int(rest)
        if size < 0:
            return None, at
        if len(data) < at + size + 2:
            raise Incomplete
        return data[at : at + size], at + size + 2
    if kind in b"*>~%|":
        items: list[Any] = Push() if kind == b">" else []
        for _ in range(int(rest) * (2 if kind in b"%|" else 1)):
            item, at = parse_frame(data, at)
            items.append(item)
        return items, at
    if kind == b"-":
        return RespError(rest.decode(errors="replace")), at
    return (int(rest) if kind == b":" else rest.decode(errors="replace")), at


class Frames:
    """Takes bytes apart into frames."""

    def __init__(self) -> None:
        self._data = b""

    def feed(self, data: bytes) -> list[Any]:
        self._data += data
        frames = []
        try:
            while self._data:
                frame, end = parse_frame(self._data)
                frames.append(frame)
                self._data = self._data[end:]
        except Incomplete:
            pass
        except ValueError:  # TLS, in which no frame can be seen
            self._data = b""
        return frames


def _is_script(frame: Any) -> bool:
    """A frame may be anything: bytes of TLS look like one now and then."""
    is_command = isinstance(frame, list) and frame and isinstance(frame[0], bytes)
    return bool(is_command and frame[0].upper() in SCRIPT_COMMANDS)


class Loss:
    """One script whose request or reply is lost."""

    def __init__(self, *, reaches_server: bool, then_cut: bool) -> None:
        self.reaches_server = reaches_server
        self.then_cut = then_cut
        self.command: list[bytes] = []
        self.reply: Any = None
        self.done = threading.Event()


class _Link:
    """One client's connection and the one to the server behind it."""

    def __init__(self, proxy: FaultProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self.client, self.server = client, server
        self._commands, self._replies, self._originals = Frames(), Frames(), Frames()
        self._loss: Loss | None = None
        for part in (client, server):
            part.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._is_cut = threading.Event()
        self.is_silent = self.has_subscribed = False
        self._mutex = threading.Lock()
        self._running = 2
        pumps = (self._pump_up, self._pump_down)
        self._threads = [
            threading.Thread(target=self._run, args=(pump,), daemon=True) for pump in pumps
        ]
        for thread in self._threads:
            thread.start()

    def cut(self) -> None:
        """A reset in both directions."""
        self._is_cut.set()
        for part in (self.client, self.server):
            with contextlib.suppress(OSError):
                part.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                # Wakes a thread that receives; the close behind it then is the last, and resets.
                part.shutdown(socket.SHUT_RD)

    def join(self) -> None:
        """Wait until nothing goes through any more, after a cut."""
        for thread in self._threads:
            thread.join(5.0)

    def _run(self, pump: Callable[[], None]) -> None:
        with contextlib.suppress(OSError):
            pump()
        with self._mutex:
            self._running -= 1
            is_last = self._running == 0
        for part in (self.client, self.server):
            if is_last:
                part.close()
                continue
            with contextlib.suppress(OSError):
                part.shutdown(socket.SHUT_RD)

    def _pump_up(self) -> None:
        while (data := self.client.recv(_CHUNK)) and not self._is_cut.is_set():
            self._proxy.wait_open(self._is_cut)
            self.has_subscribed = self.has_subscribed or b"SUBSCRIBE" in data
            if self.is_silent:
                continue
            if rewrite := self._proxy.rewrite:
                commands = self._originals.feed(data)
                data = b"".join(encode(*rewrite(command)) for command in commands)
            if not self._proxy.drops_requests and self._look_for_loss(data):
                self._proxy.send(self.server, data)
        if self.is_silent:
            self._is_cut.wait()  # the server does not learn that the client has closed its end

    def _pump_down(self) -> None:
        while (data := self.server.recv(_CHUNK)) and not self._is_cut.is_set():
            self._proxy.wait_open(self._is_cut)
            if self.is_silent:
                continue
            if self._loss:
                self._swallow(self._loss, data)
            elif not self._proxy.drops_replies:
                self._proxy.send(self.client, self._proxy.disturb(data))

    def _look_for_loss(self, data: bytes) -> bool:
        """Whether the server gets `data`."""
        if self._loss:
            return self._loss.reaches_server
        for command in self._commands.feed(data):
            if not _is_script(command):
                continue
            loss = self._proxy.take_loss()
            if loss is None:
                continue
            loss.command, self._loss = command, loss
            if loss.reaches_server:
                return True
            loss.done.set()
            if loss.then_cut:
                self.cut()
            return False
        return True

    def _swallow(self, loss: Loss, data: bytes) -> None:
        for frame in self._replies.feed(data):
            if isinstance(frame, Push) or loss.done.is_set():
                continue
            loss.reply = frame
            loss.done.set()
            if loss.then_cut:
                self.cut()


class FaultProxy:
    """Listens on a port of its own. Faults are attributes; they hold for what comes after."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._open = threading.Event()
        self._open.set()
        self._mutex = threading.Lock()
        self._links: list[_Link] = []
        self._loss: Loss | None = None
        self._random = random.Random(1)
        self.drops_requests = False
        self.drops_replies = False
        self.delay = 0.0
        self.slices = False
        self.garbles = False
        self.refuses = False
        # What the server gets in place of a command; to be set before anybody connects.
        self.rewrite: Callable[[list[bytes]], list[bytes]] | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def link_count(self) -> int:
        """How many have connected so far and were not cut."""
        with self._mutex:
            return len(self._links)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._listener.getsockname()[1]}"

    def lose_reply(self, *, then_cut: bool = True) -> Loss:
        """The next script is carried out and its reply vanishes, as all after it; then it is cut.

        Without the cut the client hears nothing more on that connection.
        """
        return self._set_loss(Loss(reaches_server=True, then_cut=then_cut))

    def lose_request(self, *, then_cut: bool = True) -> Loss:
        """The next script never reaches the server."""
        return self._set_loss(Loss(reaches_server=False, then_cut=then_cut))

    def cut(self) -> None:
        """Reset all connections; new ones are served."""
        with self._mutex:
            links, self._links = self._links, []
        for link in links:
            link.cut()
        for link in links:
            link.join()

    def lead_to(self, port: int) -> None:
        """New connections go to this server; those that are there stay where they are."""
        self._server_port = port

    def silence(self, *, only_subscribed: bool = False) -> None:
        """Nothing goes through the present connections any more, nor does the server learn that
        the client has closed one; new ones are served."""
        with self._mutex:
            for link in self._links:
                link.is_silent = link.is_silent or link.has_subscribed or not only_subscribed

    def hang(self) -> None:
        """Connections are accepted and stay, and no byte goes through."""
        self._open.clear()

    def go_on(self) -> None:
        self._open.set()

    def close(self) -> None:
        # A close alone would leave the thread in accept().
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._open.set()
        self.cut()

    def __enter__(self) -> FaultProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- for the links ----

    def wait_open(self, or_else: threading.Event) -> None:
        while not self._open.wait(0.05) and not or_else.is_set():
            pass

    def take_loss(self) -> Loss | None:
        with self._mutex:
            loss, self._loss = self._loss, None
            return loss

    def disturb(self, data: bytes) -> bytes:
        if self.garbles:
            return self._random.randbytes(len(data))
        return data

    def send(self, target: socket.socket, data: bytes) -> None:
        if self.delay:
            time.sleep(self.delay)
        if not self.slices:
            return target.sendall(data)
        for i in range(len(data)):
            target.sendall(data[i : i + 1])

    def _set_loss(self, loss: Loss) -> Loss:
        with self._mutex:
            self._loss = loss
        return loss

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refuses:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._server_port), 10.0)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self._mutex:
                self._links.append(_Link(self, client, server))
