# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The programs in peers/, built into build/interop with the libraries that they name.

What they are made of is pinned, with checksums where its ecosystem has them. It is fetched once,
and again when a file of the program changes. A test whose program cannot be fetched, or has nothing
to run it, is skipped; what was fetched and is wrong fails it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from support.build import ROOT, alone
from support.go import PINNED, find_go
from support.program import run_to_end

SOURCES = Path(__file__).parent / "peers"
BUILD = ROOT / "build/interop"
FETCH_S = 600.0

# What package managers say when they were given something else than what is pinned.
_TAMPERED = ("EINTEGRITY", "checksum mismatch")


class NotFetched(Exception):
    """What a program is made of could not be had."""


def _run(command: list[str], folder: Path, **environment: str) -> str:
    done = run_to_end(command, folder, env={**os.environ, **environment}, limit=FETCH_S)
    said = done.stdout + done.stderr
    assert done.returncode == 0, f"{' '.join(command)}\n{said[-4000:]}"
    return said


def _fetch(command: list[str], folder: Path, **environment: str) -> None:
    try:
        _run(command, folder, **environment)
    except AssertionError as error:
        if any(word in str(error) for word in _TAMPERED):
            raise
        raise NotFetched(str(error)) from None


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise NotFetched(f"needs {name}")
    return path


def _copy(language: str) -> Path:
    """The sources, in a folder where what is fetched does not come among them."""
    folder = BUILD / language
    shutil.copytree(SOURCES / language, folder, dirs_exist_ok=True)
    return folder


def _build_go() -> None:
    go = find_go()
    if go is None:
        raise NotFetched("needs Go 1.21 or later")
    _fetch([go, "mod", "download"], SOURCES / "go", **PINNED)
    _run([go, "build", "-o", str(BUILD / "go/peer"), "."], SOURCES / "go", **PINNED)


def _build_node() -> None:
    _tool("node")
    _fetch([_tool("npm"), "ci", "--no-audit", "--no-fund"], _copy("node"))


def _build_java() -> None:
    maven, javac = _tool("mvn"), _tool("javac")
    folder = _copy("java")
    jars, classes = folder / "jars", folder / "classes"
    for made in (jars, classes):
        shutil.rmtree(made, ignore_errors=True)
    _fetch([maven, "-q", "-B", "dependency:copy-dependencies"], folder)
    # Maven has no file of checksums.
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in jars.iterdir()}
    lines = (SOURCES / "java/jars.sha256").read_text().splitlines()
    assert found == {line.split()[1]: line.split()[0] for line in lines}
    sources = [str(path) for path in sorted(folder.glob("*.java"))]
    command = [javac, "-Xlint:all", "-Werror", "-proc:none", "-cp", f"{jars}/*"]
    _run([*command, "-d", str(classes), *sources], folder)


_BUILDERS: dict[str, Callable[[], None]] = {
    "go": _build_go,
    "node": _build_node,
    "java": _build_java,
}


def _command(language: str) -> list[str]:
    folder = BUILD / language
    if language == "python":
        return [sys.executable, str(SOURCES / "python/peer.py")]
    if language == "go":
        return [str(folder / "peer")]
    if language == "node":
        return ["node", str(folder / "peer.js")]
    # Quick to start, and few threads: there are two cores.
    options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
    return ["java", *options, "-cp", f"{folder}/classes:{folder}/jars/*", "Peer"]


def _state(language: str) -> str:
    files = sorted(path for path in (SOURCES / language).iterdir() if path.is_file())
    digests = (hashlib.sha256(path.read_bytes()).hexdigest() + path.name for path in files)
    return " ".join(digests)


@cache
def _built(language: str) -> str:
    """"", or why it could not be built."""
    with alone(f"interop-{language}"):
        return _build(language)


def _build(language: str) -> str:
    stamp = BUILD / language / "stamp"
    state = _state(language)
    if stamp.exists() and stamp.read_text() == state:
        return ""
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    try:
        _BUILDERS[language]()
    except NotFetched as error:
        return str(error)
    stamp.write_text(state)
    return ""


def command_of(language: str) -> list[str]:
    """How the program of this language is started."""
    if language != "python" and (why := _built(language)):
        pytest.skip(f"{language}: {why}")
    return _command(language)
