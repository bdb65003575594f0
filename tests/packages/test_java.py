# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what a central repository asks of the artifacts of java/ is in their POMs, and the BOM and
the loader know all artifacts and all platforms. The long runs build the artifacts."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

from support.build import ROOT

from .packages import natives, package_java

JAVA = ROOT / "java"
VERSION = (ROOT / "VERSION").read_text().strip()
POM_OF = {"redlatch-bom": JAVA / "redlatch-bom/pom.xml", "redlatch-parent": JAVA / "pom.xml"}
POM_OF |= {name: JAVA / name / "pom.xml" for name in package_java.JARS}

# Which each POM must have itself, and which of its parents may have, too.
OWN = ("modelVersion", "artifactId", "name", "description")
INHERITED = (
    *("groupId", "version", "url", "licenses/license/name", "licenses/license/url"),
    *("developers/developer/name", "scm/connection", "scm/url"),
)


def with_parents(name: str) -> list[ElementTree.Element]:
    """The POM of an artifact, that of its parent, and so on."""
    found = [ElementTree.parse(POM_OF[name]).getroot()]
    while (parent := found[-1].findtext("parent/artifactId")) is not None:
        assert found[-1].findtext("parent/version") == VERSION
        found.append(ElementTree.parse(POM_OF[parent]).getroot())
    return found


def test_poms_are_complete() -> None:
    for name in POM_OF:
        poms = with_parents(name)
        assert poms[-1].findtext("artifactId") == "redlatch-bom"
        assert [what for what in OWN if not poms[0].findtext(what)] == [], name
        values = {what: [pom.findtext(what) for pom in poms] for what in INHERITED}
        values = {what: [text for text in texts if text] for what, texts in values.items()}
        assert [what for what, texts in values.items() if not texts] == [], name
        assert values["developers/developer/name"] == ["The redlatch authors"]
        assert values["licenses/license/name"] == ["Apache-2.0"]
        # What a child inherits must not grow by the child's name.
        if len(poms) == 1:
            assert "child.project.url.inherit.append.path" in poms[0].attrib


def test_the_bom_names_every_jar_and_nothing_else() -> None:
    """A program that imports it takes every version in it."""
    (bom,) = with_parents("redlatch-bom")
    managed = {
        (one.findtext("groupId"), one.findtext("artifactId"), one.findtext("version"))
        for one in bom.findall("dependencyManagement/dependencies/dependency")
    }
    jars = package_java.JARS
    assert managed == {("io.redlatch", name, "${project.version}") for name in jars}
    modules = {one.text for one in with_parents("redlatch-parent")[0].findall("modules/module")}
    assert modules == {"redlatch-bom", *jars}


def test_the_loader_knows_the_platforms_that_are_built() -> None:
    text = (JAVA / "redlatch/src/main/java/io/redlatch/internal/Platform.java").read_text()
    released = re.search(r"RELEASED =\s+List\.of\((.*?)\);", text, re.DOTALL)
    assert released is not None
    assert set(re.findall(r'"(.+?)"', released[1])) == set(natives.TARGETS)


def test_the_checksums_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jar"
    path.write_bytes(b"contents")
    assert package_java.with_checksums(path)[0] == path
    for algorithm in ("sha1", "md5"):
        said = subprocess.check_output([f"{algorithm}sum", "a.jar"], cwd=tmp_path, text=True)
        assert (tmp_path / f"a.jar.{algorithm}").read_text() == said.split()[0]
