# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: Python processes and commands that increment one counter in a file lose no update, whoever
is killed in the middle.

Method: the counter is the last line of a file; whoever holds the lock reads it, pauses, and appends
the next number. Two at once would append the same. Each of them may be killed by SIGKILL at any
moment; another takes its place.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.build import built
from support.servers import Server
from support.wait import LIMIT, wait_until

SECONDS = 60 if os.environ.get("REDLATCH_TEST_LONG") else 8
OF_EACH_KIND = 8
KILLS_PER_S = 3
TTL_S = 1

PYTHON = """
import sys, time, redlatch
url, path = sys.argv[1:]
with redlatch.connect(url) as client:
    while True:
        with client.lock("counter", ttl=%d):
            with open(path) as file:
                last = int(file.read().split()[-1])
            time.sleep(0.002)
            with open(path, "a") as file:
                file.write(f"{last + 1}\\n")
""" % TTL_S

SHELL = """
while "$1" --url "$2" run --ttl %d counter -- \\
  sh -c 'read -r last <<END
$(tail -n 1 "$1")
END
sleep 0.002; echo $((last + 1)) >>"$1"' sh "$3"; do :; done
""" % TTL_S


class Fleet:
    """Processes of both kinds, each in a group of its own, and always as many."""

    def __init__(self, url: str, path: Path) -> None:
        self._commands = [
            [sys.executable, "-c", PYTHON, url, str(path)],
            ["sh", "-c", SHELL, "sh", str(built("cli/redlatch")), url, str(path)],
        ]
        self._running = [self._start(kind) for kind in range(2) for _ in range(OF_EACH_KIND)]

    def _start(self, kind: int) -> tuple[int, subprocess.Popen[bytes]]:
        return kind, subprocess.Popen(self._commands[kind], process_group=0)

    def kill_one(self, choose: random.Random) -> None:
        """One of the processes; of a shell's group, the whole group or the command alone."""
        number = choose.randrange(len(self._running))
        kind, process = self._running[number]
        assert process.poll() is None, f"one of kind {kind} ended with {process.returncode}"
        if kind == 1 and choose.random() < 0.7:
            self._kill_command(number)
            return
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(LIMIT)
        self._running[number] = self._start(kind)

    def _kill_command(self, number: int) -> None:
        """The redlatch command only: its shell ends then, and is started again.

        Kills the child of the shell again and again until the shell has ended, because between two
        commands the shell has no child.
        """
        shell = self._running[number][1]
        children = Path(f"/proc/{shell.pid}/task/{shell.pid}/children")

        def has_ended() -> bool:
            for child in children.read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
            return shell.poll() is not None

        wait_until(has_ended)
        self._running[number] = self._start(1)

    def close(self) -> None:
        for _, process in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(LIMIT)


@pytest.fixture
def counter(tmp_path: Path) -> Path:
    path = tmp_path / "counter"
    path.write_text("0\n")
    return path


@pytest.fixture
def fleet(one_server: Server, counter: Path) -> Iterator[Fleet]:
    running = Fleet(one_server.url, counter)
    yield running
    running.close()


@pytest.mark.not_judged
def test_no_update_is_lost(
    fleet: Fleet, counter: Path, figure: Callable[[str], None]
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    choose = random.Random(seed)
    end = time.monotonic() + SECONDS
    kills = 0
    while time.monotonic() < end:
        time.sleep(choose.random() * 2 / KILLS_PER_S)
        fleet.kill_one(choose)
        kills += 1
    fleet.close()
    numbers = [int(line) for line in counter.read_text().splitlines()]
    assert numbers == list(range(len(numbers))), f"seed {seed}"
    figure(f"counter: {len(numbers) - 1} updates in {SECONDS} s, {kills} processes killed")
    assert len(numbers) > OF_EACH_KIND
