# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A pseudo-terminal with a session of its own, as a person in front of a shell has one."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import subprocess
import termios
import time
from collections.abc import Sequence
from select import select

from .harness import LIMIT


class Terminal:
    """`words` lead a session on a terminal. What they write there is collected by wait_for()."""

    def __init__(self, words: Sequence[str], env: dict[str, str]) -> None:
        self._fd, slave = pty.openpty()
        self._data = b""

        def take_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            words,
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=take_terminal,
        )
        os.close(slave)

    @property
    def text(self) -> str:
        return self._data.decode(errors="backslashreplace").replace("\r\n", "\n")

    def write(self, data: bytes) -> None:
        os.write(self._fd, data)

    def wait_for(self, pattern: str, limit: float = LIMIT) -> re.Match[str]:
        end = time.monotonic() + limit
        while not (found := re.search(pattern, self.text)):
            assert self._read(end - time.monotonic()), f"no {pattern!r} in {self.text!r}"
        return found

    def wait(self, limit: float = LIMIT) -> int:
        """The exit code of the leader, after all of its output."""
        end = time.monotonic() + limit
        while self._read(end - time.monotonic()):
            pass
        return self.process.wait(max(end - time.monotonic(), 0.1))

    def _read(self, limit: float) -> bool:
        """False at the end of the output. Nothing within the limit is an error."""
        ready = limit > 0 and select([self._fd], [], [], limit)[0]
        assert ready, f"silent after {self.text!r}"
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:  # EIO: nobody has the other end any more.
            return False
        self._data += data
        return bool(data)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        # Closing the terminal hangs up on its foreground job; the leader is killed besides.
        os.close(self._fd)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(LIMIT)
