# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A real PostgreSQL server for tests, on a unix socket in a folder of its own.

    with Postgres() as database:
        database.run("SELECT 1")
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from .servers import Reaper
from .wait import LIMIT, wait_until

# Debian puts what starts a server beside the PATH, by version.
_DEBIAN = "/usr/lib/postgresql"
_USER = "redlatch"


def program(name: str) -> str:
    """The path of a program of PostgreSQL, of the newest version."""
    folders = sorted(Path(_DEBIAN).glob("*/bin"), key=lambda path: float(path.parent.name))
    path = os.pathsep.join(map(str, [*reversed(folders), os.environ["PATH"]]))
    found = shutil.which(name, path=path)
    assert found, f"no {name}: `scripts/setup --for docs` installs PostgreSQL"
    return found


class Postgres:
    """One server. As root it runs as another user, because PostgreSQL refuses root."""

    def __init__(self) -> None:
        # A unix socket's path has room for 107 bytes only, hence not below a test's folder.
        self._folder = Path(tempfile.mkdtemp(prefix="redlatch-"))
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            other = pwd.getpwnam("nobody")
            self._as = {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}
            os.chown(self._folder, other.pw_uid, other.pw_gid)
        self._server: subprocess.Popen[bytes] | None = None
        self._reaper: Reaper | None = None

    def __enter__(self) -> Postgres:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, script: str) -> str:
        """What psql prints for a script: rows and \\echo, nothing else."""
        done = self._psql(script)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start_psql(self) -> subprocess.Popen[str]:
        """A client that runs what is written to its standard input."""
        pipe = subprocess.PIPE
        return subprocess.Popen(self._client(), stdin=pipe, stdout=pipe, text=True)

    def close(self) -> None:
        if self._reaper:
            self._reaper.stop()
        if self._server:
            self._server.send_signal(signal.SIGQUIT)  # at once; it ends its own processes
            self._server.wait(LIMIT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _client(self) -> list[str]:
        options = ["-XqAt", "-v", "ON_ERROR_STOP=1", "-h", str(self._folder), "-U", _USER]
        return [program("psql"), *options, "postgres"]

    def _psql(self, script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._client(), input=script, capture_output=True, text=True, timeout=LIMIT, check=False
        )

    def _start(self) -> None:
        data, log = self._folder / "data", self._folder / "log"
        with open(log, "wb") as output:
            streams: Any = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
            create = [program("initdb"), "-D", data, "-U", _USER, "-A", "trust", "--no-sync"]
            create += ["-E", "UTF8", "--locale=C"]
            subprocess.run(create, cwd=self._folder, **streams, **self._as, check=True)
            serve = [program("postgres"), "-D", data, "-k", self._folder]
            serve += ["-c", "listen_addresses=", "-c", "fsync=off"]
            self._server = subprocess.Popen(serve, cwd=self._folder, **streams, **self._as)
        self._reaper = Reaper(self._server.pid, self._folder)
        wait_until(self._answers)

    def _answers(self) -> bool:
        assert self._server and self._server.poll() is None, (self._folder / "log").read_text()
        return self._psql("SELECT 1").returncode == 0
