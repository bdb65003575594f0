# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Makes packages, and runs programs where nothing of ours is known."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from support.build import ROOT
from support.servers import Server


def program(kind: str) -> str:
    """The program that scripts/package --try runs for this kind."""
    spec = importlib.util.spec_from_file_location("try_packages", ROOT / "tools/try_packages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.TRIALS[kind][1])


def run_packager(*arguments: str | Path, root: Path = ROOT, **variables: str) -> tuple[int, str]:
    command = [sys.executable, root / "tools/package.py", *arguments]
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def make(out: Path, *kinds: str, root: Path = ROOT, **variables: str) -> None:
    subprocess.run([ROOT / "tools/get_hiredis.sh", "--source", ROOT / ".deps"], check=True)
    archive = sorted((ROOT / ".deps").glob("hiredis-*.tar.gz"))[-1]
    status, said = run_packager("--out", out, "--hiredis", archive, *kinds, root=root, **variables)
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
