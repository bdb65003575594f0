# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: messages say what happened, with what, and what to do; standard output is the child's.

Method: one test for each message, and for what must never be in one.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from support.servers import Server
from support.wait import wait_until

from .harness import LIMIT, Cli

CANARY = "hunter2-canary"
CLOCK = r"\d\d:\d\d:\d\d"


def test_standard_output_is_the_childs_alone(cli: Cli, name: str) -> None:
    done = cli.run("run", "-v", name, "--", "sh", "-c", "echo out; echo err >&2")
    assert done.stdout == "out\n"
    assert "err\n" in done.stderr
    for line in done.stderr.splitlines():
        assert line == "err" or line.startswith("redlatch: ")


def test_nothing_is_said_when_all_is_well(cli: Cli, name: str) -> None:
    assert cli.run("run", name, "--", "true").stderr == ""


def test_a_ttl_below_a_second_is_warned_of(cli: Cli, name: str) -> None:
    warning = "redlatch: --ttl of 0.5 s is below 1 s: a short pause of this host, the network"
    done = cli.run("run", "--ttl", "500ms", name, "--", "true")
    assert done.stderr.startswith(warning)
    for words in (["-q", "run", "--ttl", "500ms"], ["run", "--ttl", "1s"]):
        assert " is below 1 s" not in cli.run(*words, name, "--", "true").stderr


def test_a_max_hold_below_a_second_is_warned_of(cli: Cli, name: str) -> None:
    done = cli.run("run", "--max-hold", "20ms", name, "--", "sleep", "9", code=79)
    warning, loss, *killed = done.stderr.splitlines()
    assert warning.startswith("redlatch: --max-hold of 0.02 s is below 1 s: the command is stopped")
    # On a busy machine they are over before that is said, or before the command has ended.
    assert re.search(": (the 0.02 s of --max-hold are over in |max_hold was reached)", loss)
    assert all(line.endswith("did not end in time; sent SIGKILL") for line in killed)


def test_version_in_the_asked_form(cli: Cli) -> None:
    for words in (["-o", "json", "version"], ["version", "--json"]):
        assert json.loads(cli.run(*words).stdout)["abi"] == 1


def test_standard_input_is_passed_through(cli: Cli, name: str) -> None:
    done = cli.run("run", name, "--", "cat", stdin=None, input=b"a\0b\n" * 100_000)
    assert len(done.stdout) == 400_000


def test_verbose_says_how_long_it_took_and_the_fence(cli: Cli, name: str) -> None:
    first = cli.run("run", "-v", name, "--", "true").stderr
    second = cli.run("-v", "run", name, "--", "true").stderr
    pattern = rf"redlatch: acquired {name} in \d+\.\d{{4}} s \(fence (\d+)\)\n"
    fences = [int(re.search(pattern, text)[1]) for text in (first, second)]  # type: ignore[index]
    assert fences[1] > fences[0] > 0
    assert re.search(rf"redlatch: released {name} after .* s\n", first)


def test_busy_names_holder_label_since_lease_and_waiting(cli: Cli, name: str) -> None:
    with cli.hold(name, "--label", "run=7") as held, cli.start("run", name, "--", "true"):
        wait_until(lambda: cli.waiting(name) == 1)
        wait_until(lambda: "holder" in cli.status(name)["holders"][0])
        done = cli.run("run", "-n", name, "--", "true")
        host = re.escape(socket.gethostname())
        assert re.fullmatch(
            rf"redlatch: lock '{name}' is busy: held by {host}/{held.pid} "
            rf"\(label: run=7 sh -c 'echo ready; exec cat >/dev/null'\) for {CLOCK}, "
            rf"lease until \d{{4}}-\d\d-\d\dT{CLOCK}Z, 1 waiting\n",
            done.stderr,
        )
        done = cli.run("run", "-w", "1s", name, "--", "true")
        waited = re.search(r", 1 waiting; waited (\d+(?:\.\d+)?) s\n$", done.stderr)
        assert waited and float(waited[1]) >= 1


