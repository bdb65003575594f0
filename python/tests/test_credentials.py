# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a callable gives passwords that change, and no lease ends by that.

Method: an ACL user whose password is rotated, CLIENT LIST for its connection.
"""

from __future__ import annotations

import asyncio
import gc
import re
import threading
from collections.abc import Iterator

import pytest
import redlatch
from redlatch._errors import new_error
from support.servers import Server
from support.wait import wait_until

THREAD = "redlatch-credentials"


class App:
    """The user "app", and a callable that knows its password."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.password = ""
        self.calls = 0
        self.valid = 1.0
        self.rotate("S3cret0")

    def rotate(self, password: str) -> None:
        rules = ("reset", "on", f">{password}", "~*", "&*", "+@all")
        with self.server.connect() as connection:
            connection.cmd("ACL", "SETUSER", "app", *rules)
        self.password = password

    def __call__(self) -> redlatch.Credentials:
        self.calls += 1
        self.rotate(f"S3cret{self.calls}")
        return redlatch.Credentials("app", self.password, self.valid)

    def connections(self) -> set[str]:
        with self.server.connect() as connection:
            clients = connection.cmd("CLIENT", "LIST").decode()
        return set(re.findall(r"^id=(\d+) .*user=app ", clients, re.MULTILINE))


@pytest.fixture
def app(server: Server) -> Iterator[App]:
    yield App(server)
    with server.connect() as connection:
        connection.cmd("ACL", "DELUSER", "app")


def threads() -> int:
    return sum(thread.name == THREAD for thread in threading.enumerate())


def test_a_lease_outlives_its_password_on_one_connection(app: App) -> None:
    with redlatch.connect(app.server.url, credentials=app) as client:
        with client.lock("kept", ttl=5) as lease:
            before = app.connections()
            assert len(before) == 1
            wait_until(lambda: app.calls >= 3)
            lease.extend(5)
            assert app.connections() == before
    wait_until(lambda: threads() == 0)


def test_an_exception_is_the_reason(server: Server) -> None:
    def broken() -> redlatch.Credentials:
        raise OSError("vault is sealed")

    with pytest.raises(redlatch.Unavailable, match="OSError: vault is sealed"):
        redlatch.connect(server.url, credentials=broken)


def test_a_wrong_answer_is_named_but_not_shown(server: Server) -> None:
    with pytest.raises(redlatch.Unavailable, match=r"must return .* \(got str\)") as caught:
        redlatch.connect(server.url, credentials=lambda: "S3cret")  # type: ignore
    assert "S3cret" not in str(caught.value)
    assert "S3cret" not in repr(redlatch.Credentials("app", "S3cret"))


@pytest.mark.parametrize("valid", [0.5, 0, -0.0005, -0.001, -1, -1000.0, float("-inf")])
def test_credentials_that_have_ended_are_refused(server: Server, valid: float) -> None:
    """Goal: the time until an end that is over is never taken for none."""
    with pytest.raises(redlatch.Unavailable) as caught:
        redlatch.connect(server.url, credentials=lambda: ("default", "any", valid))
    allowed = f"valid must be 1 s or more, or None for no end (got {valid!r} s)"
    assert str(caught.value).endswith(allowed)


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    "failure",
    [SystemExit(1), asyncio.CancelledError(), GeneratorExit(), MemoryError(), Wordless()],
    ids=lambda failure: type(failure).__name__,
)
def test_nothing_that_is_raised_ends_the_renewal(app: App, failure: BaseException) -> None:
    """Goal: after any failure the callable is called again, and a lease stays over a connection
    that is made anew."""
    failures = [failure]

    def fetch() -> redlatch.Credentials:
        if app.calls == 1 and failures:
            raise failures.pop()
        return app()

    with redlatch.connect(app.server.url, credentials=fetch) as client:
        with client.lock("kept", ttl=10) as lease:
            wait_until(lambda: app.calls >= 2)
            assert not failures
            with app.server.connect() as connection:
                connection.cmd("CLIENT", "KILL", "USER", "app")
            lease.extend(10)


def test_an_answer_without_memory_is_repeated(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [1, 2]

    def fail_twice() -> redlatch._core.Error:
        if threading.current_thread().name == THREAD and failures:
            failures.pop()
            raise redlatch.NoMemory("no memory", redlatch.Status.E_NO_MEMORY)
        return new_error()

    monkeypatch.setattr(redlatch._credentials, "_PAUSE", 0.01)
    monkeypatch.setattr(redlatch._credentials, "new_error", fail_twice)
    with redlatch.connect(app.server.url, credentials=app):
        assert not failures


def test_no_answer_fails_in_time_and_a_dropped_client_ends_the_thread(server: Server) -> None:
    go_on = threading.Event()

    def late() -> redlatch.Credentials:
        go_on.wait()
        return redlatch.Credentials("default", "any")

    client = redlatch.connect(server.url, wait=None, credentials=late, connect_timeout=0.1)
    with pytest.raises(redlatch.Unavailable, match="has not given credentials in time"):
        client.acquire("late", timeout=0)
    del client
    gc.collect()
    go_on.set()
    wait_until(lambda: threads() == 0)
