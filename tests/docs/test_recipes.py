# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the code of docs/recipes.md does with the real frameworks what the page says of it.

Method: each block is put beside the driver of its framework, in the folder recipes, which sends
requests or tasks, and takes the lock away. Units and manifests are read, and their commands run.
"""

from __future__ import annotations

import configparser
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
import redlatch
from redlatch.testing import assert_free, assert_locked
from support.build import ROOT, alone, built
from support.go import go_build
from support.java import java_command, jdk_tool, package_jar
from support.maven import run_maven
from support.program import run_to_end
from support.servers import PORT_ATTEMPTS, Server, available_kinds, free_port
from support.wait import LIMIT, wait_until

from .pages import RECIPES, all_blocks, blocks, file_of

DRIVERS = Path(__file__).parent / "recipes"
PAGE = RECIPES.read_text()
# Of a whole driver, with the start of its framework on a busy machine.
DRIVER_S = 120.0
# The blocks of the page, by section. Each has a test below.
KNOWN = {
    "Celery": ["python"],
    "Django": ["python"],
    "FastAPI": ["python"],
    "net/http": ["go", "go"],
    "gin": ["go"],
    "Spring Boot": ["properties", "java"],
    "cron": [],
    "systemd": ["ini"],
    "Kubernetes CronJob": ["yaml"],
}
LONGEST = 30  # lines


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def block(title: str, language: str) -> str:
    (found,) = blocks(section(title), language)
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(available_kinds()[0]) as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[redlatch.Client]:
    with redlatch.connect(server.url) as ours:
        yield ours


def environment(server: Server, **more: str) -> dict[str, str]:
    hidden = ("REDLATCH_", "VALKEY_", "REDIS", "PYTHON", "CELERY", "DJANGO")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    return kept | {"REDLATCH_URL": server.url} | more


@contextmanager
def watched(
    command: list[str], variables: dict[str, str], folder: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A running program with pipes; ended at the end of the block, or when it takes too long."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    limit = threading.Timer(DRIVER_S, process.kill)
    limit.start()
    try:
        yield process
    finally:
        limit.cancel()
        process.kill()
        process.communicate()


def lose(server: Server, client: redlatch.Client, name: str) -> None:
    """Take a lock away, and let the holder notice: its next connection asks for its locks."""
    client.force_release(name)
    with server.connect() as connection:
        for kind in ("normal", "pubsub"):
            connection.cmd("CLIENT", "KILL", "TYPE", kind)


def names_of_clients(server: Server) -> list[bytes]:
    """Of clients that have held a lock for half a second; a client deletes it when it is closed."""
    names: list[bytes] = server.cmd("KEYS", "rl1:*")
    return names


def test_every_block_is_known() -> None:
    titles = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    found = {title: [language for language, _ in all_blocks(section(title))] for title in titles}
    assert found == KNOWN
    assert max(body.count("\n") for _, body in all_blocks(PAGE)) <= LONGEST


# ---- Python --------------------------------------------------------------------------------------


@pytest.mark.parametrize("title", ["Celery", "Django", "FastAPI"])
def test_python(title: str, server: Server, tmp_path: Path) -> None:
    name = title.lower()
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"needs {title}: tests/requirements-recipes.txt")
    folder = tmp_path / name
    shutil.copytree(DRIVERS / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
    code = block(title, "python")
    (folder / file_of(code)).write_text(code)
    done = run_to_end(
        [sys.executable, "drive.py"], folder, env=environment(server), limit=DRIVER_S, joins=True
    )
    assert done.returncode == 0, done.stdout
    # Each client has deleted its name, also Django's, which ends with the interpreter.
    assert names_of_clients(server) == []


# ---- Go ------------------------------------------------------------------------------------------

GO_IMPORTS = """package main

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"redlatch.io/redlatch"
)
"""


@pytest.fixture(scope="module")
def go_server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with the functions of the page; `serve` is there for each kind of handler."""
    folder = tmp_path_factory.mktemp("go")
    shutil.copytree(DRIVERS / "go", folder, dirs_exist_ok=True)
    module = (folder / "go.mod").read_text()
    assert "../../../../go" in module
    (folder / "go.mod").write_text(module.replace("../../../../go", str(ROOT / "go")))
    handler, serve = blocks(section("net/http"), "go")
    serve_gin = serve.replace("serve(", "serveGin(").replace("handler(", "ginHandler(")
    parts = (GO_IMPORTS, handler, serve, block("gin", "go"), serve_gin)
    (folder / "page.go").write_text("\n".join(parts))
    return go_build(folder, folder / "recipes")


