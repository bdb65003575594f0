# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Random programs against the model; and proof that they find what is planted."""

from __future__ import annotations

import os

import pytest
from support.servers import Server, available_kinds

from .case import parse
from .driver import CaseFailed, run_case
from .randomized import describe, generate, run_program, shrink

PROGRAMS = 40 if os.environ.get("REDLATCH_TEST_LONG") else 4
STEPS = 250


@pytest.mark.parametrize("kind", available_kinds())
def test_random_programs(
    kind: str,
    servers: dict[str, Server],
    commands: dict[str, list[str]],
    request: pytest.FixtureRequest,
    seed: int,
) -> None:
    steps = request.config.getoption("--steps") or STEPS
    count = PROGRAMS if request.config.getoption("--seed") is None else 1
    for number in range(seed, seed + count):
        program = generate(number, steps)
        failure = run_program(servers[kind], commands, program)
        if failure is not None:
            _, shrunk = shrink(servers[kind], commands, program)
            pytest.fail(describe(number, steps, shrunk or failure), pytrace=False)


def test_planted_defect_is_found_and_shrunk(
    servers: dict[str, Server], commands: dict[str, list[str]]
) -> None:
    server = servers[available_kinds()[0]]
    program = generate(1, 80)
    assert run_program(server, commands, program) is None
    smaller, failure = shrink(server, commands, program, "ignore_release")
    assert failure is not None
    assert len(smaller.operations) <= 5
    # The text is a case: it fails with the defect and passes without.
    case = parse(failure.text, "shrunk")[0]
    players = dict.fromkeys(case.clients, "c")
    with pytest.raises(CaseFailed):
        run_case(server, case, commands, players, "ignore_release")


def test_a_seed_is_a_program() -> None:
    assert generate(7, 100) == generate(7, 100)
    assert generate(7, 100) != generate(8, 100)
