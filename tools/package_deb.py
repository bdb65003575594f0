# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Makes the Debian packages, by debhelper from tools/debian, for tools/package.py.

debhelper and not CPack: it makes stripped, compressed and reproducible packages with the scripts
and dependencies that Debian asks for, where CPack has the files and fields only.
"""

from __future__ import annotations

import email.utils
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from third_parties import folder_of
from tool_venv import tool_python

SOURCES = ("bindings/python", "capi", "cli", "core", "embedded", "examples/systemd", "python/src",
           "tools", "CMakeLists.txt", "LICENSE", "README.md", "VERSION", "pyproject.toml")
# The files of these packages are what apt and dpkg call them.
PACKAGES = ("libredlatch-dev", "libredlatch0", "python3-redlatch", "redlatch")
TOOLS = ("dpkg-buildpackage", "dh", "dh_python3", "ninja", "pkg-config")
FROM_APT = ("debhelper", "dh-python", "libcli11-dev", "ninja-build", "pkg-config", "python3-dev")
CLI11_COPYRIGHT = Path("/usr/share/doc/libcli11-dev/copyright")


def run(command: list[str | Path], folder: Path, **variables: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed in {folder}:\n{done.stdout[-4000:]}")
    return done.stdout


def cli11() -> tuple[str, str]:
    """The copyright and the licence of CLI11, as its package has them."""
    text = CLI11_COPYRIGHT.read_text()
    owner = re.search(r"^Files: \*\nCopyright: (.*)$", text, re.MULTILINE)
    licence = re.search(r"^License: BSD-3-clause\n((?: .*\n?)+)", text, re.MULTILINE)
    if owner is None or licence is None:
        sys.exit(f"{CLI11_COPYRIGHT} is not understood")
    return owner[1], licence[1].rstrip()


def paragraph(text: str) -> str:
    """A text as the value of a field: each line indented, an empty one as a dot."""
    return "\n".join(f" {line.rstrip()}" if line.strip() else " ." for line in text.splitlines())


def split_licence(text: str) -> tuple[str, str]:
    """The line of the copyright, and the text below it."""
    rows = text.strip().splitlines()
    owners = [row for row in rows if row.lstrip().startswith("Copyright")]
    if not owners:
        sys.exit(f"a licence has no copyright line: {rows[0]}")
    below = rows[rows.index(owners[-1]) + 1:]
    names = [re.sub(r"^\s*Copyright (?:\(c\) )?", "", row) for row in owners]
    return "\n           ".join(names), paragraph("\n".join(below).strip())


def copyright_of(hiredis: str, pybind11: str) -> str:
    """debian/copyright: our licence, and those of the parts inside."""
    parts = {"hiredis": split_licence(hiredis), "pybind11": split_licence(pybind11)}
    parts["CLI11"] = cli11()
    where = {"hiredis": "in libredlatch.so and libredlatch.a", "CLI11": "in the command",
             "pybind11": "in the Python module"}
    # The first line names the format, which this copyright file of a package has as well.
    text = CLI11_COPYRIGHT.read_text().splitlines()[0] + """
Upstream-Name: redlatch
Source: https://redlatch.io

