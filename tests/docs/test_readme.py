# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: whole programs and commands run as they stand in README and docs, README is short, and no
page mentions what does not exist.

Method: the programs are written to files, and each block of commands is run in a shell, a checkout
and a home of its own, against a server of our own; links, names and options of all pages are looked
up. The checks are tried with planted defects, because a check that cannot fail shows nothing.
test_blocks.py runs the pieces of code; three pages have tests of their own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest
from support.build import alone, build_folder
from support.go import find_go, run_go
from support.maven import MAVEN_OPTS, NotFetched, try_maven
from support.program import run_to_end
from support.servers import Server, available_kinds

from .pages import (
    FENCED_WRITES,
    OPERATING,
    RECIPES,
    ROOT,
    all_pages,
    anchors,
    blocks,
    dead_links,
    defined_in,
    file_of,
    links_of,
    names_in,
    pages_with_code,
    unknown_names,
    without_code,
    words_of,
)

README = (ROOT / "README.md").read_text()
LONGEST_README = 110  # lines
MOST_WORDS = 350  # beside code, tables, links and headings
FIRST_CODE = 10  # the line by which a shell and Python have begun
LANGUAGES = ("python", "c", "cpp", "go", "java")
PAGES = {"python": "python.md", "c": "c.md", "cpp": "c.md", "go": "go.md", "java": "java.md"}
HEADER = (ROOT / "capi/include/redlatch/redlatch.h").read_text()
# Pages for users of the library. CONTRIBUTING.md shows forms of names, which are none.
SPEAKING = [p for p in all_pages() if p.parent == ROOT / "docs" or "docs/design" in str(p)]
SPEAKING += [ROOT / "README.md"]

SERVER_OF_README = "localhost:6379"
LONGEST_PROGRAM = 25  # lines; what stands on a first page is read only if it is short
LIMIT = 120.0


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks_of_all(language: str) -> list[str]:
    with_own_tests = (RECIPES, FENCED_WRITES, OPERATING)
    pages = [page for page in pages_with_code() if page not in with_own_tests]
    return [block for page in pages for block in blocks(page.read_text(), language)]


def make_checkout(folder: Path) -> Path:
    """A checkout as the pages suppose it: what setup has made, and the whole programs, saved."""
    (folder / "build").mkdir(parents=True)
    (folder / "build/release").symlink_to(build_folder())
    for name in ("go", "scripts", ".venv"):
        (folder / name).symlink_to(ROOT / name)
    # Maven builds beside its sources.
    shutil.copytree(ROOT / "java", folder / "java", ignore=shutil.ignore_patterns("target"))
    shutil.copy(ROOT / "LICENSE", folder)
    # The work of README's first line.
    (folder / "migrate").write_text('#!/bin/sh\necho "migrated, fence $REDLATCH_FENCE"\n')
    (folder / "migrate").chmod(0o755)
    for language in LANGUAGES:
        programs = [block for block in blocks_of_all(language) if file_of(block)]
        assert programs, f"no whole program is {language}"
        for program in programs:
            assert program.count("\n") <= LONGEST_PROGRAM
            assert not (folder / file_of(program)).exists()
            (folder / file_of(program)).write_text(program)
    return folder


def missing_for(block: str, checkout: Path) -> str:
    """What a block of commands needs that is not there; "" for nothing."""
    if "go run" in block and find_go() is None:
        return "the program in Go: needs Go 1.21 or later"
    if "mvn" in block:
        try:
            done = try_maven("package", "-pl", "redlatch", "-DskipTests", folder=checkout / "java")
        except NotFetched as why:
            return f"the program in Java: {why}"
        assert done.returncode == 0, done.stdout
        shutil.rmtree(checkout / "java/redlatch/target")
    return ""


def environment(home: Path) -> dict[str, str]:
    """That of a user who has installed nothing of ours, and has no environment of Python."""
    hidden = ("REDLATCH_", "VALKEY_", "REDIS", "LD_LIBRARY_PATH", "PKG_CONFIG", "VIRTUAL_ENV")
    env = {k: v for k, v in os.environ.items() if not k.startswith(hidden)} | {"HOME": str(home)}
    ours = str(Path(sys.executable).parent)
    path = [folder for folder in env["PATH"].split(":") if folder != ours]
    if go := find_go():
        path.insert(0, str(Path(go).parent))
        # Otherwise below HOME, where it would begin with compiling its own library.
        for name in ("GOCACHE", "GOMODCACHE"):
            env[name] = run_go(ROOT, "env", name).stdout.strip()
    return env | {"PATH": ":".join(path), "MAVEN_OPTS": MAVEN_OPTS}


