#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Makes the packages below build/packages: scripts/package calls it.

    tools/package.py [--out FOLDER] [KIND..]   make the packages of these kinds, or of all
    tools/package.py --table                   print the support matrix of docs/packages.md

Beside the packages it writes contents.json, SHA256SUMS, an SBOM (redlatch.spdx.json) and
THIRD-PARTY-NOTICES.txt, of all packages that are in the folder then. The same commit gives the same
bytes: the only time in them is that of the commit, or SOURCE_DATE_EPOCH.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import amalgamate
import natives
import package_deb
import package_go
import package_java
import package_python
import package_static
import third_parties
from archives import sha256_of, write_tar

TOP = Path(__file__).resolve().parent.parent
SHOWN_EVERY_S = 10.0
OWN_FILES = ("contents.json", "SHA256SUMS", "redlatch.spdx.json", "THIRD-PARTY-NOTICES.txt")


@dataclass(frozen=True)
class Inputs:
    """What the packages are made of."""

    root: Path
    hiredis: Path
    epoch: int

    @cached_property
    def version(self) -> str:
        return (self.root / "VERSION").read_text().strip()

    @cached_property
    def amalgamation(self) -> dict[str, str]:
        return amalgamate.amalgamation(self.root, self.hiredis)

    @cached_property
    def hiredis_version(self) -> str:
        return amalgamate.hiredis_version(amalgamate.read_hiredis(self.hiredis))

    @cached_property
    def notices(self) -> str:
        """Those of packages with source only."""
        return f"""\
redlatch contains software of others. Its own licence is in LICENSE.

hiredis {self.hiredis_version}: the parser of replies (alloc, read and sds)
{"-" * 75}
{self.amalgamation["LICENSE.hiredis"].rstrip()}
{"-" * 75}

OpenSSL is not contained. A connection over TLS loads the OpenSSL 3 of the host.
"""

    @cached_property
    def compiled_notices(self) -> str:
        return f"{self.notices}\n{third_parties.notices(self.root)}"


def make_source(inputs: Inputs, out: Path) -> list[Path]:
    name = f"redlatch-{inputs.version}-amalgamation"
    path = out / "source" / f"{name}.tar.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    files = {**inputs.amalgamation, "THIRD-PARTY-NOTICES.txt": inputs.notices}
    write_tar(path, name, files, inputs.epoch)
    return [path]


def make_go(inputs: Inputs, out: Path) -> list[Path]:
    proxy = out / "go"
    amalgamation, notices = inputs.amalgamation, inputs.notices
    return package_go.write_proxy(inputs.root, proxy, amalgamation, notices, inputs.epoch)


def make_python(inputs: Inputs, out: Path) -> list[Path]:
    notices, folder = inputs.compiled_notices, out / "python"
    return package_python.make(inputs.root, inputs.hiredis, inputs.epoch, notices, folder)


def make_static(inputs: Inputs, out: Path) -> list[Path]:
    notices, folder = inputs.compiled_notices, out / "static"
    return package_static.make(inputs.root, inputs.hiredis, inputs.epoch, notices, folder)


def make_java(inputs: Inputs, out: Path) -> list[Path]:
    libraries = {}
    for target in natives.TARGETS:
        libraries[target] = natives.build_jni(
            inputs.root, inputs.hiredis, target, inputs.epoch)
    notices, folder = inputs.compiled_notices, out / "java"
    return package_java.write_repository(inputs.root, folder, libraries, notices, inputs.epoch)


def make_deb(inputs: Inputs, out: Path) -> list[Path]:
    licence = inputs.amalgamation["LICENSE.hiredis"]
    return package_deb.make(inputs.root, inputs.hiredis, licence, inputs.epoch, out / "deb")


@dataclass(frozen=True)
class Kind:
    make: Callable[[Inputs, Path], list[Path]]
    what: str
    runs_on: str
    needs: str
    # Platforms on which nothing has run it here.
    unproven: str
    # Names of third_parties.compiled_parts().
    parts: tuple[str, ...] = ()