Files: *
Copyright: The redlatch authors
License: Apache-2.0
"""
    for name, (owner, _) in sorted(parts.items()):
        text += f"\nFiles: {name}/*\nCopyright: {owner}\nLicense: BSD-3-clause-{name}\n"
        text += f"Comment: {name} is not in the source; it is {where[name]}.\n"
    text += "\nLicense: Apache-2.0\n On Debian systems the text is in"
    text += "\n /usr/share/common-licenses/Apache-2.0.\n"
    for name, (_, licence) in sorted(parts.items()):
        text += f"\nLicense: BSD-3-clause-{name}\n{licence}\n"
    return text


def symbols_of(version_script: str) -> str:
    """debian/libredlatch0.symbols: what needs a node of the version script needs that version."""
    text = "libredlatch.so.0 libredlatch0 #MINVER#\n* Build-Depends-Package: libredlatch-dev\n"
    for version in re.findall(r"\bREDLATCH_([0-9.]+)\b", version_script):
        text += f" (symver)REDLATCH_{version} {version}\n"
    return text


def changelog_of(version: str, epoch: int) -> str:
    date = email.utils.formatdate(epoch, localtime=False).replace("-0000", "+0000")
    return (f"redlatch ({version}-1) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n"
            f" -- The redlatch authors <authors@redlatch.io>  {date}\n")


def copy_sources(root: Path, tree: Path) -> None:
    # Not the times: dpkg keeps one that is older than the commit.
    ignored = shutil.ignore_patterns("__pycache__")
    for name in SOURCES:
        source, target = root / name, tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=ignored, copy_function=shutil.copy)
        else:
            shutil.copy(source, target)
    for path in tree.rglob("*"):
        path.chmod(0o755)
    for path in tree.rglob("*"):
        is_script = path.is_file() and path.read_bytes().startswith(b"#!")
        if path.is_file() and not is_script:
            path.chmod(0o644)


def write_debian(tree: Path, hiredis_licence: str, python: Path, version: str, epoch: int) -> None:
    debian = tree / "debian"
    shutil.copytree(tree / "tools/debian", debian)
    site = folder_of(python, "pybind11").parent
    (licence,) = site.glob("pybind11-*.dist-info/licenses/LICENSE")
    (debian / "copyright").write_text(copyright_of(hiredis_licence, licence.read_text()))
    (debian / "changelog").write_text(changelog_of(version, epoch))
    (debian / "libredlatch0.symbols").write_text(
        symbols_of((tree / "capi/redlatch.map").read_text()))
    hook = ("from scikit_build_core.build import prepare_metadata_for_build_wheel as prepare; "
            "prepare('debian')")
    run([python, "-c", hook], tree)
    for extra in ("WHEEL", "licenses/LICENSE", "licenses"):  # of pip, and in copyright
        for path in debian.glob(f"redlatch-*.dist-info/{extra}"):
            path.rmdir() if path.is_dir() else path.unlink()


def missing() -> Iterator[str]:
    yield from (tool for tool in TOOLS if shutil.which(tool) is None)
    if not CLI11_COPYRIGHT.exists():
        yield "libcli11-dev"


def ccache_variables(tree: Path) -> dict[str, str]:
    """debhelper hides the home folder, and with it the cache; the tree has another name each time,
    which is not in what the compiler makes of it."""
    if shutil.which("ccache") is None:
        return {}
    folder = run(["ccache", "--get-config", "cache_dir"], tree).strip()
    return {"CCACHE_DIR": folder, "CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1"}


def make(root: Path, hiredis: Path, hiredis_licence: str, epoch: int, out: Path) -> list[Path]:
    """Build in a folder of its own; `out` gets the packages, for this machine's architecture."""
    absent = list(missing())
    if absent:
        sys.exit(f"the kind deb needs {', '.join(absent)}: "
                 f"apt-get install {' '.join(FROM_APT)}")
    version = (root / "VERSION").read_text().strip()
    with tempfile.TemporaryDirectory(prefix="redlatch-deb-") as folder:
        tree = Path(folder) / f"redlatch-{version}"
        copy_sources(root, tree)
        (tree / ".deps").mkdir()
        shutil.copy(hiredis, tree / ".deps")
        python = tool_python(root)
        pybind11 = folder_of(python, "pybind11")
        write_debian(tree, hiredis_licence, python, version, epoch)
        run(["dpkg-buildpackage", "--build=binary", "--no-sign"], tree,
            SOURCE_DATE_EPOCH=str(epoch), DEB_BUILD_OPTIONS="nocheck noautodbgsym",
            PYBIND11_DIR=str(pybind11 / "share/cmake/pybind11"), LC_ALL="C.UTF-8",
            **ccache_variables(tree))
        out.mkdir(parents=True, exist_ok=True)
        made = [next(Path(folder).glob(f"{name}_*.deb")) for name in PACKAGES]
        return [Path(shutil.copyfile(path, out / path.name)) for path in made]
