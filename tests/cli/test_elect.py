# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: `elect` is as docs/command.md has it: one candidate leads, and the next one takes over.

Method: COMMAND writes to a file that refuses lower fences; the time of a takeover is that of the
server, which notes when a term begins.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path

import pytest
from support.program import is_alive
from support.servers import Server
from support.wait import wait_until

from .election import Election, events_in
from .harness import AT_ONCE, HOLD, POLITE, STUBBORN, Cli, Running
from .terminal import Terminal

USAGE, NOT_FOUND = 64, 127

# Adds its fence to a file, again and again, unless a higher one is there.
WRITER = [
    sys.executable,
    "-c",
    """
import fcntl, os, sys, time
fence = int(os.environ["REDLATCH_FENCE"])
with open(sys.argv[1], "a+") as file:
    while True:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if int((file.read().split() or ["0"])[-1]) <= fence:
            print(fence, file=file, flush=True)
        fcntl.flock(file, fcntl.LOCK_UN)
        time.sleep(0.01)
""",
]


@pytest.fixture
def election(cli: Cli, name: str) -> Election:
    return Election(cli, name)


def session_of(pid: int) -> list[int]:
    done = subprocess.run(["ps", "-eo", "pid=,sess="], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    return [int(row[0]) for row in rows if int(row[1]) == pid]


def is_stopped_or_gone(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "TZ"
    return True


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """No writer has the lock of the file meanwhile: one that was stopped would keep it."""
    with file.open("a") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def end(running: Running, number: int, file: Path) -> None:
    if number == signal.SIGTERM:
        running.send(number)
        return
    with locked(file):
        pids = session_of(running.pid)
        assert len(pids) > 1, "redlatch and its COMMAND"
        for pid in pids:
            os.kill(pid, number)
        wait_until(lambda: all(map(is_stopped_or_gone, pids)))


# ---- takeovers ----


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_the_next_candidate_leads(election: Election, tmp_path: Path, number: int) -> None:
    """SIGKILL and SIGSTOP of `redlatch` and its COMMAND: after the ttl. SIGTERM: before its end."""
    ttl_s = 60 if number == signal.SIGTERM else 2
    file = tmp_path / "file"
    words = [*WRITER, str(file)]
    with ExitStack() as stack:
        running = {
            name: stack.enter_context(
                election.start("--id", name, "--ttl", f"{ttl_s}s", "--restart", words=words)
            )
            for name in "abc"
        }
        election.wait_for_candidates(2)
        old = election.leader()
        wait_until(lambda: file.exists() and str(old["term"]) in file.read_text())
        begin_s = time.time()
        end(running[old["id"]], number, file)
        new = election.wait_for_leader(old["term"])
        assert new["term"] > old["term"] and new["id"] != old["id"]
        # The clock of the server is that of this host.
        since_s = datetime.fromisoformat(new["since"].replace("Z", "+00:00")).timestamp()
        limit_s = ttl_s if number == signal.SIGTERM else ttl_s + AT_ONCE
        assert since_s - begin_s < limit_s
        wait_until(lambda: str(new["term"]) in file.read_text())
        if number == signal.SIGSTOP:
            for pid in session_of(running[old["id"]].pid):
                with suppress(ProcessLookupError):  # redlatch may have ended COMMAND already
                    os.kill(pid, signal.SIGCONT)
            running[old["id"]].err.wait_for("lost lock .*; sent SIGTERM to process group")
            election.wait_for_candidates(2)
        if number == signal.SIGTERM:
            assert running[old["id"]].wait() == 128 + signal.SIGTERM
        fences = [int(line) for line in file.read_text().split()]
        assert fences == sorted(fences)
        assert {old["term"], new["term"]} <= set(fences)


def test_a_run_and_a_leader_exclude_each_other(election: Election) -> None:
    cli, name = election.cli, election.name
    with cli.hold(name) as holder, election.start(waits=name) as candidate:
        assert election.leader() == {}, "a holder without an id"
        assert holder.finish() == 0
        candidate.out.wait_for("ready")
        assert election.leader()["id"]
        cli.run("run", "-n", name, "true", code=75)
        assert candidate.finish() == 0


# ---- the end of COMMAND ----


def test_the_end_of_command_ends_the_term(election: Election) -> None:
    election.cli.run("elect", election.name, "--", "sh", "-c", "exit 7", code=7)
    assert election.leader() == {}
    assert not election.cli.is_held(election.name)


def test_a_command_that_cannot_start_ends_the_term(election: Election) -> None:
    election.cli.run("elect", "--restart", election.name, "/nonexistent", code=NOT_FOUND)
    assert not election.cli.is_held(election.name)


def test_restart_campaigns_again(election: Election, tmp_path: Path) -> None:
    file = tmp_path / "file"
    script = 'echo "$REDLATCH_FENCE $(date +%s%N)" >>"$0"; exit 3'
    with election.start("--restart", words=["sh", "-c", script, str(file)]) as running:
        wait_until(lambda: file.exists() and len(file.read_text().splitlines()) == 3)
        running.send(signal.SIGTERM)
        assert running.wait(AT_ONCE) in (3, 128 + signal.SIGTERM)
    rows = [line.split() for line in file.read_text().splitlines()]
    fences, times = ([int(row[i]) for row in rows] for i in (0, 1))
    assert fences == sorted(set(fences))
    # Short terms, so the delay doubles.
    assert times[1] - times[0] > 0.99e9 and times[2] - times[1] > 1.99e9


def test_a_signal_ends_a_leader_with_restart(election: Election) -> None:
    with election.lead("--restart", words=POLITE) as running:
        running.send(signal.SIGTERM)
        assert running.wait_output(AT_ONCE) == 0
        assert running.out.text.count("bye") == 1
    assert not election.cli.is_held(election.name)


def test_a_signal_ends_a_candidate(election: Election) -> None:
    with election.lead() as leader, election.start(waits=election.name) as candidate:
        candidate.send(signal.SIGTERM)
        assert candidate.wait(AT_ONCE) == 128 + signal.SIGTERM
        assert election.cli.waiting(election.name) == 0
        assert leader.finish() == 0


# ---- losses ----


def force_release(election: Election) -> None:
    election.cli.run("force-release", "--yes", election.name, code=0)


def test_a_lost_term_ends_command_and_another_one_follows(election: Election) -> None:
    with election.lead("--ttl", "3s", words=POLITE) as running:
        old = election.leader()
        force_release(election)
        running.out.wait_for(r"(?s)ready \d+\..*bye.*ready \d+\.")
        assert "; sent SIGTERM to process group" in running.err.text
        assert election.wait_for_leader()["term"] > old["term"]
        running.send(signal.SIGTERM)
        assert running.wait(AT_ONCE) == 0


def test_a_command_that_ignores_the_signal_is_killed(election: Election) -> None:
    with election.lead("--ttl", "3s", "--kill-after", "50ms", words=STUBBORN) as running:
        pid = int(running.out.wait_for(r"ready (\d+)\.")[1])
        force_release(election)
        running.err.wait_for("did not end in time; sent SIGKILL")
        running.out.wait_for(r"(?s)ready \d+\..*ready \d+\.")
        assert not is_alive(pid)


def test_a_signal_while_a_lost_term_ends(election: Election) -> None:
    """COMMAND ignores the signal, too."""
    with election.lead("--ttl", "3s", "--kill-after", "1s", words=STUBBORN) as running:
        force_release(election)
        running.err.wait_for("; sent SIGTERM")
        running.send(signal.SIGTERM)
        assert running.wait(AT_ONCE) == 128 + signal.SIGTERM


def test_a_leader_that_cannot_renew_stands_by(own_cli: Cli, own_server: Server, name: str) -> None:
    with Election(own_cli, name).lead("--ttl", "2s", words=POLITE) as running:
        own_server.pause()
        running.out.wait_for("bye")
        running.err.wait_for("not renewed in time")
        own_server.resume()
        running.out.wait_for(r"(?s)bye.*ready")


def test_max_hold_limits_a_term(election: Election) -> None:
    with election.lead("--max-hold", "1s", words=POLITE) as running:
        running.out.wait_for(r"(?s)ready.*bye.*ready")
        assert "the 1 s of --max-hold are over in" in running.err.text


# ---- ids ----


SHOW = ["sh", "-c", 'echo "$REDLATCH_LOCK $REDLATCH_ID $REDLATCH_MODE $REDLATCH_FENCE."']


def test_command_finds_the_id(election: Election) -> None:
    words = ["elect", "--id", "web 1", election.name, "--", *SHOW]
    shown = election.cli.run(*words, code=0).stdout
    assert shown.startswith(f"{election.name} web 1 exclusive 1")


@pytest.mark.parametrize("pod", ["web-7f9c", "", None])
def test_the_default_id(election: Election, pod: str | None) -> None:
    election.cli.env.pop("POD_NAME", None)
    env = {} if pod is None else {"POD_NAME": pod}
    with election.lead(env=env) as running:
        assert election.leader()["id"] == (pod or f"{socket.gethostname()}:{running.pid}")
        assert running.finish() == 0


# ---- status and events ----


def test_status_shows_the_candidates(election: Election) -> None:
    cli, name = election.cli, election.name
    with election.lead("--id", "a\n"), election.start("--id", "b", waits=name):
        text = cli.run("status", "-o", "table", name, code=0).stdout
        assert "\n  leader    a\\n\n" in text
        assert "\n  waiting   1: b campaigns (" in text
        status = cli.status(name)
        assert status["holders"][0]["candidate"] == "a\n"
        assert status["waiters"][0]["candidate"] == "b"


def test_events(election: Election, tmp_path: Path) -> None:
    file = tmp_path / "events"
    with election.lead("--id", "a") as first, file.open("w") as opened:
        fd = opened.fileno()
        second = election.start(
            *("--id", "b", f"--status-fd={fd}"), waits=election.name, pass_fds=[fd]
        )
        with second:
            wait_until(lambda: any(event["event"] == "leader" for event in events_in(file)))
            old = election.leader()["term"]
            assert first.finish() == 0
            second.out.wait_for("ready")
            new = election.wait_for_leader(old)["term"]
            wait_until(lambda: [e for e in events_in(file) if e.get("id") == "b"][1:])
            assert second.finish() == 0
    events = events_in(file)
    leaders = [(event["id"], event.get("term")) for event in events if event["event"] == "leader"]
    # That there is none may be seen in between, and is seen in the end if there is time.
    assert [leader for leader in leaders if leader[0]] == [("a", old), ("b", new)]
    rest = [event for event in events if event["event"] not in ("leader", "waiting")]
    assert [event["event"] for event in rest] == [
        *("acquired", "elected", "started", "ended", "released", "revoked", "exit")
    ]
    assert (rest[1]["id"], rest[1]["term"]) == ("b", new)
    assert (rest[5]["term"], rest[5]["reason"]) == (new, "released")


def test_the_event_of_a_lost_term(election: Election, tmp_path: Path) -> None:
    file = tmp_path / "events"
    with file.open("w") as opened:
        fd = opened.fileno()
        options = ["--ttl", "3s", f"--status-fd={fd}"]
        with election.lead(*options, words=POLITE, pass_fds=[fd]) as running:
            force_release(election)
            running.out.wait_for(r"(?s)bye.*ready")
            running.send(signal.SIGTERM)
            assert running.wait(AT_ONCE) == 0
    events = [event for event in events_in(file) if event["event"] in ("elected", "revoked")]
    assert [event["event"] for event in events] == ["elected", "revoked"] * 2
    assert [event["reason"] for event in events[1::2]] == ["lost", "released"]
    assert events[0]["term"] == events[1]["term"] < events[2]["term"]


# ---- refusals ----


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["x"], "the command to run under lock 'x' is missing"),
        ([], "the NAME of the lock is missing"),
        (["--id", "", "x", "true"], "--id must be 1 to 256 bytes (got '')"),
        (["--id", "i" * 257, "x", "true"], "--id must be 1 to 256 bytes"),
        (["--on-lost", "ignore", "x", "true"], "--on-lost must be term, kill or signal:NAME for"),
        (["--http", "4040", "x", "true"], "--http must be an IP address or localhost with a port"),
        (["--http", "web:4040", "x", "true"], "--http must be an IP address or localhost"),
        (["--http", "::1:4040", "x", "true"], "--http must be an IP address or localhost"),
        (["--http", "127.0.0.1:65536", "x", "true"], "--http must be an IP address or localhost"),
        (["--http", "0.0.0.0:0", "x", "true"], "--http must be a loopback address"),
        (["--http", "[::]:0", "x", "true"], "or go with --http-public (got '[::]:0')"),
        (["--http-public", "x", "true"], "--http-public goes with --http ADDR"),
        (["-s", "x"], "'-s': one candidate leads at a time"),
        (["--permits", "3", "x"], "'--permits': one candidate leads at a time"),
        (["--also", "y", "x"], "'--also': one candidate leads at a time"),
        (["--wait", "1s", "x"], "'--wait': a candidate of 'elect' stands by"),
        (["-n", "x"], "'-n': a candidate of 'elect' stands by"),
        (["--preserve-status", "x"], "'--preserve-status': a lost term does not end 'elect'"),
        (["--min-hold", "1m", "x"], "unknown option '--min-hold'"),
        (["--json", "x"], "'--json': the output of 'elect' is that of COMMAND"),
    ],
)
def test_what_cannot_be_is_refused(bare: Cli, words: list[str], answer: str) -> None:
    assert answer in bare.run("elect", *words, code=USAGE).stderr


