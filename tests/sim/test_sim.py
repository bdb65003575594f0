# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: no seed breaks a rule, and a run that does is reported, repeatable and can be made smaller.

Method: the program `simulate` (docs/testing.md). `--seed N` names the first seed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from support.build import built
from support.program import run_to_end

ROOT = Path(__file__).resolve().parents[2]
IS_LONG = bool(os.environ.get("REDLATCH_TEST_LONG"))
SEEDS = 4_000 if IS_LONG else 500
# Two of every sixteen of SEEDS are for quorums as well, and one takes as long as five others.
QUORUM_SEEDS = 1_000 if IS_LONG else 12
SENTINEL_SEEDS = 1_000 if IS_LONG else 60
CLUSTER_SEEDS = 1_000 if IS_LONG else 20
LIMIT_SECONDS = 3000.0 if IS_LONG else 900.0
# A run that breaks a rule because of this mutant.
BROKEN = ["--seed", "2", "--simulated", "2", "--mutant", "blind-delete"]


def simulate(
    *args: object, program: str | Path = "tests/sim/simulate"
) -> subprocess.CompletedProcess[str]:
    path = built(program) if isinstance(program, str) else program
    return run_to_end([path, *args], limit=LIMIT_SECONDS)


def hash_in(text: str) -> str:
    found = re.search(r"hash ([0-9a-f]{16})", text)
    assert found, text
    return found[1]


@pytest.mark.parametrize(
    "of, seeds, share",
    [
        ([], SEEDS, 0.8),
        (["--redlock"], QUORUM_SEEDS, 0.7),
        (["--sentinel"], SENTINEL_SEEDS, 0.7),
        (["--cluster"], CLUSTER_SEEDS, 0.7),
    ],
    ids=["all", "quorums", "sentinels", "clusters"],
)
def test_no_seed_breaks_a_rule(
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
    of: list[str],
    seeds: int,
    share: float,
) -> None:
    first = request.config.getoption("--seed") or 1
    run = simulate(*of, "--from", first, "--seeds", seeds, "--jobs", 2)
    with capsys.disabled():
        print(f"\n{run.stdout}{run.stderr}")
    assert run.returncode == 0
    counted = re.search(r"^(\d+) seeds of 10 minutes that count", run.stdout, re.M)
    assert counted and int(counted[1]) >= seeds * share
    struck = re.search(r"^\d+ handshakes, (\d+) of them struck by a fault", run.stdout, re.M)
    assert struck and int(struck[1]) > 0


@pytest.mark.parametrize(
    "scenario",
    ["cut", "scarce", "batch", "flush", "heir", "stale", "behind", "late", "upgrades", "passwords"],
)
def test_no_seed_of_a_scenario_for_mutants_breaks_a_rule(scenario: str) -> None:
    run = simulate("--scenario", scenario, "--seeds", 60, "--simulated", 2, "--jobs", 2)
    assert run.returncode == 0, run.stdout


def test_same_seed_is_the_same_run_in_every_build() -> None:
    hashes = {}
    age = built("tests/sim/simulate").stat().st_mtime
    for preset in ("dev", "asan"):
        program = ROOT / "build" / preset / "tests" / "sim" / "simulate"
        # An older program was built from other sources.
        is_new = program.exists() and program.stat().st_mtime >= age
        if preset == "dev" or is_new:
            run = simulate("--seed", 3, "--simulated", 2, program=program)
            hashes[preset] = hash_in(run.stdout)
    hashes["again"] = hash_in(simulate("--seed", 3, "--simulated", 2).stdout)
    assert len(set(hashes.values())) == 1, hashes
    assert hash_in(simulate("--seed", 4, "--simulated", 2).stdout) != hashes["dev"]


def test_violation_says_how_to_repeat_it() -> None:
    run = simulate(*BROKEN, "--commit", "abc")
    assert run.returncode == 1
    assert re.search(r"seed 2, commit abc: scenario \w+, .* faults: ", run.stdout)
    assert "violation at" in run.stdout and hash_in(run.stdout)
    many = simulate("--from", 2, "--seeds", 2, "--simulated", 2, "--mutant", "blind-delete")
    assert many.returncode == 1
    assert hash_in(many.stdout) == hash_in(run.stdout)


def test_trace_tells_the_events_in_words() -> None:
    story = simulate(*BROKEN, "--trace").stdout
    assert "server: EVALSHA release" in story and "VIOLATION" in story
    assert hash_in(story) == hash_in(simulate(*BROKEN).stdout)


# Addresses in memory are others with a trace: nothing may be done in their order.
@pytest.mark.parametrize("of", ["", "--redlock", "--sentinel", "--cluster"])
def test_a_trace_changes_nothing(of: str) -> None:
    args = [*of.split(), "--seed", 7, "--simulated", 2]
    assert hash_in(simulate(*args, "--trace").stdout) == hash_in(simulate(*args).stdout)


def test_summary_is_also_json(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    options = ["--from", 2, "--seeds", 2, "--simulated", 2, "--mutant", "blind-delete"]
    run = simulate(*options, "--commit", 'a"b', "--json", path)
    found = json.loads(path.read_text())
    assert found["commit"] == 'a"b' and found["command"] == " ".join(map(str, options))
    values = {row["metric"]: row["value"] for row in found["rows"]}
    seeds = re.findall(r"^violation, seed (\d+)", run.stdout, re.M)
    assert seeds and found["broken_seeds"] == list(map(int, seeds))
    assert values["rules broken"] == len(seeds)
    assert f"{values['grants']} grants (" in run.stdout
    hits = sum(hit for _, hit in found["faults"].values())
    assert hits == values["faults that hit something"]


def test_shrunk_run_breaks_the_same_rule_with_fewer_faults() -> None:
    run = simulate(*BROKEN, "--shrink")
    needed = re.search(r"^needed: .* faults:(.*)$", run.stdout, re.M)
    replay = re.search(r"^replay: (.*)$", run.stdout, re.M)
    rule = re.search(r"^violation at [0-9.]+ s: ([^:]+):", run.stdout, re.M)
    assert needed and replay and rule
    assert len(needed[1].split()) < len(run.stdout.splitlines()[0].split("faults:")[1].split())
    again = simulate(*shlex.split(replay[1]))
    assert again.returncode == 1 and f": {rule[1]}:" in again.stdout


@pytest.mark.parametrize(
    "args, message",
    [
        (["--seeds", "0"], "'0' is no number from 1 on"),
        (["--seeds", "x"], "'x' is no number"),
        (["--simulated", "1"], "'1' is no number from 2 to"),
        (["--simulated", "400000000"], "'400000000' is no number from 2 to"),
        (["--minutes", "4294967296"], "'4294967296' is no number from 1 to"),
        (["--jobs", "4294967296"], "'4294967296' is no number from 1 to"),
        (["--without", "cut,nothing"], "there is no fault 'nothing'"),
        (["--scenario", "round"], "there is no scenario 'round'"),
        (["--mutant", "none"], "there is no mutant 'none'"),
        (["--seed"], "--seed needs a value"),
        (["--seed", "1", "--json", "x"], "--json is the summary of many seeds, not of --seed"),
        (["--json", "/no/such/folder/x"], "cannot write '/no/such/folder/x'"),
        (["--odd", "1"], "there is no option '--odd'"),
    ],
)
def test_bad_argument_is_named(args: list[str], message: str) -> None:
    run = simulate(*args)
    assert run.returncode == 2 and message in run.stderr and "usage:" in run.stderr
