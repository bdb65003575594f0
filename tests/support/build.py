# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""What is tested: the build that REDLATCH_BUILD_DIR names, otherwise the first that is there."""

from __future__ import annotations

import fcntl
import os
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
    """Tests that run beside each other make the same files: one of them at a time."""
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / f"build/{name}.lock", "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
