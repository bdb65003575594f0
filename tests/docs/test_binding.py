# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: docs/binding.md has each function of redlatch.h once: a binding needs it, or does not.

Method: the names of its two lists are compared with those that the header declares. The check is
tried with planted defects.
"""

from __future__ import annotations

import re

import pytest

from .pages import ROOT

PAGE = (ROOT / "docs/binding.md").read_text()
HEADER = (ROOT / "capi/include/redlatch/redlatch.h").read_text()
LONGEST_PAGE = 120  # lines
NEEDED, NOT_NEEDED = "## Functions that it needs", "## Functions that it does not need"
OPEN_ROW = "| | `rl_client_open`, `rl_redlock_open` |"


def defects(page: str) -> list[str]:
    declared = set(re.findall(r"^RL_API [^(]*?\b(rl_\w+)\(", HEADER, re.MULTILINE))
    needed_text, rest = page.split(NEEDED)[1].split(NOT_NEEDED)
    # The second column; the third may name a function again.
    cells = re.findall(r"^\|[^|]*\|([^|]*)\|", needed_text, re.MULTILINE)
    names = re.findall(r"`(rl_\w+)`", "\n".join([*cells, rest.split("\n## ")[0]]))
    found = [f"{name} is not in the header" for name in sorted(set(names) - declared)]
    found += [f"{name} is in no list" for name in sorted(declared - set(names))]
    return found + [f"{name} is listed twice" for name in set(names) if names.count(name) > 1]


def test_every_function_is_listed_once() -> None:
    assert defects(PAGE) == []


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= LONGEST_PAGE


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (OPEN_ROW, "| | `rl_client_open` |", "rl_redlock_open is in no list"),
        ("`rl_redlock_open`", "`rl_mutex_open`", "rl_mutex_open is not in the header"),
        ("`rl_url_redact`", "`rl_client_close`", "rl_client_close is listed twice"),
    ],
)
def test_a_defect_is_found(old: str, new: str, said: str) -> None:
    assert PAGE.count(old) == 1
    assert said in defects(PAGE.replace(old, new))
