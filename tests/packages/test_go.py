# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: `go get` and `go run` lead to a lock with a compiler and nothing of ours installed.

Method: Go with a home of its own, whose only proxy is the folder of the package.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.build import ROOT
from support.go import find_go, go_environment, run_go
from support.servers import Server

from .packages import program, try_packages

MODULE = "redlatch.io/redlatch"
VERSION = "v" + (ROOT / "VERSION").read_text().strip()
MAX_ZIP_BYTES = 520_000


class User:
    """A program in a folder, for which nothing is known but a compiler, Go and the proxy."""

    def __init__(self, folder: Path, packages: Path) -> None:
        go = find_go()
        if go is None:
            pytest.skip("needs Go 1.21 or later")
        self.folder = folder / "use"
        self.folder.mkdir()
        (self.folder / "main.go").write_text(program("go"))
        self.environment = {
            "HOME": str(folder),
            "PATH": f"{Path(go).parent}:/usr/bin:/bin",
            "GOPROXY": f"file://{packages}/go",
            "GOSUMDB": "off",
            "GOTOOLCHAIN": "local",
            "GOFLAGS": "-modcacherw",
            # By contents: the standard library need not be compiled again for this.
            "GOCACHE": run_go(ROOT, "env", "GOCACHE").stdout.strip(),
        }

    def go(self, *arguments: str, **variables: str) -> str:
        environment = {**self.environment, **variables}
        done = run_go(self.folder, *arguments, environment=environment)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done.stdout


@pytest.fixture(scope="module")
def user(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> User:
    user = User(tmp_path_factory.mktemp("go"), packages)
    user.go("mod", "init", "report")
    user.go("get", MODULE)
    return user


def needed(program: Path) -> str:
    command = ["readelf", "--dynamic", str(program)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_go_get_and_run_lead_to_a_lock(user: User) -> None:
    assert f"{MODULE} {VERSION}" in (user.folder / "go.mod").read_text()
    with Server("redis") as server:
        assert "held, fence" in user.go("run", ".", f"unix://{server.unix_path}")
    user.go("build", "-o", "inside", ".")
    assert "libredlatch" not in needed(user.folder / "inside")


def test_a_tag_takes_the_installed_library(user: User) -> None:
    installed = go_environment()
    names = ("PKG_CONFIG_PATH", "CGO_LDFLAGS")
    variables = {name: installed[name] for name in names}
    user.go("build", "-tags", "redlatch_system", "-o", "system", ".", **variables)
    assert "libredlatch.so.0" in needed(user.folder / "system")


def test_a_module_with_its_dependencies_beside_it_is_complete(user: User) -> None:
    """`go mod vendor` copies folders with Go in them, and nothing else."""
    user.go("mod", "vendor")
    copied = user.folder / "vendor" / MODULE / "internal/rlc"
    original = sorted((user.folder.parent / "go/pkg/mod").glob(f"{MODULE}@*/internal/rlc"))[0]
    names = {path.name for path in original.iterdir()}
    assert {path.name for path in copied.iterdir()} == names >= {"redlatch.cc", "redlatch.h"}


def test_the_modules_are_small_and_ask_for_no_replacement(packages: Path) -> None:
    archives = {path.parents[1].name: path for path in packages.glob("go/**/*.zip")}
    assert archives.keys() == {"redlatch", "gocronlock"}
    assert os.path.getsize(archives["redlatch"]) <= MAX_ZIP_BYTES
    for path in archives.values():
        mod = path.with_suffix(".mod").read_text()
        assert "replace" not in mod and "goleak" not in mod and "v0.0.0" not in mod
    scheduler = archives["gocronlock"].with_suffix(".mod").read_text()
    assert f"{MODULE} {VERSION}\n" in scheduler


def test_the_trial_has_all_of_debians_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder has links to others, which are not in a clean root."""
    go, source, commands = (tmp_path / name for name in ("lib/go", "share/go/src", "bin"))
    for folder in (go, source, commands, tmp_path / "work"):
        folder.mkdir(parents=True)
    (source / "time.go").touch()
    (go / "src").symlink_to("../../share/go/src")
    (commands / "go").write_text(f"#!/bin/sh\necho {go}\n")
    (commands / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(commands), prepend=":")
    inputs = try_packages.Inputs(tmp_path, tmp_path, tmp_path / "work")
    mounted = try_packages.go_root(inputs)["/go"]
    assert (mounted / "src/time.go").is_file() and not (mounted / "src").is_symlink()
    (go / "src").unlink()
    assert try_packages.go_root(inputs)["/go"] == go
