# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a reader of messages and events of `run` that is stuck holds up no command, and whole
lines are what it reads later.

Method: files that take nothing, or less than a line, for as long as the command runs: a small pipe,
a pipe and a socket that are nearly full, a terminal. The lock has a name that makes each line
longer than a pipe takes at once; it is forced away from a command that ignores SIGTERM.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import socket
import subprocess
import time
import tty
import zlib
from collections.abc import Iterator
from select import select

import pytest

from support.program import is_alive
from support.wait import wait_until

from .harness import LIMIT, STUBBORN, Cli

PAGE = 4096


@pytest.fixture
def lock(name: str) -> bytes:
    """A name that is longer than a page in messages, where each byte takes four."""
    return f"{zlib.crc32(name.encode()):08x}".encode() + b"\x01" * 1016


def fill(fd: int) -> None:
    """Until it takes no more."""
    os.set_blocking(fd, False)
    for size in (PAGE, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(fd, b"x" * size)
    os.set_blocking(fd, True)


def small_pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PAGE)
    return reading, writing


def nearly_full_pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4 * PAGE)
    os.write(writing, b"x" * 3 * PAGE)
    return reading, writing


def full_pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    fill(writing)
    return reading, writing


def small_socket() -> tuple[int, int]:
    reading, writing = socket.socketpair()
    writing.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    return reading.detach(), writing.detach()


def terminal() -> tuple[int, int]:
    reading, writing = pty.openpty()
    tty.setraw(writing)
    fill(writing)
    os.read(reading, PAGE)
    return reading, writing


STUCK = [small_pipe, nearly_full_pipe, full_pipe, small_socket, terminal]


@pytest.fixture(params=STUCK, ids=[make.__name__ for make in STUCK])
def stuck(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """The ends of a file that is not read."""
    reading, writing = request.param()
    yield reading, writing
    for fd in (reading, writing):
        with contextlib.suppress(OSError):
            os.close(fd)


@contextlib.contextmanager
def running(cli: Cli, name: bytes, writing: int, flags: list[str]) -> Iterator[subprocess.Popen]:
    """A run whose standard error is that file."""
    words = [cli.binary, "run", "--ttl", "1500ms", "-k", "300ms", *flags, name, "--", *STUBBORN]
    process = subprocess.Popen(
        words,
        env=cli.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=writing if not flags else subprocess.DEVNULL,
        pass_fds=[writing],
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(LIMIT)
        assert process.stdout
        process.stdout.close()


def started(process: subprocess.Popen) -> int:
    assert process.stdout
    assert select([process.stdout], [], [], LIMIT)[0], "it was held up before it started"
    ready = process.stdout.readline().decode()
    assert ready.startswith("ready "), ready
    return int(ready[6:-2])


def read_all(reading: int, writing: int) -> bytes:
    """What was written before the last writer went away."""
    os.close(writing)
    data = b""
    with contextlib.suppress(OSError):  # EIO at the end of a terminal
        while part := os.read(reading, 1 << 16):
            data += part
    return data


@pytest.mark.parametrize("channel", ["messages", "events"])
def test_no_command_is_held_up(
    cli: Cli, lock: bytes, stuck: tuple[int, int], channel: str
) -> None:
    flags = [] if channel == "messages" else [f"--status-fd={stuck[1]}"]
    with running(cli, lock, stuck[1], flags) as process:
        pid = started(process)
        assert cli.run("force-release", "--yes", lock).returncode == 0
        forced = time.monotonic()
        assert process.wait(LIMIT) == 79
        assert not is_alive(pid)
        # A renewal finds out after a third of the lease; -k and a second at the end come on top.
        # A file that counted as one with room would be waited for longer than this.
        assert time.monotonic() - forced < 5
    assert os.get_blocking(stuck[1]), "the file is that of others, too"


def test_a_reader_that_comes_back_gets_whole_lines(cli: Cli, lock: bytes) -> None:
    reading, writing = small_pipe()
    with running(cli, lock, writing, [f"--status-fd={writing}"]) as process:
        started(process)
        assert cli.run("force-release", "--yes", lock).returncode == 0
        # The second line, of the start, waits until the first has been read.
        time_to_read = time.monotonic() + 0.3
        wait_until(lambda: time.monotonic() > time_to_read)
        events = [json.loads(line) for line in read_all(reading, writing).splitlines()]
        assert process.wait(LIMIT) == 79
    names = [event["event"] for event in events]
    assert names == ["acquired", "started", "lost", "killed", "ended", "exit"]
    os.close(reading)


def test_a_reader_that_is_stuck_loses_whole_lines(cli: Cli, lock: bytes) -> None:
    """Method: events go to a pipe that is read after the end only; the last line may be a part."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4 * PAGE)
    with running(cli, lock, writing, [f"--status-fd={writing}"]) as process:
        started(process)
        assert cli.run("force-release", "--yes", lock).returncode == 0
        assert process.wait(LIMIT) == 79
    lines = read_all(reading, writing).split(b"\n")
    names = [json.loads(line)["event"] for line in lines[:-1]]
    assert names == ["acquired", "started", "lost", "killed", "ended", "exit"][: len(names)]
    assert len(names) >= 1
    os.close(reading)


def test_two_descriptors_of_one_pipe_do_not_mix(cli: Cli, lock: bytes) -> None:
    reading, writing = small_pipe()
    other = os.dup(writing)
    words = [cli.binary, "run", "-v", f"--status-fd={other}", lock, "--", "true"]
    with subprocess.Popen(words, env=cli.env, stderr=writing, pass_fds=[other]) as process:
        os.close(other)
        lines = read_all(reading, writing).splitlines()
        assert process.wait(LIMIT) == 0
    events = [json.loads(line)["event"] for line in lines if line.startswith(b"{")]
    assert events == ["acquired", "started", "ended", "released", "exit"]
    messages = [line for line in lines if not line.startswith(b"{")]
    assert len(messages) == 2 and all(line.startswith(b"redlatch: ") for line in messages)
    os.close(reading)
