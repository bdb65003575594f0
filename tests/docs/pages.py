# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Reads Markdown pages: their code, links, headings and the names that they mention."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Pages with tests of their own: of all code of the first two, and of the commands of the third.
RECIPES = ROOT / "docs/recipes.md"
FENCED_WRITES = ROOT / "docs/fenced-writes.md"
OPERATING = ROOT / "docs/operating.md"

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_NAME = re.compile(r"\b(?:rl_[a-z]|RL_[A-Z])\w*")


def all_pages() -> list[Path]:
    """Every page of the tree, tracked or new."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard", "*.md"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return [path for name in sorted(set(names)) if name and (path := ROOT / name).is_file()]


def all_blocks(text: str) -> list[tuple[str, str]]:
    """The fenced blocks, in their order: the language, and what is in it."""
    return _FENCED.findall(text)


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of one language, in their order."""
    return [body for word, body in all_blocks(text) if word == language]


def without_code(text: str) -> str:
    """The text without its fenced blocks."""
    return _FENCED.sub("", text)


def pages_with_code() -> list[Path]:
    """README and the pages for users, whose code is run."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def file_of(block: str) -> str:
    """The file name that the first line of a whole program gives in a comment; "" of a piece."""
    found = re.match(r"(?:/\*|//|#) (\w+\.\w+)(?: \*/)?\n", block)
    return found[1] if found else ""


def links_of(text: str) -> list[str]:
    return _LINK.findall(text)


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as those who show Markdown make them."""
    found = set()
    for heading in _HEADING.findall(without_code(text)):
        kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        found.add(kept.replace(" ", "-"))
    return found


def dead_links(page: Path) -> Iterator[str]:
    """Links to files or headings that are not there. Links to other places are not followed."""
    # Not a link: what stands in code.
    text = re.sub(r"`[^`\n]*`", "", without_code(page.read_text()))
    for link in _LINK.findall(text):
        if re.match(r"\w+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name) if name else page
        if not target.exists():
            yield f"{link}: no such file"
        elif anchor and anchor not in anchors(target.read_text()):
            yield f"{link}: no such heading"


def words_of(glossary: str) -> set[str]:
    """The words that a row of the glossary defines."""
    rows = re.findall(r"^\| (\*\*.+?\*\*) \|", glossary, re.MULTILINE)
    return {word for row in rows for word in re.findall(r"\*\*(.+?)\*\*", row)}


def defined_in(text: str) -> set[str]:
    """The words that a page defines in a sentence, such as "the *lease* is how long"."""
    return set(re.findall(r"(?<!\*)\*([\w -]+)\*\s+(?:is|are|means?)\b", text))


def names_in(text: str) -> set[str]:
    """Names of the C ABI."""
    return set(_NAME.findall(text))


def unknown_names(text: str, header: str) -> list[str]:
    """Names of the C ABI that the text has and the header has not."""
    return sorted(names_in(text) - names_in(header))
