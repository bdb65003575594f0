# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a wrong option of the benchmarks is refused before anything is built or measured; results
are kept and shown as they were measured.
Method: scripts/bench and bench/run.py with options that cannot be right; bench/history.py with
made results in a folder of the test's own. No figure is looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.build import ROOT


def ask(program: list[str], *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*program, *options], capture_output=True, text=True, timeout=60, check=False
    )


def refusal(*options: str) -> str:
    done = ask([sys.executable, str(ROOT / "bench/run.py")], *options)
    assert done.returncode == 2, done
    assert done.stdout == ""
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("commit", ["no-such-commit", "", "--all", "HEAD:bench/run.py"])
def test_against_something_that_is_no_commit(commit: str) -> None:
    text = refusal(f"--against={commit}")
    assert text.endswith(f"--against must be a commit of this repository (got {commit!r})")


def test_rows_that_cannot_be_compared_are_named() -> None:
    head = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    if head.returncode != 0:
        pytest.skip("this tree is no git repository")
    text = refusal("--against", head.stdout.strip(), "--only", "P1,P10")
    assert text.endswith("unknown: P10; there are P1, P2, P3, P4, P5, P6, P20")


def test_help_knows_the_comparison() -> None:
    done = ask([str(Path(ROOT, "scripts/bench"))], "--help")
    assert done.returncode == 0
    assert "--against COMMIT" in done.stdout


P1 = {"topic": "P1", "case": "1 thread", "metric": "p50 / raw", "unit": "x", "at_most": 1.1}
P2 = {"topic": "P2", "case": "64 threads", "metric": "client CPU", "unit": "us/cycle"}
MACHINE = {"cpu": "a", "cores": 2, "kernel": "Linux 6", "load_average_at_start": [0], "name": "x"}


def history(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ROOT / "bench/history.py"), f"--folder={folder}"]
    return ask(program, *map(str, arguments))


def put_result(path: Path, commit: str, value: float, **more: object) -> Path:
    rows = [
        {**P1, "value": value, "low": 1.0, "high": 1.25, "rounds": 5, "is_met": value <= 1.1},
        {**P2, "value": 12.4, "low": 12.4, "high": 12.4, "rounds": 1},
    ]
    date = f"2026-01-0{commit[-1]}T00:00:00+00:00"
    result = {"date": date, "commit": commit, "machine": MACHINE, "raw": ["long"], "rows": rows}
    path.write_text(json.dumps({**result, **more}))
    return path


def test_a_result_is_kept_without_its_rounds_and_names(tmp_path: Path) -> None:
    source = put_result(tmp_path / "result", "abc+1", 1.06, is_quick=True)
    path = tmp_path / "2026-01-01-bench-abc1.json"
    for _ in range(2):  # the same result is one file
        assert history(tmp_path, "keep", source).stdout == f"{path}\n"
    kept = json.loads(path.read_text())
    assert "raw" not in kept and "name" not in kept["machine"] and kept["is_quick"]
    assert kept["rows"] == json.loads(source.read_text())["rows"]
    busy = [{"others_percent": {"0": 1.5, "1": 12.0}}, {"others_percent": {"all": 3.0}}]
    other = put_result(tmp_path / "result", "abc+1", 1.07, conditions=busy)
    second = path.with_name("2026-01-01-bench-abc1-2.json")
    assert history(tmp_path, "keep", other).stdout == f"{second}\n"
    text = history(tmp_path, "table", second).stdout
    assert "other programs used up to 12.0 % of a core" in text


def test_the_table_has_the_newest_figure_of_each_row(tmp_path: Path) -> None:
    put_result(tmp_path / "z.json", "old1", 1.06)
    newer = put_result(tmp_path / "a.json", "new3", 1.2, server="Redis 7", note="A note.")
    part = json.loads(newer.read_text())
    newer.write_text(json.dumps({**part, "rows": part["rows"][:1]}))
    put_result(tmp_path / "b.json", "ratio4", 1.2, against="old1")
    head = "| | work | target | measured, median (range) | commit |"
    measured_newly = "| P1 | 1 thread: p50 / raw | <= 1.1 | 1.2 (1 to 1.25): **missed** | new3 |"
    assert history(tmp_path, "table").stdout.splitlines() == [
        head,
        "|---|---|---|---|---|",
        measured_newly,
        "| P2 | 64 threads: client CPU |  | 12.4 us/cycle | old1 |",
        "",
        "- Commit old1, 2026-01-01, 2 cores, a, Linux 6.",
        "- Commit new3, 2026-01-03, Redis 7, 2 cores, a, Linux 6. A note.",
    ]
    one = history(tmp_path, "table", newer).stdout
    assert measured_newly in one and "Commit old1" not in one


def test_a_row_has_a_trend(tmp_path: Path) -> None:
    put_result(tmp_path / "a.json", "new3", 1.2)
    put_result(tmp_path / "b.json", "old1", 1.06, is_quick=True)
    (name,) = history(tmp_path, "rows", "P1").stdout.splitlines()
    assert name == "P1: 1 thread: p50 / raw"
    assert history(tmp_path, "trend", name).stdout.splitlines() == [
        "2026-01-01  old1            1.06 (1 to 1.25)  --quick",
        "2026-01-03  new3            1.2 (1 to 1.25): **missed**",
    ]
    assert history(tmp_path, "trend", "P1").returncode == 2


@pytest.mark.parametrize("text", ["", "{}", '{"rows": []}', '{"rows": [{"topic": "P1"}]}', "[1]"])
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    done = history(tmp_path, "keep", tmp_path / "x")
    assert done.returncode == 2 and done.stderr.startswith("history.py: FILE must be a result")


def test_every_kept_result_can_be_shown() -> None:
    folder = ROOT / "bench/history"
    paths = sorted(folder.glob("*.json"))
    assert paths and history(folder, "rows").returncode == 0
    for path in paths:
        text = history(folder, "table", path)
        assert text.returncode == 0 and "Commit " in text.stdout, path
