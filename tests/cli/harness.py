# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Runs the `redlatch` command and watches it. Every wait has a limit; nothing sleeps and hopes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Any

from support.wait import LIMIT, wait_until

# What counts as "at once": a slow machine needs seconds, what it is told from would take for ever.
AT_ONCE = 10.0

# A child that says so when it runs, and ends with its standard input.
HOLD = ["sh", "-c", "echo ready; exec cat >/dev/null"]
# Children that end by SIGTERM with a word, and by SIGKILL only.
POLITE = ["sh", "-c", "trap 'echo bye; exit 0' TERM; echo ready $$.; while :; do sleep 0.01; done"]
STUBBORN = ["sh", "-c", "trap '' TERM USR1; echo ready $$.; exec sleep 1000"]


class Output:
    """Collects one stream in a thread, so that it can be looked at while the process runs."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._data = b""
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def text(self) -> str:
        with self._changed:
            return self._data.decode(errors="backslashreplace")

    def wait_for(self, pattern: str, limit: float = LIMIT) -> re.Match[str]:
        """Until `pattern` is found somewhere in what was written."""
        end = time.monotonic() + limit
        with self._changed:
            while True:
                text = self._data.decode(errors="backslashreplace")
                if found := re.search(pattern, text):
                    return found
                assert self._changed.wait(end - time.monotonic()), f"no {pattern!r} in {text!r}"

    def join(self) -> None:
        self._thread.join(LIMIT)
        assert not self._thread.is_alive(), "somebody still holds the other end of the pipe"

    def _read(self) -> None:
        while data := os.read(self._stream.fileno(), 1 << 16):
            with self._changed:
                self._data += data
                self._changed.notify_all()


class Running:
    """A command that was started and goes on. Ends with the `with` block in whatever way."""

    def __init__(self, args: Sequence[str | bytes], env: dict[str, str], **options: Any) -> None:
        self.process = subprocess.Popen(
            args,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # No controlling terminal, and signals of the terminal stay away from it.
            start_new_session=True,
            **options,
        )
        self.out = Output(self.process.stdout)
        self.err = Output(self.process.stderr)

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def close_stdin(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()

    def wait(self, limit: float = LIMIT) -> int:
        """The exit code; a signal that ended it counts as negative."""
        return self.process.wait(limit)

    def wait_output(self, limit: float = LIMIT) -> int:
        """As wait(), and until nobody can write to its output any more."""
        code = self.wait(limit)
        self.out.join()
        self.err.join()
        return code

    def finish(self) -> int:
        """End the input of a child that ends with it, and wait_output()."""
        self.close_stdin()
        return self.wait_output()

    def kill(self) -> None:
        """SIGKILL to everything that it started, itself included."""
        done = subprocess.run(
            ["ps", "-eo", "pid=,sess="], stdout=subprocess.PIPE, text=True, check=True
        )
        for line in done.stdout.splitlines():
            pid, session = map(int, line.split())
            # One that has just ended must not save those after it: they hold our pipes open.
            if session == self.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait(LIMIT)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.out.join()
        self.err.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass


class Cli:
    """The command against one server, with an environment of its own."""

    def __init__(self, binary: str, url: str | None) -> None:
        self.binary = binary
        self.env = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("REDLATCH_", "VALKEY_", "REDIS"))
        }
        if url is not None:
            self.env["REDLATCH_URL"] = url

    def start(
        self,
        *args: str | bytes,
        env: dict[str, str] | None = None,
        waits: str = "",
        **options: Any,
    ) -> Running:
        """Returns when it is the only one that waits for the lock `waits`."""
        running = Running([self.binary, *args], self.env | (env or {}), **options)
        try:
            wait_until(lambda: not waits or self.waiting(waits) == 1)
        except BaseException:
            running.kill()
            raise
        return running

    def hold(
        self, name: str | bytes, *options: str, words: Sequence[str] = HOLD, **more: Any
    ) -> Running:
        """`run` of a child that holds the lock until its standard input ends. Returns when held."""
        running = self.start("run", *options, name, "--", *words, **more)
        try:
            running.out.wait_for("ready")
        except BaseException:
            print(running.err.text)
            running.kill()
            raise
        return running

    def run(
        self,
        *args: str | bytes,
        env: dict[str, str] | None = None,
        code: int | None = None,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end, which must have this exit code."""
        options = {"stdin": subprocess.DEVNULL, "capture_output": True} | options
        done = subprocess.run(
            [self.binary, *args],
            env=self.env | (env or {}),
            timeout=LIMIT,
            start_new_session=True,
            **options,
        )
        for stream in ("stdout", "stderr"):
            data = getattr(done, stream)
            if data is not None:
                setattr(done, stream, data.decode(errors="backslashreplace"))
        assert code in (None, done.returncode), done
        return done

    def status(self, name: str | bytes, *options: str) -> dict[str, Any]:
        done = self.run("status", *options, "-o", "json", name)
        assert done.returncode in (0, 1), done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def is_held(self, name: str) -> bool:
        # A busy machine may take longer than the two seconds of a user.
        return bool(self.status(name, "--command-timeout", f"{LIMIT:.0f}s")["state"] == "held")

    def waiting(self, name: str) -> int:
        return int(self.status(name)["waiting"])
