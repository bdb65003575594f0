# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Judges a history of beliefs: who thought when that the lock was theirs.

All times are of one clock, CLOCK_MONOTONIC of the host, so intervals of different processes may be
compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Belief(NamedTuple):
    begin_ns: int
    end_ns: int
    fence: int


def read_logs(paths: Iterable[Path]) -> list[Belief]:
    """The beliefs of all processes, in order of their beginnings."""
    beliefs = []
    for path in paths:
        for line in path.read_text().splitlines():
            begin, end, fence = line.split()
            beliefs.append(Belief(int(begin), int(end), int(fence)))
    return sorted(beliefs)


def violations(beliefs: list[Belief]) -> list[str]:
    """Where two believed at once, and where a fence did not rise. Sorted input."""
    found = []
    for before, after in zip(beliefs, beliefs[1:]):
        if after.begin_ns < before.end_ns:
            found.append(f"two hold at once: {before} and {after}")
        if after.fence <= before.fence:
            found.append(f"the fence does not rise: {before} and {after}")
    return found
