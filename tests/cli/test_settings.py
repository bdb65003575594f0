# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: flags, variables and the URL are used in this order. Method: servers that can tell."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.servers import Server, available_kinds
from support.tls import Authority
from support.wait import LIMIT, wait_until

from .harness import Cli
from .terminal import Terminal

DEAD_URL = "redis://127.0.0.1:1"


@pytest.fixture(scope="module")
def guarded_server() -> Iterator[Server]:
    """Asks for a password: `right`, also that of the user `deploy`."""
    with Server(available_kinds()[0]) as server:
        with server.connect() as connection:
            connection.cmd("ACL", "SETUSER", "deploy", "on", ">right", "~*", "&*", "+@all")
            connection.cmd("CONFIG", "SET", "requirepass", "right")
        yield server


@pytest.fixture
def guarded(binary: str, guarded_server: Server) -> Cli:
    return Cli(binary, guarded_server.unix_url)


def test_a_part_of_a_password_is_not_sent(guarded: Cli, name: str) -> None:
    """A pipe whose line does not end in time: a server may count attempts."""
    read_end, write_end = os.pipe()
    os.write(write_end, b"rig")
    path = f"/dev/fd/{read_end}"
    done = guarded.run("--password-file", path, "status", name, pass_fds=[read_end])
    os.close(write_end)
    os.close(read_end)
    assert done.returncode == 78
    assert f"password file {path}: its line did not end within a second" in done.stderr


# A nested redlatch after the number that the variable names has become another file.
NESTED = """
echo "file=$REDLATCH_PASSWORD_FILE"
number=${REDLATCH_PASSWORD_FILE##*/}
case "$number" in [0-9]*) eval "exec $number<\"$1\"" ;; esac
"$0" status "$2"
echo "code=$?"
"""


@pytest.mark.parametrize("source", ["descriptor", "stdin"])
def test_the_command_gets_no_descriptor_as_password_file(
    guarded: Cli, guarded_server: Server, tmp_path: Path, name: str, source: str
) -> None:
    """What is read there, by a redlatch in the command, would be sent as a password."""
    other = tmp_path / "other"
    other.write_text("of another file\n")
    read_end, write_end = os.pipe()
    os.write(write_end, b"right\nfor the command\n")
    os.close(write_end)
    is_stdin = source == "stdin"
    path = "/dev/stdin" if is_stdin else f"/dev/fd/{read_end}"
    options = {"stdin": read_end} if is_stdin else {"pass_fds": [read_end]}
    with guarded_server.connect() as connection:
        connection.cmd("AUTH", "right")
        connection.cmd("ACL", "LOG", "RESET")
        done = guarded.run(
            *("run", name, "bash", "-c", NESTED, guarded.binary, str(other), name),
            env={"REDLATCH_PASSWORD_FILE": path},
            **options,
        )
        os.close(read_end)
        assert done.returncode == 0, done
        assert connection.cmd("ACL", "LOG") == [], "a wrong password was sent"
    assert done.stdout == "file=\ncode=77\n", done


