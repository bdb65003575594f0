# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Programs that a test runs."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .wait import LIMIT


def run_to_end(
    command: Sequence[object],
    folder: Path | None = None,
    *,
    env: Mapping[str, str] | None = None,
    limit: float = LIMIT,
    joins: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Without input, whatever its exit code. `joins`: `stdout` has both streams."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if joins else subprocess.PIPE,
        text=True,
        check=False,
        timeout=limit,
    )


def is_alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
