# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The commands and options of `redlatch`, as its help has them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# `  -x,--long TYPE   text`, where a long name leaves no more than one space.
OPTION = re.compile(r"^  (-\S+)(?: ([A-Z]+))? +(\S.*)$")
COMMAND = re.compile(r"^  ([a-z-]+)  +(\S.*)$")

# The words that are values of options, as far as the help of a command has them.
WORDS = {
    "--output": "table json jsonl tsv",
    "--color": "auto always never",
    "--if-busy": "fail skip wait",
    "--on-lost": "term kill signal: ignore",
    "--format": "auto string hash hash-rw",
    "--tls-verify": "full ca none",
    "--sentinel-tls-verify": "full ca none",
}


@dataclass(frozen=True)
class Option:
    names: tuple[str, ...]
    # The name of its value; empty for a switch.
    value: str
    text: str
    # What its value can be, if that is a word.
    words: str


@dataclass(frozen=True)
class Help:
    """What `redlatch help` prints of one command, or of none."""

    summary: str
    usage: str
    groups: dict[str, list[Option]]
    footer: str

    @cached_property
    def options(self) -> list[Option]:
        return [option for group in self.groups.values() for option in group]


def option_of(line: re.Match[str]) -> Option:
    names, text = tuple(line[1].split(",")), line[3]
    known = next((WORDS[name] for name in names if name in WORDS), "").split()
    words = [word for word in known if word in text]
    # `elect` has one less.
    if len(words) < len(known) - 1:
        sys.exit(f"command_help.py: the help of {names[-1]} has not the words {known}")
    return Option(names, line[2] or "", text, " ".join(words))


def read_help(text: str) -> tuple[Help, dict[str, str]]:
    """The help, and the commands that it lists with their summaries."""
    summary, usage, *lines = text.splitlines()
    groups: dict[str, list[Option]] = {}
    commands: dict[str, str] = {}
    footer: list[str] = []
    group = ""
    for line in lines:
        if line.startswith("  "):
            option, command = OPTION.match(line), COMMAND.match(line)
            if option:
                groups.setdefault(group, []).append(option_of(option))
            elif command:
                commands[command[1]] = command[2]
            else:
                sys.exit(f"command_help.py: a line of the help is not understood: {line}")
        elif line.endswith(":") and not footer:
            group = line[:-1]
        elif line or footer:
            footer.append(line)
    return Help(summary, usage.removeprefix("Usage: "), groups, "\n".join(footer)), commands


def command_path(root: Path) -> Path:
    named = os.environ.get("REDLATCH_BUILD_DIR")
    builds = [Path(named)] if named else [root / "build/release", root / "build/dev"]
    for build in builds:
        if (build / "cli/redlatch").exists():
            return build / "cli/redlatch"
    sys.exit("command_help.py: the command is not there: build it first")


def read_command(path: Path) -> tuple[Help, dict[str, Help]]:
    """The help, and that of each command."""

    def ask(*words: str) -> str:
        done = subprocess.run([path, "help", *words], capture_output=True, text=True, check=True)
        return done.stdout

    top, commands = read_help(ask())
    return top, {name: read_help(ask(name))[0] for name in commands}