def run_block(block: str, folder: Path, port: int, shell: str = "bash") -> str:
    """Run a block of commands in a shell and a checkout of its own, below a home that blocks may
    share. What it prints, both streams."""
    home, checkout = folder, make_checkout(Path(tempfile.mkdtemp(dir=folder)) / "checkout")
    # Never a server that others use.
    script = "set -eu\n" + block.replace(SERVER_OF_README, f"127.0.0.1:{port}")
    if block in README:  # whose *How do I get it?* has put the command into the shell
        script = ". scripts/env\n" + script
    for program in (*checkout.glob("report.*"), *checkout.glob("cache.*")):
        assert "6379" in program.read_text()
        # The others take it from their command line.
        given = port if program.suffix in (".go", ".py") else 1
        program.write_text(program.read_text().replace(SERVER_OF_README, f"127.0.0.1:{given}"))
    assert "6379" not in script
    done = run_to_end(
        [shell, "-c", script], checkout, env=environment(home), limit=LIMIT, joins=True
    )
    assert done.returncode == 0, done.stdout
    # Maven resets a colour that it has not set.
    return done.stdout.replace("\x1b[0m", "")


COMMANDS = blocks_of_all("sh")
INSTALLS = [block for block in COMMANDS if "cmake --install" in block]
# Lines that blocks print, by what stands in them: how often.
SAID = {
    "./migrate": {r"migrated, fence \d+": 1},
    "./report": {r"held, fence \d+": 2, "reading, maybe with others": 2, "writing, alone": 2},
    "redlatch status": {r"fence \d+": 1, "it is free": 1, r"nightly\tfree\t.*": 1},
    "python3 first.py": {r"held, fence \d+": 2},
    "go run": {r"held, fence \d+": 1},
    "cmake --install": {},
    "target uninstall": {r"removed \d+ files from .*": 1},
    "mvn": {r"held, fence \d+": 1},
}


def key_of(block: str) -> str:
    found = [key for key in SAID if key in block]
    assert len(found) == 1, f"not one of the blocks that are known, but {found}:\n{block}"
    return found[0]


def test_every_block_is_known() -> None:
    assert [key_of(block) for block in COMMANDS] == list(SAID)


def test_every_program_is_run() -> None:
    programs = {file_of(block) for language in LANGUAGES for block in blocks_of_all(language)}
    words = " ".join(COMMANDS).split()
    assert len(programs - {""}) >= 8 and programs - {""} <= set(words)


def words_beside(text: str) -> int:
    """How many words a page has beside code, tables, links, pictures and headings."""
    text = re.sub(r"<!--.*?-->|<picture>.*?</picture>", "", without_code(text), flags=re.DOTALL)
    text = re.sub(r"`[^`\n]*`|^(?: {4}|\||#).*$", "", text, flags=re.MULTILINE)
    return len(re.findall(r"[A-Za-z][\w'-]*", re.sub(r"\[[^\]]*\]\([^)]*\)", "", text)))


def test_readme_is_one_screen() -> None:
    assert len(README.splitlines()) <= LONGEST_README
    assert words_beside(README) <= MOST_WORDS
    for language in ("sh", "python"):
        assert README[: README.index(f"```{language}\n")].count("\n") < FIRST_CODE, language


@pytest.mark.parametrize("language", LANGUAGES)
def test_readme_leads_to_a_lock_in_each_language(language: str) -> None:
    linked = [link.partition("#")[0] for link in links_of(README.partition("\n## ")[0])]
    assert f"docs/{PAGES[language]}" in linked
    assert blocks((ROOT / "docs" / PAGES[language]).read_text(), language)


def test_words_are_counted_beside_code() -> None:
    page = "# No\n[no](x) one, `no`\n\n    no\n| no |\n```sh\nno\n```\n<!-- no -->\ntwo three\n"
    assert words_beside(page) == 3


def test_the_index_has_every_page_once() -> None:
    index = ROOT / "docs/README.md"
    links = links_of(index.read_text().partition("## Examples")[0])
    pages = [p for p in all_pages() if ROOT / "docs" in p.parents and p != index]
    assert len(pages) > 30
    assert sorted(links) == sorted(str(page.relative_to(ROOT / "docs")) for page in pages)
    assert "docs/README.md" in links_of(README)


# What is slow in these is not the shell's.
SHELLS = {key: ("bash",) if key in ("go run", "mvn") else ("bash", "dash", "zsh") for key in SAID}


