# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""One server of each kind for all cases, and the runners, made ready once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.servers import Server, available_kinds

from .runners import PREPARE, capabilities


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """How each runner is started."""
    folder = tmp_path_factory.mktemp("runners")
    return {name: PREPARE[name](folder) for name in capabilities()}


@pytest.fixture(scope="session")
def servers() -> Iterator[dict[str, Server]]:
    running = {kind: Server(kind).start() for kind in available_kinds()}
    yield running
    for server in running.values():
        server.close()
