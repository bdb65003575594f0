# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Random programs, judged by their histories; and proof that they find what is planted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.go import find_go
from support.history import note_that_nothing_was_judged
from support.servers import Server, available_kinds

from .randomized import CLIENTS, run_program
from .runners import capabilities

PROGRAMS = 120 if os.environ.get("REDLATCH_TEST_LONG") else 12
STEPS = 350
# Each finds its defect alone, more often than not.
TRIES = 10


@pytest.fixture(autouse=True)
def _judge() -> None:
    if find_go() is None:
        note_that_nothing_was_judged()
        pytest.skip("the checkers of histories: need Go 1.21 or later")


@pytest.mark.parametrize("kind", available_kinds())
def test_random_programs(
    kind: str,
    servers: dict[str, Server],
    commands: dict[str, list[str]],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    seed: int,
) -> None:
    steps = request.config.getoption("--steps") or STEPS
    count = PROGRAMS if request.config.getoption("--seed") is None else 1
    for number in range(seed, seed + count):
        failure = run_program(servers[kind], commands, tmp_path / str(number), number, steps)
        if failure:
            pytest.fail(failure, pytrace=False)


@pytest.mark.parametrize("language", capabilities())
@pytest.mark.parametrize("defect", ["ignore_release", "write_as_read"])
def test_planted_defect_is_found(
    language: str,
    defect: str,
    servers: dict[str, Server],
    commands: dict[str, list[str]],
    tmp_path: Path,
) -> None:
    server, players = servers[available_kinds()[0]], dict.fromkeys(CLIENTS, language)
    assert not run_program(server, commands, tmp_path / "right", 1, 120, players)
    for seed in range(TRIES):
        failure = run_program(server, commands, tmp_path / str(seed), seed, 120, players, defect)
        if "service: " in failure:
            return
    pytest.fail(f"not found in {TRIES} programs")
