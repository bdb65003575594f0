#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Makes the amalgamation: all of libredlatch as one file of C++ and one of C, with its headers.

    tools/amalgamate.py [--hiredis ARCHIVE] FOLDER

FOLDER gets redlatch.cc, redlatch_hiredis.c with its header, the licences, and the public headers in
a folder redlatch. Nothing else of ours is needed to compile them. ARCHIVE is the source of hiredis;
the default is what scripts/setup leaves in .deps. It needs CMake, which composes the scripts;
otherwise the standard library only.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
LICENCE = "SPDX-License-Identifier: Apache-2.0", "Copyright The redlatch authors"
MIN_HIREDIS = (1, 0, 0)

# A header comes in where the first file includes it, so that only the last folder's place counts:
# the files of capi/src open namespaces that the others must not see.
FOLDERS = (
    *(f"core/{name}" for name in ("base", "host", "timing", "protocol", "resp", "net")),
    *(f"core/{name}" for name in ("embedded", "config")),
    *(f"core/{name}" for name in ("sentinel", "session", "operate", "lock", "compound")),
    *(f"core/{name}" for name in ("quorum", "cluster", "flight", "election")),
    *(f"core/{name}" for name in ("composite", "driver")),
    "core/runtime",
    "capi/src",
)
INCLUDE_FOLDERS = ("core", "capi", "capi/include")
SCRIPTS = "core/protocol/scripts"

INCLUDE = re.compile(r'^#include (["<])([^">]+)[">]')
# Of hiredis only its parser is used: alloc, sds and read, in this order.
PARSER_HEADERS = ("alloc.h", "sds.h", "sdsalloc.h")
PARSER_INTERFACE = "read.h"
PARSER_SOURCES = ("alloc.c", "sds.c", "read.c")
# First in both files: an assert would end the program of a user, whose build may not know NDEBUG. A
# defect comes back as RL_E_INTERNAL instead (docs/design/0016).
WITHOUT_ASSERTS = """\
#ifdef REDLATCH_ASSERTS
#undef NDEBUG
#elif !defined(NDEBUG)
#define NDEBUG
#endif
"""
# A program may link a hiredis of its own, of any version: these get other names.
PARSER_NAME = re.compile(r"^(?!static|typedef|#)\w[\w ]*[ *](\w+)\([^;]*\)\s*[;{]", re.MULTILINE)


class Amalgam:
    """The text of one file, into which files come with all that they include."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.system: set[str] = set()
        self.text: list[str] = []
        self._seen: set[Path] = set()

    def _find(self, name: str, includer: Path) -> Path:
        folders = [includer.parent, *(self.root / folder for folder in INCLUDE_FOLDERS)]
        for folder in folders:
            path = (folder / name).resolve()
            if path.is_file():
                return path
        sys.exit(f"{includer}: cannot find {name}, which it includes")

    def add(self, path: Path, title: str) -> None:
        """The file `path`, without the lines that only a file of its own needs."""
        lines = path.read_text().splitlines()
        while lines and (not lines[0].strip("/ ") or lines[0].strip("/# ") in LICENCE):
            del lines[0]
        self.text.append(f"\n// ---- {title} ----\n")
        for line in lines:
            found = INCLUDE.match(line)
            if found is None:
                if line != "#pragma once":
                    self.text.append(line)
            elif found[1] == "<":
                self.system.add(found[2])
            elif found[2] != "redlatch/redlatch.h":  # at the top
                self.add_included(self._find(found[2], path))

    def add_included(self, path: Path) -> None:
        # A table comes in each time that it is included.
        if path.suffix == ".def" or path not in self._seen:
            self._seen.add(path)
            self.add(path, str(path.relative_to(self.root)))


def library_source(root: Path, version: str) -> str:
    amalgam = Amalgam(root)
    for folder in FOLDERS:
        for path in sorted((root / folder).glob("*.cc")):
            amalgam.add(path, str(path.relative_to(root)))
        if folder == "core/protocol":
            with tempfile.TemporaryDirectory() as made:
                amalgam.add(composed_scripts(root, Path(made)), f"{SCRIPTS}, composed")
    amalgam.system.discard(f"hiredis/{PARSER_INTERFACE}")
    body = "\n".join(amalgam.text)
    system = "".join(f"#include <{name}>\n" for name in sorted(amalgam.system))
    return f"""\
// {LICENCE[0]}
// {LICENCE[1]}
//
// libredlatch {version} in one file, made by tools/amalgamate.py. DO NOT EDIT.
//
//     c++ -std=c++20 -O2 -c redlatch.cc && cc -O2 -c redlatch_hiredis.c
//
// A program links both objects, libstdc++ or libc++, threads, and libdl where the C library has not
// got it inside. Only the functions of redlatch.h are visible outside a shared library. Its asserts
// are compiled with -DREDLATCH_ASSERTS only, whatever NDEBUG is.
{WITHOUT_ASSERTS}{system}
#include "redlatch_hiredis.h"

#ifndef REDLATCH_VERSION
#define REDLATCH_VERSION "{version}"
#endif
// Where the program redlatch-embedded is looked for last: see docs/embedded.md.
#ifndef REDLATCH_SUPERVISOR
#define REDLATCH_SUPERVISOR "/usr/libexec/redlatch/redlatch-embedded"
#endif

