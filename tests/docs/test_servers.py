# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The tables of limits in docs/servers.md are those that tests/system/test_servers.py plays."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from support.build import ROOT
from support.limits import ROWS

TOOL = ROOT / "tools/gen_servers.py"
FILES = ("docs/servers.md", "tests/support/limits.py")


def generate(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_page_has_the_table_that_is_played() -> None:
    done = generate("--check")
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_another_limit_changes_the_page(tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    source = tmp_path / FILES[1]
    source.write_text(source.read_text().replace("no `WAIT`", "no `WAITAOF`"))
    root = f"--root={tmp_path}"
    done = generate("--check", root)
    assert done.returncode == 1 and "run it" in done.stdout
    assert generate(root).returncode == 0
    assert "| no `WAITAOF` | works |" in (tmp_path / FILES[0]).read_text()
    assert generate("--check", root).returncode == 0


def test_services_name_rows_that_are_played() -> None:
    page = (ROOT / FILES[0]).read_text()
    services = page[page.index("| service |") : page.index("What the columns do not say")]
    cells = [line.split(" | ")[2] for line in services.splitlines() if line.startswith("| ")]
    named = {name for cell in cells for name in re.findall(r"`([a-z0-9-]+)`", cell)}
    assert len(named) > 10
    assert named <= {row.name for row in ROWS}
