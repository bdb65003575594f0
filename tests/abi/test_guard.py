# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the ABI only grows. Method: tools/abi.py compares the header with the committed baseline,
here and in a tree with each kind of change planted."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.build import ROOT

from .library import HEADER

CANNOT_TELL = 2
VERSION = "RL_API const char *rl_version(void);"


def guard(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "tools/abi.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == CANNOT_TELL:
        pytest.skip(done.stderr.strip())
    return done.returncode, done.stdout + done.stderr


def test_the_header_is_the_baseline() -> None:
    assert guard() == (0, "")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("capi/include", "tests/abi"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def changed(tree: Path, old: str, new: str) -> str:
    """Put `new` in the header in the place of `old`. Returns the option that names the tree."""
    header = tree / HEADER.relative_to(ROOT)
    text = header.read_text()
    assert text.count(old) == 1
    header.write_text(text.replace(old, new))
    return f"--root={tree}"


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        (VERSION, "", "rl_version"),
        (VERSION, "RL_API const char *rl_version(int32_t part);", "parameter 1 of type"),
        (VERSION, "RL_API int32_t rl_version(void);", "return type changed"),
        ("RL_MODE_READ = 2", "RL_MODE_READ = 4", "RL_MODE_READ = 2"),
        ("RL_NO_NUMBER INT64_MIN", "RL_NO_NUMBER INT64_MAX", "RL_NO_NUMBER = INT64_MIN"),
        ("#define RL_NO_TEXT SIZE_MAX", "", "RL_NO_TEXT = SIZE_MAX"),
        ("typedef int32_t rl_status;", "typedef int64_t rl_status;", "rl_status"),
    ],
    ids=["removed", "parameter", "result", "constant", "macro", "macro removed", "type"],
)
def test_a_change_is_explained_and_never_accepted(
    old: str, new: str, named: str, tree: Path
) -> None:
    option = changed(tree, old, new)
    for arguments in ((option,), (option, "--update")):
        status, said = guard(*arguments)
        assert status == 1
        assert said.startswith("The ABI must only grow") and named in said, said


def test_a_constant_must_be_a_number(tree: Path) -> None:
    option = changed(tree, "RL_MODE_READ = 2", "RL_MODE_READ = 1 << 1")
    status, said = guard(option)
    assert status == 1 and "must be NAME = NUMBER (got RL_MODE_READ = 1 << 1)" in said, said


def test_an_addition_updates_the_baseline_in_the_same_commit(tree: Path) -> None:
    option = changed(tree, VERSION, f"{VERSION}\nRL_API int32_t rl_added(const rl_lease *lease);")
    status, said = guard(option)
    assert status == 1 and "tests/abi/redlatch.symbols, tests/abi/redlatch.abi" in said, said
    assert guard(option, "--update") == (0, "")
    assert guard(option) == (0, "")
    # From then on it is a part of the ABI.
    changed(tree, "rl_added(const rl_lease *lease)", "rl_added(int64_t tag)")
    assert guard(option)[0] == 1
