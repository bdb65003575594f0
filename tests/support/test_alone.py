# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a failure by an answer or by time is repeated, once and alone; no other one is.
Method: tests that fail in each way, run by pytest and ctest as scripts/test does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .alone import (
    MOST,
    PRESETS,
    command_of,
    failed_in_ctest,
    failed_in_pytest,
    has_passed,
    judge,
)
from .build import ROOT

TESTS = """
import os, pytest, re, subprocess
class Told(AssertionError): pass
@pytest.fixture
def broken(): assert False
def test_answer(): assert 1 == 2
def test_time(): raise TimeoutError("late")
def test_limit(): subprocess.run(["sleep", "9"], timeout=0.01)
def test_lines(): one, two = "one line".splitlines()
def test_line(): assert "one line".splitlines()[1] == "two"
def test_match(): assert re.match("two", "one")[0] == "two"
def test_skipped(): pytest.skip("no")
def test_passes(): pass
def test_report(): assert "" == "==1==ERROR: AddressSanitizer: heap-use-after-free"
def test_race(): assert "" == "WARNING: DATA RACE"
def test_signal(): assert -11 == 0
def test_rule(): raise Told("two holders")
def test_other(): raise KeyError("x")
def test_value(): int("x")
def test_setup(broken): pass
def test_crash(): os.abort()
def test_child():
    subprocess.run(["sh", "-c", "echo 'a.c:1: f: Asser''tion x failed.' >&2"])
    assert "an answer" == ""
def test_child_by_signal(): assert subprocess.run(["sh", "-c", "kill -ABRT $$"]).returncode == 1
def test_shell_of_a_child(): assert subprocess.run(["sh", "-c", "exit 139"]).returncode == 0
def test_leak(): assert 2 == 0, "2 objects leaked"
@pytest.fixture
def seed(): return 7
def test_random(seed): assert not seed
"""
REPEATABLE = ("answer", "time", "limit", "lines", "line", "match")
NOT_REPEATABLE = ("report", "race", "signal", "rule", "other", "value", "setup", "crash", "leak")
NOT_REPEATABLE += ("child", "child_by_signal", "shell_of_a_child")


def run_pytest(folder: Path, tests: list[str], *options: str) -> list[str]:
    (folder / "test_it.py").write_text(TESTS)
    failures = folder / "failures.jsonl"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "support.repeatable", *options]
    command += ["-c", "/dev/null", "--rootdir", str(folder), f"--failures={failures}"]
    command += ["-p", "no:cacheprovider", *tests]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "tests")}
    subprocess.run(command, env=env, capture_output=True, cwd=folder, check=False, timeout=120)
    return failures.read_text().splitlines()


def names(*tests: str) -> list[str]:
    return sorted(f"test_it.py::test_{test}" for test in tests)


@pytest.mark.parametrize("options", [(), ("-n1",)], ids=["here", "in a worker"])
def test_answers_and_time_are_repeatable(tmp_path: Path, options: tuple[str, ...]) -> None:
    lines = run_pytest(tmp_path, names(*REPEATABLE, "skipped", "passes"), *options)
    assert failed_in_pytest(lines) == names(*REPEATABLE)


def test_nothing_else_is(tmp_path: Path) -> None:
    said = run_pytest(tmp_path, names("answer", *NOT_REPEATABLE), "-n1")
    for other in NOT_REPEATABLE:
        pair = {*names("answer", other), None}  # None: the line with the exit code
        lines = [line for line in said if json.loads(line).get("test") in pair]
        assert f"test_{other}" in "".join(lines)
        assert failed_in_pytest(lines) is None, other


def test_a_random_test_has_its_seed_again(tmp_path: Path) -> None:
    lines = run_pytest(tmp_path, names("random"), "-n1")
    assert failed_in_pytest(lines) == ["--seed=7 test_it.py::test_random"]
    command = command_of("pytest", "--seed=7 test_it.py::test_random", tmp_path)
    assert command[-2:] == ["--seed=7", "test_it.py::test_random"]


@pytest.mark.parametrize(
    ("test", "passes"), [("passes", True), ("skipped", False), ("answer", False)]
)
def test_only_a_test_that_ran_has_passed(tmp_path: Path, test: str, passes: bool) -> None:
    junit = tmp_path / "junit.xml"
    run_pytest(tmp_path, names(test), f"--junit-xml={junit}")
    assert has_passed(junit.read_text()) == passes


def test_interrupted_run_is_not_repeatable(tmp_path: Path) -> None:
    lines = run_pytest(tmp_path, names("answer"))
    assert failed_in_pytest(lines) == names("answer")
    assert failed_in_pytest(lines[:-1]) is None


def run_ctest(folder: Path, more: str = "", /, **tests: str) -> list[str] | None:
    (folder / "CTestTestfile.cmake").write_text(
        "".join(
            f'add_test({name} sh -c "{script}")\n'
            f"set_tests_properties({name} PROPERTIES TIMEOUT 5)\n"
            for name, script in tests.items()
        )
        + more
    )
    junit = folder / "junit.xml"
    done = subprocess.run(
        ["ctest", "--output-junit", str(junit)], cwd=folder, capture_output=True, text=True
    )
    return failed_in_ctest(done.stdout, junit.read_text())


def test_ctest_says_the_same(tmp_path: Path) -> None:
    assert run_ctest(tmp_path, fails="exit 1", sleeps="exec sleep 60", passes="true") == [
        "fails",
        "sleeps",
    ]
    assert run_ctest(tmp_path, fails="exit 1", dies="kill -SEGV $$") is None
    assert run_ctest(tmp_path, reports="echo ThreadSanitizer: data race; exit 1") is None
    assert run_ctest(tmp_path, passes="true") is None
    assert has_passed((tmp_path / "junit.xml").read_text())
    assert run_ctest(tmp_path, fails="exit 1", **{"sim.seeds": "exit 1"}) is None


@pytest.mark.parametrize(
    ("command", "property_", "repeatable"),
    [("/nowhere/program", "LABELS none", None), ("true", "DISABLED ON", ["fails"])],
    ids=["not built", "disabled"],
)
def test_a_program_that_is_missing_is_no_busy_moment(
    tmp_path: Path, command: str, property_: str, repeatable: list[str] | None
) -> None:
    more = f"add_test(other {command})\nset_tests_properties(other PROPERTIES {property_})\n"
    assert run_ctest(tmp_path, more, fails="exit 1") == repeatable


def test_a_test_of_ctest_that_skips_itself_has_not_passed(tmp_path: Path) -> None:
    more = "set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)\n"
    assert run_ctest(tmp_path, more, skips="exit 77") is None
    assert not has_passed((tmp_path / "junit.xml").read_text())


def test_at_most_three_are_repeated_each_alone() -> None:
    asked: list[tuple[str, str]] = []

    def passes(step: str, test: str) -> bool:
        asked.append((step, test))
        return test != "fails twice"

    def of(*tests: str) -> tuple[bool, list[str]]:
        asked.clear()
        found = {"pytest": ["p"], "unit": list(tests)}
        return judge(["pytest", "unit"], found.get, passes)

    assert of("a", "b") == (True, ["pytest: p", "unit: a", "unit: b"])
    assert asked == [("pytest", "p"), ("unit", "a"), ("unit", "b")]
    assert of("a", "fails twice") == (False, ["pytest: p", "unit: a"])
    assert not of(*"abc"[: MOST])[0] and asked == []
    assert judge(["sim"], lambda _: None, passes) == (False, []) and asked == []
    assert {"sim", "model", "tidy", "build"}.isdisjoint(PRESETS)
