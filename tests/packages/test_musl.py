# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: nothing in the amalgamation is glibc's. Method: Zig compiles it, with the musl, the libc++
and the headers of Linux that it brings, into a static program, which takes a lock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .packages import pinned, program, take_lock, unpack_source

ZIG = pinned("ziglang")
TARGET = ("-target", "x86_64-linux-musl", "-Wall", "-Wextra", "-Werror", "-O1")


def test_a_static_program_against_musl_takes_a_lock(packages: Path, tmp_path: Path) -> None:
    get = [sys.executable, "-m", "pip", "install", "-q", "--target", str(tmp_path / "zig"), ZIG]
    if subprocess.run(get, check=False).returncode != 0:
        pytest.skip(f"the amalgamation with musl: needs {ZIG} from pip")
    folder = unpack_source(packages, tmp_path / "source")
    (folder / "main.c").write_text(program("source"))

    def zig(*arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "ziglang", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "zig")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    zig("c++", *TARGET, "-std=c++20", "-c", "redlatch.cc")
    zig("cc", *TARGET, "-c", "redlatch_hiredis.c")
    zig("cc", *TARGET, "-I.", "-c", "main.c")
    objects = ("main.o", "redlatch.o", "redlatch_hiredis.o")
    zig("c++", *TARGET[:2], "-static", "-o", "main", *objects)
    headers = subprocess.run(["readelf", "--program-headers", folder / "main"],
                             capture_output=True, text=True, check=True)
    assert "INTERP" not in headers.stdout
    take_lock(folder / "main")
