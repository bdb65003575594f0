# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A machine that lacks what a test wants it to lack: a PATH of its own, commands that pretend."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from support.program import run_to_end

LIMIT = 300.0


def run(
    *command: str | Path, folder: Path, path: str | Path | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    hidden = ("REDLATCH_", "VIRTUAL_ENV", "PYTHON", "PKG_CONFIG", "CMAKE", "CC", "CXX")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    environment |= {"PATH": str(path or "/usr/local/bin:/usr/bin:/bin"), **more}
    return run_to_end(command, folder, env=environment, limit=LIMIT, joins=True)


def path_without(folder: Path, *names: str) -> Path:
    """A folder with all commands of the system but some."""
    folder.mkdir()
    missing = re.compile("|".join(names))
    for found in (*Path("/usr/bin").iterdir(), *Path("/usr/sbin").iterdir()):
        if not missing.fullmatch(found.name) and not (folder / found.name).is_symlink():
            (folder / found.name).symlink_to(found)
    return folder


def put(folder: Path, name: str, *lines: str) -> None:
    """A command of our own."""
    (folder / name).unlink(missing_ok=True)
    (folder / name).write_text("\n".join(("#!/bin/sh", *lines, "")))
    (folder / name).chmod(0o755)
