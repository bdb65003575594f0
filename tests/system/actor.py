# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Processes that use redlatch as they are told (actor.c), and can be stopped and killed.

    with Actor(url) as actor:
        actor.ok("acquire", name="a", wait=0)
        waiting = actor.begin("acquire", thread=1, lease=1, name="a", wait=-1)
        actor.ok("release")
        assert waiting.get().status == "RL_OK"

Times in replies are CLOCK_MONOTONIC, as time.monotonic() is. Every wait has a limit.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote

from support.build import built
from support.record import note_gone
from support.wait import LIMIT, wait_until

HELD, RELEASED, LOST, DETACHED = 1, 2, 3, 4
FREE, BY_US, FOREIGN, NO_LOCK = 0, 1, 2, 3

Value = str | bytes | int


class Reply:
    """What one command answered."""

    def __init__(self, words: list[str]) -> None:
        self._values = dict(word.split("=", 1) for word in words)

    def __getitem__(self, name: str) -> str:
        return unquote(self._values[name], errors="surrogateescape")

    def number(self, name: str) -> int:
        return int(self._values[name])

    @property
    def status(self) -> str:
        return self["status"]

    @property
    def message(self) -> str:
        return self["message"]

    @property
    def began(self) -> float:
        return self.number("from") / 1e9

    @property
    def ended(self) -> float:
        return self.number("to") / 1e9

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    def __repr__(self) -> str:
        return f"Reply({self._values}, {self.seconds:.3f} s)"


class Pending:
    """A command that was sent. get() waits for its reply."""

    def __init__(self, actor: Actor, line: str) -> None:
        self._actor = actor
        self.line = line
        self.reply: Reply | None = None

    def get(self, limit: float = LIMIT) -> Reply:
        end = time.monotonic() + limit
        while self.reply is None:
            self._actor.read(end, self.line)
        return self.reply

    @property
    def is_done(self) -> bool:
        self._actor.read_ready()
        return self.reply is not None


class Actor:
    """One process. Its threads, clients, leases and requests have numbers; 0 where none is said."""

    def __init__(self, url: str | None = None, wrapper: Sequence[str] = ()) -> None:
        self._process = subprocess.Popen(
            [*wrapper, str(built("tests/system/system_actor"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self._process.stdin and self._process.stdout
        self._input, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self._output.fileno(), False)
        self._buffer = b""
        self._pending: dict[int, deque[Pending]] = {}
        # A sanitizer keeps what was freed: memory says nothing then.
        self.is_sanitized = bool(url and self.ok("open", url=url).number("is_sanitized"))

    @property
    def pid(self) -> int:
        return self._process.pid

    def begin(self, command: str, *, thread: int = 0, **arguments: Value) -> Pending:
        """Send a command to one of the process's threads; a thread does one after the other."""
        words = [str(thread), command]
        for name, value in arguments.items():
            data = value if isinstance(value, bytes) else str(value).encode()
            words.append(f"{name}={quote_from_bytes(data, safe=':/?&=@[],.-_')}")
        line = " ".join(words)
        pending = Pending(self, line)
        self._pending.setdefault(thread, deque()).append(pending)
        self._input.write(line.encode() + b"\n")
        return pending

    def call(
        self, command: str, *, thread: int = 0, limit: float = LIMIT, **arguments: Value
    ) -> Reply:
        return self.begin(command, thread=thread, **arguments).get(limit)

    def ok(
        self, command: str, *, thread: int = 0, limit: float = LIMIT, **arguments: Value
    ) -> Reply:
        reply = self.call(command, thread=thread, limit=limit, **arguments)
        assert reply.status == "RL_OK", reply
        return reply

    def read(self, end: float, what: str) -> None:
        """Read replies, at least a byte, until the time `end`."""
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        left = end - time.monotonic()
        assert poll.poll(max(left, 0) * 1000), f"no reply in time to: {what}"
        if not self.read_ready():
            raise AssertionError(f"ended with {self._process.wait(LIMIT)} while asked: {what}")

    def read_ready(self) -> bool:
        """Take what is there. False: the process has ended."""
        try:
            data = os.read(self._output.fileno(), 1 << 16)
        except BlockingIOError:
            return True
        self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            thread, *words = line.decode().split(" ")
            self._pending[int(thread)].popleft().reply = Reply(words)
        return bool(data)

    # ---- what is done to the process ----

    def pause(self) -> None:
        """SIGSTOP, and wait until all of its threads stand."""
        os.kill(self.pid, signal.SIGSTOP)
        wait_until(lambda: self._state() == "T")

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> float:
        """SIGKILL. The time at which it was gone, its sockets closed."""
        self._process.kill()
        self._process.wait(LIMIT)
        note_gone(self.pid)
        return time.monotonic()

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()
        self._input.close()
        self._output.close()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def memory_kib(self) -> int:
        """Resident memory; 0 in a build with a sanitizer."""
        return 0 if self.is_sanitized else self._status_number("VmRSS")

    @property
    def processor_seconds(self) -> float:
        """Processor time of all threads so far."""
        stat = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def thread_count(self) -> int:
        return self._status_number("Threads")

    @property
    def descriptor_count(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def _status_number(self, field: str) -> int:
        text = Path(f"/proc/{self.pid}/status").read_text()
        return int(text.split(f"{field}:", 1)[1].split()[0])

    def _state(self) -> str:
        stats = [path.read_text() for path in Path(f"/proc/{self.pid}/task").glob("*/stat")]
        states = {stat.rpartition(")")[2].split()[0] for stat in stats}
        return states.pop() if len(states) == 1 else ""

    def __enter__(self) -> Actor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Spawn = Callable[[str], Actor]
