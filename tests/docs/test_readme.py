# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: README's code runs as it stands there, and no page mentions what does not exist.

Method: README's blocks are written to files and its commands are run in their order, against an
installed tree and a server of our own; links, names and options of all pages are looked up. The
checks are tried with planted defects, because a check that cannot fail shows nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.build import build_folder
from support.go import find_go, run_go
from support.maven import NotFetched, try_maven
from support.servers import Server, available_kinds

from .pages import ROOT, all_pages, anchors, blocks, dead_links, unknown_names

README = (ROOT / "README.md").read_text()
HEADER = (ROOT / "capi/include/redlatch/redlatch.h").read_text()
# Pages for users of the library. CONTRIBUTING.md shows forms of names, which are none.
SPEAKING = [p for p in all_pages() if p.parent == ROOT / "docs" or "docs/design" in str(p)]
SPEAKING += [ROOT / "README.md", ROOT / "CHANGELOG.md"]

SERVER_OF_README = "localhost:6379"
LONGEST_PROGRAM = 25  # lines; what stands on a first page is read only if it is short
LIMIT = 120.0


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def file_of(block: str) -> str:
    """The file name that the first line of a program gives in a comment."""
    found = re.match(r"(?:/\*|//|#) (\w+\.\w+)", block)
    assert found, f"no file name in the first line of\n{block}"
    return found[1]


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    """A folder as README supposes it: the build, and the programs of README."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build/release").symlink_to(build_folder())
    (tmp_path / "go").symlink_to(ROOT / "go")
    # Maven builds beside its sources.
    shutil.copytree(ROOT / "java", tmp_path / "java", ignore=shutil.ignore_patterns("target"))
    shutil.copy(ROOT / "LICENSE", tmp_path)
    for language in ("c", "cpp", "python", "go", "java"):
        programs = blocks(README, language)
        assert programs, f"no program of README is {language}"
        for program in programs:
            assert program.count("\n") <= LONGEST_PROGRAM
            (tmp_path / file_of(program)).write_text(program)
    return tmp_path


def missing_for(block: str, scene: Path) -> str:
    """What a block of commands needs that is not there; "" for nothing."""
    if "go run" in block and find_go() is None:
        return "the program in Go: needs Go 1.21 or later"
    if "mvn" in block:
        try:
            done = try_maven("package", "-pl", "redlatch", "-DskipTests", folder=scene / "java")
        except NotFetched as why:
            return f"the program in Java: {why}"
        assert done.returncode == 0, done.stdout
        shutil.rmtree(scene / "java/redlatch/target")
    return ""


def environment(scene: Path) -> dict[str, str]:
    """That of somebody who has installed nothing of ours."""
    hidden = ("REDLATCH_", "VALKEY_", "REDIS", "LD_LIBRARY_PATH", "PKG_CONFIG")
    env = {k: v for k, v in os.environ.items() if not k.startswith(hidden)} | {"HOME": str(scene)}
    # The Python that has the package.
    path = [str(Path(sys.executable).parent), env["PATH"]]
    if go := find_go():
        path.insert(1, str(Path(go).parent))
        # Otherwise below HOME, where it would begin with compiling its own library.
        for name in ("GOCACHE", "GOMODCACHE"):
            env[name] = run_go(ROOT, "env", name).stdout.strip()
    return env | {"PATH": ":".join(path)}


def run_commands(scene: Path, server: Server, commands: list[str]) -> str:
    """Run shell blocks of README as one script. What it prints, both streams."""
    script = "set -eu\n" + "".join(commands)
    # Never a server that somebody else uses.
    script = script.replace(SERVER_OF_README, f"127.0.0.1:{server.port}")
    for program in (*scene.glob("report.*"), *scene.glob("cache.*")):
        assert "6379" in program.read_text()
        # The others take it from their command line.
        port = server.port if program.suffix == ".go" else 1
        program.write_text(program.read_text().replace(SERVER_OF_README, f"127.0.0.1:{port}"))
    assert "6379" not in script
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=scene,
        env=environment(scene),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stdout
    # Maven resets a colour that it has not set.
    return done.stdout.replace("\x1b[0m", "")


def test_readme_runs(scene: Path) -> None:
    missing = {block: missing_for(block, scene) for block in blocks(README, "sh")}
    commands = [block for block, why in missing.items() if not why]
    skipped = [why for why in missing.values() if why]
    with Server(available_kinds()[0]) as server:
        output = run_commands(scene, server, commands)
        # Two without a server, the shell, C, C++, Python, Go, Java: each later than the one before.
        fences = [int(fence) for fence in re.findall(r"^ours, fence (\d+)$", output, re.MULTILINE)]
        assert len(fences) == 8 - len(skipped) and fences == sorted(set(fences)), output
        # C and C++.
        for did in ("reading, maybe with others", "writing, alone"):
            assert output.count(did) == 2, output
        assert "nobody holds it" in output and "exit code" not in output
        # Behind an `||` a command that does not exist would go unseen.
        assert re.search(r"^nightly\tfree\t", output, re.MULTILINE), output
        with server.connect() as connection:
            assert connection.cmd("EXISTS", "report", "nightly", "cache") == 0
    if skipped:
        pytest.skip("; ".join(skipped))


@pytest.mark.parametrize("page", all_pages(), ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    assert list(dead_links(page)) == []


@pytest.mark.parametrize("page", SPEAKING, ids=page_id)
def test_names_exist_in_the_header(page: Path) -> None:
    assert unknown_names(page.read_text(), HEADER) == []


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*|-[A-Z])(?![\w-])", text))


def test_options_of_the_command_are_those_of_its_help() -> None:
    binary = str(build_folder() / "cli/redlatch")
    known = set()
    for command in ("", "run", "status", "ls", "force-release", "server", "version"):
        words = [binary, "help", *command.split()]
        text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        for option in re.findall(r"^  (-\S+)", text, re.MULTILINE):
            known |= options_in(option.replace(",", " "))
    assert len(known) > 10
    assert options_in((ROOT / "docs/command.md").read_text()) == known


def test_options_of_urls_are_those_of_the_header() -> None:
    of_one_server = r"Set the option `name` to `value`(.*?)Only of a Redlock"
    described = re.search(of_one_server, HEADER, re.DOTALL)
    assert described
    names = set()
    for row in re.findall(r"^ \*   (\w[\w, ]*?)  +\S", described[1], re.MULTILINE):
        names.update(row.split(", "))
    section = README[README.index("## URLs") : README.index("## Which folder")]
    assert len(names) == 16 and all(f"`{name}`" in section for name in names)


def test_rights_are_those_that_the_tool_prints() -> None:
    words = [sys.executable, str(ROOT / "tools/acl.py"), "USER", "PASSWORD", "app:"]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    printed = ["#SHA256" if word.startswith("#") else word for word in text.split()]
    page = (ROOT / "docs/wire.md").read_text()
    shown = re.search(r"^    (ACL SETUSER .*?)\n\n", page, re.MULTILINE | re.DOTALL)
    assert shown and shown[1].split() == printed
    assert len(set(printed)) == len(printed)


# ---- the checks can fail -------------------------------------------------------------------------


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# One thing\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#one-thing) [c](https://example.org/x) `[d](code)`\n"
        "[e](gone.md) [f](other.md#another) [g](#here)\n"
    )
    assert [link.split(":")[0] for link in dead_links(page)] == [
        "gone.md",
        "other.md#another",
        "#here",
    ]


def test_an_unknown_name_is_found() -> None:
    text = "rl_acquire RL_OK rl_acquire_twice RL_E_TIRED rl_*"
    assert unknown_names(text, HEADER) == ["RL_E_TIRED", "rl_acquire_twice"]


def test_anchors_are_made_as_usual() -> None:
    text = "# Threads, signals, fork\n## Limits on holding: `max_hold_ms`\n```\n# no heading\n```\n"
    assert anchors(text) == {"threads-signals-fork", "limits-on-holding-max_hold_ms"}
