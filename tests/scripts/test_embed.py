# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what the library embeds is what the server runs.
Method: compose, load, compile, compare."""

from __future__ import annotations

import hashlib
import itertools
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.resp import Argument

from .harness import (
    HASH_NAMES,
    HASH_RW_NAMES,
    NAMES,
    OWN_NAMES,
    PERMITS_NAMES,
    ROOT,
    World,
    compose,
)

Composed = tuple[Path, dict[str, str]]

# In the order of enum class Script.
ALL_NAMES = (*NAMES, *OWN_NAMES)
FORMATS = {
    "": NAMES,
    ".hash": HASH_NAMES,
    ".hash_rw": HASH_RW_NAMES,
    ".permits": PERMITS_NAMES,
}

_PRINT = """
#include <cstdio>
#include "protocol/scripts.h"
using namespace redlatch::protocol;
int main() {
  for (const Format format : {Format::kString, Format::kHash, Format::kHashRw,
                              Format::kPermits}) {
    for (int sharded = 0; sharded < 2; ++sharded) {
      for (size_t i = 0; i < kScriptCount; ++i) {
        const ScriptText& s = script_text(static_cast<Script>(i), format, sharded != 0);
        std::printf("%.*s %.*s %zu\\n", int(s.name.size()), s.name.data(), int(s.sha1.size()),
                    s.sha1.data(), s.text().size());
        std::fwrite(s.text().data(), 1, s.text().size(), stdout);
      }
    }
  }
  static_assert(kScriptCount == size_t(Script::kStats) + 1);
}
"""


def test_sha1_is_what_the_server_answers(world: World, composed: Composed) -> None:
    source = (composed[0] / "scripts_gen.cc").read_text()
    embedded = re.findall(r'"([0-9a-f]{40})"', source)
    first = 0
    for suffix, names in FORMATS.items():
        texts = [composed[1][name + suffix] for name in ALL_NAMES if name in names]
        if world.sharded:
            texts = [composed[1][f"{name}{suffix}.sharded"] for name in ALL_NAMES if name in names]
        answered = [world.admin.cmd("SCRIPT", "LOAD", text).decode() for text in texts]
        start = first + (len(names) if world.sharded else 0)
        assert embedded[start : start + len(names)] == answered
        first += 2 * len(names)
    assert len(embedded) == first


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
    expected = ""
    for suffix, names in FORMATS.items():
        for variant, name in itertools.product(("", ".sharded"), ALL_NAMES):
            if name not in names:
                expected += "  0\n"
                continue
            text = composed[1][name + suffix + variant]
            digest = hashlib.sha1(text.encode()).hexdigest()
            expected += f"{name} {digest} {len(text)}\n{text}"
    assert output.stdout == expected


def test_composed_texts_carry_no_comment_directive_or_indentation(composed: Composed) -> None:
    names = {name + suffix for suffix, names in FORMATS.items() for name in names}
    assert set(composed[1]) == {*names, *(f"{name}.sharded" for name in names)}
    for text in composed[1].values():
        assert "--" not in text and "@" not in text and "\n\n" not in text
        assert not re.search(r"^\s|[ \t]$", text, re.MULTILINE)
        assert text.endswith("\n")


NOTICE = """redis.pcall('PUBLISH', prefix .. string.sub(member, 1, 22),
'n' .. string.sub(member, 23, 32) .. '00000')
"""
# The lines that only scripts with sharded channels have.
OF_CLUSTERS = (
    """if member == silent then
ms = math.min(ms, 100)
end
""",
    """if member == silent then
ms = math.min(ms, 100)
if not holder then
owner = token
end
end
""",
    f"""if member == silent then
{NOTICE}receivers = 1
elseif type(receivers) == 'table' and
string.find(receivers.err, 'access a non local key', 1, true) then
silent = member
end
""",
    f"""if silent and type(receivers) == 'table' and
string.find(receivers.err, 'access a non local key', 1, true) then
{NOTICE}receivers = 0
end
""",
    """if type(receivers) == 'table' then
