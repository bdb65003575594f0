# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The artifacts of java/, laid out as the folder of a Maven repository.

Maven builds them from a copy of the sources, so that a checkout keeps the jars of its own build.
The jar of redlatch then has the libraries of all platforms.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

GROUP = "io/redlatch"
POMS = {"redlatch-bom": "redlatch-bom/pom.xml", "redlatch-parent": "pom.xml"}
JARS = ("redlatch", "redlatch-shedlock", "redlatch-spring-integration")
CLASSIFIERS = ("", "-sources", "-javadoc")
LIBRARY = "libredlatchjni.so"


def copy_sources(root: Path, top: Path, notices: str) -> None:
    """The folder java/, and beside it what each jar has in META-INF."""
    ignored = shutil.ignore_patterns("target")
    shutil.copytree(root / "java", top / "java", ignore=ignored, copy_function=shutil.copyfile)
    shutil.copyfile(root / "LICENSE", top / "LICENSE")
    (top / "THIRD-PARTY-NOTICES.txt").write_text(notices)


def run_maven(top: Path, natives: Path, epoch: int) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise SystemExit("the kind java needs Maven and a JDK: scripts/setup --java")
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    options = ["-DskipTests", f"-Dproject.build.outputTimestamp={moment}"]
    command = [maven, "-B", "-q", "-f", str(top / "java"), "package", "-P", "release", *options]
    done = subprocess.run(
        [*command, f"-Dredlatch.natives={natives}"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"Maven failed:\n{done.stdout[-4000:]}")


def with_checksums(path: Path) -> list[Path]:
    """The file, and beside it the sums that Maven compares when it has fetched the file."""
    written = [path]
    for algorithm in ("sha1", "md5"):
        beside = path.with_name(f"{path.name}.{algorithm}")
        beside.write_text(hashlib.new(algorithm, path.read_bytes()).hexdigest())
        written.append(beside)
    return written


def write_repository(root: Path, repository: Path, libraries: Mapping[str, Path], notices: str,
                     epoch: int) -> list[Path]:
    """All artifacts, in the version that VERSION names. `libraries`: by platform, such as
    x86_64-linux-gnu. Returns the files."""
    version = (root / "VERSION").read_text().strip()
    written = []
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder) / "top"
        copy_sources(root, top, notices)
        for platform, library in libraries.items():
            target = Path(folder) / "natives" / platform
            target.mkdir(parents=True)
            shutil.copyfile(library, target / LIBRARY)
        run_maven(top, Path(folder) / "natives", epoch)
        poms = POMS | {name: f"{name}/pom.xml" for name in JARS}
        sources = {f"{name}/{version}/{name}-{version}.pom": pom for name, pom in poms.items()}
        for name in JARS:
            for classifier in CLASSIFIERS:
                jar = f"{name}-{version}{classifier}.jar"
                sources[f"{name}/{version}/{jar}"] = f"{name}/target/{jar}"
        for name, source in sorted(sources.items()):
            path = repository / GROUP / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(top / "java" / source, path)
            written += with_checksums(path)
    return written
