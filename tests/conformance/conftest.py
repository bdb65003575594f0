# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""One server of each kind for all cases, and the runners, made ready once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.servers import Server, available_kinds, has_tls
from support.tls import Authority, Certificate

from .runners import PREPARE

# Builds the library of another commit: one of the long runs.
collect_ignore = [] if os.environ.get("REDLATCH_TEST_LONG") else ["test_old_build.py"]


class Commands(dict[str, list[str]]):
    """How each runner is started, made ready when one is needed: a language that is not there skips
    only the tests with it."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, name: str) -> list[str]:
        self[name] = PREPARE[name](self._folder)
        return self[name]


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return Commands(tmp_path_factory.mktemp("runners"))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Authority(tmp_path_factory.mktemp("tls")).certificate("IP:127.0.0.1")


def server_of(kind: str, certificate: Certificate) -> Server:
    return Server(kind, tls=certificate if has_tls(kind) else None)


Peers = Callable[[str, int], list[Server]]


@pytest.fixture(scope="session")
def peers(certificate: Certificate) -> Iterator[Peers]:
    """More servers of a kind, for a quorum with the one of `servers`; started when needed."""
    running: dict[str, list[Server]] = {}

    def peers_of(kind: str, count: int) -> list[Server]:
        found = running.setdefault(kind, [])
        while len(found) < count:
            found.append(server_of(kind, certificate).start())
        return found[:count]

    yield peers_of
    for found in running.values():
        for server in found:
            server.close()


@pytest.fixture(scope="session")
def servers(certificate: Certificate) -> Iterator[dict[str, Server]]:
    running = {kind: server_of(kind, certificate).start() for kind in available_kinds()}
    yield running
    for server in running.values():
        server.close()
