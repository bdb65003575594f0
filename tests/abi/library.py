# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Where the library is that these tests look at, and what its header says."""

from __future__ import annotations

import ctypes
import re
import subprocess
from functools import cache
from pathlib import Path

from support.build import ROOT, build_folder

HEADER = ROOT / "capi/include/redlatch/redlatch.h"
SYMBOLS = Path(__file__).parent / "redlatch.symbols"


def shared_library() -> Path:
    return build_folder() / "capi/libredlatch.so"


def archive() -> Path:
    return build_folder() / "capi/libredlatch.a"


def is_sanitized() -> bool:
    """With a sanitizer there is no archive: it could not be linked alone."""
    cache_text = (build_folder() / "CMakeCache.txt").read_text()
    return re.search(r"^REDLATCH_SANITIZE:\w+=\w+", cache_text, re.MULTILINE) is not None


@cache
def loaded() -> ctypes.CDLL:
    library = ctypes.CDLL(str(shared_library()))
    library.rl_version.restype = ctypes.c_char_p
    library.rl_status_name.restype = ctypes.c_char_p
    library.rl_status_text.restype = ctypes.c_char_p
    library.rl_constant.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int32]
    return library


def output_of(*command: str | Path) -> str:
    return subprocess.run(
        [str(word) for word in command], check=True, capture_output=True, text=True
    ).stdout


def header_code() -> str:
    """The header without its comments."""
    return re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)


def declared_functions() -> list[str]:
    return sorted(re.findall(r"^RL_API [\w\s*]*?\b(rl_\w+)\(", header_code(), re.MULTILINE))


def declared_constants() -> dict[str, int]:
    """All enumerators; each has its value written out."""
    constants: dict[str, int] = {}
    for body in re.findall(r"enum \{(.*?)\}", header_code(), re.DOTALL):
        for entry in filter(None, map(str.strip, body.split(","))):
            name, _, value = entry.partition("=")
            constants[name.strip()] = int(value)
    return constants


def has_status_form(name: str) -> bool:
    """Whether a constant of the header is a status: the first enum holds nothing else."""
    first = re.search(r"enum \{(.*?)\}", header_code(), re.DOTALL)
    assert first is not None
    return re.search(rf"\b{name}\b", first[1]) is not None
