# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""What generators share: the numbers of redlatch.h, the marks of a part, and the program."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

from gen_docs import TOP

HEADER = Path("capi/include/redlatch/redlatch.h")


def marked(
    text: str,
    name: str,
    lines: list[str],
    indent: str,
    tail: str = "",
    source: str = "options.def",
    tool: str = "gen_options.py",
) -> str:
    """`text` with new lines between the marks of the part `name`."""
    begin = f"{indent}---- {name}: made of {source} by tools/{tool} ----{tail}\n"
    end = f"{indent}---- end of {name} ----{tail}\n"
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"the marks of the part '{name}' are missing:\n{begin}{end}")
    head, rest = text.split(begin)
    return head + begin + "".join(line.rstrip() + "\n" for line in lines) + end + rest.split(end)[1]


def read_enums(text: str) -> list[dict[str, str]]:
    """The enums of a header, each as names and numbers; not the statuses, which are a type."""
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    enums = []
    for body in re.findall(r"\benum \{(.*?)\}", code, re.DOTALL):
        rows = re.findall(r"(\w+) = (-?\d+)(?:,|\s*$)", body)
        # One that the pattern misses would silently be left out.
        if len(rows) != len(re.findall(r"\bRL_", body)):
            sys.exit(f"{HEADER.name}: an enum is not understood: {' '.join(body.split())}")
        enums.append(dict(rows))
    return [enum for enum in enums if "RL_OK" not in enum]


def run(description: str, results: Callable[[Path], dict[str, str]]) -> int:
    """Writes, or compares, what `results` has for a tree: paths in it, and the text of each."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--root", type=Path, default=TOP, help="the tree (default: this one)")
    arguments = parser.parse_args()
    failed = 0
    for name, text in results(arguments.root).items():
        path = arguments.root / name
        if not arguments.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{name} is not what tools/{parser.prog} makes; run it")
            failed = 1
    return failed
