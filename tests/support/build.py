# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The build under test: the one that REDLATCH_BUILD_DIR names, otherwise the first that exists."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def build_folder() -> Path:
    named = os.environ.get("REDLATCH_BUILD_DIR")
    folders = [Path(named)] if named else [ROOT / "build/release", ROOT / "build/dev"]
    for folder in folders:
        if (folder / "capi/libredlatch.so").exists():
            return folder.resolve()
    raise FileNotFoundError(f"no libredlatch.so in {', '.join(map(str, folders))}: build it first")


def built(path: str) -> Path:
    """A file of the build, `cli/redlatch` for example."""
    found = build_folder() / path
    if not found.exists():
        raise FileNotFoundError(f"{found} is not there: build it first")
    return found


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Excludes other workers, because tests that run in parallel make the same files."""
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / f"build/{name}.lock", "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def install(prefix: Path) -> None:
    """Install the build under test. All installations of a build write the same list, by which its
    target `uninstall` removes files: two at the same time would remove each other's."""
    command = ["cmake", "--install", str(build_folder()), "--prefix", str(prefix)]
    with alone("install"):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
