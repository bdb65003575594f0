# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a person who waits sees for whom, since when, until when, and how many are in front.

Method: one command holds the lock, others wait for it on a terminal, with -v, and nested in it.
"""

from __future__ import annotations

import os
import re
import time

import pytest
from support.servers import Server
from support.wait import wait_until

from .harness import HOLD, Cli
from .terminal import Terminal

# Short: the line of a terminal has 80 columns.
@pytest.fixture
def name() -> str:
    return "w" + os.urandom(3).hex()


TIME = r"\d\d:\d\d:\d\d"


def test_a_terminal_shows_the_holder_and_the_place(cli: Cli, name: str) -> None:
    with cli.hold(name) as holder, cli.start("run", name, "--", *HOLD, waits=name):
        with Terminal([cli.binary, "run", name, "--", "echo", "done"], cli.env) as terminal:
            shown = rf"place 2 of 2: held by \S+/{holder.pid} since {TIME} until {TIME}"
            terminal.wait_for(shown)
            terminal.write(b"\x03")
            assert terminal.wait() == 130
            assert terminal.text.rstrip("^C\n").endswith("\x1b[K"), "the line is erased"


def test_a_signal_ends_a_wait_beside_a_server_that_hangs(
    binary: str, own_server: Server, name: str
) -> None:
    """Goal: Ctrl-C costs one command time limit, also while the line is being renewed."""
    limit_s = 2
    cli = Cli(binary, f"{own_server.url}?command_timeout={limit_s}s&connect_timeout={limit_s}s")
    with cli.hold(name), Terminal([binary, "run", name, "--", "true"], cli.env) as terminal:
        terminal.wait_for("place 1 of 1: held by")
        own_server.pause()
        terminal.wait_for(r"\x1b\[K$")  # erased, and the server is asked for the next line
        began = time.monotonic()
        terminal.write(b"\x03")
        assert terminal.wait() == 130
        took = time.monotonic() - began
        own_server.resume()
        assert took < 2 * limit_s


def test_a_wait_in_the_background_leaves_the_line_alone(cli: Cli, name: str) -> None:
    job = f"'{cli.binary}' run -w 1500ms {name} true & wait; echo ended"
    with cli.hold(name), Terminal(["bash", "-mc", job], cli.env) as terminal:
        assert terminal.wait() == 0
        assert terminal.text.endswith("ended\n")
        assert "is busy" in terminal.text
        assert "\x1b[K" not in terminal.text


def test_a_wait_that_ends_at_once_shows_nothing(cli: Cli, name: str) -> None:
    with Terminal([cli.binary, "run", name, "--", "echo", "done"], cli.env) as terminal:
        assert terminal.wait() == 0
        assert terminal.text == "done\n"


def test_verbose_says_each_holder_once(cli: Cli, name: str) -> None:
    with cli.hold(name) as holder, cli.start("run", "-v", name, "--", *HOLD) as waiter:
        waiter.err.wait_for(rf"held by \S+/{holder.pid} ")
        assert holder.finish() == 0
        waiter.out.wait_for("ready")
        assert waiter.finish() == 0
        assert len(re.findall("held by", waiter.err.text)) == 1


def test_without_a_terminal_a_wait_is_silent(cli: Cli, name: str) -> None:
    with cli.hold(name) as holder, cli.start("run", name, "--", *HOLD, waits=name) as waiter:
        with Terminal([cli.binary, "run", name, "--", "true"], cli.env) as terminal:
            terminal.wait_for("place 2")  # so long that the other one would have said something
            terminal.write(b"\x03")
            terminal.wait()
        holder.close_stdin()
        waiter.out.wait_for("ready")
        assert waiter.finish() == 0
        assert waiter.err.text == ""


def test_nested_run_of_the_same_name_is_warned_at_once(cli: Cli, name: str) -> None:
    inner = [cli.binary, "run", "-w", "2s", name, "true"]
    with cli.start("run", name, "--", *inner) as outer:
        found = outer.err.wait_for("held by the redlatch run that this one runs under")
        assert f"lock '{name}'" in outer.err.text[: found.start() + 1]


def test_a_run_of_another_lock_in_between_hides_nothing(cli: Cli, name: str) -> None:
    odd = name + " ,%\n\u00e9"
    inner = [cli.binary, "run", "-w", "2s", odd, "true"]
    between = [cli.binary, "run", name + "-2", "--", *inner]
    with cli.start("run", "--holder=a b,c", odd, "--", *between) as outer:
        outer.err.wait_for("held by the redlatch run that this one runs under")


def test_a_run_after_very_many_still_gets_its_lock(cli: Cli, name: str) -> None:
    around = {"REDLATCH_RUNS": " ".join([f"{name},1,me"] * 5_000)}
    done = cli.run("run", name, "--", "sh", "-c", "echo ${#REDLATCH_RUNS}", env=around, code=0)
    assert 16_000 < int(done.stdout) <= 16_384


@pytest.mark.parametrize("option", ["-s", "--owner=me"])
def test_nested_run_under_a_shared_or_reentrant_holder_is_warned(
    cli: Cli, name: str, option: str
) -> None:
    inner = [cli.binary, "run", "-w", "2s", name, "true"]
    with cli.start("run", option, name, "--", *inner) as outer:
        outer.err.wait_for("held by the redlatch run that this one runs under")


def test_a_holder_of_the_same_name_elsewhere_is_not_the_run_around(cli: Cli, name: str) -> None:
    space = ["--namespace", os.urandom(3).hex() + ":"]
    inner = [cli.binary, *space, "run", "-w", "1s", name, "true"]
    with cli.start(*space, "run", "--holder=me", name, "--", *HOLD) as other:
        other.out.wait_for("ready")
        done = cli.run("run", "--holder=me", name, "--", *inner, code=75)
        assert "held by me" in done.stderr
        assert "runs under" not in done.stderr


def test_a_timeout_names_the_holder(cli: Cli, name: str) -> None:
    with cli.hold(name) as holder:
        done = cli.run("run", "-w", "1s", name, "true", code=75)
        assert f"/{holder.pid} (label: sh -c '" in done.stderr


def test_status_names_readers_and_waiters(cli: Cli, name: str) -> None:
    with cli.hold(name, "-s") as reader, cli.start("run", name, "--", *HOLD, waits=name) as writer:

        def names() -> tuple[str, str]:
            status = cli.status(name)
            return status["holders"][0].get("holder", ""), status["waiters"][0].get("waiter", "")

        wait_until(lambda: all(names()))
        assert [one.rpartition("/")[2] for one in names()] == [str(reader.pid), str(writer.pid)]
