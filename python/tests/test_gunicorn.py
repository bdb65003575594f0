# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the requests of one worker of gunicorn, of its kind "gevent", wait for each other's locks.

Method: the real gunicorn, on a socket that the test has opened: requests wait there for the worker.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from socket import create_server

import pytest
from support.servers import Server
from support.wait import LIMIT

pytest.importorskip("gevent")
pytest.importorskip("gunicorn")

REQUESTS = 8
APP = """
import time
import redlatch

client = redlatch.connect({url!r})

def app(environ, start_response):
    with client.lock("report", timeout=20) as lease:
        time.sleep(0.01)  # the holder waits while others wait for it
        body = str(lease.fence).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


@pytest.mark.parametrize("options", [[], ["--preload"]])
def test_requests_share_a_lock(options: list[str], server: Server, tmp_path: Path) -> None:
    """With --preload redlatch is imported, and has connected, before the worker patches."""
    (tmp_path / "app.py").write_text(APP.format(url=server.url))
    with create_server(("127.0.0.1", 0), backlog=REQUESTS) as listener:
        port, descriptor = listener.getsockname()[1], listener.fileno()

        def request(_: int) -> tuple[int, int]:
            connection = HTTPConnection("127.0.0.1", port, timeout=LIMIT)
            try:
                connection.request("GET", "/")
                answer = connection.getresponse()
                return answer.status, int(answer.read())
            finally:
                connection.close()

        command = [sys.executable, "-m", "gunicorn", "--worker-class=gevent", "--workers=1"]
        command += [f"--bind=fd://{descriptor}", "--timeout=300", *options, "app:app"]
        with subprocess.Popen(
            command,
            cwd=tmp_path,
            pass_fds=[descriptor],
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                with ThreadPoolExecutor(REQUESTS) as pool:
                    answers = list(pool.map(request, range(REQUESTS)))
                process.terminate()
                _, errors = process.communicate(timeout=LIMIT)
            finally:
                if process.poll() is None:  # The worker would outlive a killed parent.
                    os.killpg(process.pid, signal.SIGKILL)
    assert [status for status, _ in answers] == [200] * REQUESTS, errors.decode()
    assert len({fence for _, fence in answers}) == REQUESTS
