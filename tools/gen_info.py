#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Makes the fields of redlatch.h, and the types of C++, Python, Go and Java for what an rl_info
has, from capi/info_fields.def.

    tools/gen_info.py              write them
    tools/gen_info.py --check      exit 1 if they are not what would be written
    tools/gen_info.py --root DIR   the same elsewhere

Standard library only.
"""

from __future__ import annotations

import re
import sys
import textwrap
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import gen_common
from gen_common import HEADER, run
from option_table import ROW, arguments_of

SOURCE = Path("capi/info_fields.def")
CPP = HEADER.with_suffix(".hpp")
PYTHON = Path("python/src/redlatch/_info.py")
GO = Path("go/info_gen.go")
JAVA = Path("java/redlatch/src/main/java/io/redlatch")
marked = partial(gen_common.marked, source=SOURCE.name, tool="gen_info.py")


class Type(NamedTuple):
    """A TYPE of the table: its unit in C, and its type in the languages. X is the word of a part,
    {none} what C and the languages have where there is no value."""

    unit: str
    python: str
    go: str
    java: str
    none: tuple[str, str, str, str] = ("", "", "", "")


TYPES = {
    "TEXT": Type("", "str", "string", "String"),
    "BYTES": Type("", "str", "string", "byte[]"),
    "NUMBER": Type("", "int", "int64", "long"),
    "NOW": Type("ms since 1970", "datetime", "time.Time", "Instant"),
    "TIME": Type(
        "ms since 1970",
        "Optional[datetime]",
        "time.Time",
        "Optional<Instant>",
        ("0", "None", "zero", "empty"),
    ),
    "REMAINING": Type(
        "ms",
        "Optional[float]",
        "time.Duration",
        "Optional<Duration>",
        ("-1", "None", "Forever", "empty"),
    ),
    "CLOCK": Type(
        "ms",
        "Optional[float]",
        "time.Duration",
        "Optional<Duration>",
        ("no such field", "None", "0, and HasClock is false,", "empty"),
    ),
    "STATE": Type("RL_STATE_* or RL_NODE_*", "XState", "XState", "State"),
    "MODE": Type("RL_MODE_*", "XMode", "Mode", "Lease.Mode"),
    "ROLE": Type("RL_ROLE_*", "NodeRole", "NodeRole", "Role"),
    "LEVEL": Type("RL_LEVEL_*", "Level", "Level", "Level"),
    "ROW": Type("", "", "", ""),
}


class Part(NamedTuple):
    """The type that a language has for a part, and its members that are rows of another part."""

    name: str  # in Python and Java
    go: str
    java: str  # with the class that it is in
    word: str  # for X of its types
    about: str
    rows: tuple[tuple[str, str, str], ...] = ()  # member, part, text


PARTS = {
    "LOCK": Part(
        "LockInfo",
        "Info",
        "LockInfo",
        "Lock",
        "a snapshot of a lock. Its times come from the server's clock; do not compare them with "
        "the local clock",
        (
            ("holders", "HOLDER", "readers, a writer, or acquisitions of an owner"),
            ("waiters", "WAITER", "the waiters, in the order of the queue"),
            ("marks", "MARK", "the periods of once in which a run has begun, in no order"),
        ),
    ),
    "HOLDER": Part(
        "Holder",
        "Holder",
        "LockInfo.Holder",
        "Hold",
        "a holder of a lock: a reader, a writer, or one acquisition of an owner",
    ),
    "WAITER": Part("Waiter", "Waiter", "LockInfo.Waiter", "Wait", "a waiter for a lock"),
    "MARK": Part(
        "Mark",
        "Mark",
        "LockInfo.Mark",
        "Mark",
        "a period of once in which a run has begun, and that has not ended",
    ),
    "NODE": Part(
        "NodeInfo",
        "NodeInfo",
        "NodeInfo",
        "Node",
        "a server of a client, as last known",
        (("findings", "FINDING", "the findings of its last check; empty before the first"),),
    ),
    "FINDING": Part("Finding", "Finding", "Finding", "", "a result of a check of a server"),
}


@dataclass(frozen=True)
class Field:
    is_text: bool
    constant: str
    number: int
    parts: tuple[str, ...]
    kind: str
    name: str
    text: str

    def says(self, language: int) -> str:
        return self.text.replace("{none}", TYPES[self.kind].none[language])


def read_fields(root: Path) -> list[Field]:
    text = (root / SOURCE).read_text()
    text = text[text.index("/* clang-format off */") :]
    rows = ROW.findall(text)
    # A row that the pattern misses would silently be left out.
    if len(rows) != len(re.findall(r"^RL_", text, re.MULTILINE)):
        sys.exit(f"{SOURCE.name}: a row is not understood")
    fields = []
    for macro, inner in rows:
        constant, number, parts, kind, name, words = arguments_of(inner)
        if kind not in TYPES:
            sys.exit(f"{SOURCE.name}: {constant} has no such type as {kind}")
        of = tuple(part.strip().removeprefix("k").upper() for part in parts.split("|"))
        fields.append(Field(macro == "INFO_TEXT", constant, int(number), of, kind, name, words))
    return fields


def members(fields: list[Field], part: str) -> list[Field]:
    return [field for field in fields if part in field.parts and field.kind != "ROW"]


def wrapped(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text, 100, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def camel(name: str) -> str:
    return re.sub("_(.)", lambda found: found[1].upper(), name)


def render_header(fields: list[Field], text: str) -> str:
    for is_text, title in ((False, "number fields"), (True, "text fields")):
        lines = []
        for field in sorted(fields, key=lambda one: one.number):
            if field.is_text == is_text:
                unit = TYPES[field.kind].unit
                words = f"{', '.join(field.parts).lower()}: {field.says(0)}"
                words += f" ({unit})." if unit else "."
                lines += wrapped(f"/** {words} */", "  ", "      ")
                lines.append(f"  RL_FIELD_{field.constant} = {field.number},")
        lines[-1] = lines[-1].rstrip(",")  # as C++98 has it
        text = marked(text, title, lines, "  /* ", " */")
    return text


# ---- C++ ---------------------------------------------------------------------------------------

# C++ has types for nodes and findings only.
CPP_PARTS = {
    "FINDING": ("finding", "rl_client_check()"),
    "NODE": ("node_info", "rl_client_info()"),
}
# Type of a member, what reads it, and what it is where there is no value.
CPP_TYPES = {
    "TEXT": ("std::string", "detail::info_text", ""),
    "NUMBER": ("int64_t", "rl_info_number", ""),
    "STATE": ("int64_t", "rl_info_number", ""),
    "ROLE": ("int64_t", "rl_info_number", ""),
    "LEVEL": ("int64_t", "rl_info_number", ""),
    "CLOCK": ("std::optional<std::chrono::milliseconds>", "detail::info_ms", "nothing"),
}


def render_cpp(fields: list[Field], text: str) -> str:
    for key, (name, source) in CPP_PARTS.items():
        found = members(fields, key)
        for field in found:
            if field.kind not in CPP_TYPES:
                allowed = ", ".join(CPP_TYPES)
                sys.exit(
                    f"{SOURCE.name}: TYPE of {field.constant} must be one of {allowed}"
                    f" (got {field.kind})"
                )
        lines = [f"/** {sentence(f'{PARTS[key].about}: {source}')} Since: 0.1. */"]
        lines += [f"struct {name} {{", f"  {name}(const rl_info* info, int32_t row)"]
        for i, field in enumerate(found):
            value = f"{CPP_TYPES[field.kind][1]}(info, RL_PART_{key}, row"
            first = "      : " if i == 0 else "        "
            last = " {}" if i == len(found) - 1 else ","
            lines.append(f"{first}{field.name}({value}, RL_FIELD_{field.constant})){last}")
        for field in found:
            of, _, none = CPP_TYPES[field.kind]
            words = field.text.replace("{none}", none)
            if field.kind in ("STATE", "ROLE", "LEVEL"):
                of_part = "NODE" if field.kind == "STATE" else field.kind
                words += f": RL_{of_part}_*"
            lines += ["", *wrapped(f"/** {sentence(words)} */", "  ", "   * ")]
            lines.append(f"  {of} {field.name};")
        text = marked(text, name, [*lines, "};"], "// ")
    return text


# ---- Python --------------------------------------------------------------------------------------

PYTHON_NAMES = {"holding": "hold_count"}
# The place of a member in a call stays. New ones are the last.
PYTHON_ORDER = (
    "address token who label name state fence waiting type server_time since remaining mode "
    "holders waiters hold_count owner reason role version clock_difference findings id level seen "
    "advice"
).split()


def python_value(kind: str, of: str, constant: str) -> str:
    if kind in ("STATE", "ROLE", "LEVEL"):
        return f'{of}(row.number("{constant}"))'
    reader = {"BYTES": "text", "MODE": of.replace("Mode", "_mode")}.get(kind, kind).lower()
    return f'row.{reader}("{constant}")'


def render_python(fields: list[Field], text: str) -> str:
    readers = []
    for key, part in PARTS.items():
        found, values = {}, []
        for field in members(fields, key):
            of = TYPES[field.kind].python.replace("X", part.word)
            name = PYTHON_NAMES.get(field.name, field.name)
            seconds = "seconds " if of == "Optional[float]" else ""
            found[name] = (of, seconds + field.says(1))
            values.append(f"        {name}={python_value(field.kind, of, field.constant)},")
        for name, other, words in part.rows:
            found[name] = (f"tuple[{PARTS[other].name}, ...]", words)
        lines = []
        for name in sorted(found, key=[*PYTHON_ORDER, *found].index):
            lines.append(f"    {name}: {found[name][0]}")
            lines += wrapped(f'"""{sentence(found[name][1])}"""', "    ", "    ")
        text = marked(text, part.name, lines, "    # ")
        readers += ["", "", f"def _read_{key.lower()}(row: _Row, **rest: Any) -> {part.name}:"]
        readers += [f"    return {part.name}(", *values, "        **rest,", "    )"]
    return marked(text, "readers", readers[2:], "# ")


# ---- Go ------------------------------------------------------------------------------------------

GO_HEAD = f"""\
// Code generated by tools/gen_info.py from {SOURCE}. DO NOT EDIT.
// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"time"

	"redlatch.io/redlatch/internal/rlc"
)
"""


def go_name(name: str) -> str:
    return "ID" if name == "id" else camel(f"_{name}")


def render_go(fields: list[Field]) -> str:
    lines = []
    for key, part in PARTS.items():
        lines += ["", *wrapped(f"{part.go} is {part.about}.", "// ", "// ")]
        lines.append(f"type {part.go} struct {{")
        values = []
        for field in members(fields, key):
            name = go_name(field.name)
            of = TYPES[field.kind].go.replace("X", part.word)
            lines += [*wrapped(sentence(field.says(2)), "\t// ", "\t// "), f"\t{name} {of}"]
            if field.kind == "CLOCK":
                lines += [f"\t// Reports whether {name} is known.", "\tHasClock bool"]
                name += ", one.HasClock"
            value = {"BYTES": "text", "NOW": "time"}.get(field.kind, field.kind.lower())
            value = f"r.{value}(rlc.RL_FIELD_{field.constant})"
            if field.kind in ("STATE", "MODE", "ROLE", "LEVEL"):
                value = f"{of}(r.number(rlc.RL_FIELD_{field.constant}))"
            values.append(f"\tone.{name} = {value}")
        for name, other, words in part.rows:
            lines += [f"\t// {sentence(words)}", f"\t{go_name(name)} []{PARTS[other].go}"]
        lines += ["}", "", f"func (r row) as{part.go}() {part.go} {{", f"\tone := {part.go}{{}}"]
        lines += [*values, "\treturn one", "}"]
    return GO_HEAD + "\n".join(lines) + "\n"


# ---- Java ----------------------------------------------------------------------------------------

JAVA_MORE = {
    "LOCK": ". No two are equal",
    "NODE": ": {@link Redlatch#info}",
    "FINDING": ": {@link Redlatch#check}",
}
JAVA_TEXTS = (("WAITER", "token"),)  # String in place of byte[]


def java_value(kind: str, part: Part, constant: str) -> str:
    field = f"RlcConstants.RL_FIELD_{constant}"
    if kind in ("STATE", "ROLE", "LEVEL"):
        return f"{part.java}.{TYPES[kind].java}.values()[(int) number({field})]"
    return f"{kind.lower()}({field})"


def render_java(fields: list[Field], root: Path) -> dict[str, str]:
    files = {name: root / JAVA / f"{name}.java" for name in ("LockInfo", "NodeInfo", "Finding")}
    texts = {name: path.read_text() for name, path in files.items()}
    readers = []
    for key, part in PARTS.items():
        file, *inner = part.java.split(".")
        indent = "  " * len(inner)
        about = sentence(part.about + JAVA_MORE.get(key, ""))
        lines = [f"{indent}/**", *wrapped(about, f"{indent} * ", f"{indent} * "), f"{indent} *"]
        components, values = [], []
        for field in members(fields, key):
            kind = "TEXT" if (key, field.name) in JAVA_TEXTS else field.kind
            name = camel(field.name) + ("Bytes" if kind == "BYTES" else "")
            components.append((TYPES[kind].java, name, field.says(3)))
            values.append(java_value(kind, part, field.constant))
        for name, other, words in part.rows:
            components.append((f"List<{PARTS[other].name}>", name, words))
            values.append(name)
        for _, name, words in components:
            lines += wrapped(f"@param {name} {words}", f"{indent} * ", f"{indent} *     ")
        lines += [f"{indent} */", f"{indent}public record {part.name}("]
        lines += [f"{indent}    {of} {name}," for of, name, _ in components]
        lines[-1] = lines[-1].rstrip(",") + ") {"
        texts[file] = marked(texts[file], part.name, lines, f"{indent}// ")
        parameters = ", ".join(f"List<{PARTS[other].java}> {name}" for name, other, _ in part.rows)
        readers += ["", f"    {part.java} as{part.name}({parameters}) {{"]
        if len(readers[-1]) > 100:
            one_each = parameters.replace(", ", ",\n        ")
            readers[-1] = f"    {part.java} as{part.name}(\n        {one_each}) {{"
        readers += [f"      return new {part.java}(", *(f"          {one}," for one in values)]
        readers[-1] = readers[-1].rstrip(",") + ");"
        readers.append("    }")
    reader = JAVA / "InfoReader.java"
    return {
        **{str(JAVA / f"{name}.java"): text for name, text in texts.items()},
        str(reader): marked((root / reader).read_text(), "readers", readers[1:], "    // "),
    }


def results(root: Path) -> dict[str, str]:
    """Path in the tree and text of each result."""
    fields = read_fields(root)
    return {
        str(HEADER): render_header(fields, (root / HEADER).read_text()),
        str(CPP): render_cpp(fields, (root / CPP).read_text()),
        str(PYTHON): render_python(fields, (root / PYTHON).read_text()),
        str(GO): render_go(fields),
        **render_java(fields, root),
    }


if __name__ == "__main__":
    raise SystemExit(run("Makes the types of what an rl_info has.", results))
