# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Options that several folders of tests have."""

from __future__ import annotations

import random

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, help="seed of the random tests (default: a new one)")
    parser.addoption("--steps", type=int, help="steps of a random program")


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    given = request.config.getoption("--seed")
    return random.SystemRandom().randrange(1 << 32) if given is None else int(given)
