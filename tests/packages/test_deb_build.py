# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the Debian packages are reproducible, lintian finds no error, and each has its files.

Method: they are made twice, in two places, the second time without the cache of the compiler.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.build import ROOT

from .packages import all_files, make
from .test_archives import EPOCH, copy_tree

NAMES = ("libredlatch-dev", "libredlatch0", "python3-redlatch", "redlatch")
PYTHON = "usr/lib/python3/dist-packages"


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deb")
    make(folder, "deb", SOURCE_DATE_EPOCH=EPOCH)
    return folder / "deb"


def output_of(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def deb(folder: Path, name: str) -> Path:
    (found,) = folder.glob(f"{name}_*.deb")
    return found


@pytest.fixture(scope="module")
def unpacked(debs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By package: a folder with its files, and its control files in DEBIAN."""
    folder = tmp_path_factory.mktemp("unpacked")
    for name in NAMES:
        output_of("dpkg-deb", "--raw-extract", deb(debs, name), folder / name)
    return {name: folder / name for name in NAMES}


def test_two_builds_are_identical(debs: Path, tmp_path: Path) -> None:
    other = copy_tree(tmp_path / "tree")
    elsewhere = {"CCACHE_DISABLE": "1", "TZ": "Asia/Tokyo"}
    make(tmp_path / "two", "deb", root=other, SOURCE_DATE_EPOCH=EPOCH, **elsewhere)
    one, two = all_files(debs), all_files(tmp_path / "two/deb")
    assert len(one) == len(NAMES) and one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []


def test_lintian_finds_no_error(debs: Path) -> None:
    if shutil.which("lintian") is None:
        pytest.skip("errors in Debian packages: needs lintian")
    command = ["lintian", "--allow-root", "--fail-on", "error", *sorted(debs.glob("*.deb"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    # The one that is left: it asks for the number of a bug of Debian's.
    tags = set(re.findall(r"^W: [\w-]+: ([\w-]+)", said, re.MULTILINE))
    assert tags <= {"initial-upload-closes-no-bugs"}, said


def test_each_package_has_its_files(unpacked: dict[str, Path]) -> None:
    files = {
        "libredlatch0": ["usr/lib/*-linux-gnu/libredlatch.so.0", "DEBIAN/shlibs", "DEBIAN/symbols"],
        "libredlatch-dev": [
            "usr/include/redlatch/redlatch.h", "usr/lib/*-linux-gnu/libredlatch.a",
            "usr/lib/*-linux-gnu/*.so", "usr/lib/*-linux-gnu/pkgconfig/redlatch.pc",
            "usr/lib/*-linux-gnu/cmake/redlatch/redlatch-config.cmake",
        ],
        "redlatch": [
            "usr/bin/redlatch", "usr/libexec/redlatch/redlatch-embedded",
            "usr/share/man/man1/redlatch.1.gz", "usr/share/zsh/vendor-completions/_redlatch",
            "usr/share/bash-completion/completions/redlatch",
            "usr/share/fish/vendor_completions.d/redlatch.fish",
            "usr/share/doc/redlatch/examples/nightly-report.timer",
            "usr/share/doc/redlatch/examples/nightly-report.service",
        ],
        "python3-redlatch": [
            f"{PYTHON}/redlatch/__init__.py", f"{PYTHON}/redlatch/_core.cpython-3*.so",
            f"{PYTHON}/redlatch-*.dist-info/METADATA",
        ],
    }
    for name, patterns in files.items():
        for pattern in [*patterns, f"usr/share/doc/{name}/copyright"]:
            assert len(list(unpacked[name].glob(pattern))) == 1, f"{name}: {pattern}"
    text = (unpacked["libredlatch0"] / "usr/share/doc/libredlatch0/copyright").read_text()
    assert text.count("Redistributions of source code") == 3
    assert not list(unpacked["redlatch"].rglob("*.py"))


def test_the_library_stays_loaded_and_the_module_uses_it(unpacked: dict[str, Path]) -> None:
    (library,) = unpacked["libredlatch0"].glob("usr/lib/*/libredlatch.so.0.*")
    assert "NODELETE" in output_of("readelf", "--dynamic", library)
    (module,) = unpacked["python3-redlatch"].glob(f"{PYTHON}/redlatch/_core*.so")
    dynamic = output_of("readelf", "--dynamic", module)
    assert "[libredlatch.so.0]" in dynamic and "RUNPATH" not in dynamic


def test_dependencies_of_each_package(debs: Path) -> None:
    version = (ROOT / "VERSION").read_text().strip()

    def depends(name: str) -> str:
        return output_of("dpkg-deb", "--field", deb(debs, name), "Depends")

    assert f"libredlatch0 (= {version}-1)" in depends("libredlatch-dev")
    assert f"libredlatch0 (= {version}-1)" in depends("redlatch")
    needed = depends("python3-redlatch")
    assert "libredlatch0 (>= 0.1)" in needed and "python3 (<< 3." in needed
    assert "libredlatch" not in depends("libredlatch0")