class GoServer:
    """Requests to a running server, and the lines that it reads and writes."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self._address = address

    def is_listening(self) -> bool:
        try:
            return self.post("/no-such-page")[0] == 404
        except (urllib.error.URLError, ConnectionError):
            return False

    def post(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{self._address}{path}", b"", LIMIT) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def await_writing(self) -> None:
        assert self.process.stdout
        assert self.process.stdout.readline().startswith("writing ")

    def say(self, word: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()


@contextmanager
def listening(program: Path, kind: str, server: Server) -> Iterator[GoServer]:
    variables = environment(server, GIN_MODE="release")
    for _ in range(PORT_ATTEMPTS):
        address = f"127.0.0.1:{free_port()}"
        with watched([str(program), kind, address], variables) as process:
            running = GoServer(process, address)
            wait_until(lambda: running.is_listening() or process.poll() is not None)
            # Another process may have taken the port meanwhile.
            if process.poll() is None:
                yield running
                return
    raise AssertionError(f"{kind} does not listen")


class Request(threading.Thread):
    """POST /report, in the background."""

    def __init__(self, server: GoServer) -> None:
        super().__init__()
        self._server = server
        self._answer = (0, "")
        self.start()
        server.await_writing()

    def run(self) -> None:
        self._answer = self._server.post("/report")

    def answer(self) -> tuple[int, str]:
        self.join(LIMIT)
        return self._answer


@pytest.mark.parametrize("kind", ["net/http", "gin"])
def test_go(kind: str, go_server: Path, server: Server, client: redlatch.Client) -> None:
    with listening(go_server, kind, server) as running:
        request = Request(running)
        assert_locked(client, "report")
        running.say("end")
        assert request.answer() == (200, "")
        assert_free(client, "report")

        request = Request(running)
        client.force_release("report")
        running.say("lose")
        code, text = request.answer()
        assert code == 503 and "lost" in text, text

        # The end of the server waits for the request, which keeps its lock until then.
        request = Request(running)
        wait_until(lambda: names_of_clients(server))
        running.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not running.is_listening())
        assert_locked(client, "report")
        running.say("end")
        assert request.answer() == (200, "")
        assert running.process.wait(LIMIT) == 0
        assert_free(client, "report")
    assert names_of_clients(server) == []


# ---- Spring Boot ---------------------------------------------------------------------------------

SPRING_IMPORTS = """
import io.redlatch.Lease;
import io.redlatch.NamedLock;
import io.redlatch.Redlatch;
import java.time.Duration;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.stereotype.Service;

