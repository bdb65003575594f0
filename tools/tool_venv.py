# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The programs of tools/requirements.txt, in a virtual environment below build/.

The first use makes it, with pip, which needs the network. Processes may use it at the same time.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent / "requirements.txt"


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Wait until no other process is inside with the same path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def pinned(name: str) -> str:
    """The line of the requirements that has this package."""
    lines = REQUIREMENTS.read_text().splitlines()
    (found,) = (line for line in lines if line.startswith(f"{name}=="))
    return found


def tool_python(root: Path) -> Path:
    """The interpreter of the environment of this checkout."""
    folder = root / "build/package-tools"
    python, installed = folder / "bin/python", folder / "installed.txt"
    with only_one(folder.with_suffix(".lock")):
        if installed.exists() and installed.read_text() == REQUIREMENTS.read_text():
            return python
        venv.create(folder, with_pip=True)
        command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        done = subprocess.run(
            [*command, "-r", str(REQUIREMENTS)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            sys.exit(f"pip cannot install {REQUIREMENTS}:\n{done.stdout}{done.stderr}")
        installed.write_text(REQUIREMENTS.read_text())
    return python
