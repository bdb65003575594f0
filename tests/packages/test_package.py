# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: scripts/package makes what it can, says how long it takes, and lists what is there.

Method: kinds that stand in for those that need a compiler.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from .packages import package, try_packages

EPOCH = 1_700_000_000


def make(monkeypatch: pytest.MonkeyPatch, out: Path, **kinds: object) -> None:
    like = package.KINDS["source"]
    made = {name: replace(like, make=how, parts=()) for name, how in kinds.items()}
    monkeypatch.setattr(package, "KINDS", made)
    hiredis = package.amalgamate.find_hiredis()
    package.make(package.Inputs(package.TOP, hiredis, EPOCH), list(kinds), out)


def good(inputs: object, out: Path) -> list[Path]:
    path = out / "good" / "package"
    path.parent.mkdir()
    path.write_text("made")
    return [path]


def bad(inputs: object, out: Path) -> list[Path]:
    (out / "bad").mkdir()
    (out / "bad" / "half").write_text("half")
    sys.exit("this compiler is too old")


def test_the_command_line_knows_the_same_kinds() -> None:
    text = (package.TOP / "scripts/package").read_text()
    assert f"known=({' '.join(package.KINDS)})" in text


def test_a_kind_that_fails_keeps_no_other_from_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "old").write_text("of an earlier run")
    with pytest.raises(SystemExit, match="not made: bad"):
        make(monkeypatch, tmp_path, bad=bad, good=good)
    assert "package.py: bad: this compiler is too old" in capfd.readouterr().err
    listed = (tmp_path / "SHA256SUMS").read_text()
    assert "good/package" in listed and "bad/" not in listed
    assert not (tmp_path / "bad").exists()


def test_a_trial_needs_a_wheel_for_its_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is one for each CPython of the machine that made them."""
    (tmp_path / "python").mkdir()
    (tmp_path / "python/redlatch-0.1.0-cp311-cp311-manylinux_2_28_x86_64.whl").touch()
    tried = []

    def run_trial(trial: try_packages.Trial, inputs: object) -> tuple[bool, str]:
        tried.append(trial.title)
        return True, ""

    monkeypatch.setattr(try_packages, "run_trial", run_trial)
    assert try_packages.try_kind("python", tmp_path, tmp_path)
    assert "Debian 12" in tried and "Debian 12, the sdist" in tried and "Debian 11" not in tried
    assert "Debian 11: not tried, because no wheel is for cp39" in capsys.readouterr().out


def test_trial_does_not_fetch_with_the_system_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/said\n')
    python.chmod(0o755)
    monkeypatch.setattr(try_packages, "tool_python", lambda root: python)
    try_packages.fetched("3.11", "one")(try_packages.Inputs(tmp_path, tmp_path, tmp_path))
    assert (tmp_path / "said").read_text().startswith("-m pip download ")


def test_a_kind_that_takes_long_is_seen_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(package, "SHOWN_EVERY_S", 0.01)

    def slow(inputs: object, out: Path) -> list[Path]:
        shown, end = "", time.monotonic() + 30
        while shown.count("package.py: slow, ") < 2:
            assert time.monotonic() < end
            time.sleep(0.01)
            shown += capfd.readouterr().err
        return []

    make(monkeypatch, tmp_path, slow=slow)
