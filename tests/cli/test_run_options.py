# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: each option of `run` does what it says, no more. Method: what others see of the lock."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.program import is_alive
from support.servers import Server
from support.wait import wait_until

from .harness import AT_ONCE, HOLD, POLITE, STUBBORN, Cli
from .terminal import Terminal


def until(cli: Cli, name: str) -> float:
    """When the lease ends, in seconds. Two looks at one lease may differ by a millisecond."""
    text = cli.status(name)["holders"][0]["lease_until"]
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


# ---- turns of other libraries ----


def test_yield_leaves_the_lock_to_others(cli: Cli, name: str, shared_server: Server) -> None:
    """Goal: a lock is left to libraries that poll as often and for as long as was asked for.
    Method: the second grant is followed by a time in which ours find it busy, and another does not.
    """
    turns = ["run", "--yield-every", "2", "--yield-for", "1m", name, "--", "true"]
    assert cli.run(*turns).returncode == 0
    assert cli.run(*turns).returncode == 0
    assert cli.run("run", "-n", name, "--", "true").returncode == 75
    with shared_server.connect() as connection:
        assert connection.cmd("SET", name, "theirs", "NX", "PX", 60_000) == "OK"
        assert cli.run("run", "-n", name, "--", "true").returncode == 75
        connection.cmd("DEL", name)
    for _ in range(3):
        assert cli.run("run", "-n", "--yield-every", "0", name, "--", "true").returncode == 0


# ---- being busy ----


def test_if_busy_fail_and_skip_try_once(cli: Cli, name: str) -> None:
    with cli.hold(name) as held:
        done = cli.run("run", "--if-busy", "fail", name, "--", "echo", "ran")
        assert (done.returncode, done.stdout) == (75, "")
        assert f"lock '{name}' is busy" in done.stderr
        done = cli.run("run", "--if-busy=skip", name, "--", "echo", "ran")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert "is busy" in cli.run("run", "-v", "--if-busy=skip", name, "true").stderr
        assert held.finish() == 0
    for how in ("fail", "skip", "wait"):
        assert cli.run("run", "--if-busy", how, name, "--", "sh", "-c", "exit 7").returncode == 7


def test_if_busy_with_a_wait(cli: Cli, name: str) -> None:
    with cli.hold(name) as held:
        for how, code in (("fail", 75), ("skip", 0), ("wait", 75)):
            began = time.monotonic()
            done = cli.run("run", "-w", "1s", "--if-busy", how, name, "--", "true")
            assert (done.returncode, time.monotonic() - began >= 1) == (code, True), how
        with cli.start("run", "--if-busy", "wait", name, "--", "echo", "ran", waits=name) as waiter:
            held.close_stdin()
            waiter.out.wait_for("ran")


def test_if_busy_skip_is_not_for_a_dead_server(own_cli: Cli, own_server: Server, name: str) -> None:
    own_server.kill()
    done = own_cli.run("run", "--if-busy", "skip", name, "--", "true")
    assert (done.returncode, "cannot reach" in done.stderr) == (69, True)


def test_start_jitter_comes_first_and_a_signal_ends_it(cli: Cli, name: str) -> None:
    with cli.start("run", "-v", "--start-jitter", "36500d", name, "--", "echo", "ran") as sleeper:
        sleeper.err.wait_for(r"redlatch: begins in \d+ s\n")
        assert not cli.is_held(name)
        sleeper.send(signal.SIGUSR1)  # Meant for a child that is not there yet.
        sleeper.send(signal.SIGTERM)
        assert sleeper.wait(AT_ONCE) == 128 + signal.SIGTERM
        assert sleeper.out.text == ""
    # The end of the sleep must not be taken for something else by whoever waits afterwards.
    with cli.hold(name) as held:
        jitter = ["--start-jitter", "20ms"]
        with cli.start("run", *jitter, name, "--", "echo", "ran", waits=name) as waiter:
            waiter.send(signal.SIGTERM)
            assert waiter.wait(AT_ONCE) == 128 + signal.SIGTERM
        assert held.finish() == 0


def test_start_jitter_differs(cli: Cli, name: str) -> None:
    said = {cli.run("run", "-v", "--start-jitter", "30ms", name, "true").stderr.split("\n")[0]
            for _ in range(6)}
    assert len(said) > 1 and all(line.startswith("redlatch: begins in 0.0") for line in said)


