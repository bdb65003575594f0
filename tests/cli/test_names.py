# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: `run --also` is as docs/command.md has it."""

from __future__ import annotations

import json
import os
import signal
from contextlib import ExitStack

import pytest
from support.wait import wait_until

from .harness import AT_ONCE, Cli, Running
from .terminal import Terminal

BUSY, USAGE, UNAVAILABLE, LOST = 75, 64, 69, 79


def others(name: str) -> list[str]:
    return ["--also", f"{name}-b", "--also-shared", f"{name}-c"]


def test_all_are_held_or_none(cli: Cli, name: str) -> None:
    with cli.hold(name, *others(name)) as all_three:
        for one in (name, f"{name}-b"):
            assert cli.run("run", "-n", one, "true").returncode == BUSY
        assert cli.run("run", "-n", "-s", f"{name}-c", "true").returncode == 0
        assert cli.run("run", "-n", f"{name}-c", "true").returncode == BUSY
        assert all_three.finish() == 0
    with cli.hold(f"{name}-b") as one_of_them:
        done = cli.run("run", "-n", *others(name), name, "true")
        assert done.returncode == BUSY
        assert f"lock '{name}-b' is busy: held by " in done.stderr
        wait_until(lambda: cli.status(name)["holding"] == 0)
        done = cli.run("run", "-w", "500ms", *others(name), name, "true")
        assert done.returncode == BUSY
        assert f"lock '{name}-b' is busy: held by " in done.stderr
        assert one_of_them.finish() == 0


def test_each_name_has_a_fence(cli: Cli, name: str) -> None:
    script = 'echo "$REDLATCH_FENCE $REDLATCH_FENCES"'
    done = cli.run("run", *others(name), f"{name} =,", "sh", "-c", script)
    assert done.returncode == 0
    fence, *all_of_them = done.stdout.split()
    entries = dict(entry.split("=") for entry in all_of_them)
    assert list(entries) == [f"{name}%20%3D%2C", f"{name}-b", f"{name}-c"]
    assert entries[f"{name}%20%3D%2C"] == fence and int(entries[f"{name}-b"]) > 0
    done = cli.run("run", name, "sh", "-c", script)
    fence, only = done.stdout.split()
    assert only == f"{name}={fence}"


def test_two_orders_do_not_deadlock(cli: Cli, name: str) -> None:
    a, b = name, f"{name}-b"
    with ExitStack() as stack:
        runs = [
            stack.enter_context(cli.start("run", "--also", first, second, "true"))
            for first, second in [(a, b), (b, a)] * 4
        ]
        assert [run.wait() for run in runs] == [0] * 8


def test_a_lost_name_stops_the_command(cli: Cli, name: str) -> None:
    with cli.start("run", "--ttl", "1s", *others(name), name, "sleep", "600") as run:
        wait_until(lambda: cli.status(f"{name}-b")["holding"] == 1)
        assert cli.run("force-release", "--yes", f"{name}-b").returncode == 0
        assert run.wait() == LOST
        assert f"its part '{name}-b' was lost" in run.err.text


@pytest.mark.parametrize(
    "words",
    [
        ["--also", "b", "--permits", "3"],
        ["--also", "b", "--owner", "me"],
        ["--also", ""],
    ],
)
def test_what_does_not_go_together_is_refused(cli: Cli, name: str, words: list[str]) -> None:
    assert cli.run("run", *words, name, "true").returncode == USAGE


def test_min_hold_is_refused_with_the_reason(cli: Cli, name: str) -> None:
    done = cli.run("run", "--also-shared", "b", "--min-hold", "1s", name, "true")
    assert done.returncode == USAGE
    reason = "a signal leaves the lock to its lease, and several cannot be left so"
    assert f"--min-hold: {reason}" in done.stderr


def test_the_same_name_twice_is_refused(cli: Cli, name: str) -> None:
    done = cli.run("run", "--also", name, name, "true")
    assert done.returncode == USAGE
    assert f"names must differ (got '{name}' twice)" in done.stderr


def test_a_quorum_locks_one_name(cli: Cli, name: str) -> None:
    urls = [word for port in "123" for word in ("--url", f"redis://localhost:{port}")]
    done = cli.run("run", *urls, "--also", "b", name, "true")
    assert done.returncode == USAGE
    assert "--also: a lock on several servers is for one name" in done.stderr


# ---- while it waits ----


def test_a_terminal_shows_the_busy_name(cli: Cli) -> None:
    name = "n" + os.urandom(3).hex()  # short: the line of a terminal has 80 columns
    words = [cli.binary, "run", "--also", f"{name}-b", name, "true"]
    with cli.hold(f"{name}-b") as holder, Terminal(words, cli.env) as terminal:
        terminal.wait_for(rf"redlatch: {name}-b, place 1 of 1: held by \S+/{holder.pid} since")
        assert f"redlatch: {name}:" not in terminal.text
        assert holder.finish() == 0
        assert terminal.wait() == 0


