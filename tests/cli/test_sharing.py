# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: `run -s` reads together and `run --owner` enters again, as docs/command.md has it."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

from support.wait import wait_until

from .harness import HOLD, Cli

BUSY = 75


def fence_of(text: str) -> int:
    found = re.search(r"fence (\d+)", text)
    assert found
    return int(found[1])


# ---- readers and writers ----


def test_readers_hold_together_and_a_writer_alone(cli: Cli, name: str) -> None:
    with cli.hold(name, "-s") as first, cli.hold(name, "--shared") as second:
        assert cli.status(name)["holding"] == 2
        for options in ([], ["-x"], ["-e"], ["--exclusive"]):
            assert cli.run("run", "-n", *options, name, "true").returncode == BUSY
        assert first.finish() == 0
        # The other one still reads.
        assert cli.run("run", "-n", name, "true").returncode == BUSY
        assert cli.run("run", "-n", "-s", name, "true").returncode == 0
        assert second.finish() == 0
    with cli.hold(name, "-x"):
        assert cli.run("run", "-n", "-s", name, "true").returncode == BUSY


def test_waiting_reader_leaves_the_queue_on_a_signal(cli: Cli, name: str) -> None:
    with cli.hold(name), cli.start("run", "-s", name, "--", *HOLD, waits=name) as reader:
        reader.send(signal.SIGTERM)
        assert reader.wait() == 128 + signal.SIGTERM
        wait_until(lambda: cli.waiting(name) == 0)


def test_reader_that_is_removed_has_lost_its_lock(cli: Cli, name: str) -> None:
    with cli.hold(name, "-s") as other:
        [kept] = cli.status(name)["holders"]
        with cli.hold(name, "-s", "--ttl", "300ms") as held:
            tokens = {holder["token"] for holder in cli.status(name)["holders"]}
            [token] = tokens - {kept["token"]}
            assert cli.run("force-release", "--yes", "--if-owner", token, name).returncode == 0
            assert held.wait_output() == 79
            held.err.wait_for(r"lost lock .*; sent SIGTERM")
        assert other.finish() == 0
        assert other.err.text == ""


def test_mode_is_in_the_environment_and_the_event(cli: Cli, name: str, tmp_path: Path) -> None:
    for options, mode in (([], "exclusive"), (["-s"], "shared"), (["--owner", "me"], "exclusive")):
        path = tmp_path / mode
        with path.open("w") as file:
            flag = f"--status-fd={file.fileno()}"
            words = [flag, *options, name + mode, "--", "sh", "-c", "echo $REDLATCH_MODE"]
            done = cli.run("run", *words, pass_fds=[file.fileno()])
        assert done.stdout == f"{mode}\n"
        events = [json.loads(line) for line in path.read_text().splitlines()]
        assert events[0]["event"] == "acquired" and events[0]["mode"] == mode


def test_verbose_says_that_it_is_shared(cli: Cli, name: str) -> None:
    done = cli.run("run", "-v", "-s", name, "true")
    assert re.search(rf"acquired {name} in \S+ s \(fence \d+, shared\)\n", done.stderr)
    assert ", shared" not in cli.run("run", "-v", name, "true").stderr


def test_busy_says_how_many_read(cli: Cli, name: str) -> None:
    with cli.hold(name, "-s") as first:
        done = cli.run("run", "-n", name, "true")
        assert re.search(r"is busy: held by 1 reader, lease until \S+Z, 0 waiting\n", done.stderr)
        with cli.hold(name, "-s"):
            done = cli.run("run", "-n", name, "true")
            assert "is busy: held by 2 readers, lease until" in done.stderr
            assert first.finish() == 0


# ---- reentrant locks ----


def test_owner_enters_again_at_once(cli: Cli, name: str) -> None:
    """Also past somebody who waits, and from another process that names it."""
    you = ["--owner", "you"]
    with cli.hold(name, "--owner", "me") as outer, cli.start("run", *you, name, "true") as other:
        wait_until(lambda: cli.waiting(name) == 1)
        done = cli.run("run", "-n", "-v", "--owner", "me", name, "true", code=0)
        assert re.search(r"\(fence \d+, held 2 times by its owner\)\n", done.stderr)
        text = f"lock '{name}' is still held by its owner through another acquisition"
        assert text in done.stderr
        assert "cannot release" not in done.stderr
        assert cli.status(name)["holding"] == 1
        for options in ([], ["-s"], you):
            assert cli.run("run", "-n", *options, name, "true").returncode == BUSY
        outer.close_stdin()
        assert (outer.wait_output(), outer.err.text) == (0, "")
        # Killed in that moment it would keep the lock for the rest of its lease.
        assert other.wait() == 0
    assert not cli.is_held(name)


def test_nested_runs_of_one_owner(cli: Cli, name: str) -> None:
    inner = [cli.binary, "run", "-v", "-n", "--owner", "me", name, "--", "sh", "-c", "exit 7"]
    done = cli.run("run", "-v", "--owner", "me", name, "--", *inner, code=7)
    fences = [fence_of(line) for line in done.stderr.splitlines() if "acquired" in line]
    assert len(fences) == 2 and fences[0] == fences[1] > 0
    assert done.stderr.count("is still held by its owner") == 1
    assert not cli.is_held(name)


def test_lost_reentrant_lock_stops_every_hold(cli: Cli, name: str) -> None:
    mine = ["--owner", "me", "--ttl", "300ms"]
    with cli.hold(name, *mine) as first, cli.hold(name, *mine) as second:
        assert cli.run("force-release", "--yes", name).returncode == 0
        assert (first.wait(), second.wait()) == (79, 79)


def test_busy_names_owner_and_count(cli: Cli, name: str) -> None:
    with cli.hold(name, "--owner", "it's\tme"):
        done = cli.run("run", "-n", "--owner", "you", name, "true")
        assert re.search(
            r"is busy: held by owner 'it's\\tme', 1 time, lease until \S+Z, 0 waiting\n",
            done.stderr,
        )


def test_help_has_them(cli: Cli) -> None:
    text = cli.run("help", "run").stdout
    for word in ("-s,--shared", "-x,-e,--exclusive", "--owner TEXT"):
        assert word in text
