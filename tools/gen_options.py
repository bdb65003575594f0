#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Makes docs/options.md, the marked parts of redlatch.h and redlatch.hpp, and the options of
Python, Go, Java and the command from core/config/options.def.

    tools/gen_options.py              write them
    tools/gen_options.py --check      exit 1 if they are not what would be written
    tools/gen_options.py --root DIR   the same elsewhere

Standard library only.
"""

from __future__ import annotations

import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from gen_common import HEADER, run

SOURCE = Path("core/config/options.def")
DOCS = Path("docs/options.md")
CPP_HEADER = HEADER.with_suffix(".hpp")

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
        """What messages of the library say, in short."""
        if self.kind == "DURATION":
            word = f"{self.words[0]}, or " if self.words else ""
            return f"{word}{span(self.least)} to {span(self.most)}"
        if self.kind == "COUNT":
            return f"{self.least} {'or' if self.most == self.least + 1 else 'to'} {self.most}"
        if self.kind == "SWITCH":
            return "yes or no"
        if self.kind == "CHOICE":
            return ", ".join(self.words)
        least = f"{self.least} to " if self.least else "at most "
        more = {"PREFIX": ", no braces", "PRINTABLE": ", printable ASCII without spaces"}
        kinds = {
            "HOST": "a host name or an IP address",
            "PROGRAM": f"an absolute path, at most {self.most} bytes",
            "FILE": "a path",
            "FILE_OR_FOLDER": "a path",
            "PASSWORD_FILE": "a path",
        }
        return kinds.get(self.kind, f"{least}{self.most} bytes{more.get(self.kind, '')}")

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
            self.options.append(row)

    def of(self, *scopes: str) -> list[Option]:
        return [option for option in self.options if option.scope in scopes]


def marked(text: str, name: str, lines: list[str], indent: str, tail: str = "") -> str:
    """`text` with new lines between the marks of the part `name`."""
    begin = f"{indent}---- {name}: made of options.def by tools/gen_options.py ----{tail}\n"
    end = f"{indent}---- end of {name} ----{tail}\n"
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"the marks of the part '{name}' are missing:\n{begin}{end}")
    head, rest = text.split(begin)
    return head + begin + "".join(line.rstrip() + "\n" for line in lines) + end + rest.split(end)[1]


def in_comment(options: list[Option], indent: str) -> list[str]:
    """A list of options with their texts, as in a manual."""
    width = max(len(option.name) for option in options) + 2
    lines = []
    for option in options:
        default = f" ({option.default})" if option.default else ""
        text = f"{option.text}: {option.allowed}{default}"
        says_words = option.kind == "CHOICE" and all(w in option.text for w in option.words)
        if option.kind == "SWITCH" or says_words:
            text = f"{option.text}{default}"
        gap = indent + " " * width
        wrapped = textwrap.wrap(text, 100 - len(gap))
        lines.append(f"{indent}{option.name:{width}}{wrapped[0]}")
        lines += [gap + line for line in wrapped[1:]]
    return lines


def render_header(table: Table, text: str) -> str:
    limits = []
    for i, limit in enumerate(table.limits):
        comma = "," if i + 1 < len(table.limits) else ""
        comment = textwrap.wrap(f"/**< {limit.text}. */", 96 - 2, subsequent_indent="        ")
        limits.append(f"  RL_{limit.name} = {limit.value}{comma}")
        limits[-1:] = [f"{limits[-1]} {comment[0]}"] if len(comment) == 1 and len(
            limits[-1] + comment[0]
        ) < 100 else [limits[-1], *(f"      {line}" for line in comment)]
    text = marked(text, "limits", limits, "  /* ", " */")
    for name, scopes in (
        ("client options", ("client", "tls", "sentinel", "sentinel_tls", "cluster")),
        ("Redlock options", ("quorum",)),
        ("acquire options", ("acquire", "lock")),
    ):
        text = marked(text, name, in_comment(table.of(*scopes), " *   "), " *   ")
    variables: dict[str, list[str]] = {}
    for variable, option in table.variables:
        variables.setdefault(option, []).append(variable)
    lines = [f" *   {', else '.join(names):50} {option}" for option, names in variables.items()]
    return marked(text, "variables", lines, " *   ")


def docs_table(options: list[Option]) -> list[str]:
    lines = ["| option | allowed | default | meaning | since |", "|---|---|---|---|---|"]
    for option in options:
        default = f"`{option.default}`" if option.default else ""
        lines.append(
            f"| `{option.name}` | {option.allowed} | {default} | {option.text} | {option.since} |"
        )
    return lines


DOCS_HEAD = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Copyright The redlatch authors -->
<!-- @generated by tools/gen_options.py from core/config/options.def: DO NOT EDIT -->
# Options

The options of every language and of the command, with the same names, ranges and defaults. Values
are text: a duration is a whole number with `ms`, `s`, `m`, `h` or `d`, such as `500ms`, and a
number without a unit is an error. Python takes seconds, Go and Java their durations, C++
`std::chrono`; the flags of the command also take seconds without a unit. A value that is not
allowed, or an unknown name, is an error that says what is allowed.
"""

