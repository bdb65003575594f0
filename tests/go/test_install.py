# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the section "Install" of docs/go.md leads to a lock, as it stands there.

Method: its commands are run where nothing is known but PATH, and nothing can be fetched. Only what
needs root is left to the reader: the other place that the section names does as well.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.build import ROOT
from support.embedded import EmbeddedFolder
from support.go import BUILD_S, find_go, run_go

SETUP = ROOT / "scripts/setup"

PROGRAM = """\
package main

import (
	"context"
	"fmt"
	"log"

	"redlatch.io/redlatch"
)

func main() {
	ctx := context.Background()
	client, err := redlatch.Dial(ctx, "embedded://")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lease, err := client.Lock(ctx, "report")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ours:", lease.Name(), lease.State())
	if err := lease.Unlock(ctx); err != nil {
		log.Fatal(err)
	}
}
"""


def commands() -> list[list[str]]:
    """The blocks of commands of the section, without that of the package, which comes first."""
    page = (ROOT / "docs/go.md").read_text()
    section = re.search(r"^## Install\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert section
    blocks = re.findall(r"^(?:    .+\n)+", section[1], re.MULTILINE)
    package, *others = [[line.strip() for line in block.splitlines()] for block in blocks]
    assert package[0].startswith("export GOPROXY=")  # tests/packages plays it
    return others


class Shell:
    """A shell of somebody who has a checkout, and Go."""

    def __init__(self, home: Path, server: EmbeddedFolder) -> None:
        go = find_go()
        if go is None:
            pytest.skip("needs Go 1.21 or later")
        self.home = home
        self.server = server
        self._environment = {
            "HOME": str(home),
            "PATH": f"{Path(go).parent}:/usr/local/bin:/usr/bin:/bin",
            "CHECKOUT": str(ROOT),
            "GOTOOLCHAIN": "local",
            "GOPROXY": "off",
            # The standard library need not be compiled again for this.
            "GOCACHE": run_go(ROOT, "env", "GOCACHE").stdout.strip(),
            # But the package must be: where pkg-config found the library the last time is in there.
            "CGO_LDFLAGS": f"-O2 -g -L{home}",
        }

    def run(self, *lines: str, folder: Path = ROOT, text: str = "") -> str:
        """What the commands print; never with the user's own embedded server."""
        script = "set -eu\n" + "\n".join(lines)
        script = re.sub(r"embedded://(?=\s|$)", self.server.url, script, flags=re.MULTILINE)
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env=self._environment,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=BUILD_S,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    server = EmbeddedFolder()
    try:
        yield Shell(tmp_path, server)
    finally:
        server.close()


def test_two_commands_lead_to_a_lock(shell: Shell) -> None:
    (setup, example), elsewhere, _ = commands()
    assert setup == "scripts/setup --go --install /usr/local"
    output = shell.run(*elsewhere, example, text="one line\n")
    assert output.endswith("begun\ndone: 1 lines\n")
    # What is to be exported is printed as well.
    assert elsewhere[1].replace("$HOME", str(shell.home)).replace('"', "") in output


def test_a_module_elsewhere_uses_the_package(shell: Shell, tmp_path: Path) -> None:
    _, elsewhere, own = commands()
    shell.run(elsewhere[0])
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "main.go").write_text(PROGRAM.replace("embedded://", shell.server.url))
    output = shell.run(elsewhere[1], "go mod init example.org/own", *own, folder=folder)
    assert output.endswith("ours: report HELD\n")


def test_setup_says_how_it_is_called() -> None:
    for arguments in (["--install"], ["--install", "--go"], ["--instal", "/x"]):
        done = subprocess.run([SETUP, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith("usage: scripts/setup ")
