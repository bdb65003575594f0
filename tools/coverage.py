#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Prints how many lines of core/ have run, by folder, from the counts of a build with --coverage.

    tools/coverage.py BUILD           a row for each folder
    tools/coverage.py BUILD FILE...   the lines of these files that have not run

scripts/coverage makes the build and the counts. Needs gcov; otherwise standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
MEASURED = "core"
NOTES_AT_ONCE = 50

# file, from the root -> line -> how often it has run
Counts = dict[str, dict[int, int]]


def read_counts(build: Path, root: Path) -> Counts:
    """The sum over all objects: a header is in several."""
    counts: Counts = defaultdict(lambda: defaultdict(int))
    for file, lines in _files(build):
        try:
            name = file.relative_to(root).as_posix()
        except ValueError:
            continue  # a header of the system
        if name.startswith(f"{MEASURED}/"):
            for line in lines:
                counts[name][line["line_number"]] += line["count"]
    return counts


def _files(build: Path) -> Iterator[tuple[Path, list[dict[str, int]]]]:
    # A note has no counts beside it if no line of its object has run.
    notes = [str(path) for path in sorted(build.resolve().rglob("*.gcno"))]
    for first in range(0, len(notes), NOTES_AT_ONCE):
        command = ["gcov", "--json-format", "--stdout", *notes[first : first + NOTES_AT_ONCE]]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
        )
        for text in filter(None, done.stdout.splitlines()):
            found = json.loads(text)
            folder = found["current_working_directory"]
            for file in found["files"]:
                path = os.path.normpath(os.path.join(folder, file["file"]))
                yield Path(path), file["lines"]


def print_folders(counts: Counts) -> None:
    lines: dict[str, int] = defaultdict(int)
    run: dict[str, int] = defaultdict(int)
    for name, count_of in sorted(counts.items()):
        for folder in (os.path.dirname(name), "total"):
            lines[folder] += len(count_of)
            run[folder] += sum(count > 0 for count in count_of.values())
    print(f"{'folder':20} {'lines':>6} {'run':>6}  percent")
    for folder in [*sorted(set(lines) - {"total"}), "total"]:
        share = 100 * run[folder] / lines[folder]
        print(f"{folder:20} {lines[folder]:6} {run[folder]:6} {share:8.1f}")


def print_missed(counts: Counts, name: str, root: Path) -> None:
    text = (root / name).read_text().splitlines()
    for number in sorted(line for line, count in counts[name].items() if count == 0):
        print(f"{name}:{number}: {text[number - 1].strip()}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Which lines of core/ have run.")
    parser.add_argument("build", type=Path, help="folder of a build with --coverage")
    parser.add_argument("files", nargs="*", metavar="FILE", help="from the root")
    parser.add_argument("--root", type=Path, default=TOP)
    options = parser.parse_args()
    root = options.root.resolve()
    counts = read_counts(options.build, root)
    if not counts:
        parser.error(f"BUILD must be built with --coverage and have run (got {options.build})")
    for name in options.files:
        if name not in counts:
            parser.error(f"FILE must be a source of {MEASURED}/ with code (got {name})")
        print_missed(counts, name, root)
    if not options.files:
        print_folders(counts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
