# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the amalgamation compiles without a warning and without anything else, and is the library.

Method: gcc compiles it once, for all tests. clang only checks it; the long runs have musl too.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.build import ROOT

from .packages import compile_here, program, take_lock, unpack_source

STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


@pytest.fixture(scope="module")
def compiled(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked folder, with the objects that gcc has made of it."""
    folder = unpack_source(packages, tmp_path_factory.mktemp("source"))
    (folder / "main.c").write_text(program("source"))
    compile_here(folder, "g++", "-std=c++20", "-O0", *STRICT, "-c", "redlatch.cc")
    compile_here(folder, "gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-c", "redlatch_hiredis.c")
    compile_here(folder, "gcc", "-I.", *STRICT, "-c", "main.c")
    return folder


def link(folder: Path) -> Path:
    objects = ("main.o", "redlatch.o", "redlatch_hiredis.o")
    compile_here(folder, "g++", "-o", "main", *objects, "-pthread", "-ldl")
    return folder / "main"


def test_a_program_of_both_objects_takes_a_lock(compiled: Path) -> None:
    take_lock(link(compiled))


def test_only_the_abi_is_visible_in_a_shared_library(compiled: Path) -> None:
    """The objects say it, because a user has neither our flags nor our version script."""
    done = subprocess.run(
        ["readelf", "--symbols", "--wide", "redlatch.o", "redlatch_hiredis.o"],
        cwd=compiled,
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    # Num: Value Size Type Bind Vis Ndx Name
    defined = [row for row in rows if len(row) >= 8 and row[6] != "UND"]
    visible = {
        row[7]
        for row in defined
        if row[3] in ("FUNC", "OBJECT") and row[4] == "GLOBAL" and row[5] == "DEFAULT"
    }
    listed = (ROOT / "tests/abi/redlatch.symbols").read_text().splitlines()
    assert visible == {line for line in listed if line and not line.startswith("#")}


def test_no_assert_can_end_the_program(compiled: Path) -> None:
    """Compiled without NDEBUG, as users do. With the asserts the name would be there."""
    command = ["nm", "--undefined-only", "redlatch.o", "redlatch_hiredis.o"]
    done = subprocess.run(command, cwd=compiled, capture_output=True, text=True, check=True)
    assert "malloc" in done.stdout
    assert "__assert" not in done.stdout


def test_no_name_is_one_of_hiredis(compiled: Path) -> None:
    command = ["nm", "--extern-only", "--defined-only", str(compiled / "redlatch_hiredis.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names = [line.split()[2] for line in done.stdout.splitlines()]
    assert names and [name for name in names if not name.startswith("redlatch_")] == []


def test_clang_has_no_warning(compiled: Path) -> None:
    clang = shutil.which("clang++-14") or shutil.which("clang++")
    if clang is None:
        pytest.skip("the amalgamation by clang: needs clang++")
    # What clang is asked for of an object is what differs from gcc: its warnings. Only clang knows
    # which mutex guards a field.
    flags = ("-std=c++20", *STRICT, "-Wthread-safety", "-fsyntax-only")
    compile_here(compiled, clang, *flags, "redlatch.cc")
    flags = ("-x", "c", "-Wall", "-Wextra", "-Werror", "-fsyntax-only")
    compile_here(compiled, clang, *flags, "redlatch_hiredis.c")
