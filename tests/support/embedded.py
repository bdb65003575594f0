# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Embedded servers for tests: a folder of the test's own, and the processes that run there."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path

from .resp import Connection
from .wait import wait_until


def _arguments(pid: str) -> str:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
        return line.decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


class EmbeddedFolder:
    """A folder for an embedded server. Not below pytest's, because socket paths must be short."""

    def __init__(self) -> None:
        self._parent = tempfile.mkdtemp(prefix="rl-")
        self.path = Path(self._parent) / "e"

    @property
    def url(self) -> str:
        return f"embedded://{self.path}"

    @property
    def supervisors(self) -> list[int]:
        return self._processes(lambda words: "redlatch-embedded serve" in words)

    @property
    def servers(self) -> list[int]:
        return self._processes(lambda words: "redlatch" not in words.split(" ", 1)[0])

    @property
    def log(self) -> str:
        return (self.path / "log").read_text()

    def connect(self) -> Connection:
        return Connection(f"unix://{self.path}/socket")

    def wait_until_over(self) -> None:
        """Wait until no process runs here."""
        wait_until(lambda: not self.supervisors and not self.servers)

    def close(self) -> None:
        for pid in self.supervisors + self.servers:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.wait_until_over()
        shutil.rmtree(self._parent)

    def _processes(self, is_meant: object) -> list[int]:
        """Processes that name our socket or folder in their arguments, except users of the URL."""
        assert callable(is_meant)
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            words = _arguments(pid)
            is_ours = f"unixsocket:{self.path}/socket" in words or f" serve {self.path} " in words
            if (is_ours or f"--unixsocket {self.path}/socket" in words) and is_meant(words):
                found.append(int(pid))
        return found
