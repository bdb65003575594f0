# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Java, and the package for Java programs: compiled here, with the library of the build.

    command = java_program("Runner", [ROOT / "tests/x"])

Tests that need Java are skipped if no JDK is installed that is new enough.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

from .build import ROOT, alone, build_folder, built

OLDEST_JAVA = 17
COMPILE_S = 300.0
# For processes that live for a second or two, a fast start matters more than fast code.
START_FAST = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-XX:-UsePerfData")

_PACKAGE = ROOT / "java/redlatch/src/main/java"
# Stubs of the annotations that the package uses, which do not exist at run time.
_ANNOTATIONS = ROOT / "tests/support/jspecify"


@cache
def find_jdk() -> Path | None:
    """The folder of a JDK that is new enough, from JAVA_HOME or PATH."""
    home, on_path = os.environ.get("JAVA_HOME"), shutil.which("javac")
    candidates = [Path(home)] if home else []
    candidates += [Path(on_path).resolve().parents[1]] if on_path else []
    for jdk in candidates:
        if not os.access(jdk / "bin/javac", os.X_OK):
            continue
        done = subprocess.run(
            [str(jdk / "bin/javac"), "-version"], capture_output=True, text=True, check=False
        )
        version = re.search(r"javac (\d+)", done.stdout + done.stderr)
        if version and int(version[1]) >= OLDEST_JAVA:
            return jdk
    return None


def jdk_tool(name: str) -> str:
    """A command of the JDK, such as `javac`."""
    jdk = find_jdk()
    if jdk is None:
        pytest.skip(f"needs a JDK {OLDEST_JAVA} or later")
    return str(jdk / "bin" / name)


def _run(*command: str) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMPILE_S
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _sources(parts: Iterable[Path]) -> list[Path]:
    """The sources in folders, and single files."""
    found = (part.rglob("*.java") if part.is_dir() else [part] for part in parts)
    every = sorted(path for paths in found for path in paths)
    return [path for path in every if path.name != "module-info.java"]


def _digest(sources: list[Path], *more: str) -> str:
    content = hashlib.sha256("\0".join(more).encode())
    for path in sources:
        content.update(f"\0{path}\0".encode() + path.read_bytes())
    return content.hexdigest()


def _stamp(jar: Path) -> Path:
    """The file with the digest of the jar's sources."""
    return jar.with_suffix(".stamp")


def _compile(name: str, sources: list[Path], *options: str, uses: Path | None = None) -> Path:
    """A jar of the sources, made again if they or the jar that they use have changed."""
    javac = jdk_tool("javac")
    jar = build_folder() / "java" / f"{name}.jar"
    stamp = _stamp(jar)
    if uses:
        options += ("-cp", str(uses))
    digest = _digest(sources, javac, *options, _stamp(uses).read_text() if uses else "")
    with alone("java"), tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
        if jar.exists() and stamp.exists() and stamp.read_text() == digest:
            return jar
        command = [javac, "--release", str(OLDEST_JAVA), "-proc:none", "-d", f"{scratch}/classes"]
        _run(*command, *options, *map(str, sources))
        _run(jdk_tool("jar"), "cf", f"{scratch}/made.jar", "-C", f"{scratch}/classes", ".")
        os.replace(f"{scratch}/made.jar", jar)  # A process that has the old one open keeps it.
        stamp.write_text(digest)
    return jar


@cache
def package_jar() -> Path:
    """The present package of this checkout, without the library."""
    return _compile("redlatch", _sources([_PACKAGE, _ANNOTATIONS]))


def java_command(*jars: Path) -> list[str]:
    """The command that starts a program with the package; append the name of its class."""
    library = built("java/libredlatchjni.so")
    path = ":".join(map(str, [*jars, package_jar()]))
    java = jdk_tool("java")
    return [java, *START_FAST, f"-Dio.redlatch.library={library}", "-cp", path]


def with_archive(command: list[str], dump: Callable[[list[str]], object]) -> list[str]:
    """`command`, a java_program, with an archive of the classes that it loads when `dump` runs it:
    they are neither read nor verified again. The classes that the JVM does not find there as they
    were, it takes from the jars."""
    java, *words = command
    jar = Path(words[words.index("-cp") + 1].partition(":")[0])
    archive = jar.with_suffix(".jsa")
    silent = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    with alone("java"):
        if not archive.exists() or archive.stat().st_mtime_ns < jar.stat().st_mtime_ns:
            made = archive.with_suffix(".made")
            made.unlink(missing_ok=True)
            dump([java, f"-XX:ArchiveClassesAtExit={made}", *silent, *words])
            os.replace(made, archive)
    return [java, f"-XX:SharedArchiveFile={archive}", *silent, *words]


@cache
def java_program(main: str, *parts: Path) -> list[str]:
    """The command that starts the class `main` of these files and folders."""
    # -try: a block may declare a lease only to close it.
    warnings = ("-Xlint:all,-try", "-Werror")
    jar = _compile(main.lower(), _sources(parts), *warnings, uses=package_jar())
    return [*java_command(jar), main]
