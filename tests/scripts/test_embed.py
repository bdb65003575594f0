# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what the library embeds is what the server runs.
Method: compose, load, compile, compare."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.resp import Argument

from .harness import NAMES, ROOT, World, compose

Composed = tuple[Path, dict[str, str]]

_PRINT = """
#include <cstdio>
#include "wire/scripts.h"
using namespace redlatch::wire;
int main() {
  for (int sharded = 0; sharded < 2; ++sharded) {
    for (size_t i = 0; i < kScriptCount; ++i) {
      const ScriptText& s = script_text(static_cast<Script>(i), sharded != 0);
      std::printf("%.*s %.*s %zu\\n", int(s.name.size()), s.name.data(), int(s.sha1.size()),
                  s.sha1.data(), s.text.size());
    }
  }
  static_assert(kScriptCount == size_t(Script::kProbe) + 1);
}
"""


def test_sha1_is_what_the_server_answers(world: World, composed: Composed) -> None:
    source = (composed[0] / "scripts_gen.cc").read_text()
    embedded = re.findall(r'"([0-9a-f]{40})"', source)
    assert len(embedded) == 2 * len(NAMES)
    answered = [world.admin.cmd("SCRIPT", "LOAD", world.texts[name]).decode() for name in NAMES]
    start = len(NAMES) if world.sharded else 0
    assert embedded[start : start + len(NAMES)] == answered


def test_generated_source_compiles_and_holds_the_texts(composed: Composed, tmp_path: Path) -> None:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    (tmp_path / "print.cc").write_text(_PRINT)
    program = tmp_path / "print"
    sources = [str(tmp_path / "print.cc"), str(composed[0] / "scripts_gen.cc")]
    options = ["-std=c++20", "-Wall", "-Wextra", "-Wshadow", "-Werror", f"-I{ROOT / 'core'}"]
    subprocess.run([compiler, *options, *sources, "-o", str(program)], check=True, timeout=120)
    output = subprocess.run([program], check=True, capture_output=True, text=True, timeout=10)
    expected = []
    for suffix in ("", ".sharded"):
        for name in NAMES:
            text = composed[1][name + suffix].encode()
            expected.append(f"{name} {hashlib.sha1(text).hexdigest()} {len(text)}")
    assert output.stdout.splitlines() == expected


def test_composed_texts_carry_no_comment_directive_or_indentation(composed: Composed) -> None:
    assert set(composed[1]) == {*NAMES, *(f"{name}.sharded" for name in NAMES)}
    for text in composed[1].values():
        assert "--" not in text and "@" not in text and "\n\n" not in text
        assert not re.search(r"^\s|[ \t]$", text, re.MULTILINE)
        assert text.endswith("\n")


def test_variants_differ_only_in_the_publish_command(composed: Composed) -> None:
    for name in NAMES:
        plain, sharded = composed[1][name], composed[1][f"{name}.sharded"]
        assert "SPUBLISH" not in plain
        assert plain.replace("'PUBLISH'", "'SPUBLISH'") == sharded


def test_no_function_is_made_and_no_text_is_run(composed: Composed) -> None:
    # A closure costs a third of a call; a loaded string would be an injection.
    for text in composed[1].values():
        assert not re.search(r"\b(function|loadstring|load|dofile|pattern)\b", text)


def test_composing_twice_gives_the_same_bytes(composed: Composed, tmp_path: Path) -> None:
    assert compose(tmp_path) == compose(tmp_path)


@pytest.mark.parametrize(
    "line", ["return 1 -- behind code", "return '@NO_SUCH_NAME@'", "return ')lua\"'"]
)
def test_text_that_cannot_be_embedded_is_refused(tmp_path: Path, line: str) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in NAMES:
        (source / f"{name}.lua").write_text("return 1\n")
    (source / "kick.lua").write_text(line + "\n")
    with pytest.raises(subprocess.CalledProcessError):
        compose(tmp_path / "out", source)


def test_after_script_flush_eval_serves_and_loads_again(world: World) -> None:
    client = world.client()
    token = client.token()
    args: list[Argument] = [4, *world.lock.keys, token, 1000, "", "", world.prefix]
    world.admin.cmd("SCRIPT", "FLUSH")
    (unknown,) = world.admin.pipe([("EVALSHA", world.sha["acquire"], *args)])
    assert unknown.code == "NOSCRIPT"
    assert world.admin.cmd("EVAL", world.texts["acquire"], *args)[0] == 1
    assert world.admin.cmd("EVALSHA", world.sha["acquire"], *args)[0] == 1
