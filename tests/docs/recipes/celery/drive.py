# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Sends tasks to a worker of tasks.py with two processes, and looks at what becomes of them."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import redlatch
from redlatch.testing import assert_free, assert_locked
from reports import LIMIT_S, wait_for
from tasks import report

WORKER = ["-m", "celery", "-A", "tasks", "worker", "--pool", "prefork", "-c", "2", "-l", "WARNING"]
QUIET = ["--without-gossip", "--without-mingle", "--without-heartbeat"]


def send(day: str) -> object:
    """A message is moved when it is complete: a reader could meet a part of one."""
    task = report.delay(day)
    for file in Path("out").iterdir():
        file.rename(Path("queue") / file.name)
    return task


def wait_for_state(task: object, state: str) -> None:
    end = time.monotonic() + LIMIT_S
    while task.state != state:
        assert time.monotonic() < end, f"{task.state} in place of {state}"
        time.sleep(0.05)


def one_worker_runs_it(client: redlatch.Client) -> None:
    first = send("monday")
    wait_for("monday.begun")
    assert_locked(client, "report:monday")
    assert send("monday").get(LIMIT_S) == "another worker runs it"
    Path("monday.end").touch()
    assert first.get(LIMIT_S) is None
    assert_free(client, "report:monday")
    assert Path("monday.begun").read_text().count("\n") == 1


def a_loss_is_a_retry(client: redlatch.Client) -> None:
    task = send("tuesday")
    wait_for("tuesday.begun")
    client.force_release("report:tuesday")
    Path("tuesday.end").touch()
    wait_for_state(task, "RETRY")
    assert "LockLost" in repr(task.result), task.result


with subprocess.Popen([sys.executable, *WORKER, *QUIET]) as worker:
    try:
        with redlatch.from_env() as watching:
            one_worker_runs_it(watching)
            a_loss_is_a_retry(watching)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(LIMIT_S) == 0
    finally:
        worker.kill()
