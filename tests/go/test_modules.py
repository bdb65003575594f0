# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: each module under go/ passes its own tests, also under the race detector, and Go's vet.

Method: Go runs them, with the library of the build. They start their own servers.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from support.build import ROOT
from support.go import BUILD_S, PINNED, go_environment, go_fetch, run_go

MODULES = sorted(path.parent for path in (ROOT / "go").rglob("go.mod"))
# Of all tests of one package, without building it. Go ends them and says where they were.
TESTS_S = 300

each_module = pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)


def run(module: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    go_fetch(module)
    limit_s = BUILD_S + TESTS_S
    return run_go(module, *arguments, environment=go_environment(), limit_s=limit_s)


class Report:
    """What `go test -json` has written."""

    def __init__(self, text: str) -> None:
        self._events = [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def names(self, action: str) -> list[str]:
        """The tests that ended so."""
        return [e["Test"] for e in self._events if e["Action"] == action and "Test" in e]

    def _text(self, names: list[str | None]) -> str:
        events = [event for event in self._events if event.get("Test") in names]
        return "".join(event.get("Output", "") for event in events)

    def complaints(self) -> str:
        """The tests that failed, and what was said that is not of a test that passed."""
        all_names = {event.get("Test") for event in self._events}
        text = self._text(list(all_names - set(self.names("pass"))))
        return f"failed: {', '.join(self.names('fail'))}\n{text}"

    def skipped(self) -> list[str]:
        """The tests that skipped themselves, with the reasons that they gave."""
        found = []
        for name in self.names("skip"):
            lines = (line.strip() for line in self._text([name]).splitlines())
            reason = " ".join(line for line in lines if not line.startswith(("===", "---")))
            found.append(f"{name}: {reason}")
        return found


@each_module
def test_vet(module: Path) -> None:
    done = run(module, "vet", "./...")
    assert done.returncode == 0, done.stdout + done.stderr


@each_module
@pytest.mark.parametrize("options", [[], ["-race"]], ids=["plain", "race"])
def test_tests(module: Path, options: list[str]) -> None:
    # Go does not see that the library has changed, and would repeat what it said before.
    command = ["test", "-json", "-count=1", f"-timeout={TESTS_S}s", *options, "./..."]
    done = run(module, *command)
    report = Report(done.stdout)
    assert done.returncode == 0, report.complaints() + done.stderr
    assert report.names("pass"), "there are no tests"
    if skipped := report.skipped():
        pytest.skip("; ".join(skipped))


def test_a_build_without_cgo_says_what_it_needs() -> None:
    environment = {**os.environ, **PINNED, "CGO_ENABLED": "0"}
    done = run_go(ROOT / "go", "build", ".", environment=environment)
    assert done.returncode != 0
    assert "redlatch_needs_cgo" in done.stderr.splitlines()[1], done.stderr


SKIPPING = """\
package skipping

import "testing"

func TestA(t *testing.T) {
\tt.Parallel()
\tt.Run("part", func(t *testing.T) { t.Skip("needs", "more") })
}

func TestB(t *testing.T) { t.Parallel() }
"""


def test_skipped_tests_are_seen(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module skipping\n\ngo 1.21\n")
    (tmp_path / "skipping_test.go").write_text(SKIPPING)
    report = Report(run(tmp_path, "test", "-json").stdout)
    assert sorted(report.names("pass")) == ["TestA", "TestB"]
    assert report.skipped() == ["TestA/part: skipping_test.go:7: needs more"]
