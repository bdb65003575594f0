# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the program that judges finds what is wrong in histories made by hand, and nothing else.

Method: Go's own tests, vet and format; testdata has the histories.
"""

from __future__ import annotations

import pytest
from support.go import run_go
from support.history import JUDGE_S, SOURCES


@pytest.mark.parametrize("command", ["vet", "test"])
def test_go(command: str) -> None:
    done = run_go(SOURCES, command, "./...", limit_s=JUDGE_S)
    assert done.returncode == 0, done.stdout + done.stderr