DOCS_PARTS = (
    (
        "Client options",
        "In a URL, or by name: `rl_client_options_set()`, `redlatch.connect(url, holder=..)`,\n"
        "`redlatch.WithOption()`, `ClientOptions.with()`, `--holder`. A name overrides the URL.",
        ("client",),
    ),
    (
        "TLS options",
        "For a client whose URL is `rediss://`, `valkeys://`, `rediss-sentinel://` or\n"
        "`rediss+cluster://`.",
        ("tls",),
    ),
    (
        "Sentinel options",
        "For a client whose URL is `redis-sentinel://` or `rediss-sentinel://`. Sentinels never\n"
        "get the user, the password or the TLS options of the server.",
        ("sentinel", "sentinel_tls"),
    ),
    (
        "Cluster options",
        "For a client whose URL is `redis+cluster://` or `rediss+cluster://`.",
        ("cluster",),
    ),
    (
        "Redlock options",
        "By name only, for all its nodes. The options of a client apply to each node.",
        ("quorum",),
    ),
    (
        "Acquire options",
        "By name: `rl_acquire_options_set()`, `acquire_options` in C++, the keywords of\n"
        "`client.lock()` in Python, options such as `redlatch.TTL()` in Go, `LockOptions` in\n"
        "Java, and the flags of `redlatch run` except for `confirm` and `reentrant`.",
        ("acquire",),
    ),
    (
        "Acquire options on one server",
        "As above, but without effect on a Redlock, or refused by it.",
        ("lock",),
    ),
)


def render_docs(table: Table) -> str:
    lines = []
    for title, sentence, scopes in DOCS_PARTS:
        lines += ["", f"## {title}", "", sentence, "", *docs_table(table.of(*scopes))]
    lines += [
        "",
        "## Environment variables",
        "",
        "Read by `rl_client_options_set_from_env()` and `from_env()`, and by the command always.",
        "If several variables set one option, the first one that is set is used; an empty one",
        "counts as unset.",
        "",
        "| variable | option |",
        "|---|---|",
        *(f"| `{variable}` | `{option}` |" for variable, option in table.variables),
        "",
        "## Limits",
        "",
        "In `redlatch.h`, and for `rl_constant()`, each name has the prefix `RL_`.",
        "",
        "| limit | value | |",
        "|---|---:|---|",
        *(f"| `{limit.name}` | {limit.value} | {limit.text} |" for limit in table.limits),
    ]
    return DOCS_HEAD + "\n".join(lines) + "\n"


# ---- C++ -----------------------------------------------------------------------------------------

CPP_TYPES = {"DURATION": "std::chrono::milliseconds", "COUNT": "int32_t", "SWITCH": "bool"}


def render_cpp(table: Table, text: str) -> str:
    lines = []
    for option in table.of("acquire", "lock"):
        kind = CPP_TYPES.get(option.kind, "std::string_view")
        lines += [
            *wrapped_comment(f"{sentence(option)}", "  /** ", "   *  ", " */"),
            f"  acquire_options& {option.name}({kind} value) & {{",
            f'    return set("{option.name}", detail::text_of(value));',
            "  }",
        ]
        moved = [
            f"  acquire_options&& {option.name}({kind} value) && {{",
            f"    return std::move({option.name}(value));",
            "  }",
        ]
        one_line = " ".join([moved[0], *(line.strip() for line in moved[1:])])
        lines += [one_line] if len(one_line) <= 100 else moved
    return marked(text, "acquire options", lines, "  // ")


def sentence(option: Option) -> str:
    """The text with range and default, as the comment of a function."""
    default = f" Default: {option.default}." if option.default else ""
    return f"{option.text[0].upper()}{option.text[1:]}. Allowed: {option.allowed}.{default}"


