# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the library stays small. Method: the release build without its symbols."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.build import ROOT

MOST_BYTES = 1_360_000


def test_the_stripped_library_has_at_most_1_36_mb(tmp_path: Path) -> None:
    library = (ROOT / "build/release/capi/libredlatch.so").resolve()
    stripped = tmp_path / library.name
    subprocess.run(["strip", "-o", stripped, library], check=True)
    assert stripped.stat().st_size <= MOST_BYTES
