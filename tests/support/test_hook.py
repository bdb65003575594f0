# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the hook before a commit refuses a bad file, and only for what is committed.
Method: a repository of the test's own with the hook, what it runs, and the style of C."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .build import ROOT
from .program import run_to_end

PARTS = (
    "tools/class_sizes.py",
    "tools/docstrings.py",
    "tools/sentences.py",
    "tools/tidy.py",
    "tools/tidy_planted.py",
    "tools/words.py",
    ".clang-format",
)
SPDX = "SPDX-License-Identifier: Apache-2.0\n"
GOOD = "# " + SPDX
WIDE = GOOD + "# " + "x" * 100 + "\n"
CROOKED = f"// {SPDX}int  x;\n"


class Repository:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.run("git", "init", "-q")
        self.run("git", "config", "core.hooksPath", "tools/hooks")
        for name in PARTS:
            self.write(name, (ROOT / name).read_text())
        (folder / "tools/tidy.py").chmod(0o755)
        shutil.copytree(ROOT / "tools/hooks", folder / "tools/hooks")
        assert self.commit() == ""

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
        # A run of these tests may itself be a child of git. No setting of this machine counts.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        kept |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        env = kept | dict.fromkeys(names, "test")
        return run_to_end(command, self._folder, env=env, limit=300.0, joins=True)

    def write(self, name: str, text: str) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def stage(self) -> None:
        assert self.run("git", "add", "-A").returncode == 0

    def commit(self) -> str:
        """Commit all changes; the findings if the hook refuses them."""
        self.stage()
        return self.commit_staged()

    def commit_staged(self) -> str:
        done = self.run("git", "commit", "-q", "-m", "x")
        if done.returncode == 0:
            return ""
        assert done.stdout, "refused without a reason"
        return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_a_good_file_passes_and_a_bad_one_is_refused(repository: Repository) -> None:
    repository.write("a b.py", GOOD)
    assert repository.commit() == ""
    repository.write("a b.py", WIDE)
    assert repository.commit() == "a b.py:2: 102 columns; at most 100\n"
    repository.write("a b.py", GOOD + "x = 1\n")
    assert repository.commit() == ""


def test_the_staged_content_counts(repository: Repository) -> None:
    repository.write("a.py", WIDE)
    repository.stage()
    repository.write("a.py", GOOD)
    assert "102 columns" in repository.commit_staged()
    repository.stage()
    repository.write("a.py", WIDE)
    assert repository.commit_staged() == ""


def test_an_include_of_an_unchanged_file_is_followed(repository: Repository) -> None:
    repository.write("core/lock/up.h", f"// {SPDX}")
    repository.write("core/base/a.h", f"// {SPDX}")
    repository.write("core/timing/a.h", f'// {SPDX}#include "base/a.h"\n')
    assert repository.commit() == ""
    repository.write("core/base/a.h", f'// {SPDX}#include "lock/up.h"\n')
    assert "core/base/a.h:2: core/base includes lock/up.h" in repository.commit()


@pytest.mark.skipif(shutil.which("clang-format-14") is None, reason="needs clang-format-14")
def test_the_format_of_c_is_checked(repository: Repository) -> None:
    repository.write("a.h", CROOKED)
    assert repository.commit() == "a.h: not formatted; clang-format-14 -i\n"
    # A generated file is as its generator makes it.
    repository.write("a.h", CROOKED + "// DO NOT" + " EDIT\n")
    assert repository.commit() == ""


@pytest.mark.skipif(shutil.which("gofmt") is None, reason="needs gofmt")
def test_the_format_of_go_is_checked(repository: Repository) -> None:
    repository.write("a.go", f"// {SPDX}package a\n\nvar  x = 1\n")
    assert repository.commit() == "a.go: not formatted; gofmt -w\n"


def test_a_removed_file_is_not_looked_for(repository: Repository, tmp_path: Path) -> None:
    repository.write("a.py", GOOD)
    assert repository.commit() == ""
    (tmp_path / "a.py").unlink()
    assert repository.commit() == ""
