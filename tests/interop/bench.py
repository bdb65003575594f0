# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""What the proofs of the table in README have: a server, and the libraries that it compares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.resp import Connection
from support.servers import Server
from support.wait import wait_until

from .conftest import TTL_MS, Farm
from .monitor import Monitor
from .peer import Side
from .test_string import LIBRARIES as STRING_LIBRARIES

LIBRARIES = {library.name: library for library in STRING_LIBRARIES}

POLLS = 10
# Of a lock that is renewed: long enough for a process that a busy machine has stopped for a while.
RENEWED_MS = 6000


@dataclass
class Bench:
    """A server with nothing but the locks of tests, and the libraries."""

    processes: Farm
    server: Server
    connection: Connection
    name: str
    folder: Path

    def side(self, column: str, *, number: int = 1, **options: Any) -> Side:
        """A client of a library; another number is another client."""
        if column == "Redisson":
            peer = self.processes.peer("java")
            said = {"watchdog_ms": options.pop("watchdog_ms", RENEWED_MS), "number": number}
            client = self.processes.client(peer, url=self.server.url, **said)
            return Side(peer, client, self.name, TTL_MS, **{"kind": "rlock", **options})
        language = "python" if column == "redlatch" else LIBRARIES[column].language
        peer = self.processes.peer(language)
        said = {"kind": column, "url": self.server.url, "number": number}
        return Side(peer, self.processes.client(peer, **said), self.name, TTL_MS, **options)

    def polls(self, monitor: Monitor) -> None:
        """Return after some polls of another lock, by redis-py."""
        other = f"{self.name}-other"
        self.connection.cmd("SET", other, "somebody's")
        side = self.side("redis-py")
        waiting = side.waits(owner="other", name=other, wait_ms=-1)
        wait_until(lambda: len(monitor.commands(other)) >= POLLS)
        self.connection.cmd("DEL", other)
        assert waiting.get().value
        side.ok("release", owner="other", name=other)

    def keys(self) -> list[bytes]:
        return sorted(self.connection.cmd("KEYS", f"*{self.name}*"))

    def exists(self) -> bool:
        return bool(self.connection.cmd("EXISTS", self.name))


Proof = Callable[[Bench], None]
