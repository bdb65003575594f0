# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: one row in capi/info_fields.def makes a field of an rl_info in every language.

Method: what tools/gen_info.py makes is made again and compared; the numbers are read by a pattern
that is not the generator's. The checks are tried on a tree with a row more.
"""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import pytest
from support.build import ROOT

from .generated import change, generate
from .library import declared_constants, loaded

FIELDS = "capi/info_fields.def"
HEADER = "capi/include/redlatch/redlatch.h"
CPP = "capi/include/redlatch/redlatch.hpp"
PYTHON = "python/src/redlatch/_info.py"
GO = "go/info_gen.go"
JAVA = "java/redlatch/src/main/java/io/redlatch"
JAVA_FILES = tuple(f"{JAVA}/{n}.java" for n in ("LockInfo", "NodeInfo", "Finding", "InfoReader"))
RESULTS = (HEADER, CPP, PYTHON, GO, *JAVA_FILES)
ROW = 'RL_INFO_TEXT(REGION, 299, kNode, TEXT, home_region, "a word of this test")\n'
PLACE = "/* clang-format on */"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (FIELDS, *RESULTS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def numbers() -> dict[str, int]:
    text = (ROOT / FIELDS).read_text()
    found = re.findall(r"^RL_INFO_(?:NUMBER|TEXT)\((\w+), (\d+),", text, re.MULTILINE)
    return {f"RL_FIELD_{name}": int(number) for name, number in found}


def test_files_are_fresh() -> None:
    assert generate("gen_info", "--check") == (0, "")


def test_header_and_library_have_the_same_fields() -> None:
    declared = {n: v for n, v in declared_constants().items() if n.startswith("RL_FIELD_")}
    assert numbers() == declared
    for name, number in declared.items():
        assert loaded().rl_constant(name.encode(), len(name), -1) == number


def test_a_row_is_a_field_everywhere(tree: Path) -> None:
    change(tree / FIELDS, PLACE, ROW + PLACE)
    status, said = generate("gen_info", "--check", f"--root={tree}")
    assert status == 1 and f"{HEADER} is not what tools/gen_info.py makes; run it" in said
    assert generate("gen_info", f"--root={tree}") == (0, "")
    assert "  /** node: a word of this test. */\n  RL_FIELD_REGION = 299\n" in read(tree, HEADER)
    assert "  /** A word of this test. */\n  std::string home_region;\n" in read(tree, CPP)
    value = "detail::info_text(info, RL_PART_NODE, row, RL_FIELD_REGION)"
    assert f"        home_region({value}) {{}}\n" in read(tree, CPP)
    python = read(tree, PYTHON)
    ast.parse(python)
    assert '    home_region: str\n    """A word of this test."""\n' in python
    assert '        home_region=row.text("REGION"),\n' in python
    assert "\t// A word of this test.\n\tHomeRegion string\n" in read(tree, GO)
    assert "\tone.HomeRegion = r.text(rlc.RL_FIELD_REGION)\n" in read(tree, GO)
    node = read(tree, f"{JAVA}/NodeInfo.java")
    assert " * @param homeRegion a word of this test\n" in node
    assert "    String homeRegion,\n" in node
    assert "          text(RlcConstants.RL_FIELD_REGION),\n" in read(tree, JAVA_FILES[-1])


def read(tree: Path, name: str) -> str:
    return (tree / name).read_text()


@pytest.mark.parametrize(
    ("changed", "old", "new"),
    [
        (PYTHON, 'row.text("NAME")', 'row.text("OWNER")'),
        (GO, "r.time(rlc.RL_FIELD_SINCE_MS)", "time.Time{}"),
        (f"{JAVA}/LockInfo.java", "    long fence,\n", "    int fence,\n"),
        (CPP, "level(rl_info_number(", "level(0 * rl_info_number("),
        (HEADER, "RL_FIELD_PID = 109", "RL_FIELD_PID = 119"),
    ],
)
def test_a_change_is_found(changed: str, old: str, new: str, tree: Path) -> None:
    change(tree / changed, old, new)
    status, said = generate("gen_info", "--check", f"--root={tree}")
    assert status == 1 and f"{changed} is not what tools/gen_info.py makes; run it" in said


def test_a_type_that_is_not_there_is_named(tree: Path) -> None:
    for kind, words in (("WORDS", "has no such type as WORDS"), ("TIME", "(got TIME)")):
        row = ROW.replace("TEXT, home", f"{kind}, home")
        before = (tree / FIELDS).read_text()
        change(tree / FIELDS, PLACE, row + PLACE)
        status, said = generate("gen_info", f"--root={tree}")
        assert status == 1 and "REGION" in said and words in said
        (tree / FIELDS).write_text(before)
