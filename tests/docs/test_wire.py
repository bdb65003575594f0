# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The table of scripts in docs/wire.md is made of the heads of the scripts, and these name the
arguments that the scripts read."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.build import ROOT

TOOL = ROOT / "tools/gen_wire.py"
SCRIPTS = "core/protocol/scripts"
COMPOSER = "core/protocol/embed_scripts.cmake"
PAGE = "docs/wire.md"


def generate(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    shutil.copytree(ROOT / SCRIPTS, tmp_path / SCRIPTS)
    for name in (COMPOSER, PAGE):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_the_page_has_the_heads_of_the_scripts() -> None:
    done = generate("--check")
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "old", "new", "shown"),
    [
        ("downgrade", "KEYS: K, Q, F, R.", "KEYS: K, Q.", "| K, Q |"),
        ("cancel", "ARGV: member, ", "ARGV: token, ", "| token, channel prefix"),
        ("cancel", "Returns {result, now,", "Returns {now,", "| `{now, flags}` |"),
        ("upgrade", "or {-2, now}", "or {-3, now}", "`{-3, now}` |"),
    ],
)
def test_another_head_changes_the_page(
    tree: Path, name: str, old: str, new: str, shown: str
) -> None:
    change(tree / SCRIPTS / f"{name}.lua", old, new)
    root = f"--root={tree}"
    done = generate("--check", root)
    assert done.returncode == 1 and "run it" in done.stdout
    assert generate(root).returncode == 0
    assert shown in (tree / PAGE).read_text()
    assert generate("--check", root).returncode == 0


def test_another_format_changes_the_page(tree: Path) -> None:
    change(tree / COMPOSER, "detach recall)", "recall)")
    assert generate("--check", f"--root={tree}").returncode == 1


@pytest.mark.parametrize("old", ["-- KEYS: ", "-- ARGV: ", "-- Returns "])
def test_a_head_without_a_part_is_refused(tree: Path, old: str) -> None:
    change(tree / SCRIPTS / "attach.lua", old, "-- ")
    done = generate("--check", f"--root={tree}")
    assert done.returncode == 1 and "attach.lua: the head is not understood" in done.stderr


def test_a_script_that_is_not_composed_is_refused(tree: Path) -> None:
    shutil.copy(tree / SCRIPTS / "attach.lua", tree / SCRIPTS / "another.lua")
    done = generate("--check", f"--root={tree}")
    assert done.returncode == 1 and "another" in done.stderr


def test_scripts_read_the_keys_that_their_heads_name() -> None:
    for path in sorted((ROOT / SCRIPTS).glob("*.lua")):
        text = path.read_text()
        line = re.search(r"^local ([\w, ]+) = KEYS\[1\]", text, re.MULTILINE)
        head = re.search(r"^-- KEYS: (.*?)(?=^-- \S)", text, re.MULTILINE | re.DOTALL)
        assert head, path
        named = set(re.findall(r"\b[A-Z]\b", head[1]))
        if line and not head[1].startswith("as "):
            beside = {"O", "V", "E"}
            read = set(line[1].split(", ")) | (beside if "KEYS[6]" in text else set())
            assert named <= read and read - named <= beside, path
