# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""What compiled packages contain of others: for notices and SBOM.

The licences are those that lie beside what was used, so that they are of its version.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import natives
from tool_venv import pinned, tool_python

RULE = "-" * 75


@dataclass(frozen=True)
class Part:
    name: str
    version: str
    licence: str  # as SPDX writes it
    what: str
    text: str


def folder_of(python: Path, module: str) -> Path:
    command = [str(python), "-c", f"import {module}; print({module}.__path__[0])"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def cli11() -> tuple[str, str]:
    """Its version and licence."""
    folder = natives.cli11_folder()
    found = re.search(r'#define CLI11_VERSION "(.*)"', (folder / "Version.hpp").read_text())
    documents = folder.parents[1] / "share/doc"
    for name in ("libcli11-dev/copyright", "cli11/LICENSE", "CLI11/LICENSE"):
        if found is not None and (documents / name).is_file():
            return found[1], (documents / name).read_text()
    sys.exit(f"{documents} must have the licence of CLI11 (libcli11-dev/copyright)")


@cache
def compiled_parts(root: Path) -> tuple[Part, ...]:
    """All but hiredis, which is in every package."""
    python = tool_python(root)
    zig = folder_of(python, "ziglang")
    zig_version = pinned("ziglang").partition("==")[2]
    llvm = (zig / "lib/libcxx/LICENSE.TXT").read_text()
    pybind11 = folder_of(python, "pybind11")
    pybind11_version = pinned("pybind11").partition("==")[2]
    (pybind11_licence,) = pybind11.parent.glob(f"pybind11-{pybind11_version}.dist-info/**/LICENSE")
    cli11_version, cli11_licence = cli11()
    beside = f"as in Zig {zig_version}"
    return (
        Part("llvm-runtimes", beside, "Apache-2.0 WITH LLVM-exception",
             "libc++, libc++abi and libunwind, in everything compiled", llvm),
        Part("zig-compiler-rt", zig_version, "MIT", "in everything compiled",
             (zig / "LICENSE").read_text()),
        Part("musl", beside, "MIT", "the C library, in static programs",
             (zig / "lib/libc/musl/COPYRIGHT").read_text()),
        Part("CLI11", cli11_version, "BSD-3-Clause", "the options of the command", cli11_licence),
        Part("pybind11", pybind11_version, "BSD-3-Clause", "in the module of Python",
             pybind11_licence.read_text()),
    )


def notices(root: Path) -> str:
    texts = (f"{part.name} {part.version}: {part.what}\n{RULE}\n{part.text.strip()}\n{RULE}\n"
             for part in compiled_parts(root))
    return "\n".join(texts)
