# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the commands of HACKING.md work as they stand there, and it has the one for each generator.

Method: those that are quick are run; of all others the targets, presets, steps, tests and files are
looked up. The checks are tried with planted defects.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.build import ROOT, build_folder
from support.program import run_to_end

from .pages import blocks

PAGE = (ROOT / "HACKING.md").read_text()
BUILD = "build/dev/"  # in the page; the tests may have another one
RUN = (f"{BUILD}tests/", "tools/tidy.py", "bench/history.py table", "bench/history.py trend")
SYSTEM = ("cmake", "ctest", "git", "gdb", "clang-format-14", "export", "node")
LIMIT = 300.0

STEPS = (ROOT / "scripts/test").read_text()
PRESETS = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]


def commands_of(page: str) -> list[list[str]]:
    """The words of each command, without comments."""
    lines = "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    parts = (part for line in lines for part in re.split(r"\s&&\s", line))
    return [words for part in parts if (words := shlex.split(part, comments=True))]


COMMANDS = commands_of(PAGE)


def here(word: str) -> str:
    return str(build_folder() / word.removeprefix(BUILD)) if word.startswith(BUILD) else word


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    return run_to_end([here(word) for word in words], ROOT, limit=LIMIT, joins=True)


def values(words: list[str], option: str) -> list[str]:
    return [value for name, value in zip(words, words[1:]) if name == option]


def is_target(name: str) -> bool:
    lists = (*ROOT.glob("*/CMakeLists.txt"), *ROOT.glob("tests/*/CMakeLists.txt"))
    pattern = re.compile(rf"add_(executable|library)\(\s*{re.escape(name)}\b")
    return any(pattern.search(path.read_text()) for path in lists)


def wrong_in_cmake(words: list[str]) -> Iterator[str]:
    known = {preset["name"] for preset in PRESETS if not preset.get("hidden")}
    yield from (f"no preset {name}" for name in values(words, "--preset") if name not in known)
    yield from (f"no target {name}" for name in values(words, "--target") if not is_target(name))


def wrong_in_pytest(words: list[str]) -> Iterator[str]:
    """Exit 5: no test is selected."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    kept = [word for word in words[1:] if not word.startswith("--basetemp")]
    done = run([*command, *kept])
    if done.returncode != 0:
        yield f"pytest selects nothing: {done.stdout[-300:]}"


def wrong_in(words: list[str]) -> Iterator[str]:
    first = words[0]
    if first in ("cmake", "ctest"):
        yield from wrong_in_cmake(words)
    if first == "scripts/test":
        known = " ".join(re.findall(r"_steps=\((.*?)\)", STEPS, re.S)).split()
        known += re.findall(r"^ +([\w-]+)\)", STEPS, re.M)  # what an argument may be besides
        yield from (f"no step {word}" for word in words[1:] if word not in known)
    if first.endswith("/pytest"):
        yield from wrong_in_pytest(words)
    elif first not in SYSTEM and not first.startswith("build/") and not (ROOT / first).is_file():
        yield f"no command {first}"
    sources = (word for word in words[1:] if re.fullmatch(r"(core|tests)/[\w./]+", word))
    yield from (f"no file {word}" for word in sources if not (ROOT / word).exists())


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_parts_of_each_command_exist(words: list[str]) -> None:
    assert list(wrong_in(words)) == []


@pytest.mark.parametrize(
    "words", [words for words in COMMANDS if " ".join(words).startswith(RUN)], ids=" ".join
)
def test_a_quick_command_works(words: list[str]) -> None:
    done = run(words)
    breaks_a_rule = words[0].endswith("/simulate") and "--mutant" in words
    assert done.returncode == breaks_a_rule, done.stdout[-2000:]
    assert done.stdout or words[0] == "tools/tidy.py"
    if "--shrink" in words:
        assert "needed: " in done.stdout and "replay: " in done.stdout
    if breaks_a_rule and "--trace" in words:  # what the page explains
        for shown in ("starts acquire of", "server: EVALSHA", "server: tells", "VIOLATION: "):
            assert shown in done.stdout and shown in PAGE


def test_the_tests_of_ctest_are_there() -> None:
    for pattern in (value for words in COMMANDS for value in values(words, "-R")):
        shown = run(["ctest", "--test-dir", str(build_folder()), "-N", "-R", pattern]).stdout
        assert re.search(r"Total Tests: [1-9]", shown), shown


def test_gdb_stops_where_the_page_says() -> None:
    (name,) = re.findall(r"break redlatch::sim::(\w+)::broken", PAGE)
    header = (ROOT / "tests/sim/verdict.h").read_text()
    assert re.search(rf"class {name} \{{.*\bvoid broken\(", header, re.S)


def test_paths_in_the_text_exist() -> None:
    names = re.findall(r"`((?!build/)[\w.*-]+(?:/[\w.*-]+)+)`", PAGE)
    assert len(names) > 10
    assert [name for name in names if not list(ROOT.glob(name))] == []


def test_each_generator_has_a_row() -> None:
    generators = {path.name for path in (ROOT / "tools").glob("gen_*.py") if is_program(path)}
    rows = set(re.findall(r"^\|.*\| `tools/(\w+\.py)[^`]*` \|$", PAGE, re.M))
    assert generators | {"abi.py"} == rows


def is_program(path: Path) -> bool:
    return path.read_text().startswith("#!")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("cmake --build --preset none --target unit_tests", "no preset none"),
        ("cmake --preset dev && cmake --build --preset dev --target none", "no target none"),
        ("scripts/test unit none  # a comment", "no step none"),
        ("scripts/test --none", "no step --none"),
        ("scripts/none", "no command scripts/none"),
        ("tools/tidy.py core/none.cc", "no file core/none.cc"),
        (".venv/bin/pytest tests/docs/test_servers.py -k none_of_these", "pytest selects nothing"),
    ],
)
def test_a_defect_is_found(line: str, found: str) -> None:
    wrong = [text for words in commands_of(f"```sh\n{line}\n```\n") for text in wrong_in(words)]
    assert len(wrong) == 1 and wrong[0].startswith(found)
