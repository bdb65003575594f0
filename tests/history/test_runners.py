# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what the runners of the conformance suite write down can be judged, in every language.

Method: random programs of that suite, whose clients are of several languages; a few lines by hand,
with a defect that the runner has for its own suite, and without.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance.randomized import CLIENTS, KINDS, LOCKS, generate, run_program
from conformance.runners import PREPARE, Runner
from support.history import History
from support.servers import Server, available_kinds

STEPS = 150


@pytest.fixture
def commands(tmp_path: Path) -> dict[str, list[str]]:
    return {name: prepare(tmp_path) for name, prepare in PREPARE.items()}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(available_kinds()[0]) as running:
        yield running


def test_random_programs(
    server: Server, commands: dict[str, list[str]], history: History, seed: int
) -> None:
    program = generate(seed, STEPS)
    # A lock that is deleted behind the clients' back is in nobody's record. Of readers and owners a
    # refusal is not judged rightly yet when a wait before it was just taken back.
    program.operations = [
        one
        for one in program.operations
        if one[0] != "evict" and KINDS.get(LOCKS.get(one[1], ""), "mutex") == "mutex"
    ]
    failure = run_program(server, commands, program)
    assert failure is None, f"seed {seed}: {failure}"
    status, report = history.findings()
    assert status == 0, f"seed {seed}\n{report}"
    assert len(list(history.folder.glob("[0-9]*.log"))) == len(CLIENTS)


@pytest.mark.parametrize("language", ["python", "go"])
@pytest.mark.parametrize("defect", ["", "ignore_release"])
def test_each_language_is_heard(
    server: Server, commands: dict[str, list[str]], history: History, language: str, defect: str
) -> None:
    """One says that it has released, and C is refused."""
    first, c = Runner(commands[language], defect), Runner(commands["c"])
    for runner in (first, c):
        runner.call(f"- open url={server.url}")
        runner.call("- lock id=m kind=mutex name=n%00m")
        runner.call("m acquire wait_ms=0")
        runner.call("m release")
    for runner in (first, c):
        runner.end()
    status, report = history.findings()
    assert status == (1 if defect else 0), report
    assert not defect or "service: " in report
