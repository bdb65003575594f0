# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Go, and the library for programs of Go: an install of the build, which pkg-config finds.

    program = go_build(ROOT / "tests/x", ROOT / "build/x/x")

Tests that need Go are skipped if none is installed that is new enough.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from .build import alone, build_folder, install
from .program import run_to_end

OLDEST_GO = (1, 21)
BUILD_S = 600.0

# Without these, Go would download another toolchain by itself.
PINNED = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}


@cache
def find_go() -> str | None:
    """A Go that is new enough, from PATH or a folder of the distribution."""
    folders = [Path("/usr/bin"), *sorted(Path("/usr/lib").glob("go-*/bin"), reverse=True)]
    candidates = [shutil.which("go"), *(str(folder / "go") for folder in folders)]
    for go in candidates:
        if go is None or not os.access(go, os.X_OK):
            continue
        said = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout
        version = re.search(r"\bgo(\d+)\.(\d+)", said)
        if version and (int(version[1]), int(version[2])) >= OLDEST_GO:
            return go
    return None


def run_go(
    folder: Path,
    *arguments: str,
    environment: dict[str, str] | None = None,
    limit_s: float = BUILD_S,
) -> subprocess.CompletedProcess[str]:
    """Run go in `folder`, by default without the library."""
    go = find_go()
    if go is None:
        pytest.skip("needs Go 1.21 or later")
    return run_to_end(
        [go, *arguments],
        folder,
        env={**os.environ, **PINNED} if environment is None else environment,
        limit=limit_s,
    )


@cache
def installed_prefix() -> Path:
    """Install the present build for Go programs. Returns the prefix."""
    prefix = build_folder() / "prefix"
    install(prefix)
    return prefix


def go_environment() -> dict[str, str]:
    """The environment for `go build`, `go test` and so on. Programs find the library by rpath."""
    found = list(installed_prefix().glob("lib*/**/redlatch.pc"))
    assert len(found) == 1, found
    library_folder = found[0].parents[1]
    return {
        **os.environ,
        **PINNED,
        "CGO_ENABLED": "1",
        "CGO_LDFLAGS": f"-Wl,-rpath,{library_folder}",
        "PKG_CONFIG_PATH": str(found[0].parent),
    }


def go_fetch(folder: Path) -> None:
    """Fetch the modules that `folder` requires. The test is skipped if they cannot be fetched, and
    fails if they do not match go.sum."""
    done = run_go(folder, "mod", "download")
    assert "checksum mismatch" not in done.stderr, done.stderr
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["nothing was said"]
        pytest.skip(f"what {folder.name} requires could not be fetched: {lines[-1]}")


@cache
def go_build(folder: Path, output: Path) -> Path:
    """Build the program in `folder`, which uses the package, as `output` if anything changed."""
    go_fetch(folder)
    environment = go_environment()
    with alone("go"):
        done = run_go(folder, "build", "-o", str(output), ".", environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return output
