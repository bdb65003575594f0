# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a wrong option of the benchmarks is refused before anything is built or measured.
Method: scripts/bench and bench/run.py with options that cannot be right. No figure is looked at."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.build import ROOT


def ask(program: list[str], *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*program, *options], capture_output=True, text=True, timeout=60, check=False
    )


def refusal(*options: str) -> str:
    done = ask([sys.executable, str(ROOT / "bench/run.py")], *options)
    assert done.returncode == 2, done
    assert done.stdout == ""
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("commit", ["no-such-commit", "", "--all", "HEAD:bench/run.py"])
def test_against_something_that_is_no_commit(commit: str) -> None:
    text = refusal(f"--against={commit}")
    assert text.endswith(f"--against must be a commit of this repository (got {commit!r})")


def test_rows_that_cannot_be_compared_are_named() -> None:
    head = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    if head.returncode != 0:
        pytest.skip("this tree is no git repository")
    text = refusal("--against", head.stdout.strip(), "--only", "P1,P10")
    assert text.endswith("unknown: P10; there are P1, P2, P3, P4, P5, P6, P20")


def test_help_knows_the_comparison() -> None:
    done = ask([str(Path(ROOT, "scripts/bench"))], "--help")
    assert done.returncode == 0
    assert "--against COMMIT" in done.stdout
