# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a command or option that people guess is answered by its right name, in one line.

Method: the words of other tools; words that are near to a name only by chance; a wrong order.
"""

from __future__ import annotations

import pytest
from support.servers import Server

from .harness import Cli

USAGE, UNAVAILABLE, NOT_FOUND = 64, 69, 127
LOCK = ": a lock is held while a command runs: redlatch run NAME -- COMMAND"
UNLOCK = ": a lock ends with its command; 'redlatch force-release NAME' takes it away"


def meant(word: str) -> str:
    return f", did you mean '{word}'?"


GUESSES = {
    "list": meant("ls"),
    "ps": meant("ls"),
    "info": meant("status"),
    "show": meant("status"),
    "inspect": meant("status"),
    "lock": LOCK,
    "acquire": LOCK,
    "unlock": UNLOCK,
    "release": UNLOCK,
    "break": meant("force-release"),
    "kill": meant("force-release"),
    "rm": meant("force-release"),
    "del": meant("force-release"),
    "delete": meant("force-release"),
    "remove": meant("force-release"),
    "ping": meant("doctor"),
    "check": meant("doctor"),
    "exec": meant("run"),
    "hold": LOCK,
    "wait": LOCK,
    "locks": meant("ls"),
    "steal": meant("force-release"),
    "resign": meant("leader --resign"),
    "extend": ": 'run' renews the lock until its command ends",
    "renew": ": 'run' renews the lock until its command ends",
    "watch": ": 'watch redlatch ls' shows the locks every 2 s",
    "top": ": 'watch redlatch ls' shows the locks every 2 s",
}


@pytest.mark.parametrize("word", GUESSES)
def test_a_guessed_command_is_answered_in_one_line(bare: Cli, word: str) -> None:
    for words in ([word], [word, "nightly"], ["help", word], [word, "--help"]):
        done = bare.run(*words, code=USAGE)
        assert done.stderr == f"redlatch: unknown command '{word}'{GUESSES[word]}\n"


PASSWORD = (
    ": use --password-file, --askpass or the variable REDISCLI_AUTH; all users of this host can "
    "read the words of a command line"
)
NAME = ": NAME is the first word after 'run' that is no option"
ALL = ": 'ls' needs no option for that; '-o json' has every field"
SERVER = ": the server is named by --url redis://HOST:PORT"


@pytest.mark.parametrize(
    ("words", "option", "answer"),
    [
        (["run", "--no-wait", "x", "true"], "--no-wait", meant("--nonblock")),
        (["run", "--nowait", "x", "true"], "--nowait", meant("--nonblock")),
        (["--no-wait", "run", "x", "true"], "--no-wait", meant("--nonblock")),
        (["run", "--password", "y", "x", "true"], "--password", PASSWORD),
        (["--password=y", "ls"], "--password", PASSWORD),
        (["-a", "y", "ls"], "-a", PASSWORD),
        (["--host", "h", "ls"], "--host", SERVER),
        (["ls", "--port", "1"], "--port", SERVER),
        (["-p", "6379", "ls"], "-p", SERVER),
        (["--tls", "ls"], "--tls", ": the URL says it: --url rediss://HOST:PORT"),
        (["status", "--json", "x"], "--json", meant("-o json")),
        (["run", "--try", "x", "true"], "--try", meant("--nonblock")),
        (["run", "--read", "x", "true"], "--read", meant("--shared")),
        (["run", "--write", "x", "true"], "--write", meant("--exclusive")),
        (["run", "--lease", "9s", "x", "true"], "--lease", meant("--ttl")),
        (["run", "--expire=9s", "x", "true"], "--expire", meant("--ttl")),
        (["run", "--lock", "x", "true"], "--lock", NAME),
        (["run", "--name", "x", "true"], "--name", NAME),
        (["force-release", "-f", "x"], "-f", meant("--yes")),
        (["force-release", "--force", "x"], "--force", meant("--yes")),
        (["force-release", "--token", "t", "x"], "--token", meant("--if-owner")),
        (["ls", "-a"], "-a", ALL),
        (["ls", "-l"], "-l", ALL),
    ],
)
def test_a_guessed_option_is_answered_in_one_line(
    bare: Cli, words: list[str], option: str, answer: str
) -> None:
    done = bare.run(*words, code=USAGE)
    assert done.stderr == f"redlatch: unknown option '{option}'{answer}\n"


@pytest.mark.parametrize("option", ["--json", "--jsonl", "--tsv", "--table"])
@pytest.mark.parametrize("is_before", [False, True])
def test_run_suggests_no_output(bare: Cli, option: str, is_before: bool) -> None:
    """After `run`, -o is --close of flock: the next word would be the name of the lock."""
    words = [option, "run"] if is_before else ["run", option]
    done = bare.run(*words, "x", "true", code=USAGE)
    answer = ": the output of 'run' is that of COMMAND; --status-fd N writes events as JSON"
    assert done.stderr == f"redlatch: unknown option '{option}'{answer}\n"


@pytest.mark.parametrize("words", [["--all", "ls"], ["ls", "--all"], ["--dry", "ls"]])
def test_no_suggestion_is_far_fetched(bare: Cli, words: list[str]) -> None:
    done = bare.run(*words, code=USAGE)
    assert "did you mean" not in done.stderr


def test_no_command_shows_the_commands_and_no_option(bare: Cli) -> None:
    done = bare.run(code=USAGE)
    first, *rows = done.stderr.splitlines()
    assert first == "redlatch: a command is missing"
    names = [row.split()[0] for row in rows if row.startswith("  ")]
    commands = ["run", "once", "elect", "leader", "status", "ls", "force-release", "recall"]
    commands += ["limit", "doctor", "server", "version", "help"]
    assert names == commands
    assert rows[-2].startswith("Example: redlatch --url redis://HOST:6379 run nightly -- ")
    assert "  -" not in done.stderr


def test_a_missing_name_is_seen_in_the_message(cli: Cli) -> None:
    done = cli.run("run", "sleep", "1")
    assert done.returncode == NOT_FOUND
    assert "cannot run '1': No such file or directory (the lock is 'sleep')\n" in done.stderr


def test_a_line_of_the_shell_is_no_program(cli: Cli, name: str) -> None:
    done = cli.run("run", name, "--", "echo hi")
    assert done.returncode == NOT_FOUND
    assert f"(the lock is '{name}'); to run a line of the shell: sh -c LINE\n" in done.stderr


@pytest.mark.parametrize("address", ["localhost", "localhost:6379", "cache-1.example:6380/2"])
def test_an_address_without_a_scheme_gets_one(bare: Cli, address: str) -> None:
    for done in (bare.run("-u", address, "ls"), bare.run("ls", env={"REDIS_URL": address})):
        assert done.returncode == USAGE
        assert done.stderr.startswith(f"redlatch: did you mean redis://{address}? URL must begin")


@pytest.mark.parametrize("text", ["user:secret", "user:123456", "u:1@host", "secret", "a b:1"])
def test_a_text_that_may_be_a_secret_is_not_repeated(bare: Cli, text: str) -> None:
    done = bare.run("-u", text, "ls", code=USAGE)
    assert text not in done.stderr and "did you mean" not in done.stderr


@pytest.mark.parametrize(
    "words", [["run", "URL", "x", "true"], ["status", "x", "URL"], ["force-release", "-y", "URL"]]
)
@pytest.mark.parametrize("scheme", ["redis", "REDISS", "valkey+cluster", "redis-sentinel", "unix"])
def test_a_url_is_no_name(cli: Cli, words: list[str], scheme: str) -> None:
    url = f"{scheme}://:geheim@h/0"
    done = cli.run(*(url if word == "URL" else word for word in words), code=USAGE)
    assert "NAME must be the name of a lock (got '" in done.stderr
    assert "a server is named by --url" in done.stderr and "geheim" not in done.stderr


def test_a_name_may_look_like_the_url_of_a_page(cli: Cli, name: str) -> None:
    assert cli.run("run", f"https://h/{name}", "true").returncode == 0


def test_help_of_no_command_names_the_help(bare: Cli) -> None:
    done = bare.run("help", "nosuch", code=USAGE)
    assert done.stderr.endswith("\nredlatch: see 'redlatch help'\n")


def test_a_pattern_is_one_name_for_status(cli: Cli, name: str) -> None:
    done = cli.run("status", name + "*", code=1)
    assert f"lock '{name}*' is one name; 'redlatch ls PATTERN' lists" in done.stderr


def test_an_option_of_a_lock_in_the_url(bare: Cli) -> None:
    done = bare.run("-u", "redis://h?ttl=5s", "ls", code=USAGE)
    assert done.stderr.endswith(" (in redis://h?ttl=***)\n")


def test_this_host_without_a_server_has_local_locks(bare: Cli, own_server: Server) -> None:
    own_server.kill()
    hint = ", or use --local for locks of this host only"
    here = f"redis://127.0.0.1:{own_server.port}"
    for url in (here, here.replace("127.0.0.1", "localhost")):
        done = bare.run("ls", env={"REDIS_URL": url}, code=UNAVAILABLE)
        assert hint in done.stderr
    # A server that was named is the one that is wanted.
    assert hint not in bare.run("-u", here, "ls").stderr
