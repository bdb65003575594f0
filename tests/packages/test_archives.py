# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the same commit gives the same archives, and the lists beside them tell what they are."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from support.build import ROOT

from .packages import all_files, make, run_packager

PACKED = ("bindings", "capi", "cli", "core", "docs", "embedded", "examples", "go", "java", "python")
PACKED += ("tools", "CHANGELOG.md", "CMakeLists.txt", "LICENSE", "README.md", "SECURITY.md")
PACKED += ("VERSION", "pyproject.toml")
EPOCH = "1700000000"
KINDS = ("source", "go")  # test_compiled.py has the others


def copy_tree(folder: Path) -> Path:
    """What the packages are made of, elsewhere, with other times and rights."""
    for name in PACKED:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(source, target)
    for path in folder.rglob("*"):
        path.chmod(0o700)
        os.utime(path, (1, 1))
    return folder


def test_two_builds_of_the_same_sources_are_identical(tmp_path: Path) -> None:
    make(tmp_path / "one", *KINDS, SOURCE_DATE_EPOCH=EPOCH)
    other = copy_tree(tmp_path / "tree")
    elsewhere = {"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"}
    make(tmp_path / "two", *KINDS, root=other, SOURCE_DATE_EPOCH=EPOCH, **elsewhere)
    one, two = all_files(tmp_path / "one"), all_files(tmp_path / "two")
    assert one and one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []
    # The comparison sees a second: the time of the commit is in every archive.
    make(tmp_path / "two", *KINDS, root=other, SOURCE_DATE_EPOCH=str(int(EPOCH) + 2))
    two = all_files(tmp_path / "two")
    archives = [name for name in one if name.endswith((".zip", ".tar.gz"))]
    assert [name for name in archives if one[name] == two[name]] == []


def test_the_sums_are_those_of_the_files(packages: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        cwd=packages,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    listed = {line.split("  ")[1] for line in (packages / "SHA256SUMS").read_text().splitlines()}
    assert listed == all_files(packages).keys() - {"SHA256SUMS"}


def test_contents_and_sbom_name_every_package(packages: Path) -> None:
    ours = {"contents.json", "SHA256SUMS", "redlatch.spdx.json", "THIRD-PARTY-NOTICES.txt"}
    made = all_files(packages).keys() - ours
    contents = json.loads((packages / "contents.json").read_text())
    assert {row["file"] for row in contents["packages"]} == made
    sbom = json.loads((packages / "redlatch.spdx.json").read_text())
    assert {file["fileName"].removeprefix("./") for file in sbom["files"]} == made
    for file in sbom["files"]:  # SPDX 2 asks for SHA1
        sums = {one["algorithm"]: one["checksumValue"] for one in file["checksums"]}
        data = (packages / file["fileName"]).read_bytes()
        assert sums["SHA1"] == hashlib.sha1(data).hexdigest()
        assert sums["SHA256"] == hashlib.sha256(data).hexdigest()
    licences = {package["name"]: package["licenseDeclared"] for package in sbom["packages"]}
    assert licences == {"redlatch": "Apache-2.0", "hiredis": "BSD-3-Clause"}
    named = {"SPDXRef-DOCUMENT"}
    named |= {part["SPDXID"] for part in [*sbom["packages"], *sbom["files"]]}
    for relation in sbom["relationships"]:
        assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= named
    assert "Redistributions of source code" in (packages / "THIRD-PARTY-NOTICES.txt").read_text()


def test_an_unknown_kind_or_time_is_an_error(tmp_path: Path) -> None:
    status, said = run_packager("--out", tmp_path, "cargo")
    known = "source, go, python, java, static, deb"
    assert status == 2 and f"KIND must be one of {known} (got 'cargo')" in said
    status, said = run_packager("--out", tmp_path, SOURCE_DATE_EPOCH="today")
    assert status == 1
    assert "SOURCE_DATE_EPOCH must be a number of seconds (got 'today')" in said


def test_the_support_matrix_of_the_docs_is_generated() -> None:
    status, table = run_packager("--table")
    assert status == 0
    page = (ROOT / "docs/packages.md").read_text()
    rows = re.search(r"^\| kind .*?(?=^\n)", page, re.MULTILINE | re.DOTALL)
    assert rows is not None and rows[0] == table, "tools/package.py --table"
