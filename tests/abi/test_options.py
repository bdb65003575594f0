# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: every language and the command know exactly the options of core/config/options.def.

Method: what tools/gen_options.py makes is made again and compared; the names are read by a pattern
that is not the generator's, and looked up in each language. The checks are tried on a tree with a
row more.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.build import ROOT

from .generated import change, generate

OPTIONS = "core/config/options.def"
HEADER = "capi/include/redlatch/redlatch.h"
CPP = "capi/include/redlatch/redlatch.hpp"
PYTHON = "python/src/redlatch/_option_table.py"
GO = "go/options_gen.go"
JAVA = "java/redlatch/src/main/java/io/redlatch/LockOptions.java"
DOCS = "docs/options.md"
COMMAND = "cli/src/flags.def"
RESULTS = (HEADER, CPP, PYTHON, GO, JAVA, DOCS, COMMAND)
ROW = 'RL_LOCK_OPTION(patience, patience, DURATION, 7, 77, 17, "", "9.9", "a word of this test")\n'
PLACE = "/* clang-format on */"


def names(*scopes: str) -> list[str]:
    pattern = rf"^RL_(?:{'|'.join(scopes)})_OPTION\((\w+),"
    return re.findall(pattern, (ROOT / OPTIONS).read_text(), re.MULTILINE)


OF_CLIENTS = names("CLIENT", "TLS", "SENTINEL", "SENTINEL_TLS", "CLUSTER", "QUORUM")
OF_ACQUISITIONS = names("ACQUIRE", "LOCK")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (OPTIONS, *RESULTS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_there_are_options_of_each_scope() -> None:
    assert "command_timeout" in OF_CLIENTS and "tls_ca" in OF_CLIENTS and "durable" in OF_CLIENTS
    assert "ttl" in OF_ACQUISITIONS and "yield_for" in OF_ACQUISITIONS
    assert len({*OF_CLIENTS, *OF_ACQUISITIONS}) == len(OF_CLIENTS) + len(OF_ACQUISITIONS)


def test_files_are_fresh() -> None:
    assert generate("gen_options", "--check") == (0, "")


def test_a_row_more_is_in_all_languages(tree: Path) -> None:
    change(tree / OPTIONS, PLACE, ROW + PLACE)
    status, said = generate("gen_options", "--check", f"--root={tree}")
    assert status == 1
    assert [name for name in RESULTS if f"{name} is not what" in said] == list(RESULTS)
    assert generate("gen_options", f"--root={tree}") == (0, "")
    for name in RESULTS:
        text = (tree / name).read_text()
        assert re.search("patience|Patience", text), name
        said = "0.007 to 0.077" if name == PYTHON else "7 ms to 77 ms"
        assert said in text, name


def test_two_numbers_are_those_of_the_row(tree: Path) -> None:
    row = 'RL_LOCK_OPTION(patience, patience, COUNT, 4, 5, 4, "", "9.9", "a word of this test")\n'
    change(tree / OPTIONS, PLACE, row + PLACE)
    assert generate("gen_options", f"--root={tree}") == (0, "")
    for name in RESULTS:
        assert "4 or 5" in (tree / name).read_text(), name


def test_a_limit_reaches_the_header(tree: Path) -> None:
    change(tree / OPTIONS, "kMaxOwnerBytes, 256", "kMaxOwnerBytes, 255")
    assert generate("gen_options", f"--root={tree}") == (0, "")
    assert "RL_MAX_OWNER_BYTES = 255," in (tree / HEADER).read_text()
    words = (tree / GO).read_text().replace("\n// ", " ")  # however its lines are broken
    assert "1 to 255 bytes" in words


def test_a_row_that_is_not_understood_is_an_error(tree: Path) -> None:
    change(tree / OPTIONS, PLACE, "RL_LOCK_OPTION(patience\n" + PLACE)
    status, said = generate("gen_options", "--check", f"--root={tree}")
    assert status == 1 and "not understood" in said


def test_the_header_lists_them() -> None:
    text = (ROOT / HEADER).read_text()
    listed = re.findall(r"^ \*   (\w+)  +\S", text, re.MULTILINE)
    for name in OF_CLIENTS + OF_ACQUISITIONS:
        assert listed.count(name) == 1, name


def test_cpp_has_a_method_for_each() -> None:
    found = re.findall(r"^  acquire_options& (\w+)\(", (ROOT / CPP).read_text(), re.MULTILINE)
    assert sorted(set(found) - {"set"}) == sorted(OF_ACQUISITIONS)


def test_go_sets_each() -> None:
    found = re.findall(r'return Set\("(\w+)"', (ROOT / GO).read_text())
    assert sorted(found) == sorted(OF_ACQUISITIONS)


def test_java_sets_each() -> None:
    found = re.findall(r'return with\("(\w+)"', (ROOT / JAVA).read_text())
    assert sorted(set(found)) == sorted(OF_ACQUISITIONS)


def test_python_has_a_keyword_for_each() -> None:
    code = (
        "import runpy; m = runpy.run_path(%r); "
        "print(*m['LockKeywords'].__annotations__); print(*m['KINDS'])" % str(ROOT / PYTHON)
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    keywords, known = (line.split() for line in done.stdout.splitlines())
    assert sorted(keywords) == sorted(OF_ACQUISITIONS)
    assert sorted(known) == sorted(OF_CLIENTS + OF_ACQUISITIONS)


def test_ranges_are_typed_nowhere_else() -> None:
    """One that could not mean anything else: 7 days."""
    made = {OPTIONS, GO, "go/internal/rlc/constants.go", PYTHON}
    for number in ("604.?800(.?000)?",):
        places = ["core/config", "capi/src", "cli", "bindings", "python/src", "go/*.go"]
        found = subprocess.run(
            ["git", "grep", "-lwE", number, "--", *places],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        ).stdout.split()
        wrong = {name for name in found if "Rlc" not in name and "LockOptions" not in name} - made
        assert wrong == set(), number
