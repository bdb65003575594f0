# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A defect that mutants.py builds in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    file: str
    old: str  # occurs there exactly once
    new: str  # IS_ON: whether this defect is the one that is switched on


class Mutant:
    def __init__(self, name: str, what: str, seed: int, *edits: Edit, scenario: str = "") -> None:
        self.name = name
        self.what = what
        self.seed = seed  # that finds it
        self.edits = edits
        self.scenario = scenario  # of the run; '': as the seed says
