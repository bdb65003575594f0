# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The generators of what other languages have of redlatch.h and statuses.def, and a tree to try
them on."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.build import ROOT
from support.go import find_go
from support.program import run_to_end

HEADER = "capi/include/redlatch/redlatch.h"
STATUSES = "capi/statuses.def"
CANNOT_TELL = 2


def generate(name: str, *arguments: str, **environment: str) -> tuple[int, str]:
    """The exit code of a generator, and what it says; skips where it cannot run."""
    go = find_go()
    if go is None:
        pytest.skip("needs gofmt, of Go 1.21 or later")
    path = f"{Path(go).parent}:{os.environ['PATH']}"
    done = run_to_end(
        [sys.executable, ROOT / f"tools/{name}.py", *arguments],
        env={**os.environ, "PATH": path, **environment},
        limit=300.0,
    )
    if done.returncode == CANNOT_TELL and not environment:
        pytest.skip(done.stderr.strip())
    return done.returncode, done.stdout + done.stderr


def make_tree(folder: Path, *generators: str) -> Path:
    """What the generators read, elsewhere, and what they make of it."""
    for part in ("capi/include", "bindings/swig"):
        shutil.copytree(ROOT / part, folder / part)
    shutil.copy(ROOT / STATUSES, folder / STATUSES)
    for generator in generators:
        assert generate(generator, f"--root={folder}") == (0, "")
    return folder


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def stale_files(generator: str, tree: Path, folder: str) -> list[str]:
    """Those below `folder` that the generator finds to be not what it makes."""
    status, said = generate(generator, "--check", f"--root={tree}")
    assert status == 1, said
    line = re.compile(rf"({folder}\S+) is not what tools/{generator}\.py makes; run it")
    return [found[1] for text in said.splitlines() if (found := line.fullmatch(text))]


# Not for Go and Java: redlatch.i says why.
LEFT_OUT = {"queue_next_event", "recall"}


def expected_functions(
    code: str, texts: dict[str, str], type_of: Callable[[str], str]
) -> dict[str, str]:
    """The functions that a language has for those that a header declares, without rl_: types of
    parameters, and of the result. Text is one parameter, of any bytes; so is a buffer: `texts` has
    both. All others are as `type_of` says."""
    found = {}
    for c_result, name, listed in re.findall(
        r"^RL_API ([\w ]+?\*?)\s*\brl_(\w+)\(([^)]*)\);", code, re.MULTILINE
    ):
        if name in LEFT_OUT:
            continue
        listed = " ".join(listed.split())
        listed = re.sub(r"const char \*(\w+), size_t \1_len\b", "TEXT", listed)
        listed = listed.replace("char *buffer, size_t buffer_size", "BUFFER")
        types = []
        for parameter in listed.split(", ") if listed != "void" else []:
            c_type = re.sub(r"\w+$", "", parameter).strip() or parameter
            types.append(texts.get(c_type) or type_of(c_type))
        c_result = c_result.replace(" *", "*").replace("*", " *")
        found[name] = f"({', '.join(types)}) {type_of(c_result)}".strip()
    return found
