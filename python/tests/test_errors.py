# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: statuses, exceptions and the log say what the library says."""

from __future__ import annotations

import importlib.util
import logging
import pathlib
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redlatch
from redlatch import Status, _errors
from support.build import ROOT
from support.servers import Server
from support.wait import wait_until


def generated(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools/gen_python.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_statuses_are_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    assert generated("--check").returncode == 0
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    found = importlib.util.spec_from_file_location("gen_python", ROOT / "tools/gen_python.py")
    assert found is not None and found.loader is not None
    generator = importlib.util.module_from_spec(found)
    found.loader.exec_module(generator)
    statuses = generator.read_statuses(generator.SOURCE.read_text())
    assert generator.render(statuses) == generator.RESULT.read_text()
    assert generator.render(statuses[1:]) != generator.RESULT.read_text()
    assert [(s.name, s.number, s.text) for s in statuses] == [
        (s.name, s.value, s.text) for s in Status
    ]


def test_every_failure_has_a_class_of_its_own() -> None:
    failures = [status for status in Status if status < 0]
    classes = [_errors.CLASSES[status] for status in failures]
    assert len(set(classes)) == len(classes) > 10
    assert all(issubclass(one, redlatch.Error) for one in classes)
    assert all(getattr(redlatch, one.__name__) is one for one in classes)
    assert _errors.CLASSES[Status.BUSY] is _errors.CLASSES[Status.TIMEOUT] is redlatch.NotAcquired
    assert issubclass(redlatch.NotAcquired, TimeoutError)
    assert issubclass(redlatch.Invalid, ValueError)


def test_traits() -> None:
    assert Status.E_OUTCOME_UNKNOWN.maybe_applied and Status.E_OUTCOME_UNKNOWN.retryable
    assert Status.BUSY.retryable and not Status.BUSY.maybe_applied
    assert not Status.E_LOST.retryable


@pytest.mark.parametrize("status", [s for s in Status if s < 0] + [Status.BUSY, Status.TIMEOUT])
def test_errors_survive_a_pickle(status: Status) -> None:
    error = _errors.error_of(status, "said")
    _errors.add_note(error, "and more")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and again.status is status
    assert str(again) == "said" and getattr(again, "__notes__") == ["and more"]
    assert type(error).__module__ == "redlatch"


def test_note_without_add_note() -> None:
    class Old(Exception):
        add_note = property()  # As before Python 3.11.

    error = Old()
    _errors.add_note(error, "one")
    _errors.add_note(error, "two")
    assert getattr(error, "__notes__") == ["one", "two"]


# ---- connecting ----------------------------------------------------------------------------------


def test_missing_server_is_reported_at_once() -> None:
    with pytest.raises(redlatch.Unavailable, match="127.0.0.1:1"):
        redlatch.connect("redis://127.0.0.1:1")
    with pytest.raises(redlatch.Unavailable):
        redlatch.connect("redis://127.0.0.1:1", wait=0.05)
    client = redlatch.connect("redis://127.0.0.1:1", wait=None)
    with pytest.raises(redlatch.Unavailable):
        client.acquire("report", timeout=0)


def test_connecting_waits_for_the_server(server: Server) -> None:
    server.stop()
    starting = threading.Timer(0.2, server.start)
    starting.start()
    with redlatch.connect(server.url, wait=-1) as client:
        assert client.inspect("report").is_free
    starting.join()


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("redis://localhost?namespcae=x", {}, "namespace"),
        ("redis://localhost", {"namespcae": "x"}, "namespace"),
        ("http://localhost", {}, "redis"),
        ("redis://localhost", {"command_timeout": "fast"}, "command_timeout"),
        ("redis://localhost", {"command_timeout": 0.0}, "command_timeout"),
        ("redis://localhost", {"db": -1}, "db"),
    ],
)
def test_bad_address_is_an_error(url: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(redlatch.Invalid, match=said):
        redlatch.connect(url, wait=None, **options)


def test_messages_quote_any_bytes() -> None:
    client = redlatch.connect(b"unix:///nowhere/\xff\xfe", wait=None)
    with pytest.raises(redlatch.Unavailable, match="\ufffd"):
        client.acquire("report", timeout=0)
    assert "\\udcff" in repr(client)


def test_options_reach_the_library(server: Server) -> None:
    options: dict[str, Any] = {"namespace": "a:", "command_timeout": 1.5, "db": 2}
    options["connect_timeout"] = "3s"
    with redlatch.connect(server.url, holder="me", user=None, **options) as client:
        assert client.option("namespace") == "a:" and client.option("db") == "2"
        assert client.option("holder") == "me"
        assert client.option("command_timeout") == "1500ms"
        assert client.option("connect_timeout") == "3000ms"
        with client.lock("report"), server.connect() as connection:
            connection.cmd("SELECT", 2)
            assert connection.cmd("EXISTS", "a:report") == 1


def test_environment_is_read_when_asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REDLATCH_URL", "VALKEY_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(redlatch.Invalid, match="REDLATCH_URL"):
        redlatch.from_env()
    monkeypatch.setenv("REDIS_URL", server.url)
    monkeypatch.setenv("REDLATCH_NAMESPACE", "env:")
    with redlatch.from_env() as client:
        assert client.option("namespace") == "env:"
    with redlatch.from_env(namespace="mine:") as client:
        assert client.option("namespace") == "mine:"


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("redis://h?db=1;password=hunter2", {}),
        ("redis://:hunter2\ud800@h", {}),
        ("redis://h", {"password": "hunter2\ud800"}),
        ("redis://h", {"command_timeout": "2s;password=hunter2"}),
        ("redis://h", {"password=hunter2": "x"}),
        ("redis://h", {"password_file": "hunter2"}),
        ("hunter2", {}),
    ],
)
def test_no_password_is_in_an_error(url: str, options: dict[str, Any]) -> None:
    with pytest.raises(redlatch.Invalid) as caught:
        redlatch.connect(url, wait=None, **options)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(redlatch.Invalid) as caught:
        redlatch.Redlock(["redis://a", "redis://b", url.replace(" ", "")], **options)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda c: c.lock("x", tll=1), r"lock\(\) got .* 'tll'. Did you mean 'ttl'"),
        (lambda c: c.acquire("x", timout=1), r"acquire\(\) got .* Did you mean 'timeout'"),
        (lambda c: c.rlock("x", lable="a"), r"rlock\(\) got .* Did you mean 'label'"),
        (lambda c: c.rwlock("x").read(nonsense=1), r"read\(\) got .* 'nonsense'$"),
        (lambda c: c.rwlock("x").acquire_write(tll=1), r"acquire_write\(\) got .* 'ttl'"),
        (lambda c: c.rlock("x", reentrant=False), r"rlock\(\) got .* 'reentrant'$"),
        (lambda c: c.rlock("x", format="string"), r"rlock\(\) got .* 'format'"),
        (lambda c: c.rwlock("x").read(owner="o"), r"read\(\) got .* 'owner'$"),
        (lambda c: c.aio.lock("x", max_hodl=1), r"lock\(\) got .* Did you mean 'max_hold'"),
    ],
)
def test_unknown_keyword_is_of_the_function_that_was_called(call: Any, said: str) -> None:
    with redlatch.connect("redis://h", wait=None) as client:
        with pytest.raises(TypeError, match=said) as caught:
            call(client)
        assert "make_options" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"namespace": False},
        {"namespace": 1},
        {"holder": True},
        {"password": False},
        {"client_name": 2.5},
        {"command_timeout": True},
        {"db": True},
        {"holder": pathlib.Path("/x")},
    ],
)
def test_wrong_type_of_an_option_is_named(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(options))):
        redlatch.connect("redis://h", wait=None, **options)


