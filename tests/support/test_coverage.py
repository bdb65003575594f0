# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: tools/coverage.py counts the lines that ran, and names those that did not.
Method: a small program of two files and a header, one of which never runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .build import ROOT

HEADER = "inline int half(int a) {\n  if (a == 0)\n    return 0;\n  return a / 2;\n}\n"
RUN = '#include "base/half.h"\nint main() { return half(1); }\n'
IDLE = "int idle() {\n  return 1;\n}\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    if shutil.which("g++") is None or shutil.which("gcov") is None:
        pytest.skip("needs g++ and gcov")
    for name, text in (("base/half.h", HEADER), ("base/run.cc", RUN), ("lock/idle.cc", IDLE)):
        path = tmp_path / "core" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "build").mkdir()
    names = ["../core/base/run.cc", "../core/lock/idle.cc"]
    command = ["g++", "--coverage", "-O0", "-I../core", *names, "-o", "program"]
    subprocess.run(command, cwd=tmp_path / "build", check=True)
    return tmp_path


def coverage(tree: Path, *files: str) -> subprocess.CompletedProcess[str]:
    tool = str(ROOT / "tools/coverage.py")
    command = [sys.executable, tool, f"--root={tree}", str(tree / "build"), *files]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_lines_are_counted_by_folder(tree: Path) -> None:
    subprocess.run([tree / "build/program"], check=True)
    rows = [line.split() for line in coverage(tree).stdout.splitlines()[1:]]
    assert rows == [
        ["core/base", "5", "4", "80.0"],
        ["core/lock", "2", "0", "0.0"],
        ["total", "7", "4", "57.1"],
    ]


def test_lines_that_did_not_run_are_named(tree: Path) -> None:
    subprocess.run([tree / "build/program"], check=True)
    assert coverage(tree, "core/base/half.h").stdout == "core/base/half.h:3: return 0;\n"


def test_wrong_arguments_are_refused(tree: Path) -> None:
    done = coverage(tree, "core/none.cc")
    assert done.returncode == 2 and "(got core/none.cc)" in done.stderr
    shutil.rmtree(tree / "build")
    done = coverage(tree)
    assert done.returncode == 2 and "must be built with --coverage" in done.stderr
