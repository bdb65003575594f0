# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what tools/debian says is true of the build. Method: comparison, without making a package;
the long runs make them (test_deb_build.py)."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest
from support.build import ROOT, built, install

from .packages import package_deb

DEBIAN = ROOT / "tools/debian"
# What the Python package has is not in the build under test.
OF_PYTHON = DEBIAN / "python3-redlatch.install"
BSD = "Copyright (c) 2010, One\nCopyright (c) 2011, Two\n\nAll rights reserved.\n\n* Keep this.\n"


def fields(paragraph: str) -> dict[str, str]:
    """The fields of a paragraph of debian/control; each line further in belongs to its field."""
    found = re.findall(r"^([A-Z][\w-]+):(.*(?:\n[ \t].*)*)", paragraph, re.MULTILINE)
    return {name: " ".join(value.split()) for name, value in found}


def packages() -> dict[str, dict[str, str]]:
    rows = [fields(text) for text in (DEBIAN / "control").read_text().split("\n\n")]
    return {row["Package"]: row for row in rows if "Package" in row}


def test_control_has_the_packages_and_what_each_depends_on() -> None:
    assert tuple(sorted(packages())) == package_deb.PACKAGES
    for name, row in packages().items():
        assert row["Architecture"] == "any" and "${misc:Depends}" in row["Depends"], name
        assert "${shlibs:Depends}" in row["Depends"] or name == "libredlatch-dev"
        short, _, long = row["Description"].partition(" redlatch gives ")
        assert len(short) < 80 and long, name
    # The command and the headers are of no use with another version of the library.
    for name in ("redlatch", "libredlatch-dev"):
        assert "libredlatch0 (= ${binary:Version})" in packages()[name]["Depends"]


def test_each_installed_file_is_in_one_package(tmp_path: Path) -> None:
    libraries = "lib/x86_64-linux-gnu"
    install(tmp_path / "usr")
    places = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")
              if not path.is_dir() or path.is_symlink()]
    # The build under test may have its libraries elsewhere. Those of Java and Python are not here.
    places = [re.sub(r"^usr/lib(64|/[\w-]+-linux-gnu)?/", f"usr/{libraries}/", place)
              for place in places if "redlatchjni" not in place and "/_core." not in place]
    patterns = [line.split()[0] for path in DEBIAN.glob("*.install") if path != OF_PYTHON
                for line in path.read_text().splitlines()]
    assert places
    for place in places:
        owners = [one for one in patterns if fnmatch(place, one) or place.startswith(f"{one}/")]
        by_folder = [one for one in patterns if fnmatch(place, f"{one}/*")]
        assert len(set(owners + by_folder)) == 1, place
    unused = [one for one in patterns
              if not any(fnmatch(place, one) or fnmatch(place, f"{one}/*") for place in places)]
    assert unused == []


def test_symbols_has_each_version_of_the_library() -> None:
    symbols = package_deb.symbols_of((ROOT / "capi/redlatch.map").read_text())
    first, depends, *rows = symbols.splitlines()
    assert first == "libredlatch.so.0 libredlatch0 #MINVER#"
    assert depends == "* Build-Depends-Package: libredlatch-dev"
    command = ["readelf", "--dyn-syms", "--wide", str(built("capi/libredlatch.so"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    nodes = set(re.findall(r" rl_\w+@@(REDLATCH_([0-9.]+))", done.stdout))
    assert nodes and sorted(rows) == sorted(f" (symver){node} {when}" for node, when in nodes)


def test_the_changelog_has_the_time_and_the_version() -> None:
    text = package_deb.changelog_of("1.2.3", 1700000000)
    assert text.startswith("redlatch (1.2.3-1) unstable;")
    assert text.endswith(">  Tue, 14 Nov 2023 22:13:20 +0000\n")


def test_the_copyright_has_each_part_and_its_licence() -> None:
    text = package_deb.copyright_of(BSD, BSD.replace("Keep", "Show"))
    for name in ("hiredis", "pybind11", "CLI11"):
        assert f"Files: {name}/*\nCopyright: " in text
        assert f"\nLicense: BSD-3-clause-{name}\n All rights reserved.\n .\n *" in text or (
            f"\nLicense: BSD-3-clause-{name}\n Redistribution and use" in text)
    assert "Copyright: 2010, One\n           2011, Two\n" in text
    assert " * Keep this.\n" in text and " * Show this.\n" in text
    # Each line of a text is indented, or the text would end there.
    assert re.search(r"^\S+$", text, re.MULTILINE) is None


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="the kind deb needs dpkg-buildpackage, dh, "):
        package_deb.make(ROOT, tmp_path, "", 0, tmp_path)