def test_a_file_may_be_a_path(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret\n")
    with redlatch.connect("redis://h", wait=None, password_file=file, db=1) as client:
        assert client.option("db") == "1"
    with pytest.raises(redlatch.Invalid, match=str(tmp_path / "none")):
        redlatch.connect("redis://h", wait=None, password_file=tmp_path / "none")


def test_type_checkers_know_the_options() -> None:
    """mypy, which is strict here, finds each of these: else it calls the comment unused."""
    with pytest.raises(redlatch.Invalid, match="unknown option 'hodler'.*'holder'"):
        redlatch.connect("redis://h", wait=None, hodler="me")  # type: ignore[call-arg]
    with pytest.raises(redlatch.Invalid, match="'connect_timeout' must be"):
        redlatch.connect("redis://h", connect_timeout="500")  # type: ignore[arg-type]
    with pytest.raises(redlatch.Invalid, match="must be used with a Redlock only"):
        redlatch.from_env(fenced=True)  # type: ignore[call-arg]
    with pytest.raises(redlatch.Invalid, match="unknown option"):
        redlatch.Redlock(["redis://h"], quorum=2)  # type: ignore[call-arg]
    # The text of a URL works in a program without types.
    options: Any = {"connect_timeout": "500ms", "db": "1"}
    with redlatch.connect("redis://h", wait=None, **options) as client:
        assert client.option("connect_timeout") == "500ms" and client.option("db") == "1"


def test_unknown_keyword_of_a_redlock() -> None:
    with redlatch.Redlock(["redis://a"]) as redlock:
        with pytest.raises(TypeError, match=r"lock\(\) got .* 'tll'. Did you mean 'ttl'"):
            redlock.lock("x", tll=1)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"lock\(\) got .* 'confirm'$"):
            redlock.lock("x", confirm=True)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"lock\(\) got .* 'retain'$"):
            redlock.lock("x", retain=5)  # type: ignore[call-arg]


