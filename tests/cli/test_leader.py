# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: `leader` is as docs/command.md has it. Method: candidates by `elect`."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess

import pytest
from support.servers import Server
from support.wait import LIMIT

from .election import Election
from .harness import AT_ONCE, Cli

USAGE, UNAVAILABLE = 64, 69


@pytest.fixture
def election(cli: Cli, name: str) -> Election:
    return Election(cli, name)


def test_no_leader_is_exit_code_1(cli: Cli, name: str) -> None:
    for output in ("table", "tsv", "json", "jsonl"):
        done = cli.run("leader", "-o", output, name, code=1)
        assert (done.stdout, done.stderr) == ("", "")
    assert "has no leader" in cli.run("leader", "-v", name, code=1).stderr
    with cli.hold(name) as running:
        assert cli.run("leader", name, code=1).stdout == ""
        assert running.finish() == 0


def test_the_line_begins_with_the_id(election: Election) -> None:
    cli, name = election.cli, election.name
    with election.lead("--id", "web-1"), election.start("--id", "web-2", waits=name):
        answer = election.leader()
        assert answer["name"] == name and answer["id"] == "web-1"
        assert answer["candidates"] == ["web-2"]
        assert answer["since"] <= answer["server_time"]
        text = cli.run("leader", "-o", "table", name, code=0).stdout
        begin, end = f"{'web-1':20}  term {answer['term']}  since ", answer["since"][:19]
        assert text.startswith(f"{begin}{end}Z (") and text.endswith("s)\n")
        row = cli.run("leader", name, code=0).stdout
        assert row == f"web-1\t{answer['term']}\t{answer['since']}\n"


def test_unusual_ids_are_escaped(election: Election) -> None:
    cli, name = election.cli, election.name
    with election.lead("--id", 'a\t"\x1b'):
        assert cli.run("leader", name, code=0).stdout.startswith('a\\t"\\x1b\t')
        assert election.leader()["id"] == 'a\t"\x1b'


def test_watch_shows_each_change(election: Election) -> None:
    cli, name = election.cli, election.name
    with cli.start("leader", "--watch", name) as watching:
        watching.out.wait_for(r"^-\t-\t-\n")
        with election.lead("--id", "a") as first:
            watching.out.wait_for(r"\na\t\d+\t")
            with election.start("--id", "b", waits=name) as second:
                assert first.finish() == 0
                watching.out.wait_for(r"\nb\t\d+\t")
                assert second.finish() == 0
        watching.out.wait_for(r"\nb\t.*\n-\t-\t-\n$")
        watching.send(signal.SIGTERM)
        assert watching.wait(AT_ONCE) == -signal.SIGTERM
    terms = [int(row.split("\t")[1]) for row in watching.out.text.splitlines() if row[0] != "-"]
    assert terms == sorted(terms)


@pytest.mark.parametrize("output", ["json", "jsonl", "table"])
def test_watch_begins_with_the_present_leader(election: Election, output: str) -> None:
    cli, name = election.cli, election.name
    with election.lead("--id", "a") as running:
        with cli.start("leader", "--watch", "-o", output, name) as watching:
            watching.out.wait_for('"id":"a"' if output != "table" else "^a  ")
            assert running.finish() == 0
            watching.out.wait_for(r"\n.+\n")
        last = watching.out.text.splitlines()[-1]
    if output == "table":
        assert "no leader" in last
    else:
        assert json.loads(last)["id"] is None


def test_watch_ends_with_its_reader(election: Election) -> None:
    cli = election.cli
    line = f"{shlex.join([cli.binary, 'leader', '--watch', election.name])} | head -n 1"
    done = subprocess.run(
        ["sh", "-c", line], env=cli.env, stdout=subprocess.PIPE, timeout=LIMIT, check=True
    )
    assert done.stdout == b"-\t-\t-\n"


def test_watch_survives_an_outage(own_cli: Cli, own_server: Server, name: str) -> None:
    election = Election(own_cli, name)
    with own_cli.start("leader", "--watch", name) as watching:
        watching.out.wait_for(r"^-\t")
        own_server.restart()
        with election.lead("--id", "a"):
            watching.out.wait_for(r"\na\t")


def test_a_server_that_is_away(own_cli: Cli, own_server: Server, name: str) -> None:
    own_server.kill()
    own_cli.run("leader", name, code=UNAVAILABLE)
    with own_cli.start("leader", "--watch", name) as watching:
        watching.err.wait_for("; still trying")
        own_server.start()
        watching.out.wait_for(r"^-\t")


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ([], "the NAME of a lock is missing"),
        (["x", "y"], "unexpected 'y'"),
        (["--wach", "x"], "did you mean '--watch'?"),
    ],
)
def test_what_cannot_be_is_refused(bare: Cli, words: list[str], answer: str) -> None:
    assert answer in bare.run("leader", *words, code=USAGE).stderr
