# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Where and under which conditions is measured: cores, a server of our own, the load of others."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


# Where the tests of tests/interop put other libraries; and programs in Go, with what they fetch.
_ROOT = Path(__file__).resolve().parents[1]
JARS = _ROOT / "build/interop/java/jars"
NODE_MODULES = _ROOT / "build/interop/node/node_modules"
_GO_MODULE = Path(__file__).parent / "go"
_GO_BUILD = _ROOT / "build/bench-go"
# The programs; the package; and of the one library that this names, what it names.
_JAVA_SOURCES = (
    Path(__file__).parent / "java",
    _ROOT / "java/redlatch/src/main/java",
    _ROOT / "tests/support/jspecify",
)


@dataclass(frozen=True)
class Pins:
    """The core of the server and that of the clients; None leaves it to the kernel."""

    server: int | None
    client: int | None

    @staticmethod
    def of(mode: str) -> Pins:
        if mode == "none":
            return Pins(None, None)
        cores = sorted(os.sched_getaffinity(0))
        if mode == "one" or len(cores) == 1:
            return Pins(cores[0], cores[0])
        return Pins(cores[0], cores[1])


def _to_core(core: int | None) -> Callable[[], None]:
    def pin() -> None:
        if core is not None:
            os.sched_setaffinity(0, {core})

    return pin


