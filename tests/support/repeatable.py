# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A plugin of pytest that writes which tests have failed, and which of them a busy moment may have
failed: alone.py runs these once more.

    PYTHONPATH=tests pytest -p support.repeatable --failures=FILE ..

A test is repeatable if it failed by an answer or by time. A crash, a sanitizer's report, a broken
rule and whatever fails outside of the test itself are not.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

# Exactly these: a subclass says more than that an answer was another one.
TYPES = (AssertionError, TimeoutError, subprocess.TimeoutExpired)
# An answer of another length or form, which the test takes apart.
ANSWER = re.compile(
    r"ValueError: (too many|not enough) values to unpack|IndexError: list index out of range"
    r"|TypeError: 'NoneType' object is not subscriptable"
)
NEVER = re.compile(
    r"Sanitizer|runtime error:|DATA RACE|panic:|fatal error|SIG(SEGV|ABRT|BUS|ILL|FPE|TRAP)"
    r"|[Ss]egmentation fault|core dumped|Aborted|Assertion .* failed|[Ll]eak"
    r"|(assert |returncode=)(-(4|5|6|7|8|11)|13[2-6]|139)\b|\b[Vv]iolation\b|defect in redlatch"
)


def is_repeatable(report: pytest.TestReport, error: BaseException | None) -> bool:
    # What the test has printed, too: a crash of its child shows there alone.
    texts = (report.longreprtext, *(text for _, text in report.sections))
    is_answer = type(error) in TYPES or ANSWER.match(f"{type(error).__name__}: {error}")
    return report.when == "call" and bool(is_answer) and not any(map(NEVER.search, texts))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--failures", type=Path, help="file for the tests that have failed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    # Goes from a worker to the process that writes the file.
    report.is_repeatable = is_repeatable(report, call.excinfo.value if call.excinfo else None)
    seed = getattr(item, "funcargs", {}).get("seed")
    report.again = {} if seed is None else {"seed": f"--seed={seed} "}
    return report


class Writer:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text("")

    def write(self, **line: object) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            # Without the attribute: the worker has crashed.
            again = getattr(report, "again", {})
            is_repeatable = getattr(report, "is_repeatable", False)
            self.write(test=report.nodeid, repeatable=is_repeatable, **again)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.write(test=report.nodeid, repeatable=False)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self.write(exit=int(exitstatus))


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--failures")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Writer(path))