# ---- holding ----


def test_renew_more_often_than_the_library_does(cli: Cli, name: str) -> None:
    # The library's own turn comes after an hour.
    with cli.hold(name, "--ttl", "3h", "--renew", "50ms"):
        first = until(cli, name)
        wait_until(lambda: until(cli, name) > first + 0.3)
    with cli.hold(name + "-2", "--ttl", "3h"):
        wait_until(lambda: "holder" in cli.status(name + "-2")["holders"][0])
        first, began = until(cli, name + "-2"), time.monotonic()
        wait_until(lambda: time.monotonic() - began > 0.3)
        assert until(cli, name + "-2") < first + 0.1


def test_no_renew_ends_the_command_with_the_lease(cli: Cli, name: str) -> None:
    with cli.hold(name, "--no-renew", "--ttl", "1500ms", words=POLITE) as held:
        began = time.monotonic()
        assert held.wait_output() == 79
        assert time.monotonic() - began < 1.5 + AT_ONCE
        assert "bye" in held.out.text
        held.err.wait_for(r"lost lock .*: not renewed because of --no-renew, its le")
        assert "cannot renew" not in held.err.text
        assert not cli.is_held(name)


def test_no_renew_is_no_matter_for_a_short_command(cli: Cli, name: str) -> None:
    assert cli.run("run", "--no-renew", name, "--", "sh", "-c", "exit 4").returncode == 4


def test_min_hold_keeps_the_lock_after_the_command(cli: Cli, name: str) -> None:
    began = time.monotonic()
    with cli.start("run", "-v", "--min-hold", "700ms", name, "--", "sh", "-c", "exit 5") as held:
        held.err.wait_for(rf"keeping lock '{name}' \(fence \d+\) for another 0\.\d+ s")
        assert cli.is_held(name)
        assert held.wait() == 5
        assert time.monotonic() - began >= 0.7
        assert not cli.is_held(name)


def test_min_hold_renews_meanwhile(cli: Cli, name: str) -> None:
    done = cli.run("run", "-v", "--ttl", "300ms", "--min-hold", "900ms", name, "--", "true")
    assert (done.returncode, "lost" in done.stderr) == (0, False)
    assert re.search(r"released .* after (0\.9\d*|[1-9][\d.]*) s", done.stderr)


def test_min_hold_is_over_for_a_longer_command(cli: Cli, name: str) -> None:
    words = ["sh", "-c", "echo ready; read line; exit 3"]
    with cli.hold(name, "-v", "--min-hold", "10ms", words=words) as held:
        held.err.wait_for("acquired")
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > 0.01)
        assert held.finish() == 3
        assert "keeping" not in held.err.text


def test_min_hold_is_left_to_the_lease_by_a_signal(cli: Cli, name: str) -> None:
    with cli.start("run", "-v", "--min-hold", "1h", name, "--", "sh", "-c", "exit 5") as held:
        held.err.wait_for("keeping lock")
        held.send(signal.SIGTERM)
        assert held.wait(AT_ONCE) == 5
    # Nobody waits for it, and still it is held for the rest of the hour.
    assert cli.status(name)["holders"][0]["remaining_ms"] > 3_000_000


def test_min_hold_ends_when_the_lock_is_lost(cli: Cli, name: str) -> None:
    hold = ["--ttl", "300ms", "--min-hold", "1h"]
    with cli.start("run", "-v", *hold, name, "--", "sh", "-c", "exit 5") as held:
        held.err.wait_for("keeping lock")
        assert cli.run("force-release", "--yes", name).returncode == 0
        assert held.wait(AT_ONCE) == 5  # The command ran under the lock, all of it.
        held.err.wait_for("was lost while it was kept for --min-hold: ")


def test_max_hold_ends_the_command_before_it_is_over(cli: Cli, name: str) -> None:
    with cli.hold(name, "--ttl", "2s", "--max-hold", "4s", words=POLITE) as held:
        began = time.monotonic()
        assert held.wait_output() == 79
        # Renewed beyond the first lease, and not beyond the longest hold.
        assert 2 < time.monotonic() - began < 4 + AT_ONCE
        assert "bye" in held.out.text
        held.err.wait_for(r"lost lock .*: the 4 s of --max-hold are over in 0\.\d+ s")
        assert "cannot renew" not in held.err.text
    assert not cli.is_held(name)


