# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""One server for all tests that leave it alone, and one of its own for each that does not."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest
from support.build import ROOT, built
from support.servers import Server, available_kinds
from support.signals import stop_ignoring

from .harness import Cli

stop_ignoring()


@pytest.fixture(scope="session")
def binary() -> str:
    return str(built("cli/redlatch"))


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Server]:
    with Server(available_kinds()[0]) as server:
        yield server


@pytest.fixture(scope="session")
def failing(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library of failing.c, for LD_PRELOAD."""
    made = tmp_path_factory.mktemp("failing") / "failing.so"
    words = ["-shared", "-fPIC", f"-I{ROOT}/capi/include", "-o", str(made)]
    subprocess.run(["cc", *words, str(ROOT / "tests/cli/failing.c"), "-ldl"], check=True)
    return str(made)


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that the test may stop, pause and configure."""
    with Server(available_kinds()[0]) as server:
        yield server


@pytest.fixture
def cli(binary: str, shared_server: Server) -> Cli:
    return Cli(binary, shared_server.unix_url)


@pytest.fixture
def bare(binary: str) -> Cli:
    """Without a server of its own: the words of each call name one, or none."""
    return Cli(binary, None)


@pytest.fixture
def own_cli(binary: str, own_server: Server) -> Cli:
    """Its time limits are short: these tests are about servers that do not answer."""
    return Cli(binary, f"{own_server.url}?command_timeout=300ms&connect_timeout=300ms")


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A lock name of the test's own."""
    return re.sub(r"\W+", "-", request.node.name)
