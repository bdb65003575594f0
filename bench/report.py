# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Results: one row for each figure, printed as one table for each topic."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Metric:
    """A column: what is compared with which floor of the same run, and what is wanted of it."""

    name: str
    floor: str = ""
    at_most: float | None = None
    at_least: float | None = None
    worst_counts: bool = False  # the target holds for every round, not for the median
    unit: str = "x"

    def is_met(self, value: float, low: float, high: float) -> bool | None:
        if self.at_most is not None:
            return (high if self.worst_counts else value) <= self.at_most
        if self.at_least is not None:
            return (low if self.worst_counts else value) >= self.at_least
        return None


@dataclass(frozen=True)
class Row:
    topic: str
    case: str
    metric: Metric
    value: float  # the median of the rounds
    low: float
    high: float
    rounds: int
    is_met: bool | None

    @staticmethod
    def of(topic: str, case: str, metric: Metric, values: Iterable[float]) -> Row:
        data = list(values)
        value, low, high = statistics.median(data), min(data), max(data)
        is_met = metric.is_met(value, low, high)
        return Row(topic, case, metric, value, low, high, len(data), is_met)

    def cell(self) -> str:
        text = number(self.value)
        if self.rounds > 1 and number(self.low) != number(self.high):
            text += f" ({number(self.low)}-{number(self.high)})"
        return text + (" !" if self.is_met is False else "")

    def as_json(self) -> dict[str, object]:
        plain = asdict(self)
        plain.update(plain.pop("metric"))
        plain["metric"] = plain.pop("name")
        return {name: value for name, value in plain.items() if value not in (None, "")}


def number(value: float) -> str:
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    if abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def _heading(metrics: Sequence[Metric]) -> str:
    """Of a column; cases may have different targets, or none."""
    unit = metrics[0].unit
    suffix = "" if unit in ("x", "") else f" {unit}"
    for sign, limits in (
        ("<=", [metric.at_most for metric in metrics]),
        (">=", [metric.at_least for metric in metrics]),
    ):
        shown = dict.fromkeys(number(limit) for limit in limits if limit is not None)
        if shown:
            return f"{metrics[0].name} {sign} {' or '.join(shown)}{suffix}"
    return f"{metrics[0].name}{suffix and ','}{suffix}"


def table(rows: Sequence[Row]) -> str:
    """All rows of one topic: a line for each case, a column for each metric. `!`: missed."""
    cases = list(dict.fromkeys(row.case for row in rows))
    columns: dict[tuple[str, str], list[Metric]] = {}
    for row in rows:
        columns.setdefault((row.metric.name, row.metric.unit), []).append(row.metric)
    cells = {(row.case, row.metric.name, row.metric.unit): row.cell() for row in rows}
    lines = [["case", *(_heading(metrics) for metrics in columns.values())], []]
    lines += [[case, *(cells.get((case, *column), "") for column in columns)] for case in cases]
    widths = [max(len(line[i]) for line in lines if line) for i in range(len(lines[0]))]
    lines[1] = ["-" * width for width in widths]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
        for line in lines
    )
