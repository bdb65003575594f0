# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: `run --permits`, `limit` and `status` of a semaphore are as docs/command.md has them."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.wait import wait_until

from .harness import Cli

BUSY, USAGE, FREE = 75, 64, 1

# Each run adds a file, looks how many there are, and takes it away.
COUNT = """
touch "$0/$$"; ls "$0" | wc -l; rm "$0/$$"
"""


def test_no_more_runs_than_permits(cli: Cli, name: str) -> None:
    with ExitStack() as stack:
        first, second = (stack.enter_context(cli.hold(name, "--permits", "3")) for _ in "12")
        assert cli.run("run", "-n", "--permits", "3:2", name, "true").returncode == BUSY
        third = stack.enter_context(cli.hold(name, "--permits", "3"))
        assert cli.run("run", "-n", "--permits", "3", name, "true").returncode == BUSY
        assert cli.run("run", "-n", name, "true").returncode == BUSY, "no semaphore"
        assert cli.run("run", "-n", "--permits", "4", name, "true").returncode == 0
        assert third.finish() == 0
        done = cli.run("run", "-n", "-v", "--permits", "3", name, "sh", "-c", "echo $REDLATCH_MODE")
        assert (done.returncode, done.stdout) == (0, "permits\n")
        assert "permits 1 of 3" in done.stderr
        assert first.finish() == second.finish() == 0


def test_many_runs_share_a_pool(cli: Cli, name: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        runs = [
            stack.enter_context(
                cli.start("run", "--permits", "2", name, "--", "sh", "-c", COUNT, str(tmp_path))
            )
            for _ in range(6)
        ]
        assert [run.wait() for run in runs] == [0] * 6
        assert max(int(run.out.text) for run in runs) <= 2
    wait_until(lambda: cli.status(name)["holding"] == 0)


def test_the_permits_of_a_killed_run_come_back(cli: Cli, name: str) -> None:
    with cli.hold(name, "--permits", "1", "--ttl", "300ms") as dead:
        dead.kill()
        done = cli.run("run", "--permits", "1", "--wait", "60s", name, "true")
        assert done.returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--permits", "0"],
        ["--permits", "x"],
        ["--permits", "3:4"],
        ["--permits", "3:"],
        ["--permits", "1000001"],
        ["--permits", "3", "-s"],
        ["--permits", "3", "-x"],
        ["--permits", "3", "--owner", "me"],
        ["--permits", "3", "--format", "hash"],
    ],
)
def test_what_is_no_semaphore_is_refused(cli: Cli, name: str, words: list[str]) -> None:
    done = cli.run("run", *words, name, "true")
    assert done.returncode == USAGE and "--permits" in done.stderr


def test_a_cap_takes_effect_within_one_release(cli: Cli, name: str) -> None:
    with cli.hold(name, "--permits", "3") as first, cli.hold(name, "--permits", "3") as second:
        assert cli.run("limit", name).returncode == FREE
        assert cli.run("limit", name, "1").returncode == 0
        shown = cli.run("limit", name)
        assert (shown.returncode, shown.stdout) == (0, "1\n")
        assert cli.run("run", "-n", "--permits", "3", name, "true").returncode == BUSY
        assert first.finish() == 0
        assert cli.run("run", "-n", "--permits", "3", name, "true").returncode == BUSY
        assert cli.run("limit", "--clear", name).returncode == 0
        assert cli.run("limit", name).returncode == FREE
        assert cli.run("run", "-n", "--permits", "3", name, "true").returncode == 0
        assert second.finish() == 0


def test_a_cap_for_a_time_ends(cli: Cli, name: str) -> None:
    assert cli.run("limit", name, "0", "--for", "300ms").returncode == 0
    done = cli.run("run", "--permits", "3", "--wait", "60s", name, "true")
    assert done.returncode == 0
    assert cli.run("limit", name).returncode == FREE


@pytest.mark.parametrize(
    "words",
    [
        *(["x"], ["-1"], ["1000001"], ["1", "2"], ["1", "--clear"]),
        *(["--for", "1m"], ["1", "--for", "8d"]),
    ],
)
def test_wrong_limits_are_refused(cli: Cli, name: str, words: list[str]) -> None:
    assert cli.run("limit", name, *words).returncode == USAGE


def test_status_shows_holders_and_the_cap(cli: Cli, name: str) -> None:
    with cli.hold(name, "--permits", "5:2") as first, cli.hold(name, "--permits", "5") as second:
        assert cli.run("limit", name, "4", "--for", "1h").returncode == 0
        text = cli.run("status", "-o", "table", name).stdout
        assert "HELD (3 of 5 permits, fair)" in text and " 2 permits until " in text
        assert "cap       4, until " in text
        shown = json.loads(cli.run("status", "-o", "json", name).stdout)
        assert (shown["mode"], shown["used"], shown["limit"]) == ("permits", 3, 5)
        assert shown["cap"] == 4 and 0 < shown["cap_remaining_ms"] <= 3_600_000
        assert sorted(holder["permits"] for holder in shown["holders"]) == [1, 2]
        assert "3 of 5 permits" in cli.run("ls", "-o", "tsv").stdout
        assert first.finish() == second.finish() == 0
    assert cli.run("status", name).returncode == FREE


def test_status_shows_waiters_and_that_there_is_no_cap(cli: Cli, name: str) -> None:
    with cli.hold(name, "--permits", "1") as holder:
        with cli.start("run", "--permits", "1", name, "true") as waiter:
            wait_until(lambda: cli.status(name)["waiting"] == 1)
            shown = cli.status(name)
            assert (shown["cap"], shown["waiters"][0]["mode"]) == (None, "permits")
            assert holder.finish() == waiter.wait() == 0


def test_a_busy_run_names_the_cap(cli: Cli, name: str) -> None:
    assert cli.run("limit", name, "1").returncode == 0
    with cli.hold(name, "--permits", "3") as holder:
        done = cli.run("run", "-n", "--permits", "3", name, "true")
        assert done.returncode == BUSY
        assert "held by 1 holder, 1 of 3 permits, cap 1" in done.stderr
        assert holder.finish() == 0
    assert cli.run("limit", name, "0").returncode == 0
    done = cli.run("run", "-n", "--permits", "3", name, "true")
    assert done.returncode == BUSY and "no permit is out, cap 0" in done.stderr


def test_a_quorum_has_no_semaphores(cli: Cli, name: str) -> None:
    urls = [word for port in "123" for word in ("--url", f"redis://localhost:{port}")]
    done = cli.run("run", *urls, "--permits", "3", name, "true")
    assert done.returncode == USAGE
    assert "--permits: a lock on several servers is not a semaphore" in done.stderr


def test_the_event_of_a_grant_has_its_permits(cli: Cli, name: str, tmp_path: Path) -> None:
    with (tmp_path / "events").open("w+") as told:
        fd = told.fileno()
        words = ("run", "--permits", "5:2", f"--status-fd={fd}", name, "true")
        assert cli.run(*words, pass_fds=[fd]).returncode == 0
        told.seek(0)
        (acquired,) = [json.loads(line) for line in told if '"acquired"' in line]
    assert (acquired["mode"], acquired["permits"]) == ("permits", 2)
