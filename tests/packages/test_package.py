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

from .packages import package

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