def wrapped_comment(text: str, first: str, rest: str, tail: str = "") -> list[str]:
    return textwrap.wrap(
        text + tail, 100, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


# ---- Python --------------------------------------------------------------------------------------

PYTHON = Path("python/src/redlatch/_option_table.py")

PYTHON_HEAD = '''\
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
# @generated by tools/gen_options.py from core/config/options.def: DO NOT EDIT
"""The options by name: their kinds, their types and their manual."""

from __future__ import annotations

from typing import Literal, Optional, TypedDict, Union

'''

PYTHON_TYPES = {"DURATION": "Optional[float]", "COUNT": "Optional[int]", "SWITCH": "bool"}
# rlock() and rwlock() take an owner, and decide the rest by it.
PYTHON_OF_LOCK = ("owner", "reentrant", "format")


def python_type(option: Option) -> str:
    if option.kind == "CHOICE":
        return option.name.capitalize()
    return PYTHON_TYPES.get(option.kind, "Union[str, bytes, None]")


def python_default(option: Option) -> str:
    if option.kind == "DURATION" and int(option.initial) > 0:
        return f"{int(option.initial) / 1000:g}"
    if option.kind == "SWITCH":
        return str(option.initial == "1")
    return option.default


PYTHON_RANGES = ("DURATION", "COUNT", "CHOICE", "TEXT", "PREFIX", "PRINTABLE")


def python_allowed(option: Option) -> str:
    if option.kind != "DURATION":
        return option.allowed
    word = "0, or " if option.words else ""
    return f"{word}{option.least / 1000:g} to {option.most / 1000:.10g}"


def python_manual(options: list[Option]) -> list[str]:
    width = max(len(option.name) for option in options) + 2
    lines = []
    for option in options:
        default = python_default(option)
        unit = " [s]" if option.kind == "DURATION" else ""
        allowed = f": {python_allowed(option)}" if option.kind in PYTHON_RANGES else ""
        text = f"{option.text}{unit}{allowed}{f' ({default})' if default else ''}"
        indent = " " * (8 + width)
        lines += textwrap.wrap(
            text, 100, initial_indent=f"        {option.name:{width}}", subsequent_indent=indent
        )
    return lines


def render_python(table: Table) -> str:
    general = table.of("acquire")
    locks = [one for one in table.of("lock") if one.name not in PYTHON_OF_LOCK]
    rest = [one for one in table.of("lock") if one.name in PYTHON_OF_LOCK]
    text = PYTHON_HEAD + "# By name, as in options.def.\nKINDS = {\n"
    text += "".join(f'    "{option.name}": "{option.kind}",\n' for option in table.options) + "}\n"
    for option in table.of("acquire", "lock"):
        if option.kind == "CHOICE":
            words = ", ".join(f'"{word}"' for word in option.words)
            text += f"\n{option.name.capitalize()} = Literal[{words}]\n"
    for name, base, what, options in (
        ("RedlockKeywords", "TypedDict", "Of every acquisition.", general),
        ("Keywords", "RedlockKeywords", "Of every acquisition on one server.", locks),
        ("LockKeywords", "Keywords", "Of a mutex, and of locks in its format.", rest),
    ):
        text += f'\n\nclass {name}({base}, total=False):\n    """{what}"""\n\n'
        text += "".join(f"    {option.name}: {python_type(option)}\n" for option in options)
    text += "\n\n# What docstrings say of the options.\nMANUAL = {\n"
    for name, options in (
        ("client", table.of("client", "tls", "sentinel", "sentinel_tls", "cluster")),
        ("quorum", table.of("quorum")),
        ("acquire", general + table.of("lock")),
        ("redlock", general),
    ):
        manual = "\n".join(python_manual(options))
        text += f'    "{name}": """\\\n{manual}\n""",\n'
    return text + "}\n"


# ---- Go ------------------------------------------------------------------------------------------

GO = Path("go/options_gen.go")

GO_HEAD = """\
// Code generated by tools/gen_options.py from core/config/options.def. DO NOT EDIT.
// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"strconv"
	"time"
)
"""

GO_WORDS = {"ttl": "TTL", "rw": "RW"}
GO_NAMES = {"reentrant": "AsReentrant"}  # Reentrant is a kind of lock


def go_name(name: str) -> str:
    return "".join(GO_WORDS.get(one, one.capitalize()) for one in re.split("[_-]", name))


def go_option(option: Option) -> list[str]:
    name = GO_NAMES.get(option.name, go_name(option.name))
    parameter, value = "value string", "value"
    if option.kind == "DURATION":
        parameter, value = "value time.Duration", "durationText(value)"
    elif option.kind == "COUNT":
        parameter, value = "value int32", "strconv.Itoa(int(value))"
    elif option.kind == "SWITCH":
        parameter, value = "", '"no"' if option.initial == "1" else '"yes"'
        name = f"No{name}" if option.initial == "1" else name
    lines = [""]
    if option.kind == "CHOICE":
        lines += [f"// {name} is a value of the option {option.name}.", f"type {name} string", ""]
        lines += ["const ("]
        names = [f"{name}{go_name(word)}" for word in option.words]
        width = max(map(len, names))
        for full, word in zip(names, option.words):
            lines.append(f'\t{full:{width}} {name} = "{word}"')
        lines += [")", ""]
        parameter, value, name = f"value {name}", "string(value)", f"In{name}"
    verb = "turns off" if name.startswith("No") else "sets"
    lines += wrapped_comment(
        f"{name} {verb} the option {option.name}. {sentence(option)}", "// ", "// "
    )
    lines += [
        f"func {name}({parameter}) Option {{",
        f'\treturn Set("{option.name}", {value})',
        "}",
    ]
    return lines


def render_go(table: Table) -> str:
    lines = []
    for option in table.of("acquire", "lock"):
        lines += go_option(option)
    return GO_HEAD + "\n".join(lines) + "\n"


# ---- Java ----------------------------------------------------------------------------------------

JAVA = Path("java/redlatch/src/main/java/io/redlatch/LockOptions.java")

JAVA_HEAD = """\
// Generated by tools/gen_options.py from core/config/options.def. DO NOT EDIT.
// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.time.Duration;

/**
 * Options of an acquisition. The defaults suit most programs. Immutable: each method returns a new
 * object. An invalid value is reported by the acquire that uses the options.
 */
public final class LockOptions extends OptionValues<LockOptions> {
  /** All the defaults. */
  public static final LockOptions DEFAULT = new LockOptions();

  private LockOptions() {}

  private LockOptions(OptionValues<LockOptions> before, String name, byte[] value) {
    super(before, name, value);
  }

  @Override
  LockOptions and(String name, byte[] value) {
    return new LockOptions(this, name, value);
  }
"""


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(one.capitalize() for one in rest)


def java_option(option: Option) -> list[str]:
    name = camel(option.name)
    types = {"DURATION": "Duration", "COUNT": "int", "SWITCH": "boolean"}
    kind = types.get(option.kind, "String")
    lines = [""]
    if option.kind == "CHOICE":
        kind = name.capitalize()
        lines += [f"  /** A value of the option {option.name}. */", f"  public enum {kind} {{"]
        words = [word.upper().replace("-", "_") for word in option.words]
        lines += [f"    /** {word}. */\n    {upper}" + ("," if upper != words[-1] else "")
                  for word, upper in zip(option.words, words)]
        lines += ["  }", ""]
    lines += wrapped_comment(sentence(option), "  /** ", "   *  ", " */")
    lines += [
        f"  public LockOptions {name}({kind} value) {{",
        f'    return with("{option.name}", value);',
        "  }",
    ]
    if kind == "String":
        lines += [
            "",
            f"  /** As {name}(text), of bytes of any values. */",
            f"  public LockOptions {name}(byte[] value) {{",
            f'    return with("{option.name}", value);',
            "  }",
        ]
    return lines


def render_java(table: Table) -> str:
    lines = []
    for option in table.of("acquire", "lock"):
        lines += java_option(option)
    return JAVA_HEAD + "\n".join(lines) + "\n}\n"


# ---- the command ---------------------------------------------------------------------------------

COMMAND = Path("cli/src/flags.def")

COMMAND_HEAD = """\
/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 * @generated by tools/gen_options.py from core/config/options.def: DO NOT EDIT
 *
 * RL_FLAG(letter of the scope, option, type of the value, or value of the switch, help)
 */
/* clang-format off */
"""

COMMAND_TYPES = {"DURATION": "DUR", "COUNT": "N", "CHOICE": "WORD", "PROGRAM": "PATH"}


def command_flag(option: Option) -> str:
    kind = "PATH" if "FILE" in option.kind else COMMAND_TYPES.get(option.kind, "TEXT")
    # The text of a choice may begin with one of its words.
    is_choice = option.kind == "CHOICE"
    text = option.text if is_choice else option.text[0].upper() + option.text[1:]
    says_words = is_choice and all(word in text for word in option.words)
    if option.kind in ("DURATION", "COUNT", "CHOICE") and not says_words:
        text += f": {option.allowed}"
    if option.kind == "SWITCH":
        kind = "no" if option.initial == "1" else "yes"
        text = f"Do not {option.text}" if kind == "no" else text
    elif option.default:
        text += f" ({option.default})"
    letter = "K" if option.scope == "cluster" else option.scope[0].upper()
    return f'RL_FLAG(\'{letter}\', "{option.name}", "{kind}",\n        "{text}")\n'


def render_command(table: Table) -> str:
    return COMMAND_HEAD + "".join(map(command_flag, table.options)) + "/* clang-format on */\n"


def results(root: Path) -> dict[str, str]:
    """Path in the tree and text of each result."""
    table = Table(root)
    return {
        str(HEADER): render_header(table, (root / HEADER).read_text()),
        str(DOCS): render_docs(table),
        str(CPP_HEADER): render_cpp(table, (root / CPP_HEADER).read_text()),
        str(PYTHON): render_python(table),
        str(GO): render_go(table),
        str(JAVA): render_java(table),
        str(COMMAND): render_command(table),
    }


if __name__ == "__main__":
    raise SystemExit(run("Makes the tables of options.", results))
