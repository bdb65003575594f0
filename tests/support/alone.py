# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Runs tests that have failed once more, each alone, at the end of scripts/test.

    alone.py LOGS STEP..    the steps that failed, such as pytest or unit

Prints the tests that passed now; one that skips itself now has not passed. A random test has the
seed with which it failed. Exit code 0 if all failed tests of all steps passed, and there
were at most three of them: a moment in which the machine was busy refuses no run. Crashes, reports
of sanitizers and broken rules are never repeated (repeatable.py), nor are the simulator and Spin.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support.repeatable import NEVER

MOST = 3
LIMIT_S = 600.0
PRESETS = {"unit": "dev", "asan": "asan", "tsan": "tsan"}


def failed_in_pytest(lines: list[str]) -> list[str] | None:
    """The tests that a run of pytest may repeat; None if it failed in another way as well."""
    said = [json.loads(line) for line in lines]
    if [one["exit"] for one in said if "exit" in one] != [1]:
        return None
    failures = [one for one in said if "test" in one]
    if not failures or not all(one["repeatable"] for one in failures):
        return None
    return sorted({one.get("seed", "") + one["test"] for one in failures})


def failed_in_ctest(log: str, junit: str) -> list[str] | None:
    """The same of ctest: `log` has the reasons, `junit` what the tests have printed."""
    reasons = dict(re.findall(r"^\s+\d+ - (.+) \((.+)\)$", log, re.MULTILINE))
    # "Not Run" is a program that was not built: in `junit` it looks like one that was skipped.
    if set(reasons.values()) - {"Failed", "Timeout", "Skipped", "Disabled"}:
        return None
    cases = ElementTree.fromstring(junit).iter("testcase")
    failed = {str(case.get("name")): case for case in cases if case.get("status") == "fail"}
    for name, case in failed.items():
        if reasons.get(name) not in ("Failed", "Timeout") or name.startswith("sim."):
            return None
        if NEVER.search(case.findtext("system-out") or ""):
            return None
    return sorted(failed) or None


def repeatable_of(step: str, logs: Path) -> list[str] | None:
    try:
        if step == "pytest":
            return failed_in_pytest((logs / "failures-pytest.jsonl").read_text().splitlines())
        if step in PRESETS:
            preset = PRESETS[step]
            log = (logs / f"ctest-{preset}.log").read_text()
            return failed_in_ctest(log, (logs / f"ctest-{preset}.xml").read_text())
    except (OSError, ValueError, ElementTree.ParseError):
        return None  # it was ended before it could write them
    return None


def command_of(step: str, test: str, junit: Path) -> list[str]:
    if step == "pytest":
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0"]
        command += [f"--junit-xml={junit}"]
        return [*command, *(test.split(" ", 1) if test.startswith("--seed=") else [test])]
    command = ["ctest", "--preset", PRESETS[step], "-R", f"^{re.escape(test)}$"]
    return [*command, "--no-tests=error", "--output-junit", str(junit.resolve())]


def has_passed(junit: str) -> bool:
    """Whether one test ran, and passed."""
    suite = next(ElementTree.fromstring(junit).iter("testsuite"))
    others = ("failures", "errors", "skipped", "disabled")
    return suite.get("tests") == "1" and all(suite.get(name, "0") == "0" for name in others)


def passes_alone(step: str, test: str, junit: Path) -> bool:
    junit.unlink(missing_ok=True)
    try:
        done = subprocess.run(command_of(step, test, junit), timeout=LIMIT_S)
        return done.returncode == 0 and has_passed(junit.read_text())
    except (OSError, subprocess.TimeoutExpired, ElementTree.ParseError):
        return False


def judge(
    steps: list[str],
    repeatable: Callable[[str], list[str] | None],
    passes: Callable[[str, str], bool],
) -> tuple[bool, list[str]]:
    """Whether the run passes, and the lines that name what passed alone."""
    tests: list[tuple[str, str]] = []
    for step in steps:
        found = repeatable(step)
        if found is None:
            return False, []
        tests += [(step, test) for test in found]
    if len(tests) > MOST:
        return False, [f"{len(tests)} tests failed; at most {MOST} are run once more"]
    passed = [(step, test) for step, test in tests if passes(step, test)]
    return passed == tests, [f"{step}: {test}" for step, test in passed]


def main(logs: Path, steps: list[str]) -> int:
    passed, lines = judge(
        steps,
        lambda step: repeatable_of(step, logs),
        lambda step, test: passes_alone(step, test, logs / "alone.xml"),
    )
    if lines:
        print("\npassed only alone:", *lines, sep="\n  ")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
