# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what stands in go/ of redlatch.h and statuses.def is all of them, as they are now.

Method: it is made again and compared; the functions and numbers are looked up by a reading of the
header that is not the generators'. Both are tried on a tree with something changed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from support.build import ROOT

from .generated import (
    CANNOT_TELL,
    HEADER,
    LEFT_OUT,
    STATUSES,
    change,
    expected_functions,
    generate,
    make_tree,
    stale_files,
)
from .library import declared_constants, declared_functions, has_status_form, header_code

WRAPPER = "go/internal/rlc/rlc_wrap.c"
LAYER = "go/internal/rlc/rlc.go"
CONSTANTS = "go/internal/rlc/constants.go"
ERRORS = "go/errors_gen.go"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path, "gen_swig", "gen_go")


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
        ("gen_go", STATUSES, "another holder has", "no holder has", [ERRORS]),
        ("gen_go", CONSTANTS, "= 1024", "= 1023", [CONSTANTS]),
        ("gen_go", HEADER, "RL_MODE_READ = 2", "RL_MODE_READ = 4", [CONSTANTS]),
    ],
)
def test_a_change_is_found(
    generator: str, changed: str, old: str, new: str, stale: list[str], tree: Path
) -> None:
    change(tree / changed, old, new)
    assert stale_files(generator, tree, "go/") == stale


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


def expected(code: str) -> dict[str, str]:
    """The functions of Go for those that a header declares."""
    functions = expected_functions(code, {"TEXT": "string", "BUFFER": "[]byte"}, go_type)
    return {name.capitalize(): form for name, form in functions.items()}


def wrapped_functions(text: str) -> dict[str, str]:
    """Those that SWIG has made, likewise."""
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
    assert len(functions) > len(declared_functions()) - len(LEFT_OUT)
    return [name for name, listed in functions if "char" in listed]


def test_every_function_is_there_with_its_types() -> None:
    functions = expected(header_code())
    assert {f"rl_{name.lower()}" for name in functions} == set(declared_functions()) - {
        f"rl_{name}" for name in LEFT_OUT
    }
    assert wrapped_functions((ROOT / LAYER).read_text()) == functions
    assert functions["Acquire_start"] == "(Client, string, int64, AcquireOptions) Request"
    assert functions["Lease_token"] == "(Lease, []byte) int64"


def test_no_text_ends_at_a_nul() -> None:
    assert functions_by_length((ROOT / WRAPPER).read_text()) == []


def test_text_of_a_new_name_is_found(tree: Path) -> None:
    """redlatch.i lists the names that text goes by."""
    new = "RL_API int32_t rl_explain(const char *motive, size_t motive_len);\n"
    change(tree / HEADER, "RL_API const char *rl_version(void);\n", new)
    assert generate("gen_swig", f"--root={tree}") == (0, "")
    assert functions_by_length((tree / WRAPPER).read_text()) == ["explain"]
    assert expected(new) == {"Explain": "(string) int"}
    assert wrapped_functions((tree / LAYER).read_text())["Explain"] != expected(new)["Explain"]


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
