# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Roots without anything of ours, in which tools/try_packages.py tries packages.

debootstrap makes each once, from the machine's own apt sources. What runs inside has no network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
DONE = "clean-root-is-complete"


@dataclass(frozen=True)
class Root:
    """A minimal Debian, with some packages."""

    packages: str
    suite: str = ""  # that of this machine
    # Of another architecture: qemu then runs the programs. Its packages are unpacked only, since
    # their scripts would need qemu for every program that they start.
    architecture: str = ""

    @property
    def name(self) -> str:
        words = (self.suite, self.architecture, self.packages.replace(",", "-"))
        return "-".join(word for word in words if word)


def mirror() -> tuple[str, str]:
    """The archive and the name of this machine's Debian."""
    command = ["apt-get", "indextargets", "--format", "$(SITE) $(CODENAME)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        site, _, codename = line.partition(" ")
        if site.rstrip("/").endswith("/debian") and "-" not in codename:
            return site, codename
    sys.exit("try_packages.py: apt names no archive of Debian")


def make_root(root: Root, folder: Path) -> Path:
    """Returns the root, which is below `folder`."""
    path = folder / root.name
    if (path / DONE).exists():
        return path
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    site, codename = mirror()
    print(f"making a clean root in {path}", flush=True)
    foreign = (f"--arch={root.architecture}", "--foreign") if root.architecture else ()
    command = ["debootstrap", "--variant=minbase", f"--include={root.packages}", *foreign]
    done = subprocess.run([*command, root.suite or codename, str(path), site],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"debootstrap failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    if root.architecture:
        for package in sorted(path.glob("var/cache/apt/archives/*.deb")):
            subprocess.run(["dpkg", "--extract", str(package), str(path)], check=True)
        copy_qemu(path)
    (path / DONE).touch()
    return path


def copy_qemu(root: Path) -> None:
    """/qemu runs programs for arm64 there."""
    shutil.copy(shutil.which("qemu-aarch64-static") or "qemu-aarch64-static", root / "qemu")


@contextmanager
def server() -> Iterator[Path]:
    """The folder with the socket `s` of a server."""
    folder = Path(tempfile.mkdtemp(prefix="rl-"))
    command = [str(TOP / "tests/support/server"), str(folder / "r")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            sys.exit("try_packages.py: redis-server did not start")
        yield folder / "r"
    shutil.rmtree(folder, ignore_errors=True)


def run_inside(root: Path, mounts: Mapping[str, Path], command: list[str]) -> tuple[bool, str]:
    """Run a command in `root`, without network."""
    lines = ["set -e"]
    for inside, outside in mounts.items():
        (root / inside.strip("/")).mkdir(exist_ok=True)
        lines.append(f"mount --bind '{outside}' '{root}{inside}'")
    for inside, kind in (("dev", "--bind /dev"), ("proc", "-t proc proc")):
        (root / inside).mkdir(exist_ok=True)
        lines.append(f"mount {kind} '{root}/{inside}'")
    variables = "HOME=/try PATH=/usr/bin:/bin URL=unix:///server/s"
    lines.append(f"exec env -i {variables} /usr/sbin/chroot '{root}' \"$@\"")
    done = subprocess.run(
        ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", "\n".join(lines), "sh",
         *command],
        env=os.environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False,
    )
    return done.returncode == 0, done.stdout
