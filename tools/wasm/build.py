#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Builds the core with its driver as a WebAssembly module, and a shell for Node beside it.

    tools/wasm/build.py [--asserts] OUT    writes OUT/redlatch.wasm, shell.mjs and try.mjs
    node OUT/try.mjs                       tries them with servers that it starts

Zig of tools/requirements.txt compiles; the first use fetches it. The module has the folders of
core that use no thread, socket or clock, and the host of this folder in place of core/runtime.

Exceptions are those of WebAssembly. Zig 0.17 has the sources of their run-time library, but builds
its libc++abi without it: four objects here complete it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

import amalgamate  # noqa: E402
from tool_venv import tool_python  # noqa: E402

FOLDERS = ("base", "timing", "protocol", "resp", "config", "session", "operate", "sentinel",
           "lock", "compound", "quorum", "cluster", "composite", "driver")
HIREDIS = ("read", "alloc", "sds")
TARGET = ("-target", "wasm32-wasi", "-mcpu=generic+exception_handling", "-fwasm-exceptions")
CXX = ("-std=c++20", "-Wall", "-Wextra")
STACK_BYTES = 256 * 1024  # Zig's own is 16 MiB
INITIAL_BYTES = 32 * 65_536  # INITIAL_PAGES of shell.mjs
# The host makes the memory, and decides how much there is.
LINK = (*TARGET, "-mexec-model=reactor", "-O2", "-s", "-Wl,--gc-sections", "-Wl,--import-memory",
        f"-Wl,--initial-memory={INITIAL_BYTES}", f"-Wl,-z,stack-size={STACK_BYTES}")
SHELL = ("shell.mjs", "try.mjs")


@dataclass(frozen=True)
class Compiler:
    python: Path
    folder: Path  # of the objects
    has_asserts: bool

    def run(self, *arguments: str | Path) -> str:
        done = subprocess.run([str(word) for word in (self.python, "-m", "ziglang", *arguments)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit(f"build.py: zig {arguments[0]} failed:\n{done.stdout}")
        return done.stdout

    def compile(self, source: Path, *flags: str | Path) -> Path:
        language = ("cc",) if source.suffix in (".c", ".s") else ("c++", *CXX)
        result = self.folder / f"{source.parent.name}-{source.stem}.o"
        asserts = "-UNDEBUG" if self.has_asserts else "-DNDEBUG"
        warnings = self.run(*language, *TARGET, "-O2", asserts, "-fno-sanitize=all", *flags, "-c",
                            source, "-o", result)
        print(warnings, end="", flush=True)
        return result

    def library(self) -> Path:
        """The folder with the sources of Zig's libraries."""
        code = "import ziglang; print(ziglang.__path__[0])"
        done = subprocess.run([self.python, "-c", code], capture_output=True, text=True, check=True)
        return Path(done.stdout.strip()) / "lib"


def write_scripts(folder: Path) -> Path:
    scripts = folder / "scripts_gen.cc"
    protocol = TOP / "core/protocol"
    subprocess.run(["cmake", f"-DSOURCE_DIR={protocol}/scripts", f"-DOUTPUT_DIR={folder}/scripts",
                    f"-DOUTPUT_CC={scripts}", "-P", protocol / "embed_scripts.cmake"], check=True)
    return scripts


def write_hiredis(folder: Path, archive: Path) -> list[Path]:
    """Writes the parser of hiredis. @return the sources."""
    target = folder / "include/hiredis"
    target.mkdir(parents=True, exist_ok=True)
    for name, text in amalgamate.read_hiredis(archive).items():
        if name.endswith((".c", ".h")):
            (target / name).write_text(text)
    return [target / f"{name}.c" for name in HIREDIS]


def exceptions(library: Path) -> Iterator[tuple[Path, tuple[str | Path, ...]]]:
    """The sources that Zig's libc++abi lacks, with their flags."""
    unwind, abi = library / "libunwind", library / "libcxxabi"
    include = (f"-I{unwind}/include", "-w", "-DNDEBUG")  # no log of their own
    yield (unwind / "src/Unwind-wasm.c",
           (*include, "-D_LIBUNWIND_HIDE_SYMBOLS", "-D_LIBUNWIND_HAS_NO_THREADS"))
    for name in ("cxa_exception", "cxa_personality"):
        yield (abi / f"src/{name}.cpp",
               (*include, "-std=c++23", f"-I{abi}/include", f"-I{library}/libcxx/src",
                "-D_LIBCPP_BUILDING_LIBRARY", "-D_LIBCXXABI_BUILDING_LIBRARY",
                "-D_LIBCXXABI_HAS_NO_THREADS"))
    yield HERE / "tag.s", ("-Qunused-arguments",)


def sources(folder: Path, archive: Path, library: Path
            ) -> Iterator[tuple[Path, tuple[str | Path, ...]]]:
    flags = (f"-I{TOP}/core", f"-I{HERE}", f"-isystem{folder}/include")
    for name in FOLDERS:
        yield from ((path, flags) for path in sorted((TOP / "core" / name).glob("*.cc")))
    yield from ((path, flags) for path in sorted(HERE.glob("*.cc")))
    yield write_scripts(folder), flags
    yield from ((path, ("-w",)) for path in write_hiredis(folder, archive))
    yield from exceptions(library)


def build(out: Path, archive: Path, jobs: int, has_asserts: bool) -> Path:
    folder = out / "objects"
    folder.mkdir(parents=True, exist_ok=True)
    zig = Compiler(tool_python(TOP), folder, has_asserts)
    with ThreadPoolExecutor(jobs) as pool:
        objects = list(pool.map(lambda one: zig.compile(one[0], *one[1]),
                                sources(folder, archive, zig.library())))
    result = out / "redlatch.wasm"
    zig.run("c++", *LINK, *objects, "-o", result)
    for name in SHELL:
        shutil.copy(HERE / name, out)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description="Builds the core as a WebAssembly module.")
    parser.add_argument("--hiredis", type=Path, help="hiredis-VERSION.tar.gz, its source")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at once")
    parser.add_argument("--asserts", action="store_true", help="with the asserts of core")
    parser.add_argument("out", type=Path, metavar="OUT", help="a folder")
    arguments = parser.parse_args()
    print(build(arguments.out.resolve(), arguments.hiredis or amalgamate.find_hiredis(),
                arguments.jobs, arguments.asserts))


if __name__ == "__main__":
    main()
