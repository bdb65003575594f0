# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The packages under test that have only sources, made once for all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .packages import make

# Belongs to the long runs.
LONG = ["test_compiled.py", "test_deb_build.py", "test_java_repository.py", "test_musl.py"]
collect_ignore = [] if os.environ.get("REDLATCH_TEST_LONG") else LONG


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    make(folder, "source", "go")
    return folder
