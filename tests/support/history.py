# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Histories of locks: the records of a test's processes, and the program that checks them.

    def test_x(history, spawn):  # actors that start from now on write records
        ...
        history.judge()

tests/history/README.md lists what is checked.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

from .build import ROOT, alone
from .go import find_go, run_go
from .record import Record

SOURCES = ROOT / "tests/history"
PROGRAM = ROOT / "build/history/history"
JUDGE_S = 300.0


@cache
def program() -> Path:
    """The checkers, built if anything has changed."""
    with alone("history"):
        done = run_go(SOURCES, "build", "-o", str(PROGRAM), ".", limit_s=JUDGE_S)
    assert done.returncode == 0, done.stderr
    return PROGRAM


def note_that_nothing_was_judged() -> None:
    if path := os.environ.get("REDLATCH_COULD_NOT_RUN"):
        with open(path, "a", encoding="utf-8") as file:
            file.write("the checkers of histories: need Go 1.21 or later\n")


class HistoryBroken(AssertionError):
    """A promise was broken. scripts/test never repeats the test: see repeatable.py."""


class History:
    """A folder for the records of one test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_judged = False
        # Records of the test itself: killed processes, tokens in queues.
        self.record = Record(folder / "driver.log", "driver")

    def findings(
        self, *, is_fifo: bool = False, calm_ns: int = 0, serve_ms: int = 0
    ) -> tuple[int, str]:
        """The exit code, 0 for a valid history, and the report."""
        command = [str(program()), "check", f"-calm-ns={calm_ns}", f"-serve-ms={serve_ms}"]
        command += ["-fifo"] if is_fifo else []
        command += sorted(str(path) for path in self.folder.iterdir())
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=JUDGE_S
        )
        return done.returncode, done.stdout + done.stderr

    def judge(self, *, is_fifo: bool = False, calm_ns: int = 0, serve_ms: int = 0) -> None:
        """Fail if the history is not valid. `is_fifo`: also check the order of waiters, where
        nothing failed. `serve_ms`: from `calm_ns` on, a waiter is served within this time."""
        self.is_judged = True
        if find_go() is None:
            note_that_nothing_was_judged()
            return
        status, report = self.findings(is_fifo=is_fifo, calm_ns=calm_ns, serve_ms=serve_ms)
        if status != 0:
            raise HistoryBroken(report)
