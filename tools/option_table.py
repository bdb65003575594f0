# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Reads core/config/options.def: the options, limits and variables, and what is allowed, as
messages and pages say it. Standard library only."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path("core/config/options.def")
ROW = re.compile(r"^RL_(\w+)\((.*?)\)\n(?=RL_|\n|/\*)", re.MULTILINE | re.DOTALL)
UNITS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"))


@dataclass(frozen=True)
class Limit:
    name: str
    constant: str
    value: int
    text: str


@dataclass(frozen=True)
class Option:
    scope: str
    name: str
    kind: str
    least: int
    most: int
    initial: str
    words: tuple[str, ...]
    since: str
    text: str

    @property
    def allowed(self) -> str:
        """In the words of the library's messages (allowed_of in core/config/option_values.cc),
        which tests/abi compares."""
        least = f"{self.least} to " if self.least else "at most "
        bytes_ = f"{least}{self.most} bytes"
        if self.kind == "DURATION":
            word = f"{self.words[0]} or " if self.words else ""
            return f"{word}{span(self.least)} to {span(self.most)}"
        if self.kind == "COUNT":
            return f"{self.least} {'or' if self.most == self.least + 1 else 'to'} {self.most}"
        kinds = {
            "SWITCH": "yes or no",
            "CHOICE": " or ".join((", ".join(self.words[:-1]), *self.words[-1:])),
            "PREFIX": f"{bytes_} without braces",
            "PRINTABLE": f"{bytes_} of printable ASCII without spaces",
            "HOST": "a host name or an IP address",
            "PROGRAM": f"the absolute path of a program, {bytes_}",
        }
        path = f"a path of {bytes_}" if "FILE" in self.kind else bytes_
        return kinds.get(self.kind, path)

    @property
    def default(self) -> str:
        """As a user writes it; empty if the text says what the default is, or there is none."""
        if self.kind in ("SWITCH", "CHOICE"):
            return self.words[int(self.initial)]
        if self.kind == "DURATION":
            ms = int(self.initial)
            word = self.words[0] if self.words else "0"
            return word if ms == 0 else f"{ms // 1000}s" if ms % 1000 == 0 else f"{ms}ms"
        return "" if self.initial.startswith("-") else self.initial


def span(ms: int) -> str:
    for size, name in UNITS:
        if ms % size == 0:
            return f"{ms // size} {name}{'' if ms == size else 's'}"
    return f"{ms // 1000} s" if ms % 1000 == 0 else f"{ms} ms"


def arguments_of(text: str) -> list[str]:
    """The arguments of a macro; neighbouring strings are one."""
    found = []
    for part in re.findall(r'(?:\s*"[^"]*")+|[^,\s][^,]*', text):
        strings = re.findall(r'"([^"]*)"', part)
        found.append("".join(strings) if strings else part.strip())
    return found


class Table:
    def __init__(self, root: Path) -> None:
        text = (root / SOURCE).read_text()
        text = text[text.index("/* clang-format off */") :]
        self.limits: list[Limit] = []
        self.variables: list[tuple[str, str]] = []
        self.options: list[Option] = []
        self.kinds: list[Option] = []  # of the kind of a lock: in C only
        rows = ROW.findall(text)
        # A row that the pattern misses would silently be left out.
        if len(rows) != len(re.findall(r"^RL_", text, re.MULTILINE)):
            sys.exit(f"{SOURCE.name}: a row is not understood")
        for macro, inner in rows:
            self._read(macro, arguments_of(inner))

    def _read(self, macro: str, arguments: list[str]) -> None:
        if macro == "LIMIT":
            name, _, constant, value, text = arguments
            self.limits.append(Limit(name, constant, int(value), text))
        elif macro == "VARIABLE":
            self.variables.append((arguments[0], arguments[1]))
        else:
            name, _, kind, least, most, initial, words, since, text = arguments
            numbers = {limit.constant: str(limit.value) for limit in self.limits}
            least, most, initial = (numbers.get(one, one) for one in (least, most, initial))
            scope = macro.removesuffix("_OPTION").lower()
            listed = tuple(words.split())
            row = Option(scope, name, kind, int(least), int(most), initial, listed, since, text)
            (self.kinds if scope == "kind" else self.options).append(row)

    def of(self, *scopes: str) -> list[Option]:
        return [option for option in (*self.options, *self.kinds) if option.scope in scopes]
