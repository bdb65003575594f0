# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the simulator finds defects, so that a run without findings means something.

Method: simulate_mutants switches on one defect at a time and simulates until a rule is broken; the
same run without the defect must break none. Each defect is first looked for where it was found
before; the seed is recorded with it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.build import ROOT, built
from support.program import run_to_end

LEAST = 193  # so that none can vanish while the places that they change move
LIMIT_SECONDS = 3000.0


def simulate_mutants(*args: str) -> subprocess.CompletedProcess[str]:
    return run_to_end([built("tests/sim/simulate_mutants"), *args], limit=LIMIT_SECONDS)


def make_copy(core: Path, output: Path) -> subprocess.CompletedProcess[str]:
    return run_to_end(
        [sys.executable, ROOT / "tests/sim/mutants.py", str(core), str(output)], limit=LIMIT_SECONDS
    )


def test_every_mutant_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    known = simulate_mutants("--list").stdout.splitlines()
    # One that is not found after so many runs would not end in time.
    done = simulate_mutants("--all", "--seeds", "2500")
    with capsys.disabled():
        print(f"\n{done.stdout}{done.stderr}")
    assert done.returncode == 0, "not every mutant was found, or one is out of date"
    assert done.stderr == "", "a rule is broken without a mutant"
    assert [line.split()[0] for line in known] == [
        line.split()[0] for line in done.stdout.splitlines()[1:]
    ]
    assert len(known) >= LEAST


def test_nothing_is_found_where_no_mutant_is_on() -> None:
    done = simulate_mutants("--mutant", "blind-delete", "--healthy", "--seeds", "50")
    assert done.returncode == 1, done.stdout
    assert "NOT FOUND by 50 runs" in done.stdout and done.stderr == ""


def test_a_place_that_is_gone_from_the_engine_stops_the_build(tmp_path: Path) -> None:
    core = tmp_path / "core"
    shutil.copytree(ROOT / "core", core)
    assert make_copy(core, tmp_path / "copy").returncode == 0
    clock = core / "timing/lease_clock.h"
    clock.write_text(clock.read_text().replace("lease / 100 + 2 * kMs;", "lease / 100;"))
    done = make_copy(core, tmp_path / "copy")
    assert done.returncode == 1
    assert "no-drift" in done.stderr and "core/timing/lease_clock.h" in done.stderr