def test_the_command_gets_a_named_pipe_as_password_file(
    guarded: Cli, tmp_path: Path, name: str
) -> None:
    """As it was given: its writer writes the password to each reader."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    is_over = threading.Event()

    def write() -> None:
        while not is_over.is_set():
            with contextlib.suppress(BrokenPipeError), open(path, "wb", buffering=0) as pipe:
                pipe.write(b"right\n")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        done = guarded.run(
            *("run", name, "sh", "-c", '"$0" status -o tsv "$1"; echo "$REDLATCH_PASSWORD_FILE"'),
            *(guarded.binary, name),
            env={"REDLATCH_PASSWORD_FILE": str(path)},
        )
    finally:
        is_over.set()
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        writer.join(LIMIT)
        os.close(reader)
    assert done.returncode == 0, done
    assert "held" in done.stdout and done.stdout.endswith(f"{path}\n"), done


def test_url_flag_wins_over_variables_and_those_in_their_order(
    binary: str, cli: Cli, name: str
) -> None:
    bare = Cli(binary, None)
    url = cli.env["REDLATCH_URL"]
    dead = {"REDLATCH_URL": DEAD_URL, "VALKEY_URL": DEAD_URL, "REDIS_URL": DEAD_URL}
    assert bare.run("-u", url, "status", name, env=dead).returncode == 1
    assert bare.run("status", name, f"--url={url}", env=dead).returncode == 1
    assert bare.run("status", name, env=dead | {"REDLATCH_URL": url}).returncode == 1
    del dead["REDLATCH_URL"]
    assert bare.run("status", name, env=dead | {"VALKEY_URL": url}).returncode == 1
    # An empty variable is none.
    assert bare.run("status", name, env={"REDLATCH_URL": "", "REDIS_URL": url}).returncode == 1


def test_namespace_from_flag_url_and_variable(
    cli: Cli, name: str, shared_server: Server
) -> None:
    url = cli.env["REDLATCH_URL"]
    cases = [
        (["--namespace", "flag:"], {}, "flag:"),
        ([], {"REDLATCH_NAMESPACE": "env:"}, "env:"),
        (["--namespace", "flag:"], {"REDLATCH_NAMESPACE": "env:"}, "flag:"),
        (["-u", f"{url}?namespace=url:"], {"REDLATCH_NAMESPACE": "env:"}, "url:"),
    ]
    with shared_server.connect() as connection:
        for flags, env, prefix in cases:
            connection.cmd("SET", prefix + name, "foreign", "PX", 60000)
            assert cli.run(*flags, "status", name, env=env).returncode == 0, (flags, env)
            connection.cmd("DEL", prefix + name)
            assert cli.run(*flags, "status", name, env=env).returncode == 1, (flags, env)


def test_password_from_file_variable_and_url(guarded: Cli, tmp_path: Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("right\n")
    wrong.write_text("wrong\r\n")
    url = guarded.env["REDLATCH_URL"].replace("unix://", "unix://:right@")
    answers = [
        (["--password-file", str(right)], {}, 1),
        (["--password-file", str(wrong)], {}, 77),
        ([], {"REDLATCH_PASSWORD_FILE": str(right)}, 1),
        ([], {"REDISCLI_AUTH": "right"}, 1),
        (["-u", url], {}, 1),
        # Flag before URL before variable.
        (["-u", url], {"REDISCLI_AUTH": "wrong", "REDLATCH_PASSWORD_FILE": str(wrong)}, 1),
        (["-u", url, "--password-file", str(wrong)], {}, 77),
        ([], {"REDLATCH_PASSWORD_FILE": str(right), "REDISCLI_AUTH": "wrong"}, 1),
        (["--user", "deploy", "--password-file", str(right)], {}, 1),
        (["--user", "nobody", "--password-file", str(right)], {}, 77),
    ]
    for flags, env, code in answers:
        assert guarded.run(*flags, "status", "x", env=env).returncode == code, (flags, env)


def test_password_is_asked_for_and_not_shown(guarded: Cli) -> None:
    for answer, code in (("right", 1), ("wrong", 77)):
        words = [guarded.binary, "--askpass", "status", "-o", "tsv", "x"]
        # An answer wins over all other sources.
        with Terminal(words, guarded.env | {"REDISCLI_AUTH": "other"}) as terminal:
            terminal.wait_for("redlatch: password: ")
            terminal.write(answer.encode() + b"\n")
            assert terminal.wait() == code
            assert answer not in terminal.text


def test_question_for_the_password_can_be_left(guarded: Cli) -> None:
    # The shell sees a death by the signal, and the terminal shows again what is typed.
    script = '"$0" --askpass run x true; echo left $?; stty -a | grep -o -- " -\\?echo "'
    with Terminal(["bash", "-c", f"trap : INT; {script}", guarded.binary], guarded.env) as terminal:
        terminal.wait_for("redlatch: password: ")
        terminal.write(b"half\x03")
        terminal.wait_for("left 130")
        assert terminal.wait() == 0
        assert terminal.text.rstrip().endswith("echo") and "-echo" not in terminal.text
        assert "half" not in terminal.text


def test_child_environment(cli: Cli, name: str) -> None:
    script = "env; exec cat >/dev/null"
    words = ["--", "sh", "-c", script]
    with cli.start("run", "--ttl", "7s", name, *words, env={"REDLATCH_FENCE": "old"}) as running:
        running.out.wait_for("REDLATCH_MODE=.*\n")
        wait_until(lambda: cli.is_held(name))
        fence = cli.status(name)["fence"]
        assert running.finish() == 0
        found = sorted(re.findall(r"^REDLATCH_(?!URL).*$", running.out.text, re.M))
        assert found == [
            f"REDLATCH_FENCE={fence}",
            f"REDLATCH_FENCES={name}={fence}",
            f"REDLATCH_HOLDER={socket.gethostname()}/{running.pid}",
            f"REDLATCH_LOCK={name}",
            "REDLATCH_MODE=exclusive",
            f"REDLATCH_PID={running.pid}",
            f"REDLATCH_RUNS={name},{fence},{socket.gethostname()}/{running.pid}",
            "REDLATCH_TTL_MS=7000",
        ]


def test_child_gets_no_descriptor_of_ours(cli: Cli, name: str) -> None:
    done = cli.run("run", name, "--", "ls", "/proc/self/fd")
    # The fourth is that of `ls` itself.
    assert done.stdout.split() == ["0", "1", "2", "3"]


def test_label_is_the_command_line(cli: Cli, name: str) -> None:
    words = ["sh", "-c", "echo ready; exec cat >/dev/null"]
    with cli.hold(name, words=words):
        wait_until(lambda: "label" in cli.status(name)["holders"][0])
        label = cli.status(name)["holders"][0]["label"]
        assert label == "sh -c 'echo ready; exec cat >/dev/null'"


def test_label_is_cut_between_characters(cli: Cli, name: str) -> None:
    # The byte before the two of each character makes an even limit fall inside of one.
    words = ["sh", "-c", "echo ready; exec cat >/dev/null", "é" * 200]
    with cli.hold(name, words=words):
        wait_until(lambda: "label" in cli.status(name)["holders"][0])
        label = cli.status(name)["holders"][0]["label"]
        assert 254 <= len(label.encode()) <= 256
        assert label.endswith("é")


def test_ttl_is_what_the_server_sees(cli: Cli, name: str) -> None:
    with cli.hold(name, "--ttl", "1h"):
        assert 3_590_000 < cli.status(name)["holders"][0]["remaining_ms"] <= 3_600_000


@pytest.mark.parametrize("text", ["900ms", "0.9", ".9s", "0.9s"])
def test_durations(cli: Cli, name: str, text: str) -> None:
    with cli.hold(name):
        done = cli.run("run", "-w", text, name, "--", "true", code=75)
        assert re.search(r"waited (0\.(89|9)|[1-9])[\d.]* s", done.stderr)


def test_mask_and_ignored_signals_of_the_child_are_as_found(cli: Cli, name: str) -> None:
    done = cli.run("run", name, "--", "grep", "-E", "Sig(Blk|Ign)", "/proc/self/status")
    masks = {key: int(value, 16) for key, value in re.findall(r"(\w+):\s*(\w+)", done.stdout)}
    assert masks == {"SigBlk": 0, "SigIgn": 0}


# ---- TLS ----


@pytest.fixture(scope="module")
def tls_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Asks every client who it is."""
    authority = Authority(tmp_path_factory.mktemp("tls"))
    certificate = authority.certificate("DNS:redis.example", "IP:127.0.0.1")
    with Server("redis", ["--tls-auth-clients", "yes"], tls=certificate) as server:
        yield server


