# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""What clients ask a server, in the order in which it ran.

    with Monitor(server) as monitor:
        ...
        assert [seen.verb for seen in monitor.commands("report")] == ["SET", "EVALSHA"]
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from support.servers import Server
from support.wait import LIMIT

# The tests use the unix socket of the server, and the libraries TCP. Commands of scripts have no
# address, and are left out as well.
_LINE = re.compile(r'(?P<time>\d+\.\d+) \[\d+ [\d.]+:\d+\] "(?P<verb>\w+)"(?P<rest>.*)')


@dataclass(frozen=True)
class Seen:
    time: float
    """By the clock of the server."""
    verb: str
    rest: str


class Monitor:
    """The commands since this began."""

    def __init__(self, server: Server) -> None:
        self._lines = server.connect(timeout=LIMIT)
        self._marks = server.connect(timeout=LIMIT)
        self._numbers = itertools.count(1)
        self._seen: list[Seen] = []
        self._lines.cmd("MONITOR")

    def commands(self, name: str) -> list[Seen]:
        """Those that have this name in an argument."""
        self._read_all()
        return [seen for seen in self._seen if name in seen.rest]

    def _read_all(self) -> None:
        """Up to a mark, which runs behind all that came before."""
        mark = f"mark-{next(self._numbers)}"
        self._marks.cmd("ECHO", mark)
        line = ""
        while f'"ECHO" "{mark}"' not in line:
            line = str(self._lines.read())
            if match := _LINE.match(line):
                seen = Seen(float(match["time"]), match["verb"].upper(), match["rest"])
                self._seen.append(seen)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._marks.close()
