# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the code of docs/python.md runs as it stands there, and names what there is."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import redlatch
from redlatch import testing
from support.build import ROOT
from support.servers import Server, available_kinds

from .conftest import Starter

PAGE = (ROOT / "docs/python.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LEASE = r"\d+ (29\.\d+|30\.0) False\n"
# Blocks with a test of their own.
OTHERS = r"Redlock\(|\.once\(|\.single_flight\(|\.election\(|retain="


def run_block(text: str, folder: Path, output: str = LEASE) -> None:
    (folder / "first.py").write_text(text)
    command = [sys.executable, str(folder / "first.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert re.fullmatch(output, done.stdout), done
    assert done.stderr == "" and done.returncode == 0


@pytest.mark.parametrize("block", [b for b in BLOCKS[:-1] if not re.search(OTHERS, b)])
def test_block_runs(block: str, server: Server, tmp_path: Path) -> None:
    assert "redis://localhost:6379" in block
    run_block(block.replace("redis://localhost:6379", server.url), tmp_path)


def test_block_of_several_servers_runs(tmp_path: Path) -> None:
    [block] = [b for b in BLOCKS if "Redlock(" in b]
    with ExitStack() as stack:
        for host in "abc":
            node = stack.enter_context(Server(available_kinds()[0]))
            assert f"redis://{host}:6379" in block
            block = block.replace(f"redis://{host}:6379", node.url)
        # These have just started.
        assert "fenced=True)" in block
        run_block(block.replace("fenced=True)", "fenced=True, restart_guard=False)"), tmp_path)


def test_block_of_a_job_runs(server: Server, tmp_path: Path) -> None:
    [block] = [b for b in BLOCKS if ".once(" in b]
    [output] = re.findall(r"sep=.*  # (.*)\n", block)
    assert "redis://localhost:6379" in block
    run_block(block.replace("redis://localhost:6379", server.url), tmp_path, f"{output}\n")


def test_block_of_a_flight_runs(server: Server, tmp_path: Path) -> None:
    [block] = [b for b in BLOCKS if ".single_flight(" in b]
    [output] = re.findall(r"\)  # (.*)\n", block)
    lines = output.replace(", ", "\n") + "\n"
    assert "redis://localhost:6379" in block
    run_block(block.replace("redis://localhost:6379", server.url), tmp_path, lines)


def test_block_of_a_retained_lock_runs(server: Server, tmp_path: Path) -> None:
    [block] = [b for b in BLOCKS if "retain=" in b]
    assert "redis://localhost:6379" in block and "range(1000)" in block
    block = block.replace("redis://localhost:6379", server.url)
    run_block(block, tmp_path, r"(\d+\n){1000}")


def test_block_of_an_election_leads_until_sigterm(
    server: Server, script: Starter, client: redlatch.Client
) -> None:
    [block] = [b for b in BLOCKS if ".election(" in b]
    assert "redis://localhost:6379" in block
    leading = script(block.replace("redis://localhost:6379", server.url))
    fence = int(leading.read())
    leader = client.leader("billing")
    assert leader is not None and leader.term == fence
    leading.process.send_signal(signal.SIGTERM)
    assert leading.end()[1] == "" and leading.process.returncode == 0
    assert client.leader("billing") is None


def test_last_block_is_a_test(pytester: pytest.Pytester, server: Server) -> None:
    assert len(BLOCKS) == 13
    pytester.makepyfile(test_page=BLOCKS[-1])
    arguments = ["-p", "no:cacheprovider", f"--redlatch-url={server.url}"]
    pytester.runpytest_subprocess(*arguments).assert_outcomes(passed=1)


def test_names_exist() -> None:
    owners = {
        "client": (redlatch.Client,),
        "redlock": (redlatch.Redlock,),
        "lock": (redlatch.Lock, redlatch.RLock, redlatch.RWLock),
        "lease": (redlatch.Lease, redlatch.AsyncLease),
        "election": (redlatch.Election,),
        "term": (redlatch.Term,),
        "aio": (redlatch.Aio,),
    }
    named = rf"\b({'|'.join(owners)})\.(?!md\b)(\w+)"
    for owner, name in re.findall(named, PAGE):
        assert any(hasattr(one, name) for one in owners[owner]), f"{owner}.{name}"
    for name in re.findall(r"`(?:redlatch\.)?([A-Z][a-z]+(?:[A-Z][a-z]+)+)`", PAGE):
        if not name.endswith(("Error", "Warning")):
            assert hasattr(redlatch, name), name
    for name in testing.__all__:
        assert f"`{name}(" in PAGE
