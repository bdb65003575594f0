# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Makes packages, and runs programs where nothing of ours is known."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

from support.build import ROOT
from support.servers import Server


sys.path.insert(0, str(ROOT / "tools"))
import natives as natives  # noqa: E402
import package as package  # noqa: E402
import package_java as package_java  # noqa: E402
import package_deb as package_deb  # noqa: E402
import package_python as package_python  # noqa: E402
import package_static as package_static  # noqa: E402
import try_java as try_java  # noqa: E402
import try_packages as try_packages  # noqa: E402
from tool_venv import pinned as pinned  # noqa: E402
from tool_venv import tool_python as tool_python  # noqa: E402


def program(kind: str) -> str:
    """The program that scripts/package --try runs for this kind."""
    return try_packages.TRIALS[kind][0].program


def run_packager(
    *arguments: str | Path, root: Path = ROOT, umask: int = -1, **variables: str
) -> tuple[int, str]:
    command = [sys.executable, root / "tools/package.py", *arguments]
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **variables},
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def make(out: Path, *kinds: str, root: Path = ROOT, umask: int = -1, **variables: str) -> None:
    subprocess.run([ROOT / "tools/get_hiredis.sh", "--source", ROOT / ".deps"], check=True)
    archive = sorted((ROOT / ".deps").glob("hiredis-*.tar.gz"))[-1]
    arguments = ("--out", out, "--hiredis", archive, *kinds)
    status, said = run_packager(*arguments, root=root, umask=umask, **variables)
    assert status == 0, said


def all_files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def unpack_source(packages: Path, folder: Path) -> Path:
    (archive,) = packages.glob("source/*.tar.gz")
    with tarfile.open(archive) as source:
        source.extractall(folder)
    (unpacked,) = folder.iterdir()
    return unpacked


def take_lock(taker: Path) -> None:
    """Run a program that takes a lock."""
    with Server("redis") as server:
        command = [str(taker), f"unix://{server.unix_path}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "held, fence" in done.stdout, done.stdout + done.stderr


def compile_here(folder: Path, *command: str) -> None:
    """Run a compiler in `folder`. A warning is a failure."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