#pragma GCC visibility push(hidden)
#include "redlatch/redlatch.h"
{body}
#pragma GCC visibility pop
"""


def composed_scripts(root: Path, folder: Path) -> Path:
    result = folder / "scripts_gen.cc"
    definitions = {"SOURCE_DIR": root / SCRIPTS, "OUTPUT_DIR": folder, "OUTPUT_CC": result}
    command = ["cmake", *(f"-D{name}={value}" for name, value in definitions.items())]
    command += ["-P", str(root / "core/protocol/embed_scripts.cmake")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        sys.exit("amalgamate.py: needs cmake")
    if done.returncode != 0:
        sys.exit(f"the scripts cannot be composed:\n{done.stderr}")
    return result


def find_hiredis() -> Path:
    kept = sorted((TOP / ".deps").glob("hiredis-*.tar.gz"))
    if not kept:
        sys.exit("no source of hiredis in .deps: run tools/get_hiredis.sh .deps, or --hiredis FILE")
    return kept[-1]


def read_hiredis(archive: Path) -> dict[str, str]:
    """The files of its first folder, by name."""
    files = {}
    with tarfile.open(archive) as source:
        for member in source:
            parts = member.name.split("/")
            if member.isfile() and len(parts) == 2 and parts[1].endswith((".c", ".h", "COPYING")):
                stream = source.extractfile(member)
                assert stream is not None
                files[parts[1]] = stream.read().decode()
    used = (PARSER_INTERFACE, *PARSER_HEADERS, *PARSER_SOURCES, "COPYING")
    missing = [name for name in used if name not in files]
    if missing:
        sys.exit(f"{archive} has no {', '.join(missing)}")
    return files


def hiredis_version(files: dict[str, str]) -> str:
    header = files.get("hiredis.h", "")
    found = [re.search(rf"#define HIREDIS_{n} (\d+)", header) for n in ("MAJOR", "MINOR", "PATCH")]
    version = tuple(int(match[1]) if match else 0 for match in found)
    if version < MIN_HIREDIS:
        sys.exit("hiredis must be 1.0 or later (got " + ".".join(map(str, version)) + ")")
    return ".".join(map(str, version))


def without_own_includes(text: str) -> str:
    """Without the test program at the end of sds.c, too."""
    text = re.sub(r"#if(?:def SDS_TEST_MAIN| defined\(SDS_TEST_MAIN\))\n.*?\n#endif\n", "", text,
                  flags=re.DOTALL)
    return re.sub(r'^#include "[^"]*"[^\n]*\n', "", text, flags=re.MULTILINE)


def parser_source(files: dict[str, str]) -> dict[str, str]:
    """redlatch_hiredis.h and .c, each one text."""
    version = hiredis_version(files)
    licence = "".join(f" * {line}".rstrip() + "\n" for line in files["COPYING"].splitlines())
    interface = without_own_includes(files[PARSER_INTERFACE])
    inside = (*PARSER_HEADERS, *PARSER_SOURCES)
    sources = "".join(without_own_includes(files[name]) for name in inside)
    names = sorted({*PARSER_NAME.findall(interface + sources), "hiredisAllocFns", "SDS_NOINIT"})
    found = set(re.findall(r"^#include <.*?>", sources, re.MULTILINE))
    system = "\n".join(sorted(found)) + "\n"
    renamed = "".join(f"#define {name} redlatch_{name}\n" for name in names)
    head = f"""\
/* The parser of hiredis {version}, made into one file by tools/amalgamate.py. DO NOT EDIT.
 *
{licence} */
"""
    header = f"""\
{head}#ifndef REDLATCH_HIREDIS_H
#define REDLATCH_HIREDIS_H
#ifdef __GNUC__
#pragma GCC system_header /* its warnings are not for users of this library */
#endif
/* A program may have a hiredis of its own, of any version. */
{renamed}
{interface}
#endif
"""
    source = f"""\
{head}{WITHOUT_ASSERTS}#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
{system}
/* After the system's headers, whose functions are not hidden. */
#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough"
#endif
#include "redlatch_hiredis.h"
{sources}
#ifdef __GNUC__
#pragma GCC visibility pop
#endif
"""
    return {"redlatch_hiredis.h": header, "redlatch_hiredis.c": source}


def public_headers(root: Path) -> dict[str, str]:
    folder = root / "capi/include"
    paths = sorted(folder.glob("redlatch/*.h*"))
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def amalgamation(root: Path, hiredis: Path) -> dict[str, str]:
    version = (root / "VERSION").read_text().strip()
    files = read_hiredis(hiredis)
    return {
        **public_headers(root),
        **parser_source(files),
        "redlatch.cc": library_source(root, version),
        "LICENSE": (root / "LICENSE").read_text(),
        "LICENSE.hiredis": files["COPYING"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes all of libredlatch one file.")
    parser.add_argument("--hiredis", type=Path, help="hiredis-VERSION.tar.gz")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    for name, text in amalgamation(TOP, arguments.hiredis or find_hiredis()).items():
        path = arguments.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
