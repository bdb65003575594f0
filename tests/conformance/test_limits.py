# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The cases on servers with a limit (support/limits.py). A case goes as on any server, or the limit
names it with a reason, which docs/servers.md has, and then it has to go otherwise."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator

import pytest
from support.limits import REFUSED, ROWS, Limit
from support.servers import available_kinds, has_sharded_channels, has_tls
from support.tls import Certificate
from system.limited import LimitedServer

from . import clusters
from .case import Case, load
from .driver import CaseFailed, assignments, is_by_tls, run_case
from .runners import capabilities

IS_LONG = bool(os.environ.get("REDLATCH_TEST_LONG"))
CASES = load()
NAMES = {case.name for case in CASES}
KIND = available_kinds()[0]
# In CI a few that meet every command and take little time; all are run with --all.
SHORT = {
    "attach-goes-on",
    "fault-forgotten-scripts",
    "fifo-order",
    "force-release-hands-over",
    "health-good",
    "inspect-waiters",
    "list",
    "lost-taken-over",
    "mutex-exclusive",
    "redlock-exclusive",
    "reentrant-handed-over",
    "replicas-too-few",
    "rw-phases",
    "rw-upgrade-at-the-head",
    "wait-handed-over",
}
PLAYED = [
    limit
    for limit in ROWS
    if limit.result != REFUSED
    and (has_sharded_channels(KIND) or not limit.names_sharded_channels)
]


def reason_against(limit: Limit, case: Case) -> str:
    """The reason for which this server cannot run this case; nothing if it can."""
    options = {option for words in case.clients.values() for option in words}
    if is_by_tls(case) and (not has_tls(KIND) or limit.proxy or limit.query or limit.has_user):
        return "the URL for TLS is the server's own, past the limit"
    if limit.has_user and any(option.startswith("user=") for option in options):
        return "the case has a user of its own"
    return clusters.reason_against(case) if limit.is_cluster else ""


def combinations() -> list[tuple[Limit, Case, dict[str, str]]]:
    """In CI the runner in C; otherwise each runner that can run the case, and several together."""
    able = capabilities() if IS_LONG else {"c": capabilities()["c"]}
    return [
        (limit, case, players)
        for limit in PLAYED
        for case in CASES
        if (IS_LONG or case.name in SHORT) and not reason_against(limit, case)
        for players in assignments(case, able)
    ]


def identify(combination: tuple[Limit, Case, dict[str, str]]) -> str:
    limit, case, players = combination
    return f"{limit.name}--{case.name}-{'+'.join(dict.fromkeys(players.values()))}"


class Limited:
    """Servers with one limit, started when they are needed. The tests of a limit come one after the
    other (tests/conftest.py)."""

    def __init__(self, certificate: Certificate) -> None:
        self._certificate = certificate if has_tls(KIND) else None
        self._running: list[LimitedServer] = []

    def servers(self, limit: Limit, count: int) -> list[LimitedServer]:
        if self._running and self._running[0].limit is not limit:
            self.close()
        while len(self._running) < count:
            server = LimitedServer(KIND, limit, tls=self._certificate)
            server.start()
            self._running.append(server)
        return self._running[:count]

    def close(self) -> None:
        for server in self._running:
            server.kill()
            server.close()
        self._running = []


@pytest.fixture(scope="session")
def limited(certificate: Certificate) -> Iterator[Limited]:
    servers = Limited(certificate)
    yield servers
    servers.close()


@pytest.mark.parametrize("combination", combinations(), ids=identify)
def test_case(
    combination: tuple[Limit, Case, dict[str, str]],
    limited: Limited,
    commands: dict[str, list[str]],
) -> None:
    limit, case, players = combination
    server, *peers = limited.servers(limit, case.node_count)
    if not limit.is_different(case.name):
        run_case(server, case, commands, players, peers=peers)
        return
    with pytest.raises(CaseFailed):
        run_case(server, case, commands, players, peers=peers)
    limited.close()  # it was left in the middle of the case


def test_a_limit_names_cases_that_it_can_run() -> None:
    assert SHORT <= NAMES
    by_name = {case.name: case for case in CASES}
    for limit in ROWS:
        assert limit.result != REFUSED or not limit.differs
        for pattern in limit.differs:
            found = fnmatch.filter(NAMES, pattern)
            assert any(not reason_against(limit, by_name[name]) for name in found), pattern