def test_long_name_is_cut_in_messages() -> None:
    with redlatch.connect("redis://127.0.0.1:1", wait=None) as client:
        lock = client.lock("x" * 10_000)
        for raises in (lock.release, lock.acquire):
            with pytest.raises(redlatch.Error) as caught:
                raises()
            assert len(str(caught.value)) < 200
        assert len(repr(lock)) < 200


def test_no_password_is_shown(server: Server) -> None:
    for part in (":hunter2@", "me:hunter2@"):
        client = redlatch.connect(f"redis://{part}127.0.0.1:1/0", wait=None, password="hunter2")
        with pytest.raises(redlatch.Unavailable) as caught:
            client.acquire("report", timeout=0)
        for shown in (repr(client), str(caught.value), repr(client.lock("report"))):
            assert "hunter2" not in shown
        assert "***" in repr(client) and client.option("password") == ""
    url = server.url.replace("redis://", "redis://:hunter2@")
    with server.connect() as connection:
        connection.cmd("CONFIG", "SET", "requirepass", "hunter3")
        try:
            with pytest.raises(redlatch.Denied) as denied:
                redlatch.connect(url)
            redlatch.connect(url, password="hunter3").close()
        finally:
            connection.cmd("CONFIG", "SET", "requirepass", "")
    assert "hunter2" not in str(denied.value)


# ---- the log -------------------------------------------------------------------------------------


@pytest.fixture
def log(
    client: redlatch.Client, caplog: pytest.LogCaptureFixture
) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, logger="redlatch"):
        redlatch._log.pass_on_log(client._handle)
        caplog.clear()
        yield caplog


def test_outage_is_logged(
    server: Server, client: redlatch.Client, log: pytest.LogCaptureFixture
) -> None:
    server.kill()

    def logged() -> list[logging.LogRecord]:
        with pytest.raises(redlatch.Error):
            client.acquire("report", timeout=0)
        return [record for record in log.records if record.name == "redlatch"]

    (record, *_) = wait_until(logged)
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("cannot reach redis://127.0.0.1:")


def test_each_client_passes_on_its_own_lines(
    server: Server, client: redlatch.Client, log: pytest.LogCaptureFixture
) -> None:
    with redlatch.connect(server.url) as other:
        lease = other.acquire("report", ttl=0.05, renew=False)
        assert lease is not None

        def is_noticed() -> bool:
            redlatch._log.pass_on_log(client._handle)  # Another client's lines are not there.
            assert not log.records
            return not client.inspect("report").holders

        wait_until(is_noticed)
        assert lease.lost
        wait_until(lambda: other.inspect("report") and "'report' was lost" in log.text)


# ---- reasons and servers -------------------------------------------------------------------------


def test_lease_says_why_it_was_lost(client: redlatch.Client) -> None:
    lease = client.acquire("report", ttl=0.05, renew=False)
    assert lease is not None and lease.lost_reason is None and lease.lost_text == ""
    assert lease.wait_lost()
    assert lease.lost_reason is redlatch.LostReason.EXPIRED
    assert lease.lost_text
    held = client.acquire("report", timeout=5)
    assert held is not None
    client.force_release("report")
    with pytest.raises(redlatch.LockLost):
        held.release()
    assert held.lost_reason is redlatch.LostReason.GONE


def test_client_knows_its_server(server: Server, client: redlatch.Client) -> None:
    with redlatch.connect(server.url, wait=None) as unused:
        (node,) = unused.info()
    assert node.state is redlatch.NodeState.UNKNOWN and node.version == ""
    with client.lock("report"):
        (node,) = client.info()
    assert node.address in server.url and node.votes and node.reason == ""
    assert (node.state, node.role) == (redlatch.NodeState.UP, redlatch.NodeRole.PRIMARY)
    assert node.version.split()[0] in ("Redis", "Valkey")
    assert node.clock_difference is not None and abs(node.clock_difference) < 30
    server.kill()

    def is_away() -> bool:
        with pytest.raises(redlatch.Error):
            client.acquire("other", timeout=0)
        (now,) = client.info()
        return now.state is redlatch.NodeState.AWAY and now.reason != "" and not now.votes

    wait_until(is_away)
