# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Waits for a condition, without guessing how long it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

# Long enough for a machine with two busy cores, so that only a hang exceeds it.
LIMIT = 30.0

# How much longer than its limit a call may take on such a machine. It is short enough to tell the
# limits that tests set from the default ones, which are 2 s.
SLACK_S = 1.0

T = TypeVar("T")


def wait_until(condition: Callable[[], T], limit: float = LIMIT) -> T:
    """The first true result of `condition`."""
    end = time.monotonic() + limit
    while not (answer := condition()):
        assert time.monotonic() < end, f"not true within {limit} s"
        time.sleep(0.002)
    return answer
