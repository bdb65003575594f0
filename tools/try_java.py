# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A program for Maven that takes a lock, and knows nothing but a repository with the packages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>report</groupId>
  <artifactId>report</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.release>17</maven.compiler.release>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <repositories>
    <repository>
      <id>packages</id>
      <url>file://{repository}</url>
    </repository>
  </repositories>
  <dependencyManagement>
    <dependencies>
      <dependency>
        <groupId>io.redlatch</groupId>
        <artifactId>redlatch-bom</artifactId>
        <version>{version}</version>
        <type>pom</type>
        <scope>import</scope>
      </dependency>
    </dependencies>
  </dependencyManagement>
  <dependencies>
    <dependency>
      <groupId>io.redlatch</groupId>
      <artifactId>redlatch</artifactId>
    </dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin>
        <artifactId>maven-resources-plugin</artifactId>
        <version>3.3.1</version>
      </plugin>
      <plugin>
        <artifactId>maven-compiler-plugin</artifactId>
        <version>3.13.0</version>
      </plugin>
      <plugin>
        <artifactId>maven-dependency-plugin</artifactId>
        <version>3.8.1</version>
        <configuration>
          <outputDirectory>lib</outputDirectory>
        </configuration>
      </plugin>
      <plugin>
        <groupId>org.codehaus.mojo</groupId>
        <artifactId>exec-maven-plugin</artifactId>
        <version>3.5.0</version>
        <configuration>
          <mainClass>report.Report</mainClass>
        </configuration>
      </plugin>
    </plugins>
  </build>
</project>
"""
MODULE = """\
module report {
  requires io.redlatch;
}
"""
PROGRAM = """\
package report;

import io.redlatch.Lease;
import io.redlatch.Redlatch;
import java.time.Duration;

public class Report {
  public static void main(String[] arguments) throws Exception {
    try (Redlatch client = Redlatch.connect(arguments[0]);
        Lease lease = client.lock("report").acquire(Duration.ofMinutes(1))) {
      System.out.println("held, fence " + lease.fence());
    }
  }
}
"""
GOALS = ("compile", "dependency:copy-dependencies", "exec:java")
# By Maven, from the class path, and as a module.
COMMANDS = f"""\
cd /project
mvn -B -q -Dmaven.repo.local=/maven {" ".join(GOALS)} -Dexec.args="$URL"
java -cp 'lib/*:target/classes' report.Report "$URL"
java -p lib:target/classes -m report/report.Report "$URL"
"""


def write_project(folder: Path, repository: str) -> Path:
    """The program, for the version that VERSION names. Returns the folder."""
    version = (TOP / "VERSION").read_text().strip()
    files = {
        "pom.xml": POM.format(repository=repository, version=version),
        "src/main/java/module-info.java": MODULE,
        "src/main/java/report/Report.java": PROGRAM,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def maven(folder: Path, local: Path, *arguments: str) -> str:
    """Run Maven in a project, with a local repository of its own. Returns what it prints."""
    command = ["mvn", "-B", "-q", f"-Dmaven.repo.local={local}", *GOALS, *arguments]
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"Maven failed:\n{done.stdout[-4000:]}")
    return done.stdout


def fetch_plugins(packages: Path, folder: Path) -> Path:
    """A local repository that has all that Maven needs for the program, but nothing of ours."""
    local = folder / "maven"
    maven(write_project(folder / "fetch", f"{packages}/java"), local, "-Dexec.skip")
    shutil.rmtree(local / "io/redlatch")
    return local


def mounts(packages: Path, work: Path) -> dict[str, Path]:
    """What the commands use in a root that has no network."""
    project = write_project(work / "project", "/packages/java")
    return {"/project": project, "/maven": fetch_plugins(packages, work)}