def test_max_hold_below_the_lease(cli: Cli, name: str) -> None:
    with cli.hold(name, "--max-hold", "900ms", words=STUBBORN) as held:
        pid = int(held.out.wait_for(r"ready (\d+)\.")[1])
        assert held.wait_output() == 79
        assert not is_alive(pid)
        assert "did not end in time; sent SIGKILL" in held.err.text
    assert not cli.is_held(name)


def test_max_hold_lets_a_short_command_be(cli: Cli, name: str) -> None:
    done = cli.run("run", "--max-hold", "1m", name, "--", "sh", "-c", "exit 6")
    assert (done.returncode, done.stderr) == (6, "")


# ---- the loss ----


def lose(cli: Cli, name: str, *options: str, words: list[str]) -> tuple[int, str, str]:
    with cli.hold(name, "--ttl", "2s", *options, words=words) as held:
        assert cli.run("force-release", "--yes", name).returncode == 0
        code = held.wait_output()
        return code, held.out.text, held.err.text


def test_on_lost_kill(cli: Cli, name: str) -> None:
    code, out, err = lose(cli, name, "--on-lost", "kill", words=POLITE)
    assert (code, "bye" in out) == (79, False)
    assert re.search(r"lost lock .*; sent SIGKILL to process group \d+\n$", err)


def test_on_lost_another_signal(cli: Cli, name: str) -> None:
    words = ["sh", "-c", "trap 'echo usr1; exit 0' USR1; echo ready; while :; do sleep 0.01; done"]
    for spelling in ("signal:USR1", "signal:SIGUSR1", f"signal:{int(signal.SIGUSR1)}"):
        code, out, err = lose(cli, name, "--on-lost", spelling, words=words)
        assert (code, "usr1" in out) == (79, True)
        assert "sent SIGUSR1 to process group" in err


def test_on_lost_another_signal_is_followed_by_sigkill(cli: Cli, name: str) -> None:
    code, _, err = lose(cli, name, "--on-lost", "signal:USR1", "-k", "50ms", words=STUBBORN)
    assert (code, "did not end in time; sent SIGKILL" in err) == (79, True)


def test_on_lost_ignore_lets_the_command_end(cli: Cli, name: str) -> None:
    words = ["sh", "-c", "echo ready; read line; echo done; exit 5"]
    for options, code in (([], 79), (["--preserve-status"], 5)):
        hold = ["--ttl", "300ms", "--on-lost", "ignore", *options]
        with cli.hold(name, *hold, words=words) as held:
            assert cli.run("force-release", "--yes", name).returncode == 0
            held.err.wait_for("lost lock .*; the command continues without it")
            assert held.finish() == code
            assert "done" in held.out.text and "sent SIG" not in held.err.text


# ---- who and what ----


def test_holder_and_labels(cli: Cli, name: str) -> None:
    labels = ["--label", "run=1234", "--label", "note=it's a \"b\""]
    with cli.hold(name, "--holder", "web-3/deploy", *labels) as held:
        wait_until(lambda: "label" in cli.status(name)["holders"][0])
        holder = cli.status(name)["holders"][0]
        assert holder["holder"] == "web-3/deploy"
        assert holder["labels"] == {"run": "1234", "note": "it's a \"b\""}
        assert holder["label"].startswith("run=1234 ") and holder["label"].endswith("/dev/null'")
        assert cli.run("ls", name).stdout.split("\t")[3] == "web-3/deploy"
        assert held.finish() == 0  # else the end of the block would kill it before it has released
    done = cli.run("run", "--holder", "me", name, "--", "sh", "-c", "echo $REDLATCH_HOLDER")
    assert done.stdout == "me\n"


def test_a_command_can_be_hidden(cli: Cli, name: str) -> None:
    with cli.hold(name, "--hide-command", "--label", "run=1"):
        wait_until(lambda: "label" in cli.status(name)["holders"][0])
        assert cli.status(name)["holders"][0]["label"] == "run=1"


