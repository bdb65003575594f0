# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Options and fixtures for several folders of tests."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support.history import History
from xdist.scheduler import LoadScopeScheduling

_FIGURE = "figure"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, help="seed of the random tests (default: a new one)")
    parser.addoption("--steps", type=int, help="steps of a random program")


# Tests in one of these folders share slow builds, or change files that the others use.
_TOGETHER = (
    "tests/java/",
    "tests/docs/",
    "tests/go/test_install.py",
)


# Tests that use all of the machine, and those whose sentinels take a busy machine for a failure:
# one after the other.
_CROWDS = (
    "tests/system/test_sentinel_f",
    "tests/system/test_cluster_fleet.py",
    "tests/interop/test_redisson_cluster.py",
    "tests/packages/",
)


# The name of a limit, in front of this, has servers of its own.
_LIMITED = ("tests/conformance/test_limits.py", "--")


class _Scheduling(LoadScopeScheduling):
    """Each test goes to any worker; those of one entry of _TOGETHER, of one limit, and _CROWDS, to
    the same."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(_CROWDS):
            return "crowds"
        if nodeid.startswith(_LIMITED[0]):
            return nodeid.partition(_LIMITED[1])[0]
        return next((part for part in _TOGETHER if nodeid.startswith(part)), nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _Scheduling:
    return _Scheduling(config, log)


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    given = request.config.getoption("--seed")
    if given is not None:
        return int(given)
    # The same seed for all workers of a run.
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    return random.Random(run).randrange(1 << 32)


def folder_of(nodeid: str) -> str:
    return "/".join(nodeid.split("/", maxsplit=2)[:2])


def show_folders(terminalreporter: pytest.TerminalReporter) -> None:
    """Write the number of results in each folder, and the sum of their durations."""
    folders: dict[str, Counter[str]] = {}
    for outcome, reports in terminalreporter.stats.items():
        for report in reports:
            if not isinstance(report, pytest.TestReport):
                continue
            counts = folders.setdefault(folder_of(report.nodeid), Counter())
            counts["ms"] += round(report.duration * 1000)
            counts[outcome] += bool(outcome)
    if len(folders) > 1:
        terminalreporter.section("folders")
    for name, counts in sorted(folders.items()):
        seconds = counts.pop("ms") // 1000
        told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()) if count)
        terminalreporter.write_line(f"{name:20} {seconds:5} s  {told}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if len(terminalreporter.config.args) > 1:
        show_folders(terminalreporter)
    reports = (report for found in terminalreporter.stats.values() for report in found)
    ended = [report for report in reports if getattr(report, "when", "") == "teardown"]
    figures = [value for one in ended for name, value in one.user_properties if name == _FIGURE]
    if figures:
        terminalreporter.section("figures")
    for figure in figures:
        terminalreporter.write_line(str(figure))


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Note a figure to be shown at the end of the run."""
    return lambda text: record_property(_FIGURE, text)


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    """Makes the processes that the test starts write records, and checks them."""
    folder = tmp_path / "history"
    folder.mkdir()
    monkeypatch.setenv("REDLATCH_HISTORY", str(folder))
    return History(folder)
