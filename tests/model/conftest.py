# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""What the models need, and a table of what was searched, at the end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from .spin import table


@pytest.fixture(scope="module", autouse=True)
def printed_table() -> Iterator[None]:
    missing = [name for name in ("spin", "gcc") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"the model of the protocol: needs {' and '.join(missing)}")
    table.clear()
    yield
    print()
    for name, states, result in table:
        print(f"{name:<44} {states:>10} states  {result}")