def test_busy_by_another_library(cli: Cli, name: str, shared_server: Server) -> None:
    shared_server.cmd("SET", name, "somebody-else", "PX", 30000)
    done = cli.run("run", "-n", name, "--", "true", code=75)
    assert f"lock '{name}' is busy: held by another lock library" in done.stderr


def test_data_in_place_of_the_lock(cli: Cli, name: str, shared_server: Server) -> None:
    shared_server.cmd("RPUSH", name, "x")
    for how in (["-n"], ["-w", "60"], ["--if-busy", "skip"]):
        done = cli.run("run", *how, name, "--", "true", code=78)
        assert f"the key of lock '{name}' must be a string or a hash (got list)" in done.stderr


def test_unreachable_says_where_and_what_to_check(own_cli: Cli, own_server: Server) -> None:
    own_server.kill()
    done = own_cli.run("run", "-w", "200ms", "x", "--", "true")
    assert f"cannot reach redis://127.0.0.1:{own_server.port}" in done.stderr
    assert "refused" in done.stderr
    assert re.search(r"tried for 0\.\d+ s\. Check --url / REDLATCH_URL", done.stderr)


def test_more_verbose_says_all_that_happens(cli: Cli, name: str) -> None:
    with cli.hold(name, "-vv", words=["sh", "-c", "trap 'exit 3' TERM; echo ready; cat"]) as held:
        held.err.wait_for(r"redlatch: started sh -c '.*' as process group \d+\n")
        held.send(signal.SIGUSR1)
        held.err.wait_for(r"redlatch: passed SIGUSR1 on to process group \d+\n")
        assert held.wait_output() == 128 + signal.SIGUSR1
        assert f"redlatch: the command ended with {128 + signal.SIGUSR1}\n" in held.err.text
    odd = cli.run("run", "-vv", name, "--", "echo", "\x1b[31m").stderr
    assert "started echo \\x1b[31m as" in odd


def test_library_warns_of_slow_waiting(own_cli: Cli, own_server: Server, name: str) -> None:
    # A user without channels waits by polling: nothing fails, and nobody would know why it is slow.
    own_server.cmd("ACL", "SETUSER", "u", "on", ">p", "~*", "resetchannels", "+@all")
    url = own_server.url.replace("redis://", "redis://u:p@")
    done = own_cli.run("-u", url, "run", name, "--", "true", code=0)
    assert re.search(r"^redlatch: waiting by polling, which is slower: ", done.stderr)
    assert own_cli.run("-q", "-u", url, "run", name, "--", "true").stderr == ""
    shown = own_cli.run("-u", url, "status", "-o", "table", name).stdout
    assert re.search(r"^  waiting   by polling: .*refused the subscription", shown, re.MULTILINE)


def test_quiet_says_nothing_at_run_time(own_cli: Cli, own_server: Server, name: str) -> None:
    words = ["run", "-q", "-n", name, "--", "true"]
    with own_cli.hold(name, "-q", "--ttl", "500ms") as held:
        done = own_cli.run(*words)
        assert (done.returncode, done.stderr) == (75, "")
        assert own_cli.run("-q", "force-release", "--yes", name).stderr == ""
        assert (held.wait_output(), held.err.text) == (79, "")
    own_server.kill()
    done = own_cli.run(*words)
    assert (done.returncode, done.stderr) == (69, "")


