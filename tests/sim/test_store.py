# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the simulated store answers as a real server does, so that simulations are valid.

Method: store_fidelity sends random sequences to both, the server under a clock that the program
sets; it compares replies, messages and keys. Each run takes sequences of its own, by a new seed
that it prints.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.build import built
from support.program import run_to_end
from support.resp import RespError
from support.servers import Server, available_kinds, debug_options

SEQUENCES = 20_000 if os.environ.get("REDLATCH_TEST_LONG") else 3_000
STEPS = 30
# Planted in the program by name: each must be found in fewer sequences than a run has.
DEFECTS = ("clock", "memory", "receivers", "rights", "script")
LIMIT_SECONDS = 3000.0


@dataclass
class Shimmed:
    server: Server
    clock: Path

    def run(self, *args: object) -> subprocess.CompletedProcess[str]:
        command: list[object] = [built("tests/sim/store_fidelity")]
        command += ["--socket", self.server.unix_path]
        command += ["--clock", self.clock, "--steps", STEPS, *args]
        return run_to_end(command, limit=LIMIT_SECONDS)


@pytest.fixture(scope="module", params=available_kinds())
def shimmed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shimmed]:
    clock = tmp_path_factory.mktemp("clock") / "clock"
    clock.write_bytes(struct.pack("<q", 1_700_000_000_000_000))
    env = {"REDLATCH_CLOCK": str(clock), "LD_PRELOAD": str(built("tests/sim/clock_shim.so"))}
    server = Server(request.param, debug_options(request.param), env=env)
    with server, server.connect() as connection:
        first, second = connection.cmd("TIME"), connection.cmd("TIME")
        if first != second:
            pytest.skip("a clock that stands still: this server reads the processor's")
        try:
            connection.cmd("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            rights = ["on", "nopass", "~*", "resetchannels", "+@all"]
            connection.cmd("ACL", "SETUSER", "limited", *rights)
        except RespError as error:
            pytest.fail(f"not a server from 7.0 on: {error}")
        yield Shimmed(server, clock)


def test_the_store_answers_as_a_server(
    shimmed: Shimmed, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    done = shimmed.run("--seed", seed, "--sequences", SEQUENCES)
    with capsys.disabled():
        print(f"\n{shimmed.server.kind}, --seed {seed}: {done.stdout}", end="")
    found = re.search(r"--replay (\d+)", done.stdout)
    if found:
        again = shimmed.run("--seed", seed, "--replay", found.group(1))
        pytest.fail(f"--seed {seed}, every step of it:\n{again.stdout}\n{done.stdout}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_found(shimmed: Shimmed, seed: int, defect: str) -> None:
    done = shimmed.run("--seed", seed, "--sequences", 2_000, "--defect", defect)
    assert done.returncode == 1 and "difference" in done.stdout, done.stdout + done.stderr
