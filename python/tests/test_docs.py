# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the code of docs/python.md runs as it stands there, and names what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import redlatch
from redlatch import testing
from support.build import ROOT
from support.servers import Server

PAGE = (ROOT / "docs/python.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS[:-1])
def test_block_runs(block: str, server: Server, tmp_path: Path) -> None:
    assert "redis://localhost:6379" in block
    (tmp_path / "first.py").write_text(block.replace("redis://localhost:6379", server.url))
    command = [sys.executable, str(tmp_path / "first.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert re.fullmatch(r"\d+ (29\.\d+|30\.0) False\n", done.stdout), done
    assert done.stderr == "" and done.returncode == 0


def test_last_block_is_a_test(pytester: pytest.Pytester, server: Server) -> None:
    assert len(BLOCKS) == 5
    pytester.makepyfile(test_page=BLOCKS[-1])
    arguments = ["-p", "no:cacheprovider", f"--redlatch-url={server.url}"]
    pytester.runpytest_subprocess(*arguments).assert_outcomes(passed=1)


def test_names_exist() -> None:
    owners = {
        "client": (redlatch.Client,),
        "lock": (redlatch.Lock, redlatch.RLock, redlatch.RWLock),
        "lease": (redlatch.Lease,),
        "aio": (redlatch.Aio,),
    }
    for owner, name in re.findall(r"\b(client|lock|lease|aio)\.(\w+)", PAGE):
        assert any(hasattr(one, name) for one in owners[owner]), f"{owner}.{name}"
    for name in re.findall(r"`(?:redlatch\.)?([A-Z][a-z]+(?:[A-Z][a-z]+)+)`", PAGE):
        if not name.endswith(("Error", "Warning")):
            assert hasattr(redlatch, name), name
    for name in testing.__all__:
        assert f"`{name}(" in PAGE