def test_password_is_never_shown(own_cli: Cli, own_server: Server, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(CANARY + "\n")
    url = f"redis://user:{CANARY}@127.0.0.1:{own_server.port}"
    own_server.cmd("CONFIG", "SET", "requirepass", "another")
    calls = [
        ["-u", url, "-v", "run", "-n", "x", "--", "true"],
        ["-u", url, "status", "x", "-o", "json"],
        ["-u", url + "?time_out=3", "status", "x"],
        ["-u", f"redis://:{CANARY}@127.0.0.1:0x/y", "status", "x"],
        ["--password-file", str(secret), "-v", "run", "x", "--", "true"],
        ["-u", f"redis://:{CANARY}@127.0.0.1:1", "run", "-n", "x", "--", "true"],
    ]
    for call in calls:
        done = own_cli.run(*call)
        assert done.returncode >= 64, call
        assert CANARY not in done.stdout + done.stderr, call
    done = own_cli.run("status", "x", env={"REDISCLI_AUTH": CANARY})
    assert CANARY not in done.stdout + done.stderr


def test_password_is_not_in_the_answer_either(own_cli: Cli, own_server: Server) -> None:
    own_server.cmd("CONFIG", "SET", "requirepass", CANARY)
    done = own_cli.run(
        "-u", f"redis://:{CANARY}@127.0.0.1:{own_server.port}", "status", "x", "-o", "json"
    )
    assert done.returncode == 1
    assert CANARY not in done.stdout and "***" in done.stdout


@pytest.mark.parametrize(
    ("odd", "shown"),
    [
        (b"a\nb\x1b[31mc", r"a\nb\x1b[31mc"),
        (b"caf\xc3\xa9", "café"),
        (b"\xff\xfe", r"\xff\xfe"),
        (b"back\\slash", r"back\\slash"),
        ("right\u202eleft".encode(), r"right\xe2\x80\xaeleft"),
        (b"\xc0\xaf \xed\xa0\x80 \xf5", r"\xc0\xaf \xed\xa0\x80 \xf5"),
    ],
)
def test_odd_names_are_shown_escaped(cli: Cli, odd: bytes, shown: str) -> None:
    with cli.hold(odd) as held:
        done = cli.run("run", "-n", odd, "--", "true")
        assert f"lock '{shown}' is busy" in done.stderr
        for form in ("table", "tsv"):
            assert cli.run("status", "-o", form, odd).stdout.startswith(shown)
            assert shown in cli.run("ls", "-o", form).stdout
        answer = cli.status(odd)
        is_text = odd.decode(errors="replace").encode() == odd
        assert answer["name"] == (odd.decode() if is_text else shown)
        listed = json.loads(cli.run("ls", "-o", "json").stdout)["locks"]
        assert answer["name"] in [lock["name"] for lock in listed]
        assert held.finish() == 0
    assert shown in cli.run("run", "-v", odd, "true").stderr


@pytest.mark.parametrize("closing", ["2>&-", "<&- 2>&-", "<&- >&- 2>&-"])
def test_closed_descriptors_do_no_harm(
    cli: Cli, name: str, tmp_path: Path, closing: str
) -> None:
    # Nothing of ours may get the number of a standard descriptor, and messages with it.
    seen = tmp_path / "seen"
    look = f"for fd in 0 1 2; do readlink /proc/$REDLATCH_PID/fd/$fd; done >{seen}; exit 5"
    script = f'"$0" run -v "$1" -- sh -c "$2" {closing}'
    done = subprocess.run(
        ["sh", "-c", script, cli.binary, name, look], env=cli.env, timeout=LIMIT, check=False
    )
    assert done.returncode == 5
    assert not cli.is_held(name)
    places = seen.read_text().splitlines()
    assert len(places) == 3
    assert not [place for place in places if place.startswith(("socket:", "anon_inode:"))]


def test_reader_that_went_away_does_no_harm(cli: Cli, name: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = cli.run("run", "-v", name, "sh", "-c", "exit 5", capture_output=False, stderr=writing)
    assert done.returncode == 5
    cli.run("status", name, capture_output=False, stdout=writing, code=1)
    os.close(writing)


def test_child_has_the_usual_sigpipe(cli: Cli, name: str) -> None:
    done = cli.run("run", name, "--", "sh", "-c", "yes | head -n 1; kill -PIPE $$")
    assert done.returncode == 128 + 13
