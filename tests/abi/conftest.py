# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Which tests belong to the long runs."""

from __future__ import annotations

import os

collect_ignore = [] if os.environ.get("REDLATCH_TEST_LONG") else ["test_one_row.py"]
