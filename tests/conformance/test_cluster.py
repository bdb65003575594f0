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
FILES |= {f"cases/{name}.case" for name in ("health", "semaphore", "all")}
# .. and where languages meet: who is served next, and holds of one owner in several processes.
MIXED_FILES = {f"cases/{name}.case" for name in ("fifo", "reentrant")}


@pytest.fixture(scope="session")
def cluster() -> Iterator[ClusterServer]:
    with Cluster(available_kinds()[-1], node_timeout_ms=NEVER_MS) as running:
        yield ClusterServer(running)


def combinations() -> list[tuple[Case, str, dict[str, str]]]:
    """In CI those that depend on the server; C and Python mixed if a case has several clients, and
    Go and Java in a few."""
    kind = f"cluster-{available_kinds()[-1]}"
    if IS_LONG:
        return [
            (case, kind, players) for case in CASES for players in assignments(case, capabilities())
        ]
    return [
        (case, kind, assignments(case, able_of(names))[-1])
        for files, names in ((FILES, ("c", "python")), (MIXED_FILES, ("go", "java")))
        for case in CASES
        if case.file in files and case.every_server and assignments(case, able_of(names))
    ]


def able_of(names: tuple[str, ...]) -> dict[str, set[str]]:
    return {name: can for name, can in capabilities().items() if name in names}


@pytest.mark.parametrize("combination", combinations(), ids=identify)
def test_case(
    combination: tuple[Case, str, dict[str, str]],
    cluster: ClusterServer,
    commands: dict[str, list[str]],
) -> None:
    case, _, players = combination
    run_case(cluster, case, commands, players)  # type: ignore[arg-type]
