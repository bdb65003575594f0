# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the units of examples/systemd are right about the command. Method: their lines are run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from support.build import ROOT
from support.servers import Server

from .harness import Cli

UNITS = sorted((ROOT / "examples/systemd").glob("*.service"))
PAGE = (ROOT / "docs/command.md").read_text()


def setting(unit: Path, key: str) -> str:
    found = re.search(rf"^{key}=(.*)$", unit.read_text(), re.MULTILINE)
    assert found, f"{unit.name} has no {key}"
    return found[1]


def call(unit: Path, command: list[str]) -> tuple[list[str], str]:
    """The words of ExecStart behind `redlatch`, with another command, and the lock's name."""
    program, *words = shlex.split(setting(unit, "ExecStart"))
    assert Path(program).name == "redlatch"
    separator = words.index("--")
    return [*words[: separator + 1], *command], words[separator - 1]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_unit_runs_and_gives_the_exit_code(cli: Cli, unit: Path) -> None:
    words, _ = call(unit, ["sh", "-c", "exit 3"])
    assert cli.run(*words).returncode == 3


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_unit_does_not_restart_what_cannot_get_better(
    binary: str, own_server: Server, unit: Path
) -> None:
    words, _ = call(unit, ["true"])
    code = Cli(binary, f"redis+cluster://127.0.0.1:{own_server.port}").run(*words).returncode
    assert str(code) in setting(unit, "RestartPreventExitStatus").split()
    assert "79" not in setting(unit, "RestartPreventExitStatus").split()
    assert setting(unit, "KillMode") == "mixed"


def test_busy_is_a_success_of_the_job(cli: Cli) -> None:
    [unit] = [unit for unit in UNITS if "--nonblock" in setting(unit, "ExecStart")]
    words, name = call(unit, ["true"])
    with cli.hold(name) as held:
        code = cli.run(*words).returncode
        assert str(code) in setting(unit, "SuccessExitStatus").split()
        assert held.finish() == 0


def test_page_names_the_units_and_repeats_none() -> None:
    assert len(UNITS) > 1
    for unit in UNITS:
        assert f"(../examples/systemd/{unit.name})" in PAGE
    assert "[Service]" not in PAGE and "ExecStart" not in PAGE
