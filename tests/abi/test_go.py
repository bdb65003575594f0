# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what stands in go/ of redlatch.h and statuses.def is all of them, as they are now.

Method: it is made again and compared; the functions and numbers are looked up by a reading of the
header that is not the generators'. Both are tried on a tree with something changed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.build import ROOT
from support.go import find_go

from .library import declared_constants, declared_functions, has_status_form, header_code

HEADER = "capi/include/redlatch/redlatch.h"
STATUSES = "capi/statuses.def"
WRAPPER = "go/internal/rlc/rlc_wrap.c"
LAYER = "go/internal/rlc/rlc.go"
CONSTANTS = "go/internal/rlc/constants.go"
ERRORS = "go/errors_gen.go"

CANNOT_TELL = 2


def generate(name: str, *arguments: str, **environment: str) -> tuple[int, str]:
    """The exit code of a generator, and what it says; skips where it cannot run."""
    go = find_go()
    if go is None:
        pytest.skip("needs gofmt, of Go 1.21 or later")
    path = f"{Path(go).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, str(ROOT / f"tools/{name}.py"), *arguments],
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == CANNOT_TELL and not environment:
        pytest.skip(done.stderr.strip())
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What the generators read, elsewhere, and what they make of it."""
    for folder in ("capi/include", "bindings/swig"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / STATUSES, tmp_path / STATUSES)
    for generator in ("gen_swig", "gen_go"):
        assert generate(generator, f"--root={tmp_path}") == (0, "")
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


# ---- made again ----------------------------------------------------------------------------------


@pytest.mark.parametrize("generator", ["gen_swig", "gen_go"])
def test_files_are_fresh(generator: str) -> None:
    assert generate(generator, "--check") == (0, "")


def test_the_text_is_the_same_wherever_the_tree_is(tree: Path) -> None:
    for file in (WRAPPER, LAYER, CONSTANTS, ERRORS):
        assert (tree / file).read_text() == (ROOT / file).read_text()


@pytest.mark.parametrize(
    ("generator", "changed", "old", "new", "stale"),
    [
        ("gen_swig", LAYER, "func Acquire_start(", "func Acquire_begin(", [LAYER]),
        ("gen_swig", WRAPPER, "_swig_go_1.n;", "strlen(arg2);", [WRAPPER]),
        ("gen_swig", HEADER, "rl_version(void)", "rl_version(int32_t part)", [LAYER, WRAPPER]),
        ("gen_swig", "bindings/swig/redlatch.i", "REDLATCH_TEXT(name)", "", [LAYER, WRAPPER]),
        ("gen_go", ERRORS, "ErrLost Status = -3", "ErrLost Status = -4", [ERRORS]),
        ("gen_go", STATUSES, "somebody else holds", "nobody holds", [ERRORS]),
        ("gen_go", CONSTANTS, "= 1024", "= 1023", [CONSTANTS]),
        ("gen_go", HEADER, "RL_MODE_READ = 2", "RL_MODE_READ = 4", [CONSTANTS]),
    ],
)
def test_a_change_is_found(
    generator: str, changed: str, old: str, new: str, stale: list[str], tree: Path
) -> None:
    change(tree / changed, old, new)
    status, said = generate(generator, "--check", f"--root={tree}")
    found = [line for line in said.splitlines() if line.startswith("go/")]
    assert found == [f"{file} is not what tools/{generator}.py makes; run it" for file in stale]
    assert status == 1


def test_another_swig_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "swig"
    other.write_text("#!/bin/sh\necho SWIG Version 4.3.0\n")
    other.chmod(0o755)
    status, said = generate("gen_swig", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert status == CANNOT_TELL
    assert "needs SWIG 4.1.0" in said and "4.3.0" in said


# ---- all of the header ---------------------------------------------------------------------------

TYPES = {
    "const char *": "string",
    "int32_t": "int",
    "rl_status": "int",
    "int64_t": "int64",
    "size_t": "int64",
    "void": "",
}


def go_type(c_type: str) -> str:
    """Numbers as numbers; each kind of handle as a type of its own."""
    handle = re.fullmatch(r"(?:const )?rl_(\w+) \*", c_type)
    return handle[1].title().replace("_", "") if handle else TYPES[c_type]


def expected_functions(code: str) -> dict[str, str]:
    """The functions of Go for those that a header declares: types of parameters, and of the
    result. Text is one parameter, of any bytes; so is a buffer."""
    found = {}
    for c_result, name, listed in re.findall(
        r"^RL_API ([\w ]+?\*?)\s*\brl_(\w+)\(([^)]*)\);", code, re.MULTILINE
    ):
        listed = " ".join(listed.split())
        listed = re.sub(r"const char \*(\w+), size_t \1_len\b", "TEXT", listed)
        listed = listed.replace("char *buffer, size_t buffer_size", "BUFFER")
        types = []
        for parameter in listed.split(", ") if listed != "void" else []:
            c_type = re.sub(r"\w+$", "", parameter).strip() or parameter
            types.append({"TEXT": "string", "BUFFER": "[]byte"}.get(c_type) or go_type(c_type))
        c_result = c_result.replace(" *", "*").replace("*", " *")
        found[name.capitalize()] = f"({', '.join(types)}) {go_type(c_result)}".strip()
    return found


def wrapped_functions(text: str) -> dict[str, str]:
    """The same, of what SWIG has made."""
    found = {}
    for name, listed, result in re.findall(r"^func (\w+)\((.*?)\)(.*) \{$", text, re.MULTILINE):
        types = [parameter.split(" ", 1)[1] for parameter in listed.split(", ") if parameter]
        result = re.sub(r"\(_swig_ret (.*)\)", r"\1", result.strip())
        found[name] = f"({', '.join(types)}) {result}".strip()
    return {name: form for name, form in found.items() if not name.startswith(("Swig_", "getS"))}


def functions_by_length(text: str) -> list[str]:
    """The functions of the wrapper that take text as something else than a string of Go's, which
    has its length."""
    functions = re.findall(r"^[\w *]+\*?\b_wrap_(\w+?)_rlc_\w+\(([^)]*)\) \{$", text, re.MULTILINE)
    assert len(functions) > len(declared_functions())
    return [name for name, listed in functions if "char" in listed]


def test_every_function_is_there_with_its_types() -> None:
    expected = expected_functions(header_code())
    assert {f"rl_{name.lower()}" for name in expected} == set(declared_functions())
    assert wrapped_functions((ROOT / LAYER).read_text()) == expected
    assert expected["Acquire_start"] == "(Client, string, int64, AcquireOptions) Request"
    assert expected["Lease_token"] == "(Lease, []byte) int64"


def test_no_text_ends_at_a_nul() -> None:
    assert functions_by_length((ROOT / WRAPPER).read_text()) == []


def test_text_of_a_new_name_is_found(tree: Path) -> None:
    """redlatch.i lists the names that text goes by."""
    new = "RL_API int32_t rl_explain(const char *reason, size_t reason_len);\n"
    change(tree / HEADER, "RL_API const char *rl_version(void);\n", new)
    assert generate("gen_swig", f"--root={tree}") == (0, "")
    assert functions_by_length((tree / WRAPPER).read_text()) == ["explain"]
    expected = expected_functions(new)
    assert expected == {"Explain": "(string) int"}
    assert wrapped_functions((tree / LAYER).read_text())["Explain"] != expected["Explain"]


def test_every_constant_is_there() -> None:
    rows = re.findall(r"^\t(RL_\w+)\s+= (-?\d+)$", (ROOT / CONSTANTS).read_text(), re.MULTILINE)
    expected = {n: v for n, v in declared_constants().items() if not has_status_form(n)}
    assert {name: int(number) for name, number in rows} == expected
    assert len(rows) == len(expected)


def test_every_status_is_there_by_its_name() -> None:
    text = (ROOT / ERRORS).read_text()
    numbers = dict(re.findall(r"^\t(\w+) Status = (-?\d+)$", text, re.MULTILINE))
    names = dict(re.findall(r"^\t(\w+):\s+\"(\w+)\",$", text, re.MULTILINE))
    expected = {n: v for n, v in declared_constants().items() if has_status_form(n)}
    assert {f"RL_{names[name]}": int(number) for name, number in numbers.items()} == expected
    for name, status in names.items():
        assert status.removeprefix("E_").replace("_", "") == name.removeprefix("Err").upper()
