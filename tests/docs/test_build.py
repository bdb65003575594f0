# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: where something is missing a build says all of it at once; hiredis needs no network twice.

Method: tools/check_build.sh and tools/get_hiredis.sh on a PATH where things are missing or only
pretend to be there; an sdist of a copy of the tree.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

from support.build import ROOT

from .machine import path_without, put, run


def test_all_that_is_missing_is_one_line_for_apt(tmp_path: Path) -> None:
    absent = (r"(.*-)?(cc|gcc|g\+\+|c\+\+|clang.*)(-\d+)?", "make", "ninja", "pkg-config")
    path = path_without(tmp_path / "bin", *absent, "pkgconf", "dpkg-source", "cmake")
    put(path, "apt-get")
    put(path, "python", "echo /nowhere")
    check = ROOT / "tools/check_build.sh"
    done = run(check, tmp_path / "deps", "python", folder=tmp_path, path=path)
    assert done.returncode == 1
    line = done.stdout.splitlines()[-1].strip()
    packages = "build-essential make pkg-config libcli11-dev python3-dev cmake dpkg-dev"
    assert line == f"apt-get install --no-install-recommends {packages}", done.stdout
    done = run(check, ROOT / ".deps", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


HIREDIS = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.0.0)
project(hiredis C)
add_library(hiredis STATIC hiredis.c)
install(TARGETS hiredis ARCHIVE DESTINATION lib)
file(WRITE ${CMAKE_BINARY_DIR}/hiredis.pc
  "libdir=${CMAKE_INSTALL_PREFIX}/lib\\nName: hiredis\\nDescription: d\\nVersion: 1.9.9\\n")
install(FILES ${CMAKE_BINARY_DIR}/hiredis.pc DESTINATION lib/pkgconfig)
""",
    "hiredis.c": "int redisAnything(void) { return 0; }\n",
}
CMAKE_4 = (
    'case "$*" in',
    "  *CMAKE_POLICY_VERSION_MINIMUM=3.5*|--*) exec /usr/bin/env PATH=$OLD_PATH cmake \"$@\" ;;",
    "esac",
    'echo "Compatibility with CMake < 3.5 has been removed from CMake." >&2; exit 1',
)


def test_hiredis_is_built_from_its_kept_source_by_cmake_4(tmp_path: Path) -> None:
    """Without network, and without apt: nothing is fetched."""
    prefix = tmp_path / "deps"
    (tmp_path / "hiredis-1.9.9").mkdir()
    prefix.mkdir()
    for name, text in HIREDIS.items():
        (tmp_path / "hiredis-1.9.9" / name).write_text(text)
    with tarfile.open(prefix / "hiredis-1.9.9.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "hiredis-1.9.9", "hiredis-1.9.9")
    path = path_without(tmp_path / "bin", "apt-get", "dpkg-source", "cmake")
    put(path, "cmake", *CMAKE_4)
    get = ROOT / "tools/get_hiredis.sh"
    # The system's own might do.
    settings = {"OLD_PATH": os.environ["PATH"], "PKG_CONFIG_LIBDIR": str(tmp_path)}
    done = run(get, prefix, folder=tmp_path, path=path, **settings)
    assert done.returncode == 0 and "hiredis 1.9.9 is in" in done.stdout, done.stdout
    assert "is in place" in run(get, prefix, folder=tmp_path, path=path, **settings).stdout
    # With neither source nor network it says what would do.
    put(path, "apt-get", "echo no network; exit 100")
    put(path, "dpkg-source")
    done = run(get, tmp_path / "other", folder=tmp_path, path=path, **settings)
    assert done.returncode == 1
    for word in ("cannot be fetched", "hiredis-VERSION.tar.gz", "PKG_CONFIG_PATH"):
        assert word in done.stdout


def test_a_package_of_another_suite_has_a_reason(tmp_path: Path) -> None:
    """The source alone is fetched without a compiler, as packages need it."""
    absent = (r"(.*-)?(cc|gcc|g\+\+|c\+\+)(-\d+)?", "make", "pkg-config")
    path = path_without(tmp_path / "bin", *absent)
    put(path, "apt-cache", "echo '  Candidate: 0.14.1-3'")
    source = "hiredis-1.9.9/hiredis.c"
    put(
        path,
        "apt-get",
        f'case "$*" in *source*) mkdir hiredis-1.9.9 && echo >{source} ;; esac',
    )
    put(path, "dpkg-source")
    get = ROOT / "tools/get_hiredis.sh"
    done = run(get, "--source", tmp_path / "deps", folder=tmp_path, path=path)
    assert done.returncode == 0, done.stdout
    assert re.search(r"hiredis must be 1\.0\.0 or later \(got 0\.14\.1-3 of \w+\)", done.stdout)
    assert "source package of trixie, for this build only" in done.stdout
    with tarfile.open(tmp_path / "deps/hiredis-1.9.9.tar.gz") as archive:
        assert source in archive.getnames()


def test_an_sdist_carries_the_source_of_hiredis(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    names = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\n")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    (tree / ".deps/lib").mkdir(parents=True)
    (tree / ".deps/hiredis-1.2.0.tar.gz").write_bytes(b"source")
    (tree / ".deps/lib/libhiredis.a").touch()
    make = "from scikit_build_core.build import build_sdist; print(build_sdist('.'))"
    done = run(ROOT / ".venv/bin/python", "-c", make, folder=tree)
    assert done.returncode == 0, done.stdout
    with tarfile.open(tree / done.stdout.split()[-1]) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    tools = {f"tools/{name}.sh" for name in ("check_build", "get_hiredis", "private_apt")}
    assert {".deps/hiredis-1.2.0.tar.gz", *tools} <= inside
    assert ".deps/lib/libhiredis.a" not in inside