LINUX = "Linux, x86-64 and arm64, glibc and musl"
RUNTIME = ("llvm-runtimes", "zig-compiler-rt")
KINDS = {
    "source": Kind(make_source, "the library as one file of C++ and one of C", LINUX,
                   "gcc 10 or clang 14, or later", "arm64, gcc 10"),
    "go": Kind(make_go, "the Go modules, as the folder of a module proxy", LINUX,
               "Go 1.21, and gcc 10 or clang 14, or later", "arm64, gcc 10"),
    "python": Kind(make_python, "wheels with the module and the command, and an sdist",
                   "Linux, x86-64 and arm64, glibc 2.28 and musl 1.2",
                   "CPython 3.9 to 3.13, and pip 20.3 (musl: 21.2)", "musl",
                   (*RUNTIME, "musl", "CLI11", "pybind11")),
    "java": Kind(make_java, "the Java artifacts, as the folder of a Maven repository",
                 "Linux, x86-64 and arm64, glibc 2.28 and musl 1.2", "Java 17, or later",
                 "Java with musl", RUNTIME),
    "static": Kind(make_static, "the command as one static file, and an OCI image of it",
                   "Linux, x86-64 and arm64", "nothing; it has no TLS", "arm64",
                   (*RUNTIME, "musl", "CLI11")),
    "deb": Kind(make_deb, "the library, its headers, the command and the module for Python 3.11",
                "Debian 12, x86-64 and arm64", "nothing else", "arm64", ("CLI11", "pybind11")),
}


def support_table() -> str:
    rows = ["| kind | contents | runs on | needs | unproven |", "|---|---|---|---|---|"]
    rows += [f"| `{name}` | {kind.what} | {kind.runs_on} | {kind.needs} | {kind.unproven} |"
             for name, kind in KINDS.items()]
    return "\n".join(rows) + "\n"


def commit_time() -> int:
    named = os.environ.get("SOURCE_DATE_EPOCH")
    if named is not None:
        if not named.isdigit():
            sys.exit(f"SOURCE_DATE_EPOCH must be a number of seconds (got '{named}')")
        return int(named)
    command = ["git", "-C", str(TOP), "log", "-1", "--format=%ct"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("SOURCE_DATE_EPOCH must be set where there is no git checkout")
    return int(done.stdout)


def packages_in(out: Path) -> dict[str, Path]:
    """All packages there, by name, also those of an earlier run."""
    paths = (path for path in sorted(out.rglob("*")) if path.is_file())
    names = {path.relative_to(out).as_posix(): path for path in paths}
    return {name: path for name, path in names.items() if name not in OWN_FILES}


def contents_of(inputs: Inputs, packages: dict[str, Path]) -> str:
    rows = []
    for name, path in packages.items():
        kind = KINDS.get(name.split("/")[0])
        if kind is None:
            sys.exit(f"{path} is of no kind of package: remove it")
        row = {"file": name, "kind": name.split("/")[0], "bytes": path.stat().st_size}
        row |= {"sha256": sha256_of(path), "runs_on": kind.runs_on, "needs": kind.needs}
        rows.append({**row, "unproven": kind.unproven})
    return json.dumps({"version": inputs.version, "packages": rows}, indent=1) + "\n"


def file_id(index: int) -> str:
    return f"SPDXRef-File-{index}"


def sha1_of(path: Path) -> str:
    """SPDX 2 asks for it; nothing is trusted by it."""
    return hashlib.sha1(path.read_bytes(), usedforsecurity=False).hexdigest()


def sbom_of(inputs: Inputs, packages: dict[str, Path]) -> str:
    """SPDX 2.3. Its name is that of its contents, so that the same contents have the same name."""
    sums = {name: sha256_of(path) for name, path in packages.items()}
    digest = hashlib.sha256(json.dumps(sums).encode()).hexdigest()
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(inputs.epoch))
    # Of what was used of it, because its archive may be packed again by each machine.
    parser = inputs.amalgamation["redlatch_hiredis.h"] + inputs.amalgamation["redlatch_hiredis.c"]
    used = f"SHA256 of its parser as used here: {hashlib.sha256(parser.encode()).hexdigest()}"
    absent = {"downloadLocation": "NOASSERTION", "filesAnalyzed": False}

    def package(name: str, version: str, licence: str, author: str) -> dict[str, object]:
        return {"SPDXID": f"SPDXRef-{name}", "name": name, "versionInfo": version, **absent,
                "licenseConcluded": licence, "licenseDeclared": licence,
                "copyrightText": author, "supplier": "NOASSERTION"}

    def contained(kind: str) -> tuple[str, ...]:
        return KINDS[kind.split("/")[0]].parts

    compiled = {part for name in packages for part in contained(name)}
    parts = [part for part in third_parties.compiled_parts(inputs.root) if part.name in compiled
             ] if compiled else []
    ours = package("redlatch", inputs.version, "Apache-2.0", "Copyright The redlatch authors")
    hiredis = package("hiredis", inputs.hiredis_version, "BSD-3-Clause", "NOASSERTION")
    files = [
        {"SPDXID": file_id(index), "fileName": f"./{name}",
         "checksums": [{"algorithm": "SHA1", "checksumValue": sha1_of(packages[name])},
                       {"algorithm": "SHA256", "checksumValue": value}],
         "licenseConcluded": "Apache-2.0 AND BSD-3-Clause", "copyrightText": "NOASSERTION"}
        for index, (name, value) in enumerate(sums.items())
    ]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-redlatch"),
                 ("SPDXRef-redlatch", "CONTAINS", "SPDXRef-hiredis")]
    relations += [(file_id(i), "GENERATED_FROM", "SPDXRef-redlatch") for i in range(len(files))]
    relations += [(file_id(i), "CONTAINS", f"SPDXRef-{part.name}")
                  for i, name in enumerate(sums) for part in parts if part.name in contained(name)]
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"redlatch-{inputs.version}",
        "documentNamespace": f"https://redlatch.io/spdx/{inputs.version}/{digest}",
        "creationInfo": {"created": moment, "creators": ["Tool: tools/package.py"]},
        "packages": [ours, {**hiredis, "comment": used}] + [
            package(part.name, part.version, part.licence, "NOASSERTION") for part in parts],
        "files": files,
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
            for one, kind, other in relations
        ],
    }
    return json.dumps(document, indent=1) + "\n"