class Server:
    """A server without persistence on a free port of 127.0.0.1."""

    def __init__(self, binary: str, core: int | None) -> None:
        self._binary = binary
        self._core = core
        self._folder = tempfile.mkdtemp(prefix="redlatch-bench-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> float:
        """Start it and return when (time.monotonic()) it first answered."""
        options = {"bind": "127.0.0.1", "port": str(self.port), "save": "", "appendonly": "no"}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        self._process = subprocess.Popen(
            [self._binary, *words],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            preexec_fn=_to_core(self._core),
        )
        end = time.monotonic() + 10
        while time.monotonic() < end:
            try:
                if self._ask("PING").startswith("+PONG"):
                    return time.monotonic()
            except OSError:
                pass
            time.sleep(0.001)
        raise RuntimeError(f"{self._binary} does not answer")

    def kill(self) -> None:
        """As a crash would end it: nothing is saved."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def version(self) -> str:
        facts = dict(
            line.split(":", 1) for line in self._ask("INFO server").splitlines() if ":" in line
        )
        if "valkey_version" in facts:
            return f"Valkey {facts['valkey_version']}"
        return f"Redis {facts['redis_version']}"

    def command_us(self) -> dict[str, float]:
        """The time it has spent in each command, what a script called included."""
        found = re.findall(r"cmdstat_(\S+?):calls=\d+,usec=(\d+)", self._ask("INFO commandstats"))
        return {name: float(usec) for name, usec in found}

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def cpu_s(self) -> float:
        """0 if it does not run any more: what it used is then counted as others'."""
        if self._process is None or self._process.poll() is not None:
            return 0.0
        # Behind the name, which may hold anything: state is the first field, utime the twelfth.
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

    def _ask(self, command: str) -> str:
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            connection.sendall(f"{command}\r\nQUIT\r\n".encode())
            parts = []
            while part := connection.recv(1 << 16):
                parts.append(part)
        return b"".join(parts).decode()


class Programs:
    """The measuring programs of one build, run on one core."""

    def __init__(self, build: Path, core: int | None) -> None:
        self._build = build
        self._folder = build / "bench"
        self.scripts = build / "core" / "scripts"
        self._core = core

    def start(
        self,
        topic: str,
        arguments: dict[str, object],
        wrapper: tuple[str, ...] = (),
        stdin: int | None = None,
    ) -> subprocess.Popen[str]:
        words = [f"{name}={value}" for name, value in arguments.items()]
        program = [str(self._folder / f"bench_{topic}")]
        if topic.endswith(".py"):
            program = [sys.executable, str(Path(__file__).parent / topic)]
        if topic.endswith(".java"):
            library = f"-Dio.redlatch.library={_jni_library(self._build)}"
            quiet = "-Dslf4j.internal.verbosity=ERROR"  # Redisson would log, and has nothing to.
            path = f"{_java_classes(self._build)}:{JARS}/*"
            program = ["java", library, quiet, "-cp", path, topic.removesuffix(".java")]
        if topic.endswith(".js"):
            program = ["node", str(Path(__file__).parent / topic)]
        if topic.endswith(".go"):
            program = [str(_GO_BUILD / topic.removesuffix(".go"))]
        return subprocess.Popen(
            [*wrapper, *program, *words],
            env={**os.environ, "NODE_PATH": str(NODE_MODULES)},
            stdin=stdin,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=_to_core(self._core),
        )


def build_go(program: str, build: Path) -> bool:
    """Of a folder of bench/go, and the library in the folder `build`; False: what it is made of, or
    a Go, is not there."""
    if shutil.which("go") is None:
        return False
    prefix = build.resolve() / "prefix"
    install = ["cmake", "--install", str(build), "--prefix", str(prefix)]
    subprocess.run(install, stdout=subprocess.DEVNULL, check=True)
    (package,) = prefix.glob("lib*/**/redlatch.pc")
    environment = {
        **os.environ,
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly",
        "PKG_CONFIG_PATH": str(package.parent),
        "CGO_LDFLAGS": f"-Wl,-rpath,{package.parents[1]}",
    }
    name = program.removesuffix(".go")
    done = subprocess.run(
        ["go", "build", "-o", str(_GO_BUILD / name), f"./{name}"],
        cwd=_GO_MODULE,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
    return done.returncode == 0


def _jni_library(build: Path) -> Path:
    return build.resolve() / "java/libredlatchjni.so"


def _java_classes(build: Path) -> Path:
    return build.resolve() / "bench/java"


def has_redisson() -> bool:
    return JARS.is_dir()


@cache
def build_java(build: Path) -> bool:
    """All of bench/java, but what needs Redisson where that is not there; False: a JDK, or the
    library for it in the folder `build`, is not there."""
    if shutil.which("javac") is None or not _jni_library(build).exists():
        return False
    sources = [path for folder in _JAVA_SOURCES for path in sorted(folder.rglob("*.java"))]
    unwanted = ("module-info",) if has_redisson() else ("module-info", "Redisson")
    wanted = [str(path) for path in sources if not path.name.startswith(unwanted)]
    classes = _java_classes(build)
    shutil.rmtree(classes, ignore_errors=True)
    command = ["javac", "--release", "17", "-proc:none", "-d", str(classes), "-cp", f"{JARS}/*"]
    done = subprocess.run([*command, *wanted], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
    return done.returncode == 0


@dataclass(frozen=True)
class _Busy:
    at: float
    cores: dict[int, float]
    stolen: float
    server: float
    own: float


class Load:
    """What others used while we measured, in percent of each core."""

    def __init__(self, servers: list[Server], pins: Pins) -> None:
        self._servers = servers
        self._pins = pins
        self._before = self._look()

    def _look(self) -> _Busy:
        cores: dict[int, float] = {}
        stolen = 0.0
        for line in Path("/proc/stat").read_text().splitlines():
            name, *fields = line.split()
            if name == "cpu":
                stolen = int(fields[7]) / _TICKS_PER_S
            elif name.startswith("cpu"):
                # user, nice, system, irq, softirq: all but idle, iowait, steal and guests.
                used = sum(int(fields[i]) for i in (0, 1, 2, 5, 6))
                cores[int(name[3:])] = used / _TICKS_PER_S
        own = 0.0
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            usage = resource.getrusage(who)
            own += usage.ru_utime + usage.ru_stime
        server = sum(server.cpu_s() for server in self._servers)
        return _Busy(time.monotonic(), cores, stolen, server, own)

    def percent(self) -> dict[str, float]:
        """By core; `all` where it is not known which core we ran on; `stolen` by a hypervisor."""
        now, before = self._look(), self._before
        elapsed = now.at - before.at
        used = {core: now.cores[core] - before.cores[core] for core in now.cores}
        server, own = now.server - before.server, now.own - before.own
        result: dict[str, float] = {}
        if self._pins.server is None or self._pins.client is None:
            result["all"] = sum(used.values()) - server - own
        else:
            used[self._pins.server] -= server
            used[self._pins.client] -= own
            result = {str(core): seconds for core, seconds in used.items()}
        result["stolen"] = now.stolen - before.stolen
        return {name: round(max(s, 0.0) * 100 / elapsed, 1) for name, s in result.items()}


def commit(root: Path) -> str:
    """The commit that was measured, `+` if core or capi differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
        return done.stdout.strip()

    head = git("rev-parse", "--short=12", "HEAD")
    return head + ("+" if git("status", "--porcelain", "--", "core", "capi") else "")


def description() -> dict[str, object]:
    """The machine, without its name."""
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": f"{platform.system()} {platform.release()}",
        "load_average_at_start": [round(x, 2) for x in os.getloadavg()],
    }
