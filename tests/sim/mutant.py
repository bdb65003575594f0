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


# A command whose answer is ignored: {IGNORED} and then Call{&ignored, ...}.
IGNORED = (
    "struct Ignored final : session::CallKind {\n"
    "  void on_answer(const Call &, const Reply &, Nanos) const override {}\n"
    "};\n"
    "static const Ignored ignored;\n"
)


class Mutant:
    def __init__(self, name: str, what: str, seed: int, *edits: Edit, scenario: str = "") -> None:
        self.name = name
        self.what = what
        self.seed = seed  # that finds it
        self.edits = edits
        self.scenario = scenario  # of the run; '': as the seed says
