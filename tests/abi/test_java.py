# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what stands in java/ of redlatch.h and statuses.def is all of them, as they are now; and
text crosses as bytes everywhere.

Method: as for Go, in test_go.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.build import ROOT

from .generated import (
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

PACKAGE = "java/redlatch/src/main/java/io/redlatch"
LAYER = f"{PACKAGE}/internal/rlc/Rlc.java"
NATIVES = f"{PACKAGE}/internal/rlc/RlcJNI.java"
CONSTANTS = f"{PACKAGE}/internal/rlc/RlcConstants.java"
STATUS = f"{PACKAGE}/Status.java"
WRAPPER = "java/redlatch/src/main/c/rlc_wrap.c"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path, "gen_swig", "gen_java")


def test_files_are_fresh() -> None:
    assert generate("gen_java", "--check") == (0, "")
    # That of gen_swig stands in test_go.py: it makes both.


def test_the_text_is_the_same_wherever_the_tree_is(tree: Path) -> None:
    layer = (ROOT / LAYER).parent
    names = {path.name for path in layer.iterdir()}
    assert names == {path.name for path in (tree / LAYER).parent.iterdir()}
    files = [STATUS, WRAPPER, *(str((layer / name).relative_to(ROOT)) for name in names)]
    for file in files:
        assert (tree / file).read_text() == (ROOT / file).read_text()


@pytest.mark.parametrize(
    ("generator", "changed", "old", "new", "stale"),
    [
        ("gen_swig", LAYER, "int abi_version()", "long abi_version()", [LAYER]),
        ("gen_swig", NATIVES, "native byte[] version", "native String version", [NATIVES]),
        ("gen_swig", WRAPPER, "GetByteArrayElements", "GetStringUTFChars", [WRAPPER]),
        ("gen_swig", HEADER, "n(void)", "n(int32_t part)", [WRAPPER, LAYER, NATIVES]),
        ("gen_java", STATUS, "E_LOST(-3)", "E_LOST(-4)", [STATUS]),
        ("gen_java", STATUSES, "another holder has", "no holder has", [STATUS]),
        ("gen_java", CONSTANTS, "= 1024", "= 1023", [CONSTANTS]),
        ("gen_java", HEADER, "RL_MODE_READ = 2", "RL_MODE_READ = 4", [CONSTANTS]),
    ],
)
def test_a_change_is_found(
    generator: str, changed: str, old: str, new: str, stale: list[str], tree: Path
) -> None:
    change(tree / changed, old, new)
    assert stale_files(generator, tree, "java/") == stale


# ---- all of the header ---------------------------------------------------------------------------

TYPES = {
    "const char *": "byte[]",
    "int32_t": "int",
    "rl_status": "int",
    "int64_t": "long",
    "size_t": "long",
    "void": "void",
}


def java_type(c_type: str) -> str:
    """Numbers as numbers; each kind of handle as a type of its own."""
    handle = re.fullmatch(r"(?:const )?(rl_\w+) \*", c_type)
    return f"SWIGTYPE_p_{handle[1]}" if handle else TYPES[c_type]


def expected(code: str) -> dict[str, str]:
    """The functions of Java for those that a header declares."""
    return expected_functions(code, {"TEXT": "byte[]", "BUFFER": "byte[]"}, java_type)


def wrapped_functions(text: str) -> dict[str, str]:
    """Those that SWIG has made, likewise."""
    found = {}
    form = r"^  public static (\S+) (\w+)\((.*?)\) \{"
    for result, name, listed in re.findall(form, text, re.MULTILINE):
        types = [parameter.split(" ")[0] for parameter in listed.split(", ") if parameter]
        found[name] = f"({', '.join(types)}) {result}"
    return found


def with_text_of_java(tree: Path) -> list[str]:
    """What is not bytes: a String crosses as modified UTF-8, and a size as a BigInteger."""
    found = []
    for path in [*sorted((tree / LAYER).parent.iterdir()), tree / WRAPPER]:
        words = re.findall(r"\bString\b|\bBigInteger\b|\b\w*StringUTF\w*", path.read_text())
        found += [f"{path.name}: {word}" for word in words]
    return found


def test_every_function_is_there_with_its_types() -> None:
    functions = expected(header_code())
    assert {f"rl_{name}" for name in functions} == set(declared_functions()) - {
        f"rl_{name}" for name in LEFT_OUT
    }
    assert wrapped_functions((ROOT / LAYER).read_text()) == functions
    client, options, request = (
        f"SWIGTYPE_p_rl_{name}" for name in ("client", "acquire_options", "request")
    )
    assert functions["acquire_start"] == f"({client}, byte[], long, {options}) {request}"
    assert functions["lease_token"] == "(SWIGTYPE_p_rl_lease, byte[]) long"


def test_text_is_bytes() -> None:
    assert with_text_of_java(ROOT) == []


def test_text_of_a_new_name_is_found(tree: Path) -> None:
    """redlatch.i lists the names that text goes by."""
    new = "RL_API int32_t rl_explain(const char *motive, size_t motive_len);\n"
    change(tree / HEADER, "RL_API const char *rl_version(void);\n", new)
    assert generate("gen_swig", f"--root={tree}") == (0, "")
    assert expected(new) == {"explain": "(byte[]) int"}
    assert wrapped_functions((tree / LAYER).read_text())["explain"] != expected(new)["explain"]


def test_string_parameter_is_found(tree: Path) -> None:
    change(tree / "bindings/swig/java.i", "%typemap(jni) const char *", "%typemap(jni) short *")
    change(tree / "bindings/swig/java.i", "%typemap(jtype) const char *", "%typemap(jtype) short *")
    change(tree / "bindings/swig/redlatch.i", "REDLATCH_TEXT(name)", "")
    assert generate("gen_swig", f"--root={tree}") == (0, "")
    assert "RlcJNI.java: String" in with_text_of_java(tree)


def test_every_constant_is_there() -> None:
    rows = re.findall(r"^  int (RL_\w+) = (-?\d+);$", (ROOT / CONSTANTS).read_text(), re.MULTILINE)
    constants = {n: v for n, v in declared_constants().items() if not has_status_form(n)}
    assert {name: int(number) for name, number in rows} == constants
    assert len(rows) == len(constants)


def test_every_status_is_there() -> None:
    rows = re.findall(r"^  (\w+)\((-?\d+)\),$", (ROOT / STATUS).read_text(), re.MULTILINE)
    statuses = {n: v for n, v in declared_constants().items() if has_status_form(n)}
    assert {f"RL_{name}": int(number) for name, number in rows} == statuses
    assert len(rows) == len(statuses)