def test_a_pod_name_that_is_too_long_is_refused(bare: Cli) -> None:
    done = bare.run("elect", "x", "true", env={"POD_NAME": "p" * 257}, code=USAGE)
    assert "POD_NAME must be 1 to 256 bytes" in done.stderr


@pytest.mark.parametrize("words", [["elect", "x", "true"], ["leader", "x"]])
def test_a_quorum_has_no_elections(bare: Cli, words: list[str]) -> None:
    urls = [word for port in "123" for word in ("--url", f"redis://localhost:{port}")]
    done = bare.run(words[0], *urls, *words[1:], code=USAGE)
    assert f"redlatch: {words[0]} is about one server" in done.stderr


def test_a_candidate_waits_for_a_server_that_is_away(
    own_cli: Cli, own_server: Server, name: str
) -> None:
    own_server.kill()
    with own_cli.start("elect", name, "--", *HOLD) as running:
        running.err.wait_for("; still trying")
        running.send(signal.SIGTERM)
        assert running.wait(AT_ONCE) == 128 + signal.SIGTERM


@pytest.mark.parametrize("options", [[], ["--foreground"]])
def test_ctrl_c_ends_a_leader_with_restart(election: Election, options: list[str]) -> None:
    cli = election.cli
    words = [cli.binary, "elect", "--restart", *options, election.name, "--"]
    with Terminal([*words, "sh", "-c", "echo ready; exec sleep 1000"], cli.env) as terminal:
        terminal.wait_for("ready")
        terminal.write(b"\x03")
        assert terminal.wait() == 128 + signal.SIGINT
    assert not cli.is_held(election.name)
