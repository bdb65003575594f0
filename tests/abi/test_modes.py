# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a compiler in a mode that redlatch.hpp cannot be compiled in gives one error, which says
what to do."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.build import ROOT

COMPILERS = [name for name in ("g++", "clang++-14", "clang++") if shutil.which(name)]

each_compiler = pytest.mark.parametrize("compiler", COMPILERS)


def errors(compiler: str, folder: Path, *options: str) -> list[str]:
    source = folder / "user.cc"
    source.write_text("#include <redlatch/redlatch.hpp>\n")
    words = [compiler, "-fsyntax-only", f"-I{ROOT}/capi/include", *options, str(source)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == ("error" in done.stderr), done.stderr
    return [line for line in done.stderr.splitlines() if "error: " in line]


@each_compiler
@pytest.mark.parametrize(
    ("mode", "remedy"),
    [("-std=c++11", "-std=c++17"), ("-std=c++14", "-std=c++17"), ("-fno-exceptions", "exceptions")],
)
def test_a_mode_that_cannot_work_has_one_error(
    compiler: str, mode: str, remedy: str, tmp_path: Path
) -> None:
    found = errors(compiler, tmp_path, "-std=c++17", mode)
    assert len(found) == 1, found
    assert remedy in found[0] and "redlatch.h " in found[0]


@each_compiler
@pytest.mark.parametrize("mode", ["-std=c++17", "-std=c++20", "-fno-rtti"])
def test_other_modes_have_none(compiler: str, mode: str, tmp_path: Path) -> None:
    assert errors(compiler, tmp_path, "-std=c++17", mode, "-Wall", "-Wextra", "-Werror") == []
