# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the program that judges finds what is wrong in histories made by hand, and nothing else.

Method: Go's own tests, vet and format; testdata has the histories.
"""

from __future__ import annotations

import pytest
from support.history import run_go


@pytest.mark.parametrize("command", ["vet", "test"])
def test_go(command: str) -> None:
    done = run_go(command, "./...")
    assert done.returncode == 0, done.stdout + done.stderr
