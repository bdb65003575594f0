# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the helpers of other tests work.
Method: real servers started, paused, killed; replies fed byte by byte."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .build import ROOT
from .go import go_environment, run_go
from .program import is_alive
from .resp import Connection, Push, RespError, encode
from .servers import (
    OTHERS,
    Server,
    ServerFailed,
    available_kinds,
    debug_options,
    find_binary,
    has_atomic_moves,
    has_port_of_bus,
    has_replicas_for_scripts,
    has_sharded_channels,
    has_subcommand_rights,
    has_tls,
)
from .tls import Authority
from .wait import wait_until

REPLIES = [
    (b"+OK\r\n", "OK"),
    (b":-7\r\n", -7),
    (b"$0\r\n\r\n", b""),
    (b"$4\r\na\r\nb\r\n", b"a\r\nb"),
    (b"$-1\r\n", None),
    (b"*-1\r\n", None),
    (b"_\r\n", None),
    (b"#t\r\n", True),
    (b",1.5\r\n", 1.5),
    (b"(12345678901234567890\r\n", 12345678901234567890),
    (b"=6\r\ntxt:ab\r\n", "ab"),
    (b"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", [1, [b"x"]]),
    (b"%1\r\n+a\r\n:1\r\n", {"a": 1}),
    (b"~1\r\n:1\r\n", [1]),
    (b"|1\r\n+a\r\n:1\r\n:2\r\n", 2),
]


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[tuple[Connection, socket.socket]]:
    """A connection whose server is this test."""
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen(1)
        with Connection(f"unix://{path}") as connection:
            peer, _ = listener.accept()
            with peer:
                yield connection, peer


def test_replies_are_parsed_even_byte_by_byte(fake: tuple[Connection, socket.socket]) -> None:
    connection, peer = fake
    for data, value in REPLIES:
        for byte in data[:-1]:
            peer.sendall(bytes([byte]))
            with pytest.raises(TimeoutError):
                connection.read(0)
        peer.sendall(data[-1:])
        assert connection.read(5) == value
    peer.sendall(b"".join(data for data, _ in REPLIES))
    assert [connection.read(5) for _ in REPLIES] == [value for _, value in REPLIES]


def test_errors_and_pushes_are_kept_apart(fake: tuple[Connection, socket.socket]) -> None:
    connection, peer = fake
    peer.sendall(b">2\r\n+message\r\n+x\r\n-ERR no\r\n>1\r\n+late\r\n")
    error = connection.read(5)
    assert isinstance(error, RespError) and error.code == "ERR"
    assert connection.push(5) == Push(["message", "x"])
    assert connection.push(5) == Push(["late"])
    assert connection.push() is None


def test_a_read_has_a_deadline_and_sees_the_end(fake: tuple[Connection, socket.socket]) -> None:
    connection, peer = fake
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        connection.cmd("PING", timeout=0.05)
    assert time.monotonic() - start >= 0.05
    assert peer.recv(100) == encode("PING")
    peer.close()
    with pytest.raises(ConnectionError):
        connection.read(5)


@pytest.mark.parametrize("kind", available_kinds())
def test_life_of_a_server(kind: str) -> None:
    with Server(kind) as server:
        url, pid = server.url, server.pid
        with Connection(server.url) as tcp, server.connect(protocol=3) as unix:
            assert tcp.cmd("SET", "a", 1) == "OK" and unix.cmd("GET", "a") == b"1"
            server.pause()
            with pytest.raises(TimeoutError):
                tcp.cmd("PING", timeout=0.05)
            server.resume()
            assert tcp.read() == "PONG"
            server.kill()
            assert not server.is_running
            with pytest.raises(ConnectionError):
                tcp.cmd("PING")
        server.start()
        assert (server.url, server.pid != pid) == (url, True)
        with Connection(url) as tcp:
            assert tcp.cmd("GET", "a") is None
        server.restart()
        server.pause()
        folder = Path(server.unix_path).parent
    assert not folder.exists()


@pytest.mark.parametrize("kind", available_kinds())
def test_a_server_that_asks_for_a_password_counts_as_started(kind: str) -> None:
    with Server(kind, ["--requirepass", "secret"]) as server, server.connect() as connection:
        with pytest.raises(RespError, match="NOAUTH"):
            connection.cmd("GET", "a")
        assert connection.cmd("AUTH", "secret") == "OK"


@pytest.mark.parametrize("kind", sorted({*available_kinds(), *filter(find_binary, OTHERS)}))
def test_a_kind_can_do_what_is_said_of_it(kind: str, tmp_path: Path) -> None:
    """Goal: no case of a test is left out that the server could run, and none fails because of a
    server that is older than its kind says. Method: the server is asked."""
    with Server(kind) as server, server.connect() as connection:

        def has_setting(name: str) -> bool:
            return bool(connection.cmd("CONFIG", "GET", name))

        def takes(*words: str) -> bool:
            return not isinstance(connection.pipe([words])[0], RespError)

        assert has_sharded_channels(kind) == takes("PUBSUB", "SHARDCHANNELS")
        assert has_subcommand_rights(kind) == takes("ACL", "SETUSER", "a", "-cluster|slots")
        assert has_port_of_bus(kind) == has_setting("cluster-port")
        assert bool(debug_options(kind)) == has_setting("enable-debug-command")
        migration = connection.cmd("COMMAND", "INFO", "cluster|migrateslots")
        assert has_atomic_moves(kind) == (migration != [None])
        connection.cmd("CONFIG", "SET", "min-replicas-to-write", 1)
        is_refused = not takes("EVAL", "return redis.call('SET', KEYS[1], '')", "1", "a")
        assert has_replicas_for_scripts(kind) == is_refused
    tls = Server(kind, tls=Authority(tmp_path).certificate("IP:127.0.0.1"))
    with contextlib.closing(tls):
        with contextlib.suppress(ServerFailed):
            tls.start()
        assert has_tls(kind) == tls.is_running


def test_why_a_server_did_not_start_is_shown() -> None:
    server = Server(available_kinds()[0], ["--no-such-option", "1"])
    try:
        with pytest.raises(ServerFailed, match="no-such-option"):
            server.start()
        assert not server.is_running
    finally:
        server.close()


def test_a_server_outlives_the_thread_that_started_it() -> None:
    server = Server(available_kinds()[0])
    try:
        thread = threading.Thread(target=server.start)
        thread.start()
        thread.join()
        assert server.cmd("PING") == "PONG"
    finally:
        server.close()


def said_before_it_was_killed(lines: str) -> list[str]:
    """The words of a program with these lines, of which no handler runs."""
    text = "import sys, time; sys.path.insert(0, sys.argv[1])\n" + lines + "time.sleep(60)\n"
    tests = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", text, tests]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        words = owner.stdout.readline().split()
        owner.kill()
    return words


def test_no_server_outlives_a_killed_owner() -> None:
    pid, path = said_before_it_was_killed(
        "from support.servers import Server, available_kinds\n"
        "server = Server(available_kinds()[0]).start()\n"
        "print(server.pid, server.unix_path, flush=True)\n"
    )
    wait_until(lambda: not is_alive(int(pid)) and not Path(path).parent.exists())


def test_programs_of_go_pass_vet() -> None:
    """The programs that tests start, and the files that these share."""
    done = run_go(ROOT / "tests", "vet", "./...", environment=go_environment())
    assert done.returncode == 0, done.stdout + done.stderr
