# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what Zig compiles for wheels and for the static command runs where it promises to, and is
the same each time."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.build import ROOT
from support.servers import Server

from .packages import all_files, make, natives, package_python
from .test_archives import EPOCH, copy_tree

KINDS = ("python", "static")
MAX_WHEEL_BYTES = 2_500_000


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    make(folder, *KINDS, SOURCE_DATE_EPOCH=EPOCH)
    return folder


def readelf(*arguments: str | Path) -> str:
    command = ["readelf", "--wide", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_there_is_a_small_wheel_for_each_python_and_target(compiled: Path) -> None:
    wheels = sorted((compiled / "python").glob("*.whl"))
    tags = {path.stem.split("-", 2)[2] for path in wheels}
    platforms = package_python.PLATFORMS.values()
    pythons = [python.tag for python in package_python.find_pythons()]
    assert tags == {f"{tag}-{tag}-{platform}" for tag in pythons for platform in platforms}
    assert [path.name for path in wheels if path.stat().st_size > MAX_WHEEL_BYTES] == []


def test_a_module_shows_one_name_and_needs_an_old_glibc_only(
    compiled: Path, tmp_path: Path
) -> None:
    for path in (compiled / "python").glob("*.whl"):
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(tmp_path / path.stem)
        for file in (tmp_path / path.stem).rglob("*"):
            if not file.is_file() or not file.read_bytes().startswith(b"\x7fELF"):
                continue
            symbols = readelf("--dyn-syms", file)
            needed = re.findall(r"@GLIBC_(\d+)\.(\d+)", symbols)
            assert all((int(one), int(two)) <= (2, 28) for one, two in needed), file
            if file.name == "_core.so":
                rows = [line.split() for line in symbols.splitlines()]
                # Num: Value Size Type Bind Vis Ndx Name
                defined = {row[7] for row in rows if len(row) > 7 and row[6].isdigit()}
                assert defined == {"PyInit__core"}, file


def test_pip_installs_a_wheel_that_takes_a_lock(compiled: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "new"], check=True)
    pip = [tmp_path / "new/bin/pip", "install", "-q", "--no-index", "--only-binary=redlatch"]
    subprocess.run([*pip, "--find-links", compiled / "python", "redlatch"], check=True)
    with Server("redis") as server:
        url = f"unix://{server.unix_path}"
        program = f"import redlatch; print(redlatch.connect({url!r}).acquire('report').fence)"
        subprocess.run([tmp_path / "new/bin/python", "-c", program], check=True)
        command = [tmp_path / "new/bin/redlatch", "--url", url]
        subprocess.run([*command, "run", "other", "--", *command, "ls", "--exit-code"], check=True)


def test_the_command_is_one_file_that_needs_no_other(compiled: Path) -> None:
    commands = sorted((compiled / "static").glob("redlatch-*-linux-*"))
    assert {path.name.rsplit("-", 1)[1] for path in commands} == {"x86_64", "aarch64"}
    for path in commands:
        headers = readelf("--program-headers", "--dynamic", path)
        assert "INTERP" not in headers and "NEEDED" not in headers


def test_headers_of_other_sizes_are_refused(tmp_path: Path) -> None:
    zig = natives.compiler(ROOT, "aarch64-linux-gnu", int(EPOCH))
    python = package_python.find_pythons()[0]
    package_python.check_configuration(zig, python, tmp_path)
    other = tmp_path / "pyconfig.h"
    text = python.configuration.read_text()
    other.write_text(text.replace("#define SIZEOF_LONG 8", "#define SIZEOF_LONG 4"))
    with pytest.raises(SystemExit, match="LONG"):
        changed = dataclasses.replace(python, configuration=other)
        package_python.check_configuration(zig, changed, tmp_path)


def test_the_same_sources_give_the_same_files_elsewhere(compiled: Path, tmp_path: Path) -> None:
    other = copy_tree(tmp_path / "tree")
    make(tmp_path / "two", *KINDS, root=other, SOURCE_DATE_EPOCH=EPOCH, TZ="Asia/Tokyo")
    one, two = all_files(compiled), all_files(tmp_path / "two")
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []
