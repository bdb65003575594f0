# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The programs that stand for the clients of a case: how they are built, started and spoken to."""

from __future__ import annotations

import atexit
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Protocol

from support.build import ROOT, build_folder
from support.go import go_build
from support.java import java_program, with_archive
from support.servers import Server, available_kinds

HERE = Path(__file__).parent
PYTHON = HERE / "runners/python"
# For a reply that should come at once. A machine with two busy cores is slow; a hang is meant.
REPLY_SECONDS = 30.0


class RunnerFailed(Exception):
    """A runner did not answer, or did not end as it should."""


def compile_c(program: Path, tree: Path, build: Path) -> None:
    """The C runner of a source tree and its build; CFLAGS and CC as everywhere."""
    command = shlex.split(os.environ.get("CC", "cc")) + ["-std=gnu11", "-O1", "-g"]
    command += shlex.split(os.environ.get("CFLAGS", ""))
    command += ["-Wall", "-Wextra", "-Werror", "-pthread", "-o", str(program)]
    command += sorted(map(str, (tree / "tests/conformance/runners/c").glob("*.c")))
    command += [f"-I{tree / 'capi/include'}", f"-L{build / 'capi'}", "-lredlatch"]
    command += [f"-Wl,-rpath,{build / 'capi'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunnerFailed(f"the C runner does not compile:\n{done.stderr}")


def _prepare_c(folder: Path) -> list[str]:
    """Compiled here, against the library under test."""
    program = folder / "runner_c"
    if not program.exists():
        compile_c(program, ROOT, build_folder())
    return [str(program)]


def _prepare_python(_: Path) -> list[str]:
    """With the package that is installed beside these tests."""
    return [sys.executable, str(PYTHON / "runner.py")]


def _prepare_python_aio(_: Path) -> list[str]:
    return [sys.executable, str(PYTHON / "aio_runner.py")]


def _prepare_go(folder: Path) -> list[str]:
    return [str(go_build(HERE / "runners/go", folder / "runner_go"))]


def _hold_a_lock(command: list[str]) -> None:
    with Server(available_kinds()[0]) as server:
        lines = [f"- open url={server.unix_url}", "- lock id=m kind=mutex name=x"]
        lines += ["m acquire wait_ms=0", "m show", "m release", "- inspect name=x"]
        runner = Runner(command)
        try:
            for line in lines:
                assert runner.call(line).startswith("OK"), line
            runner.end()
        finally:
            runner.kill()


def _prepare_java(_: Path) -> list[str]:
    java, *words = with_archive(java_program("Runner", HERE / "runners/java"), _hold_a_lock)
    return [java, "-Xint", *words]  # A case ends before compiled code could make up for its making.


# One entry for each runner, the language first in its name: makes it ready in a scratch folder,
# and says how to start it.
PREPARE: dict[str, Callable[[Path], list[str]]] = {
    "c": _prepare_c,
    "c-queue": lambda folder: [*_prepare_c(folder), "queue"],
    "go": _prepare_go,
    "java": _prepare_java,
    "python": _prepare_python,
    "python-aio": _prepare_python_aio,
}


def capabilities() -> dict[str, set[str]]:
    """What capabilities.txt says about each runner."""
    table = {}
    for line in (HERE / "capabilities.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition(":")
            table[name] = set(rest.split())
    return table


class _Process(Protocol):
    """What a runner needs of subprocess.Popen."""

    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def kill(self) -> None: ...


class _ForkServer:
    """runners/python/fork_server.py, one for each process of pytest."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, str(PYTHON / "fork_server.py")]
        with theirs:
            self._process = subprocess.Popen(command, stdin=theirs.fileno())
        atexit.register(self._end)

    def start(self, module: str, environment: Mapping[str, str], descriptors: list[int]) -> None:
        data = json.dumps([module, dict(environment)]).encode()
        socket.send_fds(self._requests, [data], descriptors)

    def _end(self) -> None:
        self._requests.close()
        self._process.wait(REPLY_SECONDS)


_fork_server = cache(_ForkServer)


class _Forked:
    """A Python runner, which the fork server has forked."""

    def __init__(self, module: str, environment: Mapping[str, str], errors: IO[bytes]) -> None:
        stdin, self.stdin = _pipe()
        self.stdout, stdout = _pipe()
        self._reports, reports = _pipe()
        with stdin, stdout, reports:
            streams = [stdin.fileno(), stdout.fileno(), errors.fileno(), reports.fileno()]
            _fork_server().start(module, environment, streams)
        self._status: int | None = None
        self.pid = int(self._reports.readline())

    def poll(self) -> int | None:
        return self._ended_within(0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._ended_within(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(["fork_server.py"], timeout or 0)
        return status

    def kill(self) -> None:
        if self._status is not None:
            return
        # Between its end and the fork server's report there is no such process.
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def _ended_within(self, limit: float | None) -> int | None:
        if self._status is None and select.select([self._reports], [], [], limit)[0]:
            self._status = int(self._reports.readline())
            self._reports.close()
        return self._status


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    read, write = os.pipe()
    return os.fdopen(read, "rb", 0), os.fdopen(write, "wb", 0)


def _start(command: list[str], environment: Mapping[str, str], errors: IO[bytes]) -> _Process:
    program = Path(command[-1])
    if program.parent == PYTHON:
        return _Forked(program.stem, environment, errors)
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment
    )


class Runner:
    """One process of a runner."""

    def __init__(self, command: list[str], defect: str = "") -> None:
        self._errors = tempfile.TemporaryFile()
        self._buffer = b""
        environment = {**os.environ, "REDLATCH_RUNNER_DEFECT": defect}
        self._process = _start(command, environment, self._errors)

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, line: str, seconds: float = REPLY_SECONDS) -> str:
        """Send one line and return the reply."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise RunnerFailed(f"the runner has ended: {self._error_text()}") from None
        return self._read_line(time.monotonic() + seconds)

    def end(self) -> None:
        """Let it end by itself, and see that it does so well and in silence."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            status = self._process.wait(REPLY_SECONDS)
            text = self._error_text()
        except subprocess.TimeoutExpired:
            raise RunnerFailed("the runner does not end") from None
        finally:
            self.kill()
        if status or text:
            raise RunnerFailed(f"the runner ended with {status}: {text}")

    def kill(self) -> None:
        """End it by SIGKILL, if it has not ended."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass

    def _read_line(self, end: float) -> str:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise RunnerFailed("the runner does not answer")
            data = os.read(descriptor, 1 << 16)
            if not data:
                raise RunnerFailed(f"the runner has ended: {self._error_text()}")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode()

    def _error_text(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")