@contextmanager
def shown_at_work(kind: str) -> Iterator[None]:
    """A line every ten seconds: some kinds take minutes."""
    began, over = time.monotonic(), threading.Event()

    def show() -> None:
        while not over.wait(SHOWN_EVERY_S):
            seconds = time.monotonic() - began
            print(f"package.py: {kind}, {seconds:.0f} s so far", file=sys.stderr, flush=True)

    thread = threading.Thread(target=show)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def make(inputs: Inputs, kinds: list[str], out: Path) -> None:
    """A kind that fails does not keep the others from being made."""
    out.mkdir(parents=True, exist_ok=True)
    failed = []
    for kind in kinds:
        shutil.rmtree(out / kind, ignore_errors=True)  # packages of another version
        try:
            with shown_at_work(kind):
                made = KINDS[kind].make(inputs, out)
        except (SystemExit, OSError, subprocess.SubprocessError) as why:
            shutil.rmtree(out / kind, ignore_errors=True)
            print(f"package.py: {kind}: {why}", file=sys.stderr)
            failed.append(kind)
            continue
        for path in made:
            print(f"{path.stat().st_size:>9}  {path.relative_to(out)}")
    write_lists(inputs, out)
    if failed:
        sys.exit(f"package.py: not made: {', '.join(failed)}")


def write_lists(inputs: Inputs, out: Path) -> None:
    """Write the files about all packages in `out`."""
    packages = packages_in(out)
    (out / "contents.json").write_text(contents_of(inputs, packages))
    (out / "redlatch.spdx.json").write_text(sbom_of(inputs, packages))
    is_compiled = any(KINDS[name.split("/")[0]].parts for name in packages)
    notices = inputs.compiled_notices if is_compiled else inputs.notices
    (out / "THIRD-PARTY-NOTICES.txt").write_text(notices)
    listed = {**packages, **{name: out / name for name in OWN_FILES if name != "SHA256SUMS"}}
    sums = (f"{sha256_of(path)}  {name}\n" for name, path in sorted(listed.items()))
    (out / "SHA256SUMS").write_text("".join(sums))


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the packages.")
    parser.add_argument("--out", type=Path, default=TOP / "build/packages")
    parser.add_argument("--hiredis", type=Path, help="hiredis-VERSION.tar.gz, its source")
    parser.add_argument("--table", action="store_true", help="print the support matrix")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    arguments = parser.parse_args()
    if arguments.table:
        print(support_table(), end="")
        return
    for kind in arguments.kinds:
        if kind not in KINDS:
            parser.error(f"KIND must be one of {', '.join(KINDS)} (got '{kind}')")
    hiredis = arguments.hiredis or amalgamate.find_hiredis()
    os.umask(0o022)  # The modes of files are in some packages.
    make(Inputs(TOP, hiredis, commit_time()), arguments.kinds or list(KINDS), arguments.out)


if __name__ == "__main__":
    main()