receivers = redis.pcall('PUBLISH', target, message)
end
""",
)
OF_REDISSON = (
    r"local on_cluster = .*\n|"
    r"if on_cluster then\n(if was_writer then\n.*\nend\n)?((?!end\n).*\n)+end\n"
)


def test_variants_differ_only_in_the_publish_command_and_its_error(composed: Composed) -> None:
    for name in [name + suffix for suffix, names in FORMATS.items() for name in names]:
        plain, sharded = composed[1][name], composed[1][f"{name}.sharded"]
        assert "SPUBLISH" not in plain
        # Redisson's waiters subscribe to a plain channel, and on a cluster to a sharded one.
        ours = re.sub(r"'PUBLISH'(?!, \w*channel,)", "'SPUBLISH'", plain)
        for block in OF_CLUSTERS:
            sharded = sharded.replace(block, "")
        assert ours == re.sub(OF_REDISSON, "", sharded)


def test_no_function_is_made_and_no_text_is_run(composed: Composed) -> None:
    # A closure costs a third of a call; a loaded string would be an injection.
    for text in composed[1].values():
        assert not re.search(r"\b(function|loadstring|load|dofile|pattern)\b", text)


def test_composing_twice_gives_the_same_bytes(composed: Composed, tmp_path: Path) -> None:
    assert compose(tmp_path) == compose(tmp_path)


def composed_from(folder: Path, **texts: str) -> dict[str, str]:
    """All texts, where each script is a stub but for those given."""
    source = folder / "source"
    (source / "fragments" / "string").mkdir(parents=True)
    (source / "fragments" / "hash").mkdir()
    (source / "fragments" / "permits").mkdir()
    for name in ALL_NAMES:
        (source / f"{name}.lua").write_text(texts.pop(name, "return 1\n"))
    for name, text in texts.items():
        (source / "fragments" / f"{name.replace('__', '/')}.lua").write_text(text)
    return compose(folder / "out", source)


@pytest.mark.parametrize(
    "line",
    [
        "return 1 -- behind code",
        "return '@NO_SUCH_NAME@'",
        "return ')lua\"'",
        "--@only hash\nreturn 1",
        "--@end",
        "--@only hassh\nreturn 1\n--@end",
        "--@include fragments/none.lua",
    ],
)
def test_text_that_cannot_be_embedded_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        composed_from(tmp_path, serve_queue=line + "\n")


def test_lines_for_one_format_are_in_its_text_alone(tmp_path: Path) -> None:
    text = "a()\n--@only hash\nb()\n--@end\nc()\n  --@only string\n  d()\n  --@end\ne()\n"
    texts = composed_from(tmp_path, serve_queue=text, probe=text)
    assert texts["serve_queue"] == texts["probe"] == "a()\nc()\nd()\ne()\n"
    assert texts["serve_queue.hash"] == texts["serve_queue.hash.sharded"] == "a()\nb()\nc()\ne()\n"
    assert "probe.hash" not in texts


def test_lines_for_the_sharded_variant_are_in_its_texts_alone(tmp_path: Path) -> None:
    text = "a()\n--@only sharded\nb()\n--@end\n--@only hash sharded\nc()\n--@end\n"
    texts = composed_from(tmp_path, serve_queue=text)
    assert texts["serve_queue"] == "a()\n"
    assert texts["serve_queue.hash"] == "a()\nc()\n"
    assert texts["serve_queue.sharded"] == texts["serve_queue.hash.sharded"] == "a()\nb()\nc()\n"


def test_format_names_the_fragment_also_within_fragments(tmp_path: Path) -> None:
    texts = composed_from(
        tmp_path,
        serve_queue="--@include fragments/outer.lua\nx = '@FORMAT@'\n",
        outer="--@include fragments/@FORMAT@/inner.lua\n--@only string\ny()\n--@end\n",
        string__inner="one()\n",
        hash__inner="two('@PUBLISH@')\n",
        permits__inner="three()\n",
    )
    assert texts["serve_queue"] == "one()\ny()\nx = 'string'\n"
    assert texts["serve_queue.hash"] == "two('PUBLISH')\nx = 'hash'\n"
    assert texts["serve_queue.hash.sharded"] == "two('SPUBLISH')\nx = 'hash'\n"


def test_after_script_flush_eval_serves_and_loads_again(world: World) -> None:
    client = world.client()
    token = client.token()
    args: list[Argument] = [5, *world.lock.keys, world.lock.w, token]
    args += [1000, "", "", world.prefix]
    world.admin.cmd("SCRIPT", "FLUSH")
    (unknown,) = world.admin.pipe([("EVALSHA", world.sha["acquire"], *args)])
    assert unknown.code == "NOSCRIPT"
    assert world.admin.cmd("EVAL", world.texts["acquire"], *args)[0] == 1
    assert world.admin.cmd("EVALSHA", world.sha["acquire"], *args)[0] == 1
