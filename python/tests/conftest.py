# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""One server for all tests of the package; what a lock means is tested in tests/conformance."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import subprocess
import sys
import warnings
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import redlatch
from support.servers import Server, available_kinds
from support.signals import stop_ignoring
from support.wait import LIMIT

from .both import Both

stop_ignoring()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What the package leaves open is an error, as any other warning is."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings("error::ResourceWarning"))


@pytest.fixture(scope="module", autouse=True)
def _nothing_of_others() -> None:
    """What tests of other folders have left is not of the package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Server]:
    with Server(available_kinds()[0]) as server:
        yield server


@pytest.fixture
def server(shared_server: Server) -> Iterator[Server]:
    """Empty, and running."""
    with shared_server.connect() as connection:
        connection.cmd("FLUSHALL")
    yield shared_server
    if shared_server.is_running:
        shared_server.resume()
    else:
        shared_server.start()


@pytest.fixture
def client(server: Server) -> Iterator[redlatch.Client]:
    with redlatch.connect(server.url) as client:
        yield client


@pytest.fixture
def other(server: Server) -> Iterator[redlatch.Client]:
    """Somebody else."""
    with redlatch.connect(server.unix_url) as client:
        yield client


@pytest.fixture
def user_app(server: Server) -> Iterator[None]:
    with server.connect() as connection:
        connection.cmd("ACL", "SETUSER", "app", "reset", "on", ">S3cret", "~*", "&*", "+@all")
    yield
    with server.connect() as connection:
        connection.cmd("ACL", "DELUSER", "app")


LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
try:
    import uvloop

    LOOPS["uvloop"] = uvloop.new_event_loop
except ImportError:
    pass  # There is none for this Python.

Run = Callable[[Coroutine[Any, Any, Any]], Any]


async def _end_tasks() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _in_loop(kind: str) -> Run:
    """As asyncio.run(), bounded in time."""

    def run_in_loop(main: Coroutine[Any, Any, Any]) -> Any:
        loop = LOOPS[kind]()
        try:
            return loop.run_until_complete(asyncio.wait_for(main, LIMIT))
        finally:
            loop.run_until_complete(_end_tasks())
            loop.close()

    return run_in_loop


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    """In each kind of event loop."""
    return _in_loop(request.param)


@pytest.fixture(params=["threads", *LOOPS])
def both(request: pytest.FixtureRequest) -> Both:
    """Without tasks, and in each kind of event loop."""
    has_tasks = request.param in LOOPS
    return Both(_in_loop(request.param if has_tasks else "asyncio"), has_tasks)


class Script:
    """A Python program of its own, which speaks by lines."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._lines = b""

    def read(self) -> str:
        """Its next line."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        while b"\n" not in self._lines:
            data = b""
            if select.select([descriptor], [], [], LIMIT)[0]:
                data = os.read(descriptor, 1 << 16)
            if not data:
                self.process.kill()
                raise AssertionError(f"says nothing more: {self.end()}")
            self._lines += data
        line, _, self._lines = self._lines.partition(b"\n")
        return line.decode()

    def write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def end(self) -> tuple[str, str]:
        """What it still writes, to both of its streams."""
        output, errors = self.process.communicate(timeout=LIMIT)
        return (self._lines + output).decode(), errors.decode()


Starter = Callable[[str], Script]


@pytest.fixture
def script(server: Server, tmp_path: Path) -> Iterator[Starter]:
    """Starts a program; `url` is the server there."""
    started: list[Script] = []

    def start(text: str) -> Script:
        path = tmp_path / f"script{len(started)}.py"
        path.write_text(f"import redlatch\nurl = {server.url!r}\n{text}")
        process = subprocess.Popen(
            [sys.executable, "-u", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONFAULTHANDLER": "1"},
        )
        started.append(Script(process))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()


PREPARE = """
import gc, os, sys, threading, time
def in_child(body):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            body()
            gc.collect()
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"not raised: {kind}")
"""

Forking = Callable[[str], None]


@pytest.fixture
def forking(script: Starter) -> Forking:
    """Runs a program that forks, to its end, in which all of its assertions are true."""

    def run_to_its_end(text: str) -> None:
        program = script(f'{PREPARE}{text}print("well")\n')
        assert program.end() == ("well\n", "") and program.process.returncode == 0

    return run_to_its_end
