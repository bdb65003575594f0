# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: on a terminal the command behaves as if the child had been started without us.

Method: pseudo-terminals; a shell with job control where jobs stop and go on.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.wait import wait_until

from .harness import Cli
from .terminal import Terminal

CTRL_C = b"\x03"
CTRL_Z = b"\x1a"
CTRL_BACKSLASH = b"\x1c"


def run_words(cli: Cli, name: str, script: str) -> list[str]:
    return [cli.binary, "run", name, "--", "sh", "-c", script]


def shell_words(cli: Cli, name: str, script: str, options: str = "") -> list[str]:
    """A shell with job control runs `script`, in which $RUN is our command up to the child."""
    return ["bash", "-m", "-c", f"RUN='{cli.binary} run {options} {name} --'; {script}"]


def test_child_reads_from_the_terminal(cli: Cli, name: str) -> None:
    script = "echo ready; read line; echo got:$line; exit 3"
    with Terminal(run_words(cli, name, script), cli.env) as terminal:
        terminal.wait_for("ready")
        terminal.write(b"hello\n")
        terminal.wait_for("got:hello")
        assert terminal.wait() == 3


@pytest.mark.parametrize(
    ("key", "code"), [(CTRL_C, 130), (CTRL_BACKSLASH, 131)], ids=["ctrl-c", "ctrl-backslash"]
)
def test_key_ends_the_child(cli: Cli, name: str, key: bytes, code: int) -> None:
    with Terminal(run_words(cli, name, "echo ready; exec sleep 1000"), cli.env) as terminal:
        terminal.wait_for("ready")
        terminal.write(key)
        assert terminal.wait() == code
    assert not cli.is_held(name)


def test_ctrl_c_reaches_the_child_once(cli: Cli, name: str) -> None:
    script = "trap 'echo trapped' INT; echo ready; read line; read line; exit 4"
    with Terminal(run_words(cli, name, script), cli.env) as terminal:
        terminal.wait_for("ready")
        terminal.write(CTRL_C)
        terminal.wait_for("trapped")
        terminal.write(b"\n\n")
        assert terminal.wait() == 4
        assert terminal.text.count("trapped") == 1


def test_ctrl_c_ends_the_wait(cli: Cli, name: str) -> None:
    with cli.hold(name):
        with Terminal(run_words(cli, name, "echo ran"), cli.env) as terminal:
            wait_until(lambda: cli.waiting(name) == 1)
            terminal.write(CTRL_C)
            assert terminal.wait() == 130
        assert cli.waiting(name) == 0


@pytest.mark.parametrize("options", ["", "--foreground"])
def test_ctrl_z_stops_the_job_and_fg_continues_it(cli: Cli, name: str, options: str) -> None:
    script = (
        "$RUN sh -c 'echo ready; read line; echo got:$line; exit 5'; echo stopped $?; "
        "fg; echo ended $?"
    )
    with Terminal(shell_words(cli, name, script, options), cli.env) as terminal:
        terminal.wait_for("ready")
        terminal.write(CTRL_Z)
        terminal.wait_for(r"redlatch: stopped; lock .* is not renewed until the job continues")
        terminal.wait_for(r"stopped 148")  # 128 + SIGTSTP, as the shell says it.
        terminal.write(b"hello\n")
        terminal.wait_for("got:hello")
        terminal.wait_for("ended 5")
        assert terminal.wait() == 0
    assert not cli.is_held(name)


def test_ctrl_z_for_longer_than_the_lease_loses_the_lock(
    cli: Cli, name: str, tmp_path: Path
) -> None:
    run = f"{cli.binary} run --ttl 500ms {name} --"
    work = tmp_path / "work"
    busy = f": >{work}; echo ready; while :; do echo x; done >>{work}"
    script = f"{run} sh -c '{busy}'; read go; fg; echo ended $?"
    with Terminal(["bash", "-m", "-c", script], cli.env) as terminal:
        terminal.wait_for("ready")
        terminal.write(CTRL_Z)
        terminal.wait_for("redlatch: stopped")
        wait_until(lambda: not cli.is_held(name))
        done = work.stat().st_size
        terminal.write(b"\n")
        terminal.wait_for("lost lock")
        terminal.wait_for("ended 79")
        # It did nothing at all after the lock was gone.
        assert work.stat().st_size == done


def test_background_job_waits_for_the_terminal(cli: Cli, name: str) -> None:
    script = (
        "$RUN sh -c 'read line; echo got:$line; exit 6' & "
        "while ! jobs | grep -q Stopped; do sleep 0.01; done; "
        "echo is-stopped; fg; echo ended $?"
    )
    with Terminal(shell_words(cli, name, script), cli.env) as terminal:
        terminal.wait_for("is-stopped")
        terminal.write(b"hello\n")
        terminal.wait_for("got:hello")
        terminal.wait_for("ended 6")


def test_child_in_a_pipeline_can_read_too(cli: Cli, name: str) -> None:
    script = "$RUN sh -c 'echo ready >&2; read line; echo got:$line' | cat; echo ended $?"
    with Terminal(shell_words(cli, name, script), cli.env) as terminal:
        terminal.wait_for("ready")
        terminal.write(b"hello\n")
        terminal.wait_for("got:hello")
        terminal.wait_for("ended 0")


def test_pager_in_a_pipeline_keeps_the_terminal(cli: Cli, name: str) -> None:
    # The child does not read, so the terminal stays with the job's own group: what stands behind
    # the pipe may read from it, and Ctrl-C reaches both.
    # exec: a signal in the middle of dash's vfork() is lost.
    script = "$RUN sh -c 'echo page; exec sleep 1000' | (read page; read k </dev/tty; echo key:$k)"
    with Terminal(shell_words(cli, name, script), cli.env) as terminal:
        wait_until(lambda: cli.is_held(name))
        terminal.write(b"x\n")
        terminal.wait_for("key:x")
        terminal.write(CTRL_C)
        terminal.wait()
    assert not cli.is_held(name)


def test_terminal_is_given_back(cli: Cli, name: str) -> None:
    # A shell without job control: nobody but us would take it back from the dead group.
    script = '"$0" run "$1" -- true; read line; echo got:$line'
    with Terminal(["sh", "-c", script, cli.binary, name], cli.env) as terminal:
        terminal.write(b"hello\n")
        terminal.wait_for("got:hello")
        assert terminal.wait() == 0


def test_ctrl_z_without_a_shell_does_not_hang(cli: Cli, name: str) -> None:
    # There is nobody who could let a stopped job go on: then the key does nothing.
    script = "echo ready; read line; echo got:$line"
    with Terminal(run_words(cli, name, script), cli.env) as terminal:
        terminal.wait_for("ready")
        terminal.write(CTRL_Z)
        terminal.wait_for("redlatch: stopped")
        terminal.write(b"hello\n")
        terminal.wait_for("got:hello")
        assert terminal.wait() == 0
