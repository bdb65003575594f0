# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Searches a model with Spin, with one set of options."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

MODELS = Path(__file__).parent
IS_LONG = os.environ.get("REDLATCH_TEST_LONG") == "1"
LIMIT_S = 600


class Run(NamedTuple):
    states: int
    failed: str  # the name of the assertion that failed, or ""
    is_complete: bool


table: list[tuple[str, int, str]] = []


def search(folder: Path, model: str, name: str, options: str) -> Run:
    """Generate the checker for one set of options, and run it to the end or to the first error."""
    # The last word on a bound counts.
    chosen = dict(option.partition("=")[::2] for option in options.split())
    defines = [f"-D{key}={value}" if value else f"-D{key}" for key, value in chosen.items()]
    # Nothing here is private to one process, so that Spin's reduction has nothing to gain.
    build = ["gcc", "-w", "-DSAFETY", "-DNOREDUCE"]
    steps = [["spin", "-a", *defines, str(MODELS / model)], [*build, "-o", "pan", "pan.c"]]
    for step in steps:
        done = subprocess.run(step, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 0, done.stdout + done.stderr
    # -E: nothing to do is a good end here.
    output = subprocess.run(
        ["./pan", "-E", "-m50000"], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S
    ).stdout
    states = re.search(r"(\d+) states, stored", output)
    assert states, output
    failed = re.search(r"assertion violated \(?(\w+)", output)
    is_complete = "errors: 0" in output and "max search depth too small" not in output
    is_complete = is_complete and "Search not completed" not in output
    run = Run(int(states[1]), failed[1] if failed else "", is_complete)
    table.append((name, run.states, run.failed or ("holds" if is_complete else "not completed")))
    return run
