#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Keeps results as files of bench/history, one for each run, and prints them.

    bench/history.py keep FILE        what scripts/bench or scripts/simulate wrote by --json FILE
    bench/history.py table            the newest figure of each row of scripts/bench, in Markdown
    bench/history.py table FILE       the rows of one file of bench/history
    bench/history.py rows [WORD...]   the names of all rows that contain these words
    bench/history.py trend ROW        one row, as `rows` prints it, in each result that has it

A file has the date, the commit, the machine without its name, and rows with unit and range.
Standard library only.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import machine
from report import Metric, Row, number

FOLDER = Path(__file__).resolve().parent / "history"
# What is kept beside the rows. The measured values of single rounds (`raw`) stay behind.
KEPT = ("date", "commit", "against", "command", "note", "server", "pin", "is_quick")
KEPT += ("broken_seeds", "faults")
MACHINE = ("cpu", "cores", "kernel", "load_average_at_start")
SIMULATION = "simulation"  # the topic of all rows of scripts/simulate

Result = dict[str, Any]


class Refused(Exception):
    """A wrong argument; the text says what is allowed."""


def read(path: Path) -> Result:
    try:
        found = json.loads(path.read_text())
        if list(rows_of(found)) and found["date"] and found["commit"]:
            return found
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise Refused(f"FILE must be a result of --json with rows (got {path})")


def rows_of(result: Result) -> Iterator[Row]:
    for row in result["rows"]:
        value = row["value"]
        metric = Metric(
            row["metric"],
            row.get("floor", ""),
            row.get("at_most"),
            row.get("at_least"),
            row.get("worst_counts", False),
            row.get("unit", ""),
        )
        low, high = row.get("low", value), row.get("high", value)
        rounds = row.get("rounds", 1 if low == high else 2)
        yield Row(row["topic"], row["case"], metric, value, low, high, rounds, row.get("is_met"))


def kind_of(result: Result) -> str:
    if result["rows"][0]["topic"] == SIMULATION:
        return SIMULATION
    return "comparison" if "against" in result else "bench"


def results(folder: Path) -> list[tuple[Path, Result]]:
    """All of them, the oldest first."""
    found = [(path, read(path)) for path in sorted(folder.glob("*.json"))]
    return sorted(found, key=lambda one: one[1]["date"])


def name_of(row: Row) -> str:
    """Metrics of one name may differ in their unit."""
    unit = "" if row.metric.unit in ("x", "") else f", {row.metric.unit}"
    return f"{row.topic}: {row.case}: {row.metric.name}{unit}"


def target(metric: Metric) -> str:
    for sign, limit in (("<=", metric.at_most), (">=", metric.at_least)):
        if limit is not None:
            return f"{sign} {number(limit)}"
    return ""


def measured(row: Row) -> str:
    unit = "" if row.metric.unit in ("x", "") else f" {row.metric.unit}"
    text = number(row.value) + unit
    if number(row.low) != number(row.high):
        text += f" ({number(row.low)} to {number(row.high)})"
    return text + (": **missed**" if row.is_met is False else "")


def order_of(row: Row) -> tuple[bool, int, str]:
    """P2 before P12, and what has no number last."""
    found = re.fullmatch(r"P(\d+)", row.topic)
    return (found is None, int(found[1]) if found else 0, row.topic)


def table(some: list[Result]) -> str:
    """The newest figure of each row; below it, where and when each was measured."""
    newest = {name_of(row): (row, result) for result in some for row in rows_of(result)}
    rows = sorted(newest.values(), key=lambda one: order_of(one[0]))
    lines = ["| | work | target | measured, median (range) | commit |", "|---|---|---|---|---|"]
    for row, result in rows:
        work = f"{row.case}: {row.metric.name}"
        cells = (row.topic, work, target(row.metric), measured(row), result["commit"])
        lines.append(f"| {' | '.join(cells)} |")
    used = [result for result in some if any(result is one for _, one in rows)]
    return "\n".join([*lines, "", *(f"- {condition(result)}" for result in used)])


def condition(result: Result) -> str:
    """Where and when a result was measured."""
    facts = result.get("machine", {})
    cores = f"{facts['cores']} cores" if "cores" in facts else ""
    quick = "--quick" if result.get("is_quick") else ""
    load = result.get("others_percent_at_most")
    others = "" if load is None else f"other programs used up to {load} % of a core"
    parts = (result.get("server"), cores, facts.get("cpu"), facts.get("kernel"), quick, others)
    text = ", ".join([f"Commit {result['commit']}, {result['date'][:10]}", *filter(None, parts)])
    return f"{text}. {result['note']}" if "note" in result else f"{text}."


def keep(source: Path, folder: Path) -> Path:
    """Without the raw values, and with this machine if the result names none."""
    found = read(source)
    kept = {name: found[name] for name in KEPT if name in found}
    if facts := found.get("machine"):
        kept["machine"] = {name: facts[name] for name in MACHINE if name in facts}
    else:  # of scripts/simulate, which has run here; the load is that of now
        facts = machine.description()
        kept["machine"] = {name: facts[name] for name in MACHINE[:-1]}
    loads = [load for one in found.get("conditions", []) for load in one["others_percent"].values()]
    if loads:
        kept["others_percent_at_most"] = max(loads)
    kept["rows"] = found["rows"]
    commit = re.sub(r"[^\w.-]", "", found["commit"])
    stem = f"{found['date'][:10]}-{kind_of(found)}-{commit}"
    text = as_text(kept)
    path = folder / f"{stem}.json"
    count = 1
    while path.exists() and path.read_text() != text:  # another run of that day and commit
        count += 1
        path = folder / f"{stem}-{count}.json"
    path.write_text(text)
    return path


def as_text(result: Result) -> str:
    """A line for each row, so that a diff shows rows."""
    head = {name: value for name, value in result.items() if name != "rows"}
    fields = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    rows = [f"  {json.dumps(row)}" for row in result["rows"]]
    fields.append(' "rows": [\n' + ",\n".join(rows) + "\n ]")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def show_table(folder: Path, file: Path | None) -> str:
    if file is not None:
        return table([read(file)])
    found = [result for _, result in results(folder) if kind_of(result) == "bench"]
    if not found:
        raise Refused(f"{folder} must have a result of scripts/bench")
    return table(found)


def show_rows(folder: Path, words: list[str]) -> str:
    names = {name_of(row) for _, result in results(folder) for row in rows_of(result)}
    return "\n".join(sorted(name for name in names if all(word in name for word in words)))


def show_trend(folder: Path, name: str) -> str:
    lines = [
        f"{result['date'][:10]}  {result['commit']:14}  {measured(row)}"
        + ("  --quick" if result.get("is_quick") else "")
        for _, result in results(folder)
        for row in rows_of(result)
        if name_of(row) == name
    ]
    if not lines:
        raise Refused(f"ROW must be a line that `rows` prints (got {name!r})")
    return "\n".join(lines)


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="in place of bench/history")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("keep").add_argument("file", type=Path)
    commands.add_parser("table").add_argument("file", type=Path, nargs="?")
    commands.add_parser("rows").add_argument("words", nargs="*")
    commands.add_parser("trend").add_argument("row")
    return parser.parse_args(words)


def main() -> int:
    args = parse(sys.argv[1:])
    try:
        if args.command == "keep":
            print(keep(args.file, args.folder))
        elif args.command == "table":
            print(show_table(args.folder, args.file))
        elif args.command == "rows":
            print(show_rows(args.folder, args.words))
        else:
            print(show_trend(args.folder, args.row))
    except Refused as error:
        print(f"history.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
