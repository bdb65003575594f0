# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The cases on a real cluster of six nodes, with each runner that can run them, alone and mixed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from support.cluster import NEVER_MS, Cluster
from support.servers import available_kinds

from .case import Case, load
from .clusters import ClusterServer, reason_against
from .driver import assignments, run_case
from .runners import capabilities
from .test_conformance import identify

IS_LONG = bool(os.environ.get("REDLATCH_TEST_LONG"))
CASES = [case for case in load() if not reason_against(case)]
# In CI: the kinds of locks, the order of waiters, and what asks several nodes.
FILES = {f"cases/{name}.case" for name in ("mutex", "rw", "rw-modes", "reentrant", "fifo", "list")}
FILES.add("cases/health.case")


@pytest.fixture(scope="session")
def cluster() -> Iterator[ClusterServer]:
    with Cluster(available_kinds()[-1], node_timeout_ms=NEVER_MS) as running:
        yield ClusterServer(running)


def combinations() -> list[tuple[Case, str, dict[str, str]]]:
    """In CI those that depend on the server; C and Python mixed if a case has several clients."""
    kind = f"cluster-{available_kinds()[-1]}"
    if IS_LONG:
        return [
            (case, kind, players) for case in CASES for players in assignments(case, capabilities())
        ]
    able = {name: can for name, can in capabilities().items() if name in ("c", "python")}
    return [
        (case, kind, assignments(case, able)[-1])
        for case in CASES
        if case.file in FILES and case.every_server and assignments(case, able)
    ]


@pytest.mark.parametrize("combination", combinations(), ids=identify)
def test_case(
    combination: tuple[Case, str, dict[str, str]],
    cluster: ClusterServer,
    commands: dict[str, list[str]],
) -> None:
    case, _, players = combination
    run_case(cluster, case, commands, players)  # type: ignore[arg-type]
