# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The table of promises in docs/testing.md has every promise of docs/guarantees.md, and names only
tests that there are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from support.build import ROOT

from .pages import anchors

TESTING = (ROOT / "docs/testing.md").read_text()
GUARANTEES = (ROOT / "docs/guarantees.md").read_text()
SPEC = (ROOT / "tests/conformance/SPEC.md").read_text()
SETTINGS = {"REDLATCH_TEST_LONG=1"}
# The numbered promises have rows of their own, and conditions promise nothing.
OTHER_SECTIONS = {"what-is-promised", "conditions"}


def rows_of(page: str) -> list[tuple[str, str]]:
    """The promises, and what shows them."""
    table = page.partition("\n## Proof of each promise\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+) \| (.+) \|$", table, re.MULTILINE)
    return [row for row in rows if row[0] != "promise"]


def numbered(guarantees: str) -> set[str]:
    section = guarantees.partition("\n## What is promised\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^(\d+)\. \*\*", section, re.MULTILINE))


def missing_promises(page: str, guarantees: str) -> set[str]:
    """Numbers of promises, and sections, without a row."""
    promises = [promise for promise, _ in rows_of(page)]
    numbers = {found[0] for promise in promises if (found := re.match(r"\d+(?= )", promise))}
    linked = set(re.findall(r"\]\(guarantees\.md#([\w-]+)\)", " ".join(promises)))
    headings = re.findall(r"^## (.+)$", guarantees, re.MULTILINE)
    sections = set().union(*(anchors(f"## {heading}\n") for heading in headings))
    return (numbered(guarantees) - numbers) | (sections - OTHER_SECTIONS - linked)


def sentences_in(proof: str) -> set[int]:
    """The numbers of sentences: S7, or S41 to S44."""
    found: set[int] = set()
    for first, last in re.findall(r"\bS(\d+)(?: to S(\d+))?", re.sub(r"`[^`]*`", "", proof)):
        found |= {int(first)} if not last else {int(first), int(last)}
    return found


def unknown_tests(page: str, spec: str) -> Iterator[str]:
    known = {int(number) for number in re.findall(r"^- \*\*S(\d+)\*\*", spec, re.MULTILINE)}
    for promise, proof in rows_of(page):
        paths = [path for path in re.findall(r"`([^`]+)`", proof) if path not in SETTINGS]
        numbers = sentences_in(proof)
        if not paths and not numbers:
            yield f"{promise}: no test"
        for path in paths:
            if not (ROOT / "tests" / path).exists():
                yield f"{promise}: {path}"
        for number in sorted(numbers - known):
            yield f"{promise}: S{number}"


def test_every_promise_has_a_proof() -> None:
    assert numbered(GUARANTEES) == {str(number) for number in range(1, 8)}
    assert len(rows_of(TESTING)) > 20
    assert missing_promises(TESTING, GUARANTEES) == set()


def test_every_named_test_exists() -> None:
    assert list(unknown_tests(TESTING, SPEC)) == []


def test_a_missing_promise_is_found() -> None:
    page = re.sub(r"^\| (7 fork|\[dead waiters\]).*\n", "", TESTING, flags=re.MULTILINE)
    assert missing_promises(page, GUARANTEES) == {"7", "dead-waiters"}
    assert missing_promises(TESTING, GUARANTEES + "\n## Another promise\n") == {"another-promise"}


def test_a_test_that_is_gone_is_found() -> None:
    page = TESTING.replace("capi/fork_test.c", "capi/spoon_test.c").replace("S200 to", "S199 to")
    assert list(unknown_tests(page, SPEC)) == [
        "7 fork: capi/spoon_test.c",
        "[TLS](url.md#tls): S199",
    ]
    page = re.sub(r"^(\| 7 fork \|).*", r"\1 luck |", TESTING, flags=re.MULTILINE)
    assert list(unknown_tests(page, SPEC)) == ["7 fork: no test"]
