# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Maven, on java/ with the library of the build."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.build import ROOT, built
from support.java import jdk_tool

FOLDER = ROOT / "java"
VERIFY_S = 900.0

# What Maven says when it has not, or cannot get, what it was told to use.
_NOT_FETCHED = re.compile(
    r"in offline mode|Could not transfer|Could not find artifact|could not be resolved"
)


def run_maven(*arguments: str, folder: Path = FOLDER) -> subprocess.CompletedProcess[str]:
    """What it needs is fetched, with the settings of whoever runs this, where it is not there."""
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("needs Maven")
    jdk_tool("javac")
    options = ["-B", "-q", f"-Dredlatch.library={built('java/libredlatchjni.so')}"]
    for offline in (["-o"], []):
        done = subprocess.run(
            [maven, *options, *offline, *arguments],
            cwd=folder,
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
    pytest.skip(f"what Maven needs could not be fetched: {lines[0]}")


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
