# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: `elect --http` answers as docs/command.md has it, and survives clients of any kind.

Method: requests over plain sockets, because some of them are malformed.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.servers import Server
from support.wait import LIMIT, wait_until

from .election import Election
from .harness import HOLD, Cli, Running

MOST_CONNECTIONS = 16
SYSTEM = 71


class Http:
    """The address of a candidate."""

    def __init__(self, running: Running) -> None:
        self.port = int(running.err.wait_for(r"answers on http://\S+:(\d+)/\n")[1])

    def open(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT)

    def send(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        with self.open() as connection:
            connection.sendall(data)
            return read_answer(connection)

    def get(self, path: str, host: str = "localhost") -> tuple[int, bytes]:
        status, _, body = self.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        return status, body

    def name(self) -> str:
        status, body = self.get("/")
        assert status == 200
        return str(json.loads(body)["name"])


def read_answer(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    data = b""
    while got := connection.recv(1 << 16):
        data += got
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    version, status, _ = first.split(" ", 2)
    assert version == "HTTP/1.1"
    headers = {key.lower(): value for key, value in (line.split(": ", 1) for line in rest)}
    assert headers["connection"] == "close"
    return int(status), headers, body


@pytest.fixture
def election(cli: Cli, name: str) -> Election:
    return Election(cli, name)


@pytest.fixture
def http(election: Election) -> Iterator[Http]:
    with election.lead("--id", "web-1", "--http", "127.0.0.1:0") as running:
        yield Http(running)


# ---- answers ----


def test_the_leader_is_named(http: Http) -> None:
    status, headers, body = http.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert body == b'{"name":"web-1"}'
    assert http.get("/healthz") == (200, b"ok\n")
    assert http.get("/?pretty=1")[0] == 200


def test_candidates_name_the_leader(election: Election) -> None:
    name = election.name
    with election.cli.hold(name) as holder:
        with election.start("--id", 'a"\\', "--http", "localhost:0", waits=name) as first:
            http = Http(first)
            assert http.name() == "", "the holder is no candidate"
            assert http.get("/healthz")[0] == 200
            assert holder.finish() == 0
            first.out.wait_for("ready")
            assert http.name() == 'a"\\', "at once: no answer of the server is needed"
            options = ["--id", "b", "--http", "127.0.0.1:0"]
            with election.start(*options, waits=name) as second:
                other = Http(second)
                wait_until(lambda: other.name() == 'a"\\')
                assert first.finish() == 0
                second.out.wait_for("ready")
                assert other.name() == "b"
                assert second.finish() == 0


def test_a_leader_that_cannot_renew_is_not_healthy(
    own_cli: Cli, own_server: Server, name: str
) -> None:
    with Election(own_cli, name).lead("--ttl", "6s", "--http", "127.0.0.1:0") as running:
        http = Http(running)
        assert http.get("/healthz") == (200, b"ok\n")
        own_server.pause()
        wait_until(lambda: http.get("/healthz") == (503, b"the leader cannot renew its lease\n"))
        own_server.resume()
        wait_until(lambda: http.get("/healthz")[0] == 200)


def test_head_has_no_body(http: Http) -> None:
    status, headers, body = http.send(b"HEAD / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n")
    assert (status, headers["content-length"], body) == (200, str(len('{"name":"web-1"}')), b"")


def test_the_oldest_form_of_a_request(http: Http) -> None:
    assert http.send(b"GET /healthz HTTP/1.0\n\n")[0] == 200


GOOD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", 405),
        (b"DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (GOOD + b"no colon\r\n\r\n", 400),
        (GOOD + b" folded: x\r\n\r\n", 400),
        (GOOD + b"Host: localhost\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\n\r\n", 400),
        (GOOD + b"X: " + b"x" * 9000 + b"\r\n\r\n", 431),
        (b"GET /" + b"x" * 20000, 431),
    ],
)
def test_other_requests_are_refused(http: Http, request_: bytes, status: int) -> None:
    got, headers, body = http.send(request_)
    assert (got, headers["content-type"]) == (status, "text/plain; charset=utf-8")
    assert body.endswith(b"\n")
    if status == 405:
        assert headers["allow"] == "GET, HEAD"
    assert http.name() == "web-1"


def test_a_request_that_ends_early(http: Http) -> None:
    with http.open() as connection:
        connection.sendall(b"GET / HTT")
        connection.shutdown(socket.SHUT_WR)
        assert read_answer(connection)[0] == 400
    with http.open():
        pass
    assert http.name() == "web-1"


# ---- the address and the Host header ----


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1", "127.9.9.9:1", "[::1]"])
def test_loopback_hosts_are_accepted(http: Http, host: str) -> None:
    assert http.get("/", host)[0] == 200


@pytest.mark.parametrize(
    "host",
    ["example.com", "localhost.example.com", "10.0.0.1", "[::]", "::1", "127.1", "", "a:b:c"],
)
def test_other_hosts_are_refused(http: Http, host: str) -> None:
    assert http.get("/", host)[0] == 400


def test_a_public_address_accepts_any_host(election: Election) -> None:
    with election.lead("--http", "0.0.0.0:0", "--http-public") as running:
        assert Http(running).get("/healthz", "example.com") == (200, b"ok\n")


def test_a_port_in_use(http: Http, election: Election) -> None:
    address = f"127.0.0.1:{http.port}"
    done = election.cli.run("elect", "--http", address, election.name, "true", code=SYSTEM)
    assert f"cannot listen on {address}: Address already in use" in done.stderr


def test_a_given_port_is_named_with_verbose_only(election: Election) -> None:
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        port = chosen.getsockname()[1]
    with election.lead("-v", "--http", f"127.0.0.1:{port}") as running:
        assert Http(running).port == port
        running.finish()
    with election.lead("--http", f"127.0.0.1:{port}") as running:
        assert "answers on" not in running.err.text
        running.finish()


# ---- many and slow clients ----


def test_twenty_connections_at_once(http: Http) -> None:
    with ExitStack() as stack:
        connections = []
        for _ in range(MOST_CONNECTIONS + 4):
            connections.append(stack.enter_context(http.open()))
            connections[-1].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for connection in connections:
            assert read_answer(connection)[0] == 200
            connection.close()


def test_idle_connections_keep_no_probe_waiting(http: Http) -> None:
    with ExitStack() as stack:
        idle = [stack.enter_context(http.open()) for _ in range(3 * MOST_CONNECTIONS)]
        assert http.get("/healthz")[0] == 200
        for connection in idle[: 2 * MOST_CONNECTIONS]:
            assert connection.recv(1) == b"", "the oldest ones have made room"


def test_a_byte_at_a_time(http: Http) -> None:
    with http.open() as connection:
        for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n":
            connection.sendall(bytes([byte]))
        assert read_answer(connection)[0] == 200


def test_slow_clients_are_ended(http: Http) -> None:
    """They fill the server; each is answered after 5 s, and others are served then."""
    with ExitStack() as stack:
        slow = [stack.enter_context(http.open()) for _ in range(MOST_CONNECTIONS)]
        for connection in slow[1:]:
            connection.sendall(b"GET / HTTP/1.1\r\n")
        assert http.name() == "web-1"
        assert slow[0].recv(1) == b"", "it has sent nothing, and gets nothing"
        for connection in slow[1:]:
            assert read_answer(connection)[0] == 408


def test_the_server_ends_with_its_command(election: Election) -> None:
    with election.lead("--http", "127.0.0.1:0", words=HOLD) as running:
        http = Http(running)
        with http.open() as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n")
            assert running.finish() == 0
            assert connection.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            http.open()
