# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Every test runs against each kind of server and both variants (PUBLISH, SPUBLISH)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.servers import Server, available_kinds

from .harness import SCRIPTS, World, compose

# SPUBLISH exists from this server version on.
_SHARDED_SINCE = 7


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--scripts", default=str(SCRIPTS), help="folder of other scripts, to try a mutant"
    )


@pytest.fixture(scope="session")
def composed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("composed")
    return folder, compose(folder, Path(request.config.getoption("--scripts")))


@pytest.fixture(scope="session", params=available_kinds())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(request.param) as running:
        yield running


@pytest.fixture(params=["publish", "spublish"])
def world(
    request: pytest.FixtureRequest, server: Server, composed: tuple[Path, dict[str, str]]
) -> Iterator[World]:
    sharded = request.param == "spublish"
    if sharded and _major(server) < _SHARDED_SINCE:
        pytest.skip("this server has no SPUBLISH")
    current = World(server, composed[1], sharded)
    yield current
    immortal = current.immortal
    current.close()
    assert not immortal, "keys without expiry"


def _major(server: Server) -> int:
    with server.connect() as connection:
        hello = connection.cmd("HELLO", 2)
    return int(dict(zip(hello[::2], hello[1::2]))[b"version"].split(b".")[0])