def test_help_has_the_ranges_of_the_table(cli: Cli) -> None:
    of_run = " ".join(cli.run("help", "run").stdout.split())
    assert "How long the server keeps the lock without renewal: 10 ms to 7 days (30s)" in of_run
    assert "(strict FIFO if all callers set 0). Allowed: 0 to 31 (16)" in of_run
    of_all = " ".join(cli.run("help").stdout.split())
    assert "How long one command may take: 1 ms to 1 hour (2s)" in of_all
    assert "for messages: 2 or 3 (3)" in of_all
    assert "clients of these nodes. Allowed: off or 1 s to 1 hour (60s)" in of_all


def test_help_of_owner_is_that_of_the_command(cli: Cli) -> None:
    said = " ".join(cli.run("help", "run").stdout.split())
    assert "who may acquire the lock again at once while it holds it; not with -s" in said
    assert "unless reentrant" not in said


def test_command_without_labels_has_none(cli: Cli, name: str) -> None:
    with cli.hold(name):
        wait_until(lambda: "label" in cli.status(name)["holders"][0])
        assert "labels" not in cli.status(name)["holders"][0]


def test_command_through_the_shell(cli: Cli, name: str, tmp_path: Path) -> None:
    script = 'echo "$0 $REDLATCH_LOCK" | tr a-z A-Z; exit 3'
    for words in (["-c", script, name], [name, "-c", script], [f"--command={script}", name]):
        done = cli.run("run", *words, env={"SHELL": "/bin/sh"})
        assert (done.returncode, done.stdout) == (3, f"/BIN/SH {name}\n".upper())
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\necho shell:$1:$2\n")
    shell.chmod(0o755)
    done = cli.run("run", name, "-c", "x y", env={"SHELL": str(shell)})
    assert done.stdout == "shell:-c:x y\n"
    assert cli.run("run", name, "-c", "exit 2", env={"SHELL": ""}).returncode == 2


# ---- job control ----


def test_foreground_stays_in_the_group(cli: Cli, name: str) -> None:
    script = "(trap 'echo grand' TERM; sleep 1000) & trap 'exit 9' TERM; echo ready; wait"
    own = "ps -o pgid= -p $$ | tr -d ' '; exec cat >/dev/null"
    with cli.hold(name, "--foreground", words=["sh", "-c", f"echo ready; {own}"]) as held:
        held.out.wait_for(rf"ready\n{os.getpgid(held.pid)}\n")
    # A signal to redlatch goes to the child, and to nobody else.
    with cli.hold(name + "2", "--foreground", words=["sh", "-c", script]) as held:
        held.send(signal.SIGTERM)
        assert held.wait() == 9
        assert "grand" not in held.out.text


def test_foreground_is_stopped_on_loss(cli: Cli, name: str) -> None:
    code, out, err = lose(cli, name, "--foreground", words=POLITE)
    assert (code, "bye" in out) == (79, True)
    assert re.search(r"sent SIGTERM to process \d+\n", err)


def test_foreground_gets_ctrl_c_once(cli: Cli, name: str) -> None:
    script = "trap 'echo trapped' INT; echo ready; read line; read line; exit 4"
    words = [cli.binary, "run", "-vv", "--foreground", name, "--", "sh", "-c", script]
    with Terminal(words, cli.env) as terminal:
        terminal.wait_for(r"(?m)^ready$")  # Not the one in our own message.
        terminal.write(b"\x03")
        terminal.wait_for(r"(?m)^(\^C)?trapped$")
        terminal.write(b"\n\n")
        assert terminal.wait() == 4
        # It came from the terminal. From us besides, two at once could look like one.
        assert "passed" not in terminal.text


def test_no_forward_signals(cli: Cli, name: str) -> None:
    script = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"got it"))
os.write(1, b"ready\\n")
os.read(0, 1)
"""
    words = [sys.executable, "-c", script]
    with cli.hold(name, "--no-forward-signals", "-vv", words=words) as held:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            held.send(number)
        # Only when these were taken can it see the child's end.
        assert held.finish() == 0
        assert "got it" not in held.out.text and "passed" not in held.err.text


# ---- events ----


class Told:
    """`run` with --status-fd: its events, when it has ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("w")

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    @property
    def options(self) -> dict[str, Any]:
        return {"pass_fds": [self.file.fileno()]}

    @property
    def flag(self) -> str:
        return f"--status-fd={self.file.fileno()}"

    def events(self) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.path.read_text().splitlines()]
        for event in found:
            assert event["schema"] == 1
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["time"])
        return found

    def names(self) -> list[str]:
        return [event["event"] for event in self.events()]


