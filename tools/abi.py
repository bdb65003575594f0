#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Guards the ABI: what redlatch.h declared once, it declares for ever alike.

    tools/abi.py           exit 1 if the header is not the baseline, with an explanation
    tools/abi.py --update  write the baseline, if the header only adds to it

The baseline is tests/abi/redlatch.abi (types of all functions, by abidw), redlatch.symbols (their
names) and redlatch.constants. abidw reads a library of empty functions that is compiled from the
header, not libredlatch: of that it would write 10 MB, most of them types of C++ that no user can
name. The compiler sees to it that libredlatch has the types of its header.

Exit 2 if this machine cannot tell: it needs abidw and abidiff, of abigail-tools, and a C compiler.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
HEADER = "capi/include/redlatch/redlatch.h"
FOLDER = "tests/abi"
TYPES, SYMBOLS, CONSTANTS = "redlatch.abi", "redlatch.symbols", "redlatch.constants"
LICENCE = "# SPDX-License-Identifier: Apache-2.0\n# Copyright The redlatch authors\n#\n"
HEADS = {
    SYMBOLS: "# Every function of the ABI, sorted. A name that was ever here stays.\n",
    CONSTANTS: "# Every constant of the ABI, sorted. A line that was ever here stays.\n",
}
SUMMARY = re.compile(r"Functions changes summary: (\d+) Removed, (\d+) Changed")


def code_of(header: Path) -> str:
    return re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)


def functions_of(code: str) -> list[str]:
    return sorted(re.findall(r"^RL_API [\w\s*]*?\b(rl_\w+)\(", code, re.MULTILINE))


def constants_of(code: str) -> list[str]:
    """Lines "NAME = value", of enums and of macros that have a value."""
    rows = re.findall(r"^#define (RL_\w+) (?!__attribute__)(\S.*)$", code, re.MULTILINE)
    for body in re.findall(r"\benum \{(.*?)\}", code, re.DOTALL):
        for entry in filter(None, map(str.strip, body.split(","))):
            row = re.fullmatch(r"(\w+) = (-?\d+)", entry)
            if row is None:
                sys.exit(f"a constant must be NAME = NUMBER (got {entry})")
            rows.append((row[1], row[2]))
    return sorted(f"{name} = {value.strip()}" for name, value in rows)


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(w) for w in command], capture_output=True, text=True, check=False)


def describe(header: Path, folder: Path) -> Path:
    """What abidw writes of a library that has the functions of the header, and nothing else."""
    bodies = re.findall(r"^RL_API [^;]*(?=;)", code_of(header), re.MULTILINE)
    source, library = folder / "abi.c", folder / "libredlatch.so.0"
    text = "".join(f"{body} {{ __builtin_trap(); }}\n" for body in bodies)
    source.write_text(f'#include "{header}"\n{text}')
    flags = ("-shared", "-fPIC", "-g", "-O0", "-w", "-Wl,-soname,libredlatch.so.0", "-nostdlib")
    done = run(os.environ.get("CC", "cc"), *flags, "-o", library, source)
    if done.returncode != 0:
        sys.exit(f"the functions of the header cannot be compiled:\n{done.stderr}")
    result = folder / "now.abi"
    options = ["--no-architecture", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs"]
    options += ["--no-elf-needed", "--type-id-style", "hash"]
    done = run("abidw", *options, "--out-file", result, library)
    if done.returncode != 0:
        sys.exit(f"abidw failed:\n{done.stdout}{done.stderr}")
    # The only line that depends on the folder and the compiler.
    text = re.sub(r" path='[^']*'| comp-dir-path='[^']*'", "", result.read_text())
    result.write_text(re.sub(r"<abi-instr [^>]*>", "<abi-instr language='LANG_C11'>", text))
    return result


def read_list(path: Path) -> list[str]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if line and not line.startswith("#")]


def lost(folder: Path, now: dict[str, list[str]]) -> list[str]:
    """What the committed lists have and the header has not, or not alike."""
    found = []
    for name, lines in now.items():
        found += [f"{name}: {line}" for line in read_list(folder / name) if line not in lines]
    return found


def compare(baseline: Path, described: Path) -> tuple[bool, str]:
    """Whether all of the baseline is as it was, and what abidiff says of the differences."""
    if not baseline.exists():
        return True, "none yet"
    done = run("abidiff", "--no-show-locs", "--no-architecture", baseline, described)
    said = (done.stdout + done.stderr).strip()
    summary = SUMMARY.search(said)
    return done.returncode == 0 or (summary is not None and summary.groups() == ("0", "0")), said


def explain(what: str) -> None:
    print(f"""\
The ABI must only grow: programs that were compiled with an older header use it as it was.
{what}
A new meaning needs a new name; the old name stays, and does what it did. See docs/abi.md.""")


def guard(root: Path, is_update: bool) -> int:
    code = code_of(root / HEADER)
    folder = root / FOLDER
    now = {SYMBOLS: functions_of(code), CONSTANTS: constants_of(code)}
    gone = lost(folder, now)
    if gone:
        explain("Removed or changed:\n" + "\n".join(f"  {line}" for line in gone))
        return 1
    with tempfile.TemporaryDirectory() as made:
        described = describe(root / HEADER, Path(made))
        is_good, said = compare(folder / TYPES, described)
        if not is_good:
            explain(said)
            return 1
        texts = {name: f"{LICENCE}{HEADS[name]}" + "".join(f"{line}\n" for line in lines)
                 for name, lines in now.items()}
        texts[TYPES] = described.read_text()
    return write_or_compare(folder, texts, is_update, bool(said))


def write_or_compare(folder: Path, texts: dict[str, str], is_update: bool, grew: bool) -> int:
    stale = []
    for name, text in texts.items():
        path = folder / name
        # The text of abidw depends on its version; its meaning was compared.
        if path.exists() and (path.read_text() == text or (name == TYPES and not grew)):
            continue
        stale.append(name)
        if is_update:
            path.write_text(text)
    if stale and not is_update:
        names = ", ".join(f"{FOLDER}/{name}" for name in stale)
        print(f"The header adds to the ABI, and {names} must say so in the same commit: "
              "tools/abi.py --update")
    return 1 if stale and not is_update else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Guards the ABI.")
    parser.add_argument("--update", action="store_true", help="write the baseline")
    parser.add_argument("--root", type=Path, default=TOP, help="the tree (default: this one)")
    arguments = parser.parse_args()
    missing = [name for name in ("abidw", "abidiff") if shutil.which(name) is None]
    if missing:
        print(f"abi.py: needs {' and '.join(missing)}, of abigail-tools", file=sys.stderr)
        return 2
    return guard(arguments.root.resolve(), arguments.update)


if __name__ == "__main__":
    sys.exit(main())
