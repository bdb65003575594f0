# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Every test runs against each kind of server and both variants (PUBLISH, SPUBLISH)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.servers import Server, available_kinds, has_sharded_channels

from .harness import SCRIPTS, Lock, World, compose
from .kinds import Kind

# Its scripts publish to sharded channels.
collect_ignore = [] if any(map(has_sharded_channels, available_kinds())) else ["test_cluster.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--scripts", default=str(SCRIPTS), help="folder of other scripts, to try a mutant"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without the combinations of a server and a command that it does not have."""
    config.hook.pytest_deselected(items=[item for item in items if _lacks_spublish(item)])
    items[:] = [item for item in items if not _lacks_spublish(item)]


def _lacks_spublish(item: pytest.Item) -> bool:
    call = getattr(item, "callspec", None)
    params = call.params if call else {}
    return params.get("world") == "spublish" and not has_sharded_channels(params["server"])


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


@pytest.fixture(params=["mutex", "readers", "owners", "permits"])
def kind(request: pytest.FixtureRequest, world: World) -> Kind:
    return Kind(request.param, world)