@pytest.fixture
def told(tmp_path: Path) -> Any:
    with Told(tmp_path / "events") as it:
        yield it


def test_a_release_without_an_answer_is_no_release(
    own_cli: Cli, own_server: Server, name: str, told: Told
) -> None:
    options = ("-v", "--ttl", "20s", told.flag)
    with own_cli.hold(name, *options, **told.options) as held:
        own_server.pause()
        assert held.finish() == 0
        own_server.resume()
    assert told.names() == ["acquired", "started", "ended", "exit"]
    held.err.wait_for("cannot release lock .*; its lease ends in ")
    assert "released" not in held.err.text


def test_events_of_a_good_run(cli: Cli, name: str, told: Told) -> None:
    done = cli.run("run", told.flag, name, "--", "sh", "-c", "echo $$; exit 7", **told.options)
    assert done.returncode == 7
    assert told.names() == ["acquired", "started", "ended", "released", "exit"]
    acquired, started, ended, released, exit_event = told.events()
    assert {event["lock"] for event in told.events()} == {name}
    assert acquired["fence"] > 0 and acquired["ttl_ms"] == 30_000 and acquired["waited_ms"] >= 0
    assert started["pid"] == int(done.stdout)
    assert (ended["exit_code"], exit_event["exit_code"]) == (7, 7)
    assert released["held_ms"] >= 0


def test_events_of_waiting_and_being_busy(cli: Cli, name: str, told: Told) -> None:
    with cli.hold(name):
        # It says that it waits after a quarter of a second; a wait that is over by then, which on
        # a busy machine is one a little longer, says nothing.
        cli.run("run", "-q", "-w", "3s", told.flag, name, "true", **told.options, code=75)
        assert told.names() == ["waiting", "busy", "exit"]
        _, busy, exit_event = told.events()
        assert f"lock '{name}' is busy: held by" in busy["message"]
        assert exit_event["exit_code"] == 75
        done = cli.run("run", "--if-busy", "skip", told.flag, name, "true", **told.options)
        assert told.names()[3:] == ["busy", "exit"]
        assert told.events()[-1]["exit_code"] == 0


def test_events_of_trouble_and_loss(
    own_cli: Cli, own_server: Server, name: str, told: Told
) -> None:
    flags = ["-k", "100ms", "--ttl", "4s", told.flag]
    words = [*flags, name, "--", *STUBBORN]
    with own_cli.start("run", *words, **told.options) as held:
        held.out.wait_for("ready")
        own_server.pause()
        wait_until(lambda: "renewal_failing" in told.names())
        own_server.resume()
        wait_until(lambda: "renewed" in told.names())
        own_server.pause()
        assert held.wait() == 79
    assert told.names()[:4] == ["acquired", "started", "renewal_failing", "renewed"]
    assert told.names()[-5:] == ["renewal_failing", "lost", "killed", "ended", "exit"]
    lost = next(event for event in told.events() if event["event"] == "lost")
    assert lost["fence"] == told.events()[0]["fence"] and lost["signal"] == "SIGTERM"
    assert "not renewed in time" in lost["reason"]
    assert told.events()[-1]["exit_code"] == 79


def test_events_of_a_loss_seen_at_the_end_and_of_a_failure(
    cli: Cli, name: str, told: Told, binary: str
) -> None:
    with cli.start("run", told.flag, name, "--", *HOLD, **told.options) as held:
        held.out.wait_for("ready")
        assert cli.run("force-release", "--yes", name).returncode == 0
        assert held.finish() == 79
    assert told.names() == ["acquired", "started", "ended", "lost", "exit"]
    cli.run("run", told.flag, name, "--", "no-such-command", **told.options)
    assert told.names()[5:] == ["acquired", "exit"]
    assert told.events()[-1]["exit_code"] == 127
    assert "no-such-command" in told.events()[-1]["message"]


def test_events_are_not_for_the_child(cli: Cli, name: str, told: Told) -> None:
    done = cli.run("run", told.flag, name, "--", "ls", "/proc/self/fd", **told.options)
    assert done.stdout.split() == ["0", "1", "2", "3"]
