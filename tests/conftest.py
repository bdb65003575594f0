# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Options and fixtures that several folders of tests have."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from support.history import History

_FIGURES: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, help="seed of the random tests (default: a new one)")
    parser.addoption("--steps", type=int, help="steps of a random program")


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    given = request.config.getoption("--seed")
    return random.SystemRandom().randrange(1 << 32) if given is None else int(given)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _FIGURES:
        terminalreporter.section("figures")
    for figure in _FIGURES:
        terminalreporter.write_line(figure)


@pytest.fixture
def figure() -> Callable[[str], None]:
    """Note a figure to be shown at the end of the run."""
    return _FIGURES.append


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    """Processes that the test starts write down what they do with locks, and it can be judged."""
    folder = tmp_path / "history"
    folder.mkdir()
    monkeypatch.setenv("REDLATCH_HISTORY", str(folder))
    return History(folder)
