# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a thread that waits for itself is told so, by refusals and in the log."""

from __future__ import annotations

import logging

import pytest
import redlatch
from redlatch import _wait
from support.wait import wait_until

from .conftest import Starter


def test_self_deadlock_of_a_thread_is_reported(
    client: redlatch.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "redlatch"), client.lock("report"):
        with pytest.raises(redlatch.NotAcquired, match="holder: the thread that waits"):
            with client.lock("report", timeout=0.3):
                pass
        wait_until(lambda: "a thread waits for a lock that it holds itself" in caplog.text)
    assert caplog.text.count("holds itself") == 1


def test_self_deadlock_of_a_reader_is_reported(
    client: redlatch.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "redlatch"), client.rwlock("report").read():
        with client.rwlock("report").read(timeout=5):
            pass
        assert "holds itself" not in caplog.text
        with pytest.raises(redlatch.NotAcquired, match="holder: the thread that waits"):
            with client.rwlock("report").write(timeout=0.3):
                pass
        wait_until(lambda: "a thread waits for a lock that it holds itself" in caplog.text)


@pytest.mark.parametrize("starter", ["wait", "threading.Thread(target=wait).start"])
def test_self_deadlock_is_reported_during_the_wait(starter: str, script: Starter) -> None:
    program = script(
        f"""
import sys, threading
sys.stderr = sys.stdout
client = redlatch.connect(url)
def wait():
    with client.lock("report"), client.lock("report"):
        pass
{starter}()
"""
    )
    said = "lock 'report': a thread waits for a lock that it holds itself"
    assert program.read() == said


def test_a_wait_looks_at_the_log_within_ten_seconds() -> None:
    assert _wait.SLICE_MS + _wait.LOG_SLICE_MS < 10_000