def test_tls_by_flags(binary: str, tls_server: Server, name: str) -> None:
    """Method: the flags of redis-cli; each of them left out or wrong."""
    tls = tls_server.tls
    assert tls
    cli = Cli(binary, tls_server.tls_url)
    trust, shown = ("--cacert", str(tls.ca)), ("--cert", str(tls.cert), "--key", str(tls.key))
    assert cli.run(*trust, *shown, "run", name, "true").returncode == 0
    assert cli.run(*trust, *shown, "--sni", "redis.example", "status", name).returncode == 1
    assert cli.run("--insecure", *shown, "status", name).returncode == 1
    for flags, code, word in (
        (shown, 77, "self-signed"),
        (trust, 77, "--cert and --key"),
        ((*trust, *shown, "--sni", "other.example"), 77, "not for 'other.example'"),
        ((*trust, *shown[:2]), 64, "tls_key"),
        (("--cacert", "/none", *shown), 64, "/none"),
        (("--insecure", *trust, *shown), 64, "tls_ca"),
    ):
        refused = cli.run(*flags, "run", name, "true")
        assert refused.returncode == code, refused
        assert word in refused.stderr, refused
    # The password would go to whoever listens.
    plain = Cli(binary, tls_server.url).run(*trust, "run", name, "true", code=64)
    assert "rediss://" in plain.stderr