def test_verbose_follows_the_busy_name(cli: Cli, name: str) -> None:
    b, c = f"{name}-b", f"{name}-c"
    with cli.hold(b) as holder_of_b, cli.hold(c) as holder_of_c:
        with cli.start("run", "-v", "--also", b, "--also", name, c, "true") as waiter:
            waiter.err.wait_for(f"waiting for locks '{c}', '{b}', '{name}'")
            waiter.err.wait_for(rf"{b}, place 1 of 1: held by \S+/{holder_of_b.pid} ")
            assert holder_of_b.finish() == 0
            waiter.err.wait_for(rf"{c}, place 1 of 1: held by \S+/{holder_of_c.pid} ")
            assert holder_of_c.finish() == 0
            assert waiter.wait() == 0
            assert f"redlatch: {name}: " not in waiter.err.text, "it holds this one"


def test_the_event_of_a_wait_has_the_busy_name(cli: Cli, name: str) -> None:
    words = ["run", "--status-fd", "1", *others(name), name, "true"]
    with cli.hold(f"{name}-c", "--holder", "me") as holder, cli.start(*words) as waiter:
        event = json.loads(waiter.out.wait_for(r".*\n")[0])
        assert (event["event"], event["lock"]) == ("waiting", name)
        assert event["names"] == [name, f"{name}-b", f"{name}-c"]
        assert (event["busy"], event["holders"]) == (f"{name}-c", ["me"])
        assert holder.finish() == 0
        assert waiter.wait() == 0


@pytest.mark.parametrize("end", ["", "-b", "-c"])
def test_a_nested_run_of_one_of_the_names_is_warned(cli: Cli, name: str, end: str) -> None:
    inner = [cli.binary, "run", "-w", "2s", name + end, "true"]
    with cli.start("run", *others(name), name, "--", *inner) as outer:
        found = outer.err.wait_for("held by the redlatch run that this one runs under")
        assert f"lock '{name}{end}'" in outer.err.text[: found.start() + 1]


def test_a_nested_run_of_several_names_is_warned(cli: Cli, name: str) -> None:
    inner = [cli.binary, "run", "-w", "3s", *others(name), name, "true"]
    with cli.start("run", f"{name}-b", "--", *inner) as outer:
        found = outer.err.wait_for("held by the redlatch run that this one runs under")
        assert f"lock '{name}-b'" in outer.err.text[: found.start() + 1]
        assert outer.wait() == BUSY
        assert "--owner" not in outer.err.text, "it excludes --also"


def test_the_variable_of_very_long_names_is_limited(cli: Cli, name: str) -> None:
    names = [f"{name}{i:02}" + "x" * 900 for i in range(40)]
    also = [word for one in names for word in ("--also", one)]
    script = "echo ${#REDLATCH_RUNS} ${REDLATCH_RUNS%%,*}"
    done = cli.run("run", *also, name, "--", "sh", "-c", script, code=0)
    length, first = done.stdout.split()
    assert 15_000 < int(length) <= 16_384 and first == name


def wait_for_b(cli: Cli, name: str, *options: str) -> Running:
    """A run that waits for the second of its names, and holds the first."""
    waiter = cli.start("run", *options, *others(name), name, "true", waits=f"{name}-b")
    wait_until(lambda: cli.status(name)["holding"] == 1)
    return waiter


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_wait_leaves_nothing(
    cli: Cli, name: str, number: signal.Signals
) -> None:
    with cli.hold(f"{name}-b") as holder, wait_for_b(cli, name) as waiter:
        waiter.send(number)
        assert waiter.wait(AT_ONCE) == 128 + number
        assert cli.status(name)["holding"] == 0
        assert cli.waiting(f"{name}-b") == 0
        assert holder.finish() == 0


def test_a_killed_wait_leaves_its_names_until_the_ttl(cli: Cli, name: str) -> None:
    with cli.hold(f"{name}-b") as holder, wait_for_b(cli, name, "--ttl", "2s") as waiter:
        waiter.send(signal.SIGKILL)
        waiter.wait()
        remaining_ms = cli.run("status", "-o", "tsv", name).stdout.split("\t")[5]
        assert remaining_ms == "-" or int(remaining_ms) <= 2_000
        assert cli.run("run", name, "true").returncode == 0
        assert holder.finish() == 0
        assert cli.run("run", *others(name), name, "true").returncode == 0
        assert cli.waiting(f"{name}-b") == 0


def test_missing_replicas_are_those_of_one_name(cli: Cli, name: str) -> None:
    options = ["--min-replicas", "1", "--sync-timeout", "20ms"]
    done = cli.run("run", *options, *others(name), name, "true", code=UNAVAILABLE)
    assert "replica" in done.stderr
    assert [cli.status(name + end)["holding"] for end in ("", "-b", "-c")] == [0, 0, 0]
