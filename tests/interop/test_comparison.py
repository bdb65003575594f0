# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: each cell of the table in README that compares lock libraries is true.

Method: the real libraries on a real server, a proof for each cell (proofs.py). A cell without a
proof, or with other words than its proof has, fails.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.build import ROOT
from support.servers import Server

from .bench import Bench
from .conftest import Farm
from .proofs import PROOFS

COLUMNS = ["redis-py", "redsync", "Redisson", "node-redlock", "redlatch"]
HEADER = f"| | {' | '.join(COLUMNS)} |"


def cells_of(page: str) -> dict[tuple[str, str], str]:
    """The cells of the table, by row and column."""
    _, _, below = page.partition(f"{HEADER}\n")
    found = {}
    for line in below.splitlines()[1:]:
        if not line.startswith("| "):
            break
        row, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        found.update({(row, column): cell for column, cell in zip(COLUMNS, cells, strict=True)})
    return found


def test_each_cell_of_the_table_has_its_proof() -> None:
    cells = cells_of((ROOT / "README.md").read_text())
    assert cells == {cell: text for cell, (text, _) in PROOFS.items()}


@pytest.mark.parametrize("cell", PROOFS, ids=" - ".join)
def test_cell(
    cell: tuple[str, str], processes: Farm, one_server: Server, name: str, tmp_path: Path
) -> None:
    _, proof = PROOFS[cell]
    with one_server.connect() as connection:
        proof(Bench(processes, one_server, connection, name, tmp_path))