@pytest.mark.parametrize(
    ("block", "shell"),
    [
        pytest.param(block, shell, id=f"{key_of(block)}-{shell}")
        for block in COMMANDS
        for shell in SHELLS[key_of(block)]
    ],
)
def test_block_runs_in_a_fresh_shell(block: str, shell: str, tmp_path: Path) -> None:
    if missing := missing_for(block, make_checkout(tmp_path / "probe")):
        pytest.skip(missing)
    installs = "$HOME/.local" in block or "uninstall" in block
    # All installations of a build write the same list, which uninstall reads.
    exclusion = alone("install") if installs else nullcontext()
    with Server(available_kinds()[0]) as server, exclusion:
        if installs:
            for install in INSTALLS:
                run_block(install, tmp_path, server.port)
        output = run_block(block, tmp_path, server.port, shell)
        for line, count in SAID[key_of(block)].items():
            assert len(re.findall(f"^{line}$", output, re.MULTILINE)) == count, output
        assert "exit code" not in output
        assert server.cmd("EXISTS", "report", "nightly", "cache") == 0
    installed = tmp_path / ".local/redlatch/bin/redlatch"
    assert installed.exists() == ("$HOME/.local" in block)


def test_a_server_that_is_down_is_not_called_free(tmp_path: Path) -> None:
    (block,) = (block for block in COMMANDS if key_of(block) == "redlatch status")
    left_out = ("redlatch run", "redlatch ls")
    status = [line for line in block.splitlines() if not line.startswith(left_out)]
    output = run_block("\n".join(status), tmp_path, port=1)
    assert "cannot reach" in output and "it is free" not in output


@pytest.mark.parametrize("page", all_pages(), ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    assert list(dead_links(page)) == []


@pytest.mark.parametrize("page", pages_with_code(), ids=page_id)
def test_words_are_defined_in_the_glossary_only(page: Path) -> None:
    words = words_of((ROOT / "docs/glossary.md").read_text())
    assert {"lease", "upgrade", "downgrade"} < words and len(words) > 40
    assert defined_in(page.read_text()) & words == set()


@pytest.mark.parametrize("page", SPEAKING, ids=page_id)
def test_names_exist_in_the_header(page: Path) -> None:
    assert unknown_names(page.read_text(), HEADER) == []


def test_changes_name_what_there_is_now() -> None:
    """An entry may name what is gone, or a family of names, beside a name of the header."""
    entries = re.split(r"\n(?=- |\n)", (ROOT / "CHANGELOG.md").read_text())
    speaking = [entry for entry in entries if names_in(entry)]
    assert len(speaking) > 3
    for entry in speaking:
        assert set(unknown_names(entry, HEADER)) < names_in(entry), entry


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*|-[A-Z])(?![\w-])", text))


def test_options_of_the_command_are_those_of_its_help() -> None:
    binary = str(build_folder() / "cli/redlatch")
    known = set()
    commands = "run once elect leader status ls force-release recall limit doctor".split()
    commands += ["server", "version"]
    for command in ("", *commands):
        words = [binary, "help", *command.split()]
        text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        for option in re.findall(r"^  (-\S+)", text, re.MULTILINE):
            known |= options_in(option.replace(",", " "))
    assert len(known) > 10
    page = options_in((ROOT / "docs/command.md").read_text())
    # The page links to the list of options, each of which is a flag: a switch that is on, by --no-.
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/options.md").read_text(), re.MULTILINE)
    assert len(rows) > 20
    assert page - known == set()
    names = [name.replace("_", "-") for name in rows]
    flags = {sign + name for name in names for sign in ("--", "--no-")}
    assert known - page - flags == set()


def test_options_of_urls_are_those_of_the_header() -> None:
    of_one_server = r"Set the option `name` to `value`(.*?)Only of a Redlock"
    described = re.search(of_one_server, HEADER, re.DOTALL)
    assert described
    names = set()
    for row in re.findall(r"^ \*   (\w[\w, ]*?)  +\S", described[1], re.MULTILINE):
        names.update(row.split(", "))
    page = (ROOT / "docs/options.md").read_text()
    of_a_redlock = re.search(r"^## .*Redlock", page, re.MULTILINE)
    assert of_a_redlock
    section = page[: of_a_redlock.start()]
    assert len(names) == 27 and names == set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert "options.md" in links_of((ROOT / "docs/url.md").read_text())


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


def test_a_definition_is_found() -> None:
    text = "Words: the *lease* is how long; the\n*ticket*\nis its place. **It** is *not* so; *ttl*."
    assert defined_in(text) == {"lease", "ticket"}


def test_an_unknown_name_is_found() -> None:
    text = "rl_acquire RL_OK rl_acquire_twice RL_E_TIRED rl_*"
    assert unknown_names(text, HEADER) == ["RL_E_TIRED", "rl_acquire_twice"]


def test_anchors_are_made_as_usual() -> None:
    text = "# Threads, signals, fork\n## Limits on holding: `max_hold_ms`\n```\n# no heading\n```\n"
    assert anchors(text) == {"threads-signals-fork", "limits-on-holding-max_hold_ms"}
