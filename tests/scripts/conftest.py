# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Every test runs against each kind of server and both variants (PUBLISH, SPUBLISH)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.servers import Server, available_kinds

from .harness import SCRIPTS, Lock, World, compose

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
    broken = current.broken
    current.close()
    assert not broken


@pytest.fixture
def hashed(world: World) -> World:
    """A world whose lock is of the hash format."""
    world.lock = Lock("app:", "orders", is_hash=True)
    return world


def _major(server: Server) -> int:
    with server.connect() as connection:
        hello = connection.cmd("HELLO", 2)
    return int(dict(zip(hello[::2], hello[1::2]))[b"version"].split(b".")[0])
