# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: messages name what is wrong and what is allowed, hold no secret, and are safe to show.

Method: wrong calls with a secret in them; a system without threads or room, by a library that is
loaded before; servers that answer with too much, or with bytes that are no text.
"""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import closing

import pytest
from support.embedded import EmbeddedFolder
from support.resp import Connection
from support.servers import Server
from system.hostile import HostileServer, polite

from .harness import Cli

USAGE, UNAVAILABLE, SYSTEM = 64, 69, 71
CANARY = "S3cretC4nary"


# ---- secrets ------------------------------------------------------------------------------------

URLS = [
    f"redis://host&password={CANARY}",
    f"redis://host&password=x@{CANARY}",
    f"redis://host;password={CANARY}",
    f"redis://host,password={CANARY}",
    f"redis://host password={CANARY}",
    f"redis://host#password={CANARY}",
    f"redis://host:6379&password={CANARY}",
    f"redis://host/0;password={CANARY}",
    f"redis://host?db=1;password={CANARY}",
    f"redis://host?command_timeout=2s,password={CANARY}",
    f"redis://host?command_timeout=2s#password={CANARY}",
    f"redis://host?password=ab&{CANARY}=x",
    f"redis://user:ab?namespace={CANARY}@host",
    f"unix:///run/socket;password={CANARY}",
    f"unix:///run/socket#password={CANARY}",
    f"embedded:///folder&password={CANARY}",
    f"redis:/user:{CANARY}@host",
    f"user:{CANARY}@redis://host",
    CANARY,
]


@pytest.mark.parametrize("url", URLS)
def test_no_secret_of_a_malformed_url_is_shown(bare: Cli, url: str) -> None:
    calls = [
        bare.run("--url", url, "status", "x"),
        bare.run("-vv", "run", "-n", "x", "true", env={"REDLATCH_URL": url}),
        bare.run("--url", "redis://a", "--url", url, "--url", "redis://b", "status", "x"),
        bare.run("ls", env={"REDIS_URL": f"redis://a {url} redis://b"}),
        bare.run("--url", url, "server"),
    ]
    for done in calls:
        assert done.returncode == USAGE, done.stderr
        assert CANARY not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        [f"redis://u:{CANARY}@h", "status", "x"],
        ["version", f"redis://u:{CANARY}@h"],
        ["run", f"redis://u:{CANARY}@h"],
        ["ls", "x", f"redis://u:{CANARY}@h"],
        [f"--password={CANARY}", "status", "x"],
        [f"--urls=redis://u:{CANARY}@h", "status", "x"],
        ["--url", "redis://h", "--password-file", CANARY, "status", "x"],
        ["--url", "rediss://h", "--key", f"-----BEGIN KEY-----{CANARY}", "status", "x"],
        ["--url", "rediss://h", "--sni", f"a;password={CANARY}", "status", "x"],
        ["--url", "redis://h", "--namespace", f"{{;password={CANARY}", "status", "x"],
        ["--url", f"redis://u:{CANARY}@h", "--restart-guard", "60", "status", "x"],
        ["--url", "redis://h", f"--askpass={CANARY}", "ls"],
        [f"--local={CANARY}", "ls"],
        ["--url", "redis://h", "-o", f"redis://u:{CANARY}@h", "ls"],
        ["--url", "redis://h", "--color", f"redis://u:{CANARY}@h", "ls"],
        ["--url", "redis://h", "run", "--if-busy", f"redis://u:{CANARY}@h", "x", "true"],
        ["--url", "redis://h", "run", "--on-lost", f"redis://u:{CANARY}@h", "x", "true"],
        ["--url", "redis://h", "run", "--label", f"redis://u:{CANARY}@h", "x", "true"],
    ],
)
def test_no_secret_in_a_wrong_place_is_shown(bare: Cli, words: list[str]) -> None:
    done = bare.run(*words)
    assert done.returncode in (USAGE, 78), done.stderr
    assert CANARY not in done.stdout + done.stderr


# ---- the call -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("urls", "says"),
    [
        ([""], "--url must not be empty"),
        ([" "], "--url must not be empty"),
        (["redis://a", "", "redis://b", "", "redis://c"], "--url number 2 must not be empty"),
        (
            ["redis://a", "redis://b", "redis://c", "redis://d", ""],
            "--url number 5 must not be empty",
        ),
        (["redis://a redis://b", "redis://c"], "--url number 1 must have no space"),
    ],
)
@pytest.mark.parametrize("command", ["status", "run", "ls", "force-release", "server"])
def test_an_empty_url_is_not_left_out(
    bare: Cli, command: str, urls: list[str], says: str
) -> None:
    words = {"ls": [], "server": [], "run": ["x", "true"]}.get(command, ["x"])
    given = [word for url in urls for word in ("--url", url)]
    # One that the environment names must not be taken in its place.
    done = bare.run(*given, command, *words, env={"REDLATCH_URL": "redis://127.0.0.1:1"})
    assert done.returncode == USAGE
    assert says in done.stderr


def test_an_empty_line_of_the_variable_is_not_left_out(bare: Cli) -> None:
    done = bare.run("status", "x", env={"REDLATCH_URL": "redis://a\n\nredis://b\n\nredis://c\n"})
    assert done.returncode == USAGE
    assert "URL 2 of the environment must not be empty" in done.stderr


def test_a_long_name_is_cut_in_messages(cli: Cli) -> None:
    for words in (["run", "x" * 10_000], ["run", "-n", "x" * 10_000, "true"]):
        done = cli.run(*words, code=USAGE)
        assert len(done.stderr) < 600


def test_an_ipv6_address_is_shown_in_brackets(bare: Cli) -> None:
    done = bare.run("--url", "redis://[::1]:1", "ls", code=UNAVAILABLE)
    assert "redis://[::1]:1" in done.stderr
    assert "redis://::1" not in done.stderr


# ---- the system ---------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["status", "x"], ["run", "-n", "x", "true"], ["ls"]])
def test_a_system_without_threads_is_named(cli: Cli, failing: str, words: list[str]) -> None:
    done = cli.run(*words, env={"LD_PRELOAD": failing, "FAILING": "thread"}, code=SYSTEM)
    assert "thread" in done.stderr and "Resource temporarily unavailable" in done.stderr
    assert "internal error" not in done.stderr


def test_a_full_disk_is_no_matter_of_rights(bare: Cli, failing: str) -> None:
    with closing(EmbeddedFolder()) as folder:
        done = bare.run(
            "--url", folder.url, "ls", env={"LD_PRELOAD": failing, "FAILING": "room"}
        )
        assert done.returncode == UNAVAILABLE, done.stderr
        assert "No space left on device" in done.stderr and str(folder.path) in done.stderr


# ---- what servers say ---------------------------------------------------------------------------


def test_a_lock_with_huge_texts_is_shown(own_cli: Cli, own_server: Server) -> None:
    """As others who may write to the keys can make it."""
    huge = "y" * (1 << 20)
    with Connection(own_server.url) as admin, own_cli.hold("x"):
        admin.cmd("HSET", "{x}:rl1:i", "label", huge, "more", huge)
        admin.cmd("SET", "{x}:rl1:f", huge)
        for number in range(300):
            admin.cmd("ZADD", "{x}:rl1:q", 1_790_000_000_000_000 + number, f"{number}" + "z" * 9000)
        # Its member for reading is the same; the connection stays.
        done = own_cli.run("status", "-o", "json", "x", code=0)
        shown = json.loads(done.stdout)
        assert shown["state"] == "held" and shown["waiting"] == 300
        assert shown["holders"][0]["label"] == "y" * 256


def test_an_error_that_is_no_text_is_shown_as_one(binary: str) -> None:
    wrong = b"-ERR \xff\xfe bad \xc3\x28 \xe2\x82\r\n"
    answer = HostileServer(lambda c: [wrong] if c[0] == b"EVALSHA" else [polite(c)])
    with answer as server:
        done = subprocess.run(
            [binary, "--url", server.url, "status", "x"], capture_output=True, check=False
        )
    assert done.returncode == UNAVAILABLE
    text = done.stderr.decode()  # or it raises
    assert re.search("ERR \N{REPLACEMENT CHARACTER}+ bad", text), text


def test_an_acquire_without_an_answer_says_how_long_it_may_matter(binary: str) -> None:
    """The cleanup of the library ends with the process."""
    sent: list[bytes] = []

    def answer(command: list[bytes]) -> list[bytes]:
        sent.append(command[0])
        return [] if b"EVALSHA" in sent else [polite(command)]

    with HostileServer(answer) as server:
        done = Cli(binary, server.url).run("run", "-w", "1s", "--ttl", "9s", "x", "true")
    assert done.returncode == UNAVAILABLE
    assert "the lock is free again at most 9 s after the grant" in done.stderr
    assert "in the background" not in done.stderr


@pytest.mark.parametrize("code", [0x80, 0x9B, 0x9F, 0x202A, 0x202E, 0x2066, 0x2069, 0x200E, 0x200F])
def test_characters_that_terminals_obey_are_escaped(cli: Cli, code: int) -> None:
    name = f"test-{chr(code)}-end"
    for words in (["-o", "json"], ["-o", "jsonl"]):
        done = cli.run("status", *words, name)
        assert chr(code) not in done.stdout
        assert f"\\u{code:04x}" in done.stdout
        assert json.loads(done.stdout)["name"] == name
    for words in (["-o", "table"], ["-o", "tsv"]):
        done = cli.run("status", *words, name)
        assert chr(code) not in done.stdout and "\\x" in done.stdout
    assert chr(code) not in cli.run("run", name).stderr
