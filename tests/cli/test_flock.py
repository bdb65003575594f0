# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: `redlatch run` can stand where `flock` stood. Method: both are called with the same words.

What differs on purpose is in the table of docs/command.md, and here below.
"""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from support.wait import LIMIT

from .harness import Cli


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Flock's lock, and ours: any name will do, a path as well."""
    return str(tmp_path / "lock")


def flock(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["flock", *words], capture_output=True, text=True, timeout=LIMIT, check=False
    )


FREE = [
    (["{}", "sh", "-c", "exit 3"], 3),
    (["-x", "{}", "sh", "-c", "exit 3"], 3),
    (["-e", "{}", "sh", "-c", "exit 3"], 3),
    (["--exclusive", "{}", "sh", "-c", "exit 3"], 3),
    (["-s", "{}", "sh", "-c", "exit 3"], 3),
    (["--shared", "-w", "5", "{}", "false"], 1),
    (["-n", "{}", "-c", "exit 4"], 4),
    (["{}", "--command", "exit 4"], 4),
    (["-xn", "-E", "9", "{}", "true"], 0),
    (["-o", "{}", "true"], 0),
    (["--close", "-w", "5", "{}", "false"], 1),
    (["{}", "sh", "-c", "kill -KILL $$"], 128 + signal.SIGKILL),
    (["{}", "sh", "-c", "exit $#", "-n", "-x", "--verbose"], 2),
]

BUSY = [
    ["-n", "-E", "9"],
    ["-n", "-w", "60", "-E", "9"],
    ["--nonblock", "--conflict-exit-code", "9"],
    ["--nb", "-E9"],
    ["-w", "0.5", "-E", "9"],
    ["-w0", "-E", "9"],
    ["--timeout", "0.5", "-E", "9"],
    ["--wait=.5", "-E", "9"],
    ["-xnE9"],
    ["-snE9"],
    ["--shared", "-w", "0.5", "-E", "9"],
]


@pytest.mark.parametrize(("words", "code"), FREE)
def test_free_lock(cli: Cli, file: str, words: list[str], code: int) -> None:
    call = [word.format(file) for word in words]
    assert flock(*call).returncode == code
    assert cli.run("run", *call).returncode == code


@pytest.mark.parametrize("options", BUSY)
def test_busy_lock(cli: Cli, file: str, options: list[str]) -> None:
    with cli.hold(file):
        done = cli.run("run", *options, file, "echo", "ran")
        assert (done.returncode, done.stdout) == (9, "")
    # The same with flock, whose holder is a flock.
    inner = ["flock", *options, file, "echo", "ran"]
    done = flock(file, *inner)
    assert (done.returncode, done.stdout) == (9, "")


@pytest.mark.parametrize(("option", "code"), [("-s", 0), ("-x", 9), ("-e", 9)])
def test_lock_that_is_read(cli: Cli, file: str, option: str, code: int) -> None:
    words = [option, "-n", "-E", "9", file, "true"]
    with cli.hold(file, "-s"):
        assert cli.run("run", *words).returncode == code
    assert flock("-s", file, "flock", *words).returncode == code


def test_verbose(cli: Cli, file: str) -> None:
    for done in (flock("--verbose", file, "true"), cli.run("run", "--verbose", file, "true")):
        assert re.search(r"\d\.\d+ s", done.stdout + done.stderr)


def test_help_and_version(cli: Cli) -> None:
    for option in ("-h", "-V", "--help", "--version"):
        assert (flock(option).returncode, cli.run("run", option).returncode) == (0, 0)


def test_differences(cli: Cli, file: str) -> None:
    with cli.hold(file) as held:
        assert cli.run("run", "-n", file, "true").returncode == 75
        assert held.finish() == 0
    assert flock(file, "flock", "-n", file, "true").returncode == 1
    assert cli.run("run", file, "no-such-command").returncode == 127
    assert flock(file, "no-such-command").returncode == 69
    for option in ("-F", "-sx"):  # Of two modes flock takes the last one.
        assert flock(option, file, "true").returncode == 0
        assert cli.run("run", option, file, "true").returncode == 64
    # A number is a name, and no descriptor.
    assert cli.run("run", "9").returncode == 64
