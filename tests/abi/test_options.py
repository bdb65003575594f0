# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: every language and the command know exactly the options of core/config/options.def.

Method: what tools/gen_options.py makes is made again and compared; the names are read by a pattern
that is not the generator's, and looked up in each language. The checks are tried on a tree with a
row more. The library is given a wrong value for each option: its message has what the documentation
says.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.build import ROOT

from .generated import change, generate
from .library import declared_functions, loaded

sys.path.insert(0, str(ROOT / "tools"))
from option_table import Option, Table  # noqa: E402

OPTIONS = "core/config/options.def"
HEADER = "capi/include/redlatch/redlatch.h"
CPP = "capi/include/redlatch/options.hpp"
PYTHON = "python/src/redlatch/_option_table.py"
GO = "go/options_gen.go"
JAVA = "java/redlatch/src/main/java/io/redlatch/LockOptions.java"
DOCS = "docs/options.md"
COMMAND = "cli/src/flags.def"
RESULTS = (HEADER, CPP, PYTHON, GO, JAVA, DOCS, COMMAND)
ROW = 'RL_LOCK_OPTION(patience, patience, DURATION, 7, 77, 17, "", "9.9", "a word of this test")\n'
CLIENT_ROW = ROW.replace("LOCK", "CLIENT")
KIND_ROW = ROW.replace("LOCK", "KIND")
# Client options are set by name in the others.
RESULTS_OF_CLIENT = (HEADER, PYTHON, DOCS, COMMAND)
RESULTS_OF_KIND = (HEADER, DOCS)  # each language has a type of lock for each kind
PLACE = "/* clang-format on */"
SETTERS = "capi/src/client.cc"


def names(*scopes: str) -> list[str]:
    pattern = rf"^RL_(?:{'|'.join(scopes)})_OPTION\((\w+),"
    return re.findall(pattern, (ROOT / OPTIONS).read_text(), re.MULTILINE)


OF_CLIENTS = names("CLIENT", "TLS", "SENTINEL", "SENTINEL_TLS", "CLUSTER", "QUORUM")
OF_ACQUISITIONS = names("ACQUIRE", "LOCK")
OF_KINDS = names("KIND")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (OPTIONS, *RESULTS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_there_are_options_of_each_scope() -> None:
    assert "command_timeout" in OF_CLIENTS and "tls_ca" in OF_CLIENTS and "durable" in OF_CLIENTS
    assert "ttl" in OF_ACQUISITIONS and "yield_for" in OF_ACQUISITIONS
    assert "mode" in OF_KINDS
    every = OF_CLIENTS + OF_ACQUISITIONS + OF_KINDS
    assert len(set(every)) == len(every)


def test_files_are_fresh() -> None:
    assert generate("gen_options", "--check") == (0, "")


@pytest.mark.parametrize(
    ("row", "results"),
    [(ROW, RESULTS), (CLIENT_ROW, RESULTS_OF_CLIENT), (KIND_ROW, RESULTS_OF_KIND)],
    ids=["lock", "client", "kind"],
)
def test_a_row_more_is_in_all_languages(row: str, results: tuple[str, ...], tree: Path) -> None:
    change(tree / OPTIONS, PLACE, row + PLACE)
    status, said = generate("gen_options", "--check", f"--root={tree}")
    assert status == 1
    assert [name for name in RESULTS if f"{name} is not what" in said] == list(results)
    assert generate("gen_options", f"--root={tree}") == (0, "")
    for name in results:
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
    for name in OF_CLIENTS + OF_ACQUISITIONS + OF_KINDS:
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


def test_formats_of_a_read_write_lock_are_formats() -> None:
    """A type checker needs them as words."""
    text = (ROOT / "python/src/redlatch/_options.py").read_text()
    found = re.search(r"^RWFormat = Literal\[(.*)\]$", text, re.MULTILINE)
    assert found is not None
    words = next(one.words for one in Table(ROOT).options if one.name == "format")
    assert {"string", "hash-rw"} == set(re.findall('"([^"]+)"', found[1])) <= set(words)


def test_each_typed_setter_is_of_a_row() -> None:
    """Those in C are a fixed list: a new option is set by its name. That each sets the option of
    its name is shown by tests/capi."""
    rows = {one.name: one for one in Table(ROOT).of("acquire", "lock")}
    text = (ROOT / SETTERS).read_text()
    numbers = re.findall(r"^RL_NUMBER_SETTER\((\w+), (\w+), (\w+)\)", text, re.MULTILINE)
    texts = re.findall(r"^RL_TEXT_SETTER\((\w+)\)", text, re.MULTILINE)
    assert len(numbers) == 9 and len(texts) == 2
    for suffix, name, c_type in numbers:
        is_duration = rows[name].kind == "DURATION"
        assert c_type == ("int64_t" if is_duration else "int32_t"), suffix
        # yield_ms, because yield is a word of Python and the option is yield_for.
        assert suffix == ("yield_ms" if name == "yield_for" else name + "_ms" * is_duration)
    assert all(rows[name].kind == "TEXT" for name in texts)
    made = {*texts, *(suffix for suffix, _, _ in numbers), "min_replicas"}
    prefix = "rl_acquire_options_set_"
    declared = {one.removeprefix(prefix) for one in declared_functions() if one.startswith(prefix)}
    assert made == declared


def refused(option: Option, value: bytes) -> str:
    """What the library says of the value."""
    library = loaded()
    kind = "acquire" if option.scope in ("acquire", "lock", "kind") else "client"
    made, setter = (getattr(library, f"rl_{kind}_options_{end}") for end in ("new", "set"))
    free, text_of = getattr(library, f"rl_{kind}_options_free"), library.rl_error_message
    for function in (made, library.rl_error_new):
        function.restype = ctypes.c_void_p
    text_of.restype, text_of.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
    pair = [ctypes.c_char_p, ctypes.c_size_t]
    setter.argtypes = [ctypes.c_void_p, *pair, *pair, ctypes.c_void_p]
    free.argtypes = library.rl_error_free.argtypes = [ctypes.c_void_p]
    options, error, name = made(), library.rl_error_new(), option.name.encode()
    try:
        assert setter(options, name, len(name), value, len(value), error) != 0, option.name
        return str(text_of(error).decode())
    finally:
        free(options)
        library.rl_error_free(error)


@pytest.mark.parametrize(
    "option", Table(ROOT).options + Table(ROOT).kinds, ids=lambda option: str(option.name)
)
def test_messages_and_documentation_say_the_same(option: Option) -> None:
    wrong = {
        "DURATION": f"{option.most + 1}ms",
        "COUNT": f"{option.most + 1}",
        "SWITCH": "perhaps",
        "CHOICE": "perhaps",
        "HOST": "-",
        "PROGRAM": "no/absolute/path",
    }
    value = wrong.get(option.kind, "x" * (option.most + 1))
    message = refused(option, value.encode())
    assert message.startswith(f"option '{option.name}' must be {option.allowed}"), message
    is_secret = option.kind in ("PRIVATE", "PASSWORD") or "FILE" in option.kind
    is_shown = "(got " in message
    assert is_shown != (is_secret or option.kind == "PROGRAM"), message
