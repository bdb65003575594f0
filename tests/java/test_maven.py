# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: Maven builds java/, each module passes its own tests, and the jar is all that a program
needs.

Method: Maven runs them, with the library of the build; they start their own servers. Small programs
are compiled and run with the jar alone, in a folder of their own.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.build import ROOT
from support.java import jdk_tool
from support.maven import FOLDER, Report, run_maven
from support.servers import Server, available_kinds
from support.wait import LIMIT

VERSION = (ROOT / "VERSION").read_text().strip()
JAR = FOLDER / f"redlatch/target/redlatch-{VERSION}.jar"

PROGRAM = """\
import io.redlatch.Lease;
import io.redlatch.Redlatch;
import java.time.Duration;

public class Program {
  public static void main(String[] arguments) throws Exception {
    try (Redlatch client = Redlatch.connect(arguments[0]);
        Lease lease = client.lock("report").acquire(Duration.ofSeconds(5))) {
      System.out.println("ours: " + lease.name() + " " + lease.state());
    }
    System.out.println("of the module " + Redlatch.class.getModule().getName());
  }
}
"""

# By the ends of their names, and the modules that they are.
ADAPTERS = {
    "shedlock": "io.redlatch.shedlock",
    "spring-integration": "io.redlatch.spring.integration",
}

MODULE = "module program { requires io.redlatch; }\n"


@pytest.fixture(scope="module")
def verified() -> str:
    """What Maven has said; once for all tests here."""
    for old in FOLDER.glob("*/target"):
        shutil.rmtree(old)
    done = run_maven("verify")
    assert done.returncode == 0, done.stdout
    return done.stdout


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


# ---- Maven ---------------------------------------------------------------------------------------


def test_modules_pass_their_tests(verified: str) -> None:
    assert re.sub(r"\x1b\[\d*m", "", verified).strip() == ""
    report = Report(FOLDER)
    for name in (
        "LockViewTest.lockIsNotInterrupted",
        "Lock.unlockAfterALossThrows",
        "shedlock.RedlatchLockProviderTest.onlyOneNodeHasTheLock",
        "shedlock.SpringTest.oneProgramRunsTheTask",
        "integration.RedlatchLockRegistryTest.executeLockedWaitsForTheLock",
        "integration.LeaderTest.nextCandidateLeadsWhenTheLeaderStops",
    ):
        assert any(found.endswith(name) for found in report.names()), report.names()
    if skipped := report.skipped():
        pytest.skip("; ".join(skipped))


def test_skipped_tests_are_seen(tmp_path: Path) -> None:
    folder = tmp_path / "module/target/surefire-reports"
    folder.mkdir(parents=True)
    (folder / "TEST-A.xml").write_text(
        '<testsuite><testcase name="a" classname="A"/><testcase name="b" classname="A">'
        '<skipped message="needs more"/></testcase></testsuite>'
    )
    assert Report(tmp_path).names() == ["A.a", "A.b"]
    assert Report(tmp_path).skipped() == ["b: needs more"]


def test_versions_are_that_of_the_tree() -> None:
    files = sorted(FOLDER.glob("**/pom.xml"))
    modules = {"redlatch", *(f"redlatch-{adapter}" for adapter in ADAPTERS)}
    assert modules < {file.parent.name for file in files}
    for file in files:
        project = ElementTree.parse(file).getroot()
        own = [project.find("version"), project.find("parent/version")]
        assert {found.text for found in own if found is not None} == {VERSION}, file
    text = (ROOT / "docs/java.md").read_text()
    named = re.findall(r"redlatch-(\d\S*)\.jar|<version>(.*)</version>", text)
    assert len(named) == 4 and {"".join(version) for version in named} == {VERSION}


@pytest.mark.usefixtures("verified")
def test_shedlock_may_be_older() -> None:
    done = run_maven(
        *("test", "-P", "oldest", "-pl", "redlatch,redlatch-shedlock", "-Dmaven.main.skip=true"),
        *("-Dtest=TaskTest,SpringTest", "-Dsurefire.failIfNoSpecifiedTests=false"),
    )
    assert done.returncode == 0, done.stdout


def test_without_the_library_it_is_said_what_to_do() -> None:
    done = run_maven("process-resources", "-Dredlatch.library=/nowhere/libredlatchjni.so")
    assert done.returncode != 0
    assert "/nowhere/libredlatchjni.so is not there: run scripts/setup" in done.stdout


# ---- the jar -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("verified")
def test_jar_has_what_it_needs_and_nothing_else() -> None:
    with zipfile.ZipFile(JAR) as jar:
        names = [name for name in jar.namelist() if not name.endswith("/")]
        manifest = jar.read("META-INF/MANIFEST.MF").decode()
    assert f"Implementation-Version: {VERSION}\r\n" in manifest
    natives = [name for name in names if name.endswith(".so")]
    assert len(natives) == 1
    assert re.fullmatch(r"io/redlatch/natives/\w+-linux-gnu/libredlatchjni\.so", natives[0])
    assert not any("Test" in name for name in names)
    known = re.compile(r"META-INF/(MANIFEST\.MF|LICENSE)|module-info\.class|io/redlatch/.+")
    assert [name for name in names if not known.fullmatch(name)] == []


@pytest.mark.usefixtures("verified")
def test_jar_runs_from_a_plain_class_path(tmp_path: Path) -> None:
    shutil.copy(JAR, tmp_path / "redlatch.jar")
    (tmp_path / "Program.java").write_text(PROGRAM)
    javac = [jdk_tool("javac"), "-Xlint:all", "-Werror", "-cp", "redlatch.jar"]
    run([*javac, "Program.java"], tmp_path)
    with Server(available_kinds()[0]) as server:
        command = [jdk_tool("java"), "-cp", "redlatch.jar:.", "Program", server.url]
        output = run(command, tmp_path)
    assert output == "ours: report HELD\nof the module null\n"


@pytest.mark.usefixtures("verified")
def test_jar_is_a_module(tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    shutil.copy(JAR, modules)
    sources = {"module-info.java": MODULE, "app/Program.java": "package app;\n\n" + PROGRAM}
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    javac = [jdk_tool("javac"), "-Xlint:all", "-Werror", "-p", "modules", "-d", "modules/program"]
    run([*javac, *sources], tmp_path)
    with Server(available_kinds()[0]) as server:
        path = "modules:modules/program"
        command = [jdk_tool("java"), "-p", path, "-m", "program/app.Program", server.url]
        output = run(command, tmp_path)
    assert output == "ours: report HELD\nof the module io.redlatch\n"


@pytest.mark.usefixtures("verified")
@pytest.mark.parametrize(("adapter", "module"), ADAPTERS.items())
def test_jar_of_an_adapter_is_a_module_without_the_rest(
    adapter: str, module: str, tmp_path: Path
) -> None:
    file = FOLDER / f"redlatch-{adapter}/target/redlatch-{adapter}-{VERSION}.jar"
    with zipfile.ZipFile(file) as jar:
        names = [name for name in jar.namelist() if not name.endswith("/")]
    package = module.replace(".", "/")
    known = re.compile(rf"META-INF/(MANIFEST\.MF|LICENSE)|module-info\.class|{package}/\w.+")
    assert [name for name in names if not known.fullmatch(name)] == []
    assert "META-INF/LICENSE" in names
    said = run([jdk_tool("jar"), "--describe-module", "--file", str(file)], tmp_path)
    assert re.search(rf"^{re.escape(module)}(@\S+)? (jar:|automatic)", said, re.MULTILINE), said
