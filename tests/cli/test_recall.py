# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: `recall` reaches all holders, and `run`, `elect` and `leader --resign` do what
docs/command.md says."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.servers import Server
from support.wait import wait_until

from .election import Election, events_in
from .harness import AT_ONCE, POLITE, STUBBORN, Cli, Running
from .peer import Peer

USAGE, SYSTEM, FREE = 64, 71, 1
THREE = [word for port in "123" for word in ("--url", f"redis://127.0.0.1:{port}")]
# Says `got it` at each USR1.
CATCH = [
    "sh",
    "-c",
    "trap 'echo got it' USR1; trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done",
]


@pytest.fixture
def election(cli: Cli, name: str) -> Election:
    return Election(cli, name)


def recall(cli: Cli, name: str, *options: str) -> int:
    """The number of holders that heard it."""
    done = cli.run("recall", "-o", "tsv", *options, name, code=0)
    assert done.stderr == ""
    return int(done.stdout)


class Told:
    """`run` or `elect` with its events in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def start(self, start: Any, *options: str, **more: Any) -> Running:
        with self.path.open("w") as opened:
            fd = opened.fileno()
            running: Running = start(f"--status-fd={fd}", *options, pass_fds=[fd], **more)
            return running

    def recalls(self) -> list[dict[str, Any]]:
        return [event for event in events_in(self.path) if event["event"] == "recalled"]

    def names(self) -> list[str]:
        return [event["event"] for event in events_in(self.path)]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path / "events")


# ---- recall ----


def test_a_free_lock_has_no_holders(cli: Cli, name: str) -> None:
    assert recall(cli, name) == 0
    text = cli.run("recall", "-o", "table", name, code=0).stdout
    assert text == f"0 holders of lock '{name}' heard the recall\n"


@pytest.mark.parametrize("output", ["json", "jsonl"])
def test_json(cli: Cli, name: str, output: str) -> None:
    with cli.hold(name):
        answer = json.loads(cli.run("recall", "-o", output, name, code=0).stdout)
    assert answer == {"schema": 1, "name": name, "heard": 1, "server": cli.env["REDLATCH_URL"]}


def test_a_table_says_it_in_words(cli: Cli, name: str) -> None:
    with cli.hold(name):
        done = cli.run("recall", "-o", "table", name, code=0)
    assert done.stdout == f"1 holder of lock '{name}' heard the recall\n"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["recall"], "the NAME of a lock is missing"),
        (["recall", "x", "y"], "unexpected 'y'"),
        (["recall", "--reason", "r" * 129, "x"], "at most 128 bytes (got 129 bytes)"),
        (["recall", "--reson", "r", "x"], "did you mean '--reason'?"),
        (["recall", *THREE, "x"], "recall is about one server"),
        (["leader", "--resign", "--reason", "r" * 129, "x"], "at most 128 bytes (got 129 bytes)"),
        (["leader", "--resign", "--watch", "x"], "--resign excludes --watch"),
        (["leader", "--force", "x"], "--force goes with --resign"),
        (["leader", "--reason", "r", "x"], "--reason goes with --resign"),
        (["leader", "--resign", "--force", "--reason", "r", "x"], "--force excludes --reason"),
        (["run", "--on-recall", "term", "x", "true"], "--on-recall must be signal:NAME or ignore"),
        (["run", "--on-recall", "signal:NO", "x", "true"], "--on-recall must be the name of a"),
        (["run", *THREE, "--on-recall", "ignore", "x", "true"], "several servers cannot be"),
        (["elect", "--on-recall", "ignore", "x", "true"], "--on-recall"),
    ],
)
def test_what_cannot_be_is_refused(bare: Cli, words: list[str], answer: str) -> None:
    bare.env["REDLATCH_URL"] = "" if "--url" in words else "redis://127.0.0.1:1"
    assert answer in bare.run(*words, code=USAGE).stderr


# ---- run ----


def test_run_prints_a_message(cli: Cli, name: str, told: Told) -> None:
    with told.start(cli.hold, name) as running:
        fence = cli.status(name)["fence"]
        assert recall(cli, name, "--reason", "a deploy") == 1
        running.err.wait_for(f"another client asks for lock '{name}' .*: 'a deploy'\n")
        assert cli.is_held(name), "nothing is forced"
        assert running.finish() == 0
    [event] = told.recalls()
    assert (event["fence"], event["reason"]) == (fence, "a deploy")
    assert "signal" not in event


def test_a_recall_needs_no_reason(cli: Cli, name: str, told: Told) -> None:
    with told.start(cli.hold, name) as running:
        assert recall(cli, name) == 1
        running.err.wait_for(r"another client asks for lock '.*' \(fence \d+\)\n")
        assert running.finish() == 0
    assert told.recalls()[0]["reason"] == ""


def test_the_reason_is_data(cli: Cli, name: str, told: Told) -> None:
    """Control characters become spaces, so that the message stays one line."""
    with told.start(cli.hold, name) as running:
        assert recall(cli, name, "--reason", 'say "it\'s"\nredlatch: \x1b[31mgo \\n') == 1
        running.err.wait_for("another client asks for lock .*\n")
        assert running.finish() == 0
        assert running.err.text.count("\n") == 1 and "\x1b" not in running.err.text
        assert running.err.text.endswith("; its reason: 'say \"it's\" redlatch:  [31mgo \\\\n'\n")
    assert told.recalls()[0]["reason"] == 'say "it\'s" redlatch:  [31mgo \\n'


def test_two_recalls_are_one_message(cli: Cli, name: str, told: Told) -> None:
    with told.start(cli.hold, "--on-recall", "signal:USR1", name, words=CATCH) as running:
        assert recall(cli, name, "--reason", "first") == 1
        running.out.wait_for("got it")
        assert recall(cli, name, "--reason", "second") == 1
        running.send(signal.SIGTERM)
        assert running.wait_output(AT_ONCE) == 0
        assert running.out.text.count("got it") == 1
        assert running.err.text.count("another client asks") == 1
    [event] = told.recalls()
    assert (event["reason"], event["signal"]) == ("first", "SIGUSR1")


def test_a_signal_leaves_the_lock_with_the_command(cli: Cli, name: str) -> None:
    with cli.hold(name, "--on-recall", "signal:USR1", words=CATCH) as running:
        assert recall(cli, name, "--reason", "it's me") == 1
        running.out.wait_for("got it")
        running.err.wait_for(r"; sent SIGUSR1 to process group \d+; its reason: 'it's me'\n")
        assert cli.is_held(name)
        running.send(signal.SIGTERM)
        assert running.wait(AT_ONCE) == 0


def test_a_signal_may_end_the_command(cli: Cli, name: str) -> None:
    """Then it is no loss: the exit code is that of COMMAND."""
    with cli.hold(name, "--on-recall", "signal:TERM", words=POLITE) as running:
        with cli.start("run", name, "true", waits=name) as waiting:
            assert recall(cli, name) == 1
            assert running.wait_output(AT_ONCE) == 0
            assert "bye" in running.out.text
            assert waiting.wait(AT_ONCE) == 0


def test_recalls_may_be_ignored(cli: Cli, name: str, told: Told) -> None:
    """The message stays away, and the event does not."""
    with told.start(cli.hold, "--on-recall", "ignore", name) as running:
        fence = cli.status(name)["fence"]
        assert recall(cli, name, "--reason", "a deploy") == 1
        [event] = wait_until(told.recalls)
        assert running.finish() == 0
        assert running.err.text == ""
    assert (event["fence"], event["reason"]) == (fence, "a deploy") and "signal" not in event
    assert told.names() == ["acquired", "started", "recalled", "ended", "released", "exit"]


def test_a_recall_while_the_lock_is_kept_for_min_hold(cli: Cli, name: str, told: Told) -> None:
    """COMMAND has ended, and gets no signal."""
    options = ["--min-hold", "1h", "--on-recall", "signal:USR1"]
    with told.start(partial(cli.start, "run"), *options, name, "true") as running:
        wait_until(lambda: "ended" in told.names())
        assert recall(cli, name, "--reason", "a deploy") == 1
        running.err.wait_for("for lock .*, which is kept for --min-hold; its reason: 'a deploy'\n")
        [event] = wait_until(told.recalls)
        assert event["reason"] == "a deploy" and "signal" not in event
        assert cli.is_held(name)
        running.send(signal.SIGTERM)
        assert running.wait_output(AT_ONCE) == 0
    cli.run("force-release", "--yes", name, code=0)


@pytest.mark.parametrize("command", ["run", "elect"])
def test_without_the_watch_nothing_runs(
    cli: Cli, name: str, failing: str, told: Told, command: str
) -> None:
    preload = {"LD_PRELOAD": failing, "FAILING": "watch"}
    start = partial(cli.start, command)
    with told.start(start, name, "--", "echo", "ran", env=preload) as running:
        assert running.wait_output() == SYSTEM
        assert running.err.text == "redlatch: out of memory\n" and running.out.text == ""
    assert events_in(told.path)[-1]["exit_code"] == SYSTEM
    assert not cli.is_held(name)


@pytest.mark.parametrize("mode", [["-s"], ["--permits", "3"], ["--owner", "me"]])
def test_all_holders_hear_it(cli: Cli, name: str, mode: Sequence[str]) -> None:
    with ExitStack() as stack:
        holders = [stack.enter_context(cli.hold(name, *mode)) for _ in "123"]
        assert recall(cli, name, "--reason", "all") == 3
        for holder in holders:
            holder.err.wait_for(f"another client asks for lock '{name}' .*: 'all'\n")
            assert holder.finish() == 0


@pytest.mark.parametrize("option", ["--also", "--also-shared"])
def test_each_of_several_names_is_heard(cli: Cli, name: str, option: str) -> None:
    with cli.hold(name, option, f"{name}-b") as running:
        assert recall(cli, f"{name}-b", "--reason", "by b") == 1
        running.err.wait_for("another client asks for lock .*: 'by b'\n")
        assert running.finish() == 0


def test_once_hears_it(cli: Cli, name: str) -> None:
    words = ["once", "--every", "1h", "--on-recall", "signal:USR1", name, "--", *CATCH]
    with cli.start(*words) as running:
        running.out.wait_for("ready")
        assert recall(cli, name) == 1
        running.out.wait_for("got it")
        running.send(signal.SIGTERM)
        assert running.wait(AT_ONCE) == 0


# ---- elections ----


@pytest.fixture
def stopping(failing: str) -> dict[str, str]:
    """Stops the command before it recalls, and before it removes a holder."""
    return {"LD_PRELOAD": failing, "FAILING": "stop"}


def wait_until_stopped(running: Running) -> None:
    stat = Path(f"/proc/{running.pid}/stat")
    wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")


def resign(election: Election, *options: str, code: int = 0) -> str:
    return election.cli.run("leader", "--resign", *options, election.name, code=code).stderr


def test_a_leader_resigns(election: Election, told: Told, tmp_path: Path) -> None:
    """COMMAND has ended before the next one leads, and the old leader stands by again."""
    file = str(tmp_path / "file")
    end = """trap 'sleep 0.1; echo bye | tee "$0"; exit 0' TERM; echo ready"""
    end += "; while :; do sleep 0.01; done"
    with told.start(election.lead, "--id", "a", words=["sh", "-c", end, file]) as old:
        term = election.leader()["term"]
        begin = ["sh", "-c", 'cat "$0"; echo ready; exec cat >/dev/null', file]
        with election.start("--id", "b", words=begin, waits=election.name) as new:
            said = resign(election, "--reason", "a deploy")
            # The old leader may be gone by the second look.
            slow = f"asked the leader 'a' of '{election.name}' (term {term}) to resign\n"
            fast = f"asked the leader of '{election.name}' to resign: it was 'a' (term {term}) "
            assert said.startswith((f"redlatch: {slow}", f"redlatch: {fast}before, and "))
            new.out.wait_for("^bye\nready\n")
            old.err.wait_for("; sent SIGTERM to process group .*: 'a deploy'\n")
            wait_until(lambda: election.leader().get("candidates") == ["a"])
            assert election.leader()["id"] == "b" and election.leader()["term"] > term
            assert new.finish() == 0
            old.out.wait_for(r"(?s)bye.*ready")
            old.send(signal.SIGTERM)
            assert old.wait(AT_ONCE) == 0
    [event] = told.recalls()
    assert (event["fence"], event["signal"], event["reason"]) == (term, "SIGTERM", "a deploy")
    names = [name for name in told.names() if name in ("elected", "recalled", "ended", "revoked")]
    assert names == ["elected", "recalled", "ended", "revoked", "elected", "ended", "revoked"]
    revoked = [event for event in events_in(told.path) if event["event"] == "revoked"]
    assert [event["reason"] for event in revoked] == ["recalled", "released"]


def test_a_resigned_leader_without_others_leads_again(election: Election) -> None:
    with election.lead(words=POLITE) as running:
        term = election.leader()["term"]
        resign(election)
        running.out.wait_for(r"(?s)ready.*bye.*ready")
        assert election.wait_for_leader()["term"] > term
        running.send(signal.SIGTERM)
        assert running.wait(AT_ONCE) == 0


def test_a_command_that_ignores_the_signal_is_killed(election: Election) -> None:
    with election.lead("--kill-after", "50ms", words=STUBBORN) as running:
        resign(election)
        running.err.wait_for("did not end in time; sent SIGKILL")
        running.out.wait_for(r"(?s)ready \d+\..*ready \d+\.")


def test_a_signal_while_a_leader_resigns(election: Election) -> None:
    """It ends `elect`, too, with the exit code of COMMAND, which ignores the first signal."""
    script = "trap '' TERM; trap 'exit 3' INT; echo ready; while :; do sleep 0.01; done"
    with election.lead("--kill-after", "10s", words=["sh", "-c", script]) as running:
        resign(election)
        running.err.wait_for("; sent SIGTERM")
        running.send(signal.SIGINT)
        assert running.wait(AT_ONCE) == 3
    assert not election.cli.is_held(election.name)


def test_no_leader_cannot_resign(election: Election) -> None:
    text = f"redlatch: '{election.name}' has no leader\n"
    for options in ([], ["--force"], ["-o", "json"]):
        assert resign(election, *options, code=FREE) == text
        assert resign(election, "-q", *options, code=FREE) == ""
    with election.cli.hold(election.name) as running:
        assert resign(election, "--force", code=FREE) == text
        assert election.cli.is_held(election.name)
        assert running.finish() == 0


def test_the_leader_that_was_asked_may_be_another_one(
    election: Election, stopping: dict[str, str]
) -> None:
    """A recall names no term: the second leader hears it, and the message names both."""
    cli, name = election.cli, election.name
    with election.lead("--id", "a") as old, election.start("--id", "b", waits=name) as new:
        term = election.leader()["term"]
        words = ["leader", "--resign", "-o", "json", name]
        with cli.start(*words, env=stopping) as asking:
            wait_until_stopped(asking)
            assert old.finish() == 0
            new.out.wait_for("ready")
            then = election.leader()
            # Neither hears nor answers: it leads at the second look, too.
            new.send(signal.SIGSTOP)
            asking.send(signal.SIGCONT)
            assert asking.wait_output() == 0
            new.send(signal.SIGCONT)
        before, after = f"'a' (term {term}) before", f"'b' (term {then['term']}) now"
        text = f"asked the leader of '{name}' to resign: it was {before}, and is {after}\n"
        assert asking.err.text == f"redlatch: {text}"
        new.err.wait_for("another client asks for lock")
    answer = json.loads(asking.out.text)
    assert (answer["id"], answer["term"], answer["heard"]) == ("a", term, 1)
    assert (answer["id_after"], answer["term_after"]) == ("b", then["term"])


def test_the_leader_may_be_gone_before_it_is_asked(
    election: Election, stopping: dict[str, str]
) -> None:
    with election.lead("--id", "a") as old:
        term = election.leader()["term"]
        words = ["leader", "--resign", "-o", "json", election.name]
        with election.cli.start(*words, env=stopping) as asking:
            wait_until_stopped(asking)
            assert old.finish() == 0
            asking.send(signal.SIGCONT)
            assert asking.wait_output() == 0
    text = f"no leader of '{election.name}' heard the recall: it was 'a' (term {term}) before"
    assert asking.err.text == f"redlatch: {text}, and there is no leader now\n"
    answer = json.loads(asking.out.text)
    assert (answer["heard"], answer["id_after"], answer["term_after"]) == (0, None, None)


def test_a_new_leader_is_not_removed_for_the_old_one(
    election: Election, stopping: dict[str, str]
) -> None:
    cli, name = election.cli, election.name
    with election.lead("--id", "a") as old, election.start("--id", "b", waits=name) as new:
        term = election.leader()["term"]
        words = ["leader", "--resign", "--force", "-o", "json", name]
        with cli.start(*words, env=stopping) as removing:
            wait_until_stopped(removing)
            assert old.finish() == 0
            new.out.wait_for("ready")
            then = election.leader()
            removing.send(signal.SIGCONT)
            assert removing.wait_output() == FREE
        gone = f"the leader 'a' of '{name}' (term {term}) does not lead any more"
        assert removing.err.text == f"redlatch: {gone}; nothing was changed\n"
        answer = json.loads(removing.out.text)
        assert (answer["id"], answer["term"], answer["removed"]) == ("a", term, False)
        assert election.leader()["id"] == "b" and election.leader()["term"] == then["term"]
        assert new.finish() == 0


@pytest.mark.parametrize("output", ["json", "jsonl"])
def test_json_of_a_resignation(election: Election, output: str) -> None:
    """STUBBORN leads at the second look, too."""
    cli, name = election.cli, election.name
    with election.lead("--id", "a", "--ttl", "1h", "-k", "10m", words=STUBBORN):
        leader = election.leader()
        done = cli.run("leader", "--resign", "-o", output, name, code=0)
        same = {key: leader[key] for key in ("schema", "name", "id", "term", "server")}
        after = {"id_after": "a", "term_after": leader["term"]}
        assert json.loads(done.stdout) == same | {"heard": 1} | after
        done = cli.run("leader", "--resign", "--force", "-o", output, name, code=0)
        assert json.loads(done.stdout) == same | {"removed": True}


def test_force_takes_the_lock_away(election: Election) -> None:
    with election.lead("--id", "a", "--ttl", "3s", words=POLITE) as old:
        term = election.leader()["term"]
        with election.start("--id", "b", waits=election.name) as new:
            said = resign(election, "--force")
            begin = f"took the lock away from the leader 'a' of '{election.name}' (term {term})"
            assert said.startswith(f"redlatch: {begin}; its work stops by ")
            new.out.wait_for("ready")
            old.err.wait_for("lost lock .*; sent SIGTERM")
            assert "another client asks" not in old.err.text
            assert new.finish() == 0


def test_a_leader_that_hears_nothing_is_named(binary: str, own_server: Server, name: str) -> None:
    """The connection of the leader is gone, so that no message reaches its client."""
    election = Election(Cli(binary, own_server.unix_url), name)
    with election.lead("--id", "a", "--ttl", "60s") as running:
        running.send(signal.SIGSTOP)
        own_server.cmd("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        own_server.cmd("CLIENT", "KILL", "TYPE", "pubsub")
        assert "the client of the leader 'a' of" in resign(election)
        running.send(signal.SIGCONT)
        assert running.finish() == 0


# ---- status ----


def test_status_shows_a_holder_that_can_be_recalled(
    cli: Cli, shared_server: Server, name: str
) -> None:
    other = f"{name}-b"
    with cli.hold(other), Peer(shared_server.unix_url) as peer:
        peer.take(name, "retain", "5s")
        text = cli.run("status", "-o", "table", name, code=0).stdout
        assert "\n  retain    its client may only retain the lock\n" in text
        assert cli.status(name)["holders"][0]["recallable"] is True
        assert "retain " not in cli.run("status", "-o", "table", other, code=0).stdout
        assert "recallable" not in cli.status(other)["holders"][0]
