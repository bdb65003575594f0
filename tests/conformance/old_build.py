# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The C runner of an older commit, with the library of that commit."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

from support.build import ROOT, alone

from .runners import compile_c

OFF = ("TESTS", "CLI", "EXAMPLES", "JAVA")


def runner_of(commit: str) -> Path:
    """Built once below build/, where it stays for the next run."""
    folder = ROOT / "build" / f"old-{commit[:12]}"
    program = folder / "runner_c"
    with alone("old-build"):
        if not program.exists():
            _unpack(commit, folder)
            _build(folder)
            compile_c(program, folder, folder / "build/dev")
    return program


def _unpack(commit: str, folder: Path) -> None:
    done = subprocess.run(["git", "-C", str(ROOT), "archive", commit], capture_output=True)
    assert done.returncode == 0, (
        f"the sources of commit {commit[:12]} are needed, and this checkout does not have them "
        f"(with a shallow clone: git fetch --unshallow): {done.stderr.decode().strip()}"
    )
    folder.mkdir(exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder)
    # It needs what scripts/setup has fetched for this tree.
    if not (folder / ".deps").exists():
        (folder / ".deps").symlink_to(ROOT / ".deps")


def _build(folder: Path) -> None:
    off = [f"-DREDLATCH_BUILD_{part}=OFF" for part in OFF]
    for words in (
        ["cmake", "--preset", "dev", *off],
        ["cmake", "--build", "--preset", "dev", "-j2", "--target", "redlatch"],
    ):
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(words)}:\n{done.stdout[-4000:]}{done.stderr}"
