# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the man page and the completions are those of the command, and the shells use them.

Method: the generator's own check, and each shell's list of what may follow on a command line.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.build import ROOT, build_folder, built, install

COMPLETIONS = ROOT / "cli/completions"
OPTION = re.compile(r"^  (-\S+)", re.MULTILINE)
COMMANDS = (
    *("run", "once", "elect", "leader", "status", "ls", "force-release", "recall", "limit"),
    *("doctor", "server", "version", "help"),
)


def in_bash(words: list[str]) -> set[str]:
    """`words` is a command line; the last word, which may be empty, is to be completed."""
    line = " ".join(map(shlex.quote, words))
    script = f"""
    source {COMPLETIONS}/redlatch.bash
    COMP_WORDS=({line}) COMP_CWORD={len(words) - 1}
    compopt() {{ :; }}
    _redlatch
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return lines_of(["bash", "-euc", script])


def in_fish(words: list[str]) -> set[str]:
    script = f"source {COMPLETIONS}/redlatch.fish; complete -C '{' '.join(words)}'"
    return {line.split("\t")[0] for line in lines_of(["fish", "--no-config", "-c", script])}


def zsh_specs(command: str) -> str:
    """What zsh is told about the words behind a command."""
    script = f"""
    _arguments() {{ state=words; [[ $1 = -C ]] || print -rl -- "$@"; false }}
    words=({command}) CURRENT=2
    complete() {{ source {COMPLETIONS}/_redlatch }}
    complete
    """
    return "\n".join(lines_of(["zsh", "-f", "-c", script]))


def lines_of(command: list[str]) -> set[str]:
    if shutil.which(command[0]) is None:
        pytest.skip(f"completions of {command[0]}: needs {command[0]}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == "", done.stderr
    return set(done.stdout.split("\n")) - {""}


def options(*words: str) -> set[str]:
    """The names of the options in a help."""
    done = subprocess.run(
        [built("cli/redlatch"), "help", *words], capture_output=True, text=True, check=True
    )
    return {name for names in OPTION.findall(done.stdout) for name in names.split(",")} - {""}


def test_they_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools/gen_command.py", "--check"],
        env={**os.environ, "REDLATCH_BUILD_DIR": str(build_folder())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_man_page_has_every_option_and_command() -> None:
    page = (ROOT / "cli/redlatch.1").read_text().replace("\\-", "-")
    named = set(re.findall(r"\\fB(-[\w-]+)\\fR", page))
    assert named >= options().union(*(options(command) for command in COMMANDS))
    assert re.findall(r"^\.SS ([a-z-]+)$", page, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("complete", [in_bash, in_fish])
def test_a_shell_completes_every_option(complete: Callable[[list[str]], set[str]]) -> None:
    assert complete(["redlatch", ""]) == set(COMMANDS)
    everywhere = {name for name in options() if name.startswith("--")}
    assert complete(["redlatch", "--"]) == everywhere
    for command in COMMANDS:
        own = {name for name in options(command) if name.startswith("--")}
        assert complete(["redlatch", command, "--"]) == everywhere | own, command


@pytest.mark.parametrize("command", COMMANDS)
def test_zsh_knows_every_option(command: str) -> None:
    specs = zsh_specs(command)
    known = set(re.findall(r"^(?:\*|\([^)]*\))(-[\w-]+)", specs, re.MULTILINE))
    assert known == options() | options(command)
    if command == "run":
        assert re.search(r"\)-o\[No effect", specs) and "FORMAT:(table" in specs
        assert re.search(r"\)-o[+=]", specs) is None


@pytest.mark.parametrize("complete", [in_bash, in_fish])
def test_a_shell_completes_values_and_the_command_to_run(
    complete: Callable[[list[str]], set[str]],
) -> None:
    assert complete(["redlatch", "--output", "js"]) == {"json", "jsonl"}
    assert complete(["redlatch", "run", "--if-busy", ""]) == {"fail", "skip", "wait"}
    assert complete(["redlatch", "help", "f"]) == {"force-release"}
    # `run` has a switch of the same name.
    assert complete(["redlatch", "-o", "t"]) >= {"table"}
    assert complete(["redlatch", "run", "-o", "t"]).isdisjoint({"table", "tsv"})
    lines = (["run"], ["run", "-n", "-w", "5s"], ["once", "--every", "1h"], ["elect", "--id", "a"])
    for words in lines:
        for behind in (["nightly"], ["-k", "5s", "nightly"], ["nightly", "--"]):
            line = ["redlatch", *words, *behind, "mkdi"]
            assert "mkdir" in complete(line), line
        assert "mkdir" not in complete(["redlatch", *words, "mkdi"])
    assert "mkdir" not in complete(["redlatch", "status", "nightly", "mkdi"])


def test_bash_completes_a_value_behind_an_equals_sign() -> None:
    # Bash makes the sign a word of its own.
    assert in_bash(["redlatch", "--output", "=", "ts"]) == {"tsv"}
    assert in_bash(["redlatch", "--output", "="]) == {"table", "json", "jsonl", "tsv"}
    assert in_bash(["redlatch", "--output", "=", "json", "st"]) == {"status"}


def test_an_installation_has_them(tmp_path: Path) -> None:
    install(tmp_path)
    places = {
        "man/man1/redlatch.1": "redlatch.1",
        "bash-completion/completions/redlatch": "completions/redlatch.bash",
        "zsh/site-functions/_redlatch": "completions/_redlatch",
        "fish/vendor_completions.d/redlatch.fish": "completions/redlatch.fish",
    }
    for place, source in places.items():
        installed = tmp_path / "share" / place
        assert installed.read_bytes() == (ROOT / "cli" / source).read_bytes(), place