"""
JARS = ROOT / "build/recipes/spring"


def checksums() -> dict[str, str]:
    return {
        jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in (JARS / "jars").glob("*")
    }


@cache
def spring_jars() -> Path:
    """What the recipe is compiled with and runs with. Maven has no file of checksums."""
    lines = (DRIVERS / "spring/jars.sha256").read_text().splitlines()
    expected = {line.split()[1]: line.split()[0] for line in lines}
    if checksums() != expected:
        shutil.rmtree(JARS, ignore_errors=True)
        JARS.mkdir(parents=True)
        shutil.copy(DRIVERS / "spring/pom.xml", JARS)
        done = run_maven("dependency:copy-dependencies", folder=JARS)
        assert done.returncode == 0, done.stdout
    assert checksums() == expected
    return JARS / "jars"


@pytest.fixture(scope="module")
def spring(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that starts the beans of the page."""
    folder = tmp_path_factory.mktemp("spring")
    with alone("recipes"):
        jars = spring_jars()
    shutil.copy(DRIVERS / "spring/Main.java", folder)
    (folder / "Page.java").write_text(SPRING_IMPORTS + block("Spring Boot", "java"))
    options = ["-Xlint:all,-try,-classfile,-auxiliaryclass", "-Werror", "-proc:none", "-cp"]
    compile_it = [jdk_tool("javac"), *options, f"{package_jar()}:{jars}/*", "-d", "classes"]
    done = subprocess.run(
        [*compile_it, "Main.java", "Page.java"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [*java_command(folder / "classes", jars / "*"), "Main"]


@pytest.mark.parametrize("source", ["properties", "environment"])
def test_spring_boot(
    source: str, spring: list[str], server: Server, client: redlatch.Client, tmp_path: Path
) -> None:
    settings, address = block("Spring Boot", "properties"), "localhost:6379"
    assert address in settings
    variables = environment(server)
    # A variable overrides the file, in which nothing listens then.
    port = server.port if source == "properties" else 1
    if source == "properties":
        del variables["REDLATCH_URL"]
    (tmp_path / "application.properties").write_text(settings.replace(address, f"127.0.0.1:{port}"))
    lines = []
    with watched(spring, variables, tmp_path) as program:
        assert program.stdout
        for line in program.stdout:
            lines.append(line.strip())
            if line == "waits to be stopped\n":
                lose(server, client, "report")
        assert program.wait(LIMIT) == 0, lines
    assert "lost" in lines, lines
    assert_free(client, "report")


# ---- systemd and Kubernetes ----------------------------------------------------------------------


def redlatch_words(command: list[str], *program: str) -> list[str]:
    """`redlatch run ..` or `once ..` of the page with another program."""
    assert Path(command[0]).name == "redlatch"
    return [str(built("cli/redlatch")), *command[1 : command.index("--") + 1], *program]


def test_systemd(server: Server, client: redlatch.Client) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(block("systemd", "ini"))
    assert unit.sections() == ["Service"]
    service = unit["Service"]
    # An empty one first: without it the unit would have two.
    starts = re.findall("^ExecStart=(.*)$", block("systemd", "ini"), re.MULTILINE)
    assert starts == ["", service["ExecStart"]]
    assert service["Environment"].startswith("REDLATCH_URL=redis://")
    assert service["KillMode"] == "mixed" and service["Restart"] == "always"
    command = shlex.split(service["ExecStart"])
    name = command[command.index("--") - 1]

    ended = subprocess.run(
        redlatch_words(command, "sh", "-c", "exit 3"), env=environment(server), timeout=LIMIT
    )
    assert ended.returncode == 3
    work = redlatch_words(command, "sh", "-c", "echo works; exec sleep 600")
    with watched(work, environment(server)) as program:
        assert program.stdout and program.stdout.readline() == "works\n"
        lose(server, client, name)
        code = str(program.wait(LIMIT))
    assert code == "79" and code not in service["RestartPreventExitStatus"].split()


def test_kubernetes(server: Server, client: redlatch.Client) -> None:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML: tests/requirements-recipes.txt")
    job = yaml.safe_load(block("Kubernetes CronJob", "yaml"))
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "CronJob")
    assert len(job["spec"]["schedule"].split()) == 5
    template = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert template["restartPolicy"] in ("Never", "OnFailure")
    (container,) = template["containers"]
    assert {"name", "image"} < container.keys()
    assert [variable["name"] for variable in container["env"]] == ["REDLATCH_URL"]
    assert all(isinstance(word, str) for word in container["command"] + container["args"])
    command = redlatch_words(container["command"], "echo", "reported")
    # Another cluster begins later. A pod that fails leaves it a try.
    failing = redlatch_words(container["command"], "sh", "-c", "echo failed; exit 3")
    starts = (failing, 3, "failed\n"), (command, 0, "reported\n"), (command, 0, "")
    for words, code, output in starts:
        done = subprocess.run(
            words, env=environment(server), capture_output=True, text=True, timeout=LIMIT
        )
        assert (done.returncode, done.stdout, done.stderr) == (code, output, "")
    assert_free(client, "nightly")
