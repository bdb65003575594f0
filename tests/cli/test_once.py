# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: `once` and its marks in `status` are as docs/command.md has them.

Method: COMMAND adds a line to a file, so the file says how often it ran.
"""

from __future__ import annotations

import json
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.program import is_alive
from support.servers import Server
from support.wait import wait_until

from .harness import AT_ONCE, HOLD, POLITE, Cli, Running

USAGE, UNAVAILABLE, NOT_ACQUIRED, LOST = 64, 69, 75, 79


class Job:
    """Starts of one job, and how often it ran."""

    def __init__(self, cli: Cli, name: str, file: Path) -> None:
        self.cli, self.name, self.file = cli, name, file

    def words(self, *options: str, then: str = "true") -> list[str]:
        script = ["sh", "-c", f'echo ran >>"$0"; {then}', str(self.file)]
        every = [] if "--every" in options else ["--every", "1h"]
        return ["once", *every, *options, self.name, "--", *script]

    def start(self, *options: str, code: int = 0, then: str = "true", **more: Any) -> str:
        """To its end, which must have this code. Returns its messages."""
        return str(self.cli.run(*self.words(*options, then=then), code=code, **more).stderr)

    @property
    def count(self) -> int:
        return len(self.file.read_text().splitlines()) if self.file.exists() else 0

    def marks(self) -> list[dict[str, Any]]:
        marks: list[dict[str, Any]] = self.cli.status(self.name).get("marks", [])
        return marks

    def forget(self) -> None:
        self.cli.run("once", "--forget", self.name, code=0)


@pytest.fixture
def job(cli: Cli, name: str, tmp_path: Path) -> Job:
    return Job(cli, name, tmp_path / "runs")


def hold(job: Job, *options: str, script: list[str] = HOLD) -> Running:
    """A run whose COMMAND ends with its input. Returns when COMMAND runs."""
    running = job.cli.start("once", "--every", "1h", *options, job.name, "--", *script)
    try:
        running.out.wait_for("ready")
    except BaseException:
        running.kill()
        raise
    return running


FAIL = ["sh", "-c", "echo ready; cat >/dev/null; exit 3"]


# ---- success and failure ----


def test_a_success_is_remembered(job: Job) -> None:
    assert job.start() == ""
    assert job.start() == "", "a skipped start is silent"
    assert "is skipped: succeeded " in job.start("-v")
    assert job.count == 1


def test_a_failure_is_passed_on_and_leaves_a_try(job: Job) -> None:
    job.start(then="exit 3", code=3)
    job.start()
    job.start()
    assert job.count == 2


@pytest.mark.parametrize(("given", "most"), [([], 3), (["--tries", "1"], 1)])
def test_failures_use_up_the_tries(job: Job, given: list[str], most: int) -> None:
    for _ in range(most):
        job.start(*given, then="exit 3", code=3)
    said = job.start(*given, code=NOT_ACQUIRED)
    assert "has no try left: a run began " in said
    assert f" and has not succeeded ({most} run{'s' * (most > 1)} so far); its period ends" in said
    job.start(*given, "-E", "9", code=9)
    job.start(*given, "--if-busy", "skip", code=NOT_ACQUIRED)
    assert job.count == most
    job.start("--tries", str(most + 1))
    assert job.count == most + 1


def test_a_signal_is_a_failure(job: Job) -> None:
    job.start(then="kill -KILL $$", code=128 + signal.SIGKILL)
    job.start()
    assert job.count == 2


def test_a_command_that_cannot_start_is_a_failure(job: Job) -> None:
    job.cli.run("once", "--every", "1h", job.name, "/nonexistent", code=127)
    job.start()
    assert job.count == 1


def test_a_key_names_the_period(job: Job) -> None:
    for _ in range(2):
        for key in ("2026-11-30", "2026-12-01"):
            job.start("--key", key)
    assert job.count == 2


def test_the_key_of_tls_is_given_before(bare: Cli) -> None:
    words = ["--url", "rediss://h", "--key", "/of/tls", "once", "--every", "1h", "--key", "text"]
    assert "--key: '/of/tls' cannot be read" in bare.run(*words, "x", "true", code=USAGE).stderr


def test_a_period_ends(job: Job) -> None:
    job.start("--every", "300ms")
    wait_until(lambda: not job.marks())
    job.start("--every", "300ms")
    assert job.count == 2


def test_forget(job: Job) -> None:
    job.start()
    job.start("--key", "a")
    job.forget()
    assert job.marks() == []
    job.start()
    job.start("--key", "a")
    assert job.count == 4
    job.forget()
    job.forget()


def test_a_forgotten_run_notes_nothing(job: Job) -> None:
    with hold(job) as running:
        job.forget()
        running.finish()
    job.start()
    assert job.count == 1


# ---- several starts ----


def test_a_start_waits_for_a_run_that_succeeds(job: Job) -> None:
    with hold(job) as first, job.cli.start(*job.words(), waits=job.name) as second:
        assert first.finish() == 0
        assert second.wait() == 0
        assert second.err.text == ""
    assert job.count == 0


def test_a_start_waits_for_a_run_that_fails(job: Job) -> None:
    with hold(job, script=FAIL) as first, job.cli.start(*job.words(), waits=job.name) as second:
        assert first.finish() == 3
        assert second.wait() == 0
    assert job.count == 1


def test_starts_with_jitter_run_once(job: Job) -> None:
    with ExitStack() as stack:
        starts = [
            stack.enter_context(job.cli.start(*job.words("--start-jitter", "300ms")))
            for _ in range(2)
        ]
        assert [start.wait() for start in starts] == [0, 0]
    assert job.count == 1


def test_a_busy_job_may_be_skipped(job: Job) -> None:
    with hold(job) as running:
        assert job.start("--if-busy", "skip") == ""
        assert " is busy: held by " in job.start("-n", code=NOT_ACQUIRED)
        job.start("--wait", "1s", code=NOT_ACQUIRED)
        job.cli.run("run", "-n", job.name, "true", code=NOT_ACQUIRED)
        assert running.finish() == 0
    assert job.count == 0


def test_a_run_inside_itself_warns(job: Job) -> None:
    inner = f'exec "{job.cli.binary}" once --every 1h --wait 1s {job.name} -- true'
    said = job.start(then=inner, code=NOT_ACQUIRED)
    assert "is held by the redlatch run that this one runs under" in said
    assert "--owner" not in said


# ---- losses and deaths ----


def test_a_lost_run_has_failed(job: Job) -> None:
    with hold(job) as running:
        job.cli.run("force-release", "--yes", job.name, code=0)
        assert running.wait() == LOST
    assert [mark["done"] for mark in job.marks()] == [False]
    job.start()
    assert job.count == 1


@pytest.mark.parametrize(("given", "code"), [([], LOST), (["--preserve-status"], 0)])
def test_a_success_without_the_lock_is_not_noted(job: Job, given: list[str], code: int) -> None:
    with hold(job, "--on-lost", "ignore", *given) as running:
        job.cli.run("force-release", "--yes", job.name, code=0)
        running.err.wait_for("the command continues without it")
        assert running.finish() == code
    job.start()
    assert job.count == 1


def test_a_loss_that_only_the_server_knows(job: Job, shared_server: Server) -> None:
    """Method: COMMAND deletes the key, which nothing reports to its holder before the end."""
    with hold(job) as running:
        shared_server.cmd("DEL", job.name)
        assert running.finish() == LOST
        assert ", and its run counts as failed" in running.err.text
    job.start()
    assert job.count == 1


@pytest.mark.parametrize(("given", "code"), [([], UNAVAILABLE), (["--preserve-status"], 0)])
def test_a_success_that_cannot_be_noted(
    job: Job, shared_server: Server, given: list[str], code: int
) -> None:
    with hold(job, *given) as running:
        (key,) = shared_server.cmd("KEYS", f"*{job.name}*:o")
        shared_server.cmd("SET", key, "data of another program", "PX", 60000)
        assert running.finish() == code
        assert "the success of this run of " in running.err.text
        assert "the job may run again in this period" in running.err.text
    shared_server.cmd("DEL", key)
    job.start()
    assert job.count == 1


def test_term_is_passed_on_and_the_run_has_failed(job: Job) -> None:
    with hold(job) as running:
        running.send(signal.SIGTERM)
        assert running.wait(AT_ONCE) == 128 + signal.SIGTERM
    job.start()
    assert job.count == 1


def test_term_to_a_command_that_ends_well_is_a_success(job: Job) -> None:
    with hold(job, script=POLITE) as running:
        running.send(signal.SIGTERM)
        assert running.wait(AT_ONCE) == 0
    job.start()
    assert job.count == 0


def test_a_waiting_start_ends_by_a_signal(job: Job) -> None:
    with hold(job) as running, job.cli.start(*job.words(), waits=job.name) as waiter:
        waiter.send(signal.SIGTERM)
        assert waiter.wait(AT_ONCE) == 128 + signal.SIGTERM
        assert running.finish() == 0


def test_after_a_dead_run_the_next_start_runs(job: Job) -> None:
    with hold(job, "--ttl", "300ms") as dead:
        dead.kill()
        assert not is_alive(dead.pid)
        job.start("--wait", "60s")
    (mark,) = job.marks()
    assert job.count == 1 and (mark["done"], mark["tries"]) == (True, 2)


def test_a_server_that_is_away_is_named(own_cli: Cli, own_server: Server, name: str) -> None:
    own_server.kill()
    for words in (["--every", "1h", "-n", name, "true"], ["--forget", name]):
        done = own_cli.run("once", *words, code=UNAVAILABLE)
        assert own_server.url.split("?")[0].removeprefix("redis://") in done.stderr


# ---- status ----


def test_status_shows_a_success(job: Job) -> None:
    job.start()
    text = job.cli.run("status", "-o", "table", job.name, code=1).stdout
    assert "\n  once      succeeded " in text
    assert " ago, remembered for 53m" in text and text.endswith(" more\n")
    (mark,) = job.marks()
    assert list(mark) == ["key", "done", "since", "remaining_ms", "tries"]
    assert (mark["key"], mark["done"], mark["tries"]) == ("", True, 1)
    assert 0 < mark["remaining_ms"] <= 3_240_000
    assert mark["since"] <= job.cli.status(job.name)["server_time"]


def test_status_shows_runs_without_a_success(job: Job) -> None:
    with hold(job, "--key", "a\nb", script=FAIL) as running:
        text = job.cli.run("status", "-o", "table", job.name, code=0).stdout
        assert "\n  once      a\\nb: a run began " in text
        assert " ago and has not succeeded (1 run so far); its period ends in 59m" in text
        assert running.finish() == 3
    job.start("--key", "a\nb", then="exit 3", code=3)
    text = job.cli.run("status", "-o", "table", job.name, code=1).stdout
    assert "  once      a\\nb: a run began " in text and " succeeded (2 runs so far); " in text
    (mark,) = job.marks()
    assert (mark["key"], mark["done"], mark["tries"]) == ("a\nb", False, 2)
    assert 3_240_000 < mark["remaining_ms"] <= 3_600_000


def test_status_shows_the_latest_periods_first(job: Job) -> None:
    keys = [str(number) for number in range(9)]
    for key in keys:
        job.start("--key", key)
    assert sorted(mark["key"] for mark in job.marks()) == keys
    begins = [mark["since"] for mark in job.marks()]
    assert begins == sorted(begins, reverse=True)
    text = job.cli.run("status", "-o", "table", job.name, code=1).stdout
    assert text.count("\n  once ") == 9 and text.endswith("\n  once      ..\n")


def test_status_without_runs_shows_none(cli: Cli, name: str) -> None:
    assert "marks" not in cli.status(name)
    assert "once" not in cli.run("status", "-o", "table", name, code=1).stdout.replace(name, "")


# ---- events ----


@pytest.mark.parametrize(
    ("then", "code", "reason"), [("true", 0, "succeeded"), ("false", 75, "tries")]
)
def test_events_say_why_nothing_ran(
    job: Job, tmp_path: Path, then: str, code: int, reason: str
) -> None:
    job.start("--tries", "1", then=then, code=0 if code == 0 else 1)
    with (tmp_path / "events").open("w+") as told:
        fd = told.fileno()
        job.start("--tries", "1", f"--status-fd={fd}", code=code, pass_fds=[fd])
        told.seek(0)
        events = [json.loads(line) for line in told]
    assert [event["event"] for event in events] == ["acquired", "skipped", "exit"]
    assert events[1]["reason"] == reason and job.name in events[1]["message"]
    assert events[2]["exit_code"] == code


# ---- refusals ----


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["x", "true"], "--every DUR is missing"),
        (["--every", "1h", "x"], "the command to run under lock 'x' is missing"),
        (["--every", "1h"], "the NAME of the lock is missing"),
        (["--every", "soon", "x", "true"], "--every must be a number with ms, s, m, h or d"),
        (["--every", "99ms", "x", "true"], "--every must be 100ms to 366d (got '99ms')"),
        (["--every", "367d", "x", "true"], "--every must be 100ms to 366d (got '367d')"),
        (["--every", "1h", "--tries", "0", "x", "true"], "--tries must be 1 to 1000 (got '0')"),
        (["--every", "1h", "--tries", "1001", "x", "true"], "--tries must be 1 to 1000"),
        (["--every", "1h", "--key", "", "x", "true"], "--key must be 1 to 256 bytes (got '')"),
        (["--every", "1h", "--key", "k" * 257, "x", "true"], "--key must be 1 to 256 bytes"),
        (["--forget", "--every", "1h", "x"], "--forget goes with NAME alone"),
        (["--forget", "x", "true"], "--forget goes with NAME alone"),
        (["-s", "x"], "'-s': the lock of 'once' is a mutex"),
        (["--permits", "3", "x"], "'--permits': the lock of 'once' is a mutex"),
        (["--owner", "me", "x"], "'--owner': the lock of 'once' is a mutex"),
        (["--format", "hash", "x"], "'--format': 'once' sets it"),
        (["--max-local-handoffs", "1", "x"], "'--max-local-handoffs': 'once' sets it"),
        (["--also", "y", "x"], "'--also': the runs of one NAME are remembered"),
        (["--min-hold", "1m", "x"], "'--min-hold': 'once' does not need it"),
        (["--retries", "1", "x"], "did you mean '--tries'?"),
        (["--json", "x"], "'--json': the output of 'once' is that of COMMAND"),
    ],
)
def test_what_cannot_be_is_refused(bare: Cli, words: list[str], answer: str) -> None:
    assert answer in bare.run("once", *words, code=USAGE).stderr


@pytest.mark.parametrize("words", [["--every", "1h", "x", "true"], ["--forget", "x"]])
def test_a_quorum_remembers_no_runs(bare: Cli, words: list[str]) -> None:
    urls = [word for port in "123" for word in ("--url", f"redis://localhost:{port}")]
    assert "redlatch: once" in bare.run("once", *urls, *words, code=USAGE).stderr
