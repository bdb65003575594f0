# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Candidates of one election, and what the command says about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.wait import wait_until

from .harness import HOLD, Cli, Running


class Election:
    def __init__(self, cli: Cli, name: str) -> None:
        self.cli, self.name = cli, name

    def start(self, *options: str, words: Sequence[str] = HOLD, **more: Any) -> Running:
        return self.cli.start("elect", *options, self.name, "--", *words, **more)

    def lead(self, *options: str, words: Sequence[str] = HOLD, **more: Any) -> Running:
        """Returns when its COMMAND runs."""
        running = self.start(*options, words=words, **more)
        try:
            running.out.wait_for("ready")
        except BaseException:
            print(running.err.text)
            running.kill()
            raise
        return running

    def leader(self) -> dict[str, Any]:
        """Empty without a leader."""
        done = self.cli.run("leader", "-o", "json", self.name)
        assert done.returncode == (0 if done.stdout else 1), done
        answer: dict[str, Any] = json.loads(done.stdout or "{}")
        return answer

    def wait_for_leader(self, other_than: int = 0) -> dict[str, Any]:
        """Until there is one of another term."""

        def found() -> dict[str, Any] | None:
            leader = self.leader()
            return leader if leader and leader["term"] != other_than else None

        answer = wait_until(found)
        assert answer
        return answer

    def wait_for_candidates(self, count: int) -> None:
        wait_until(lambda: len(self.leader().get("candidates", [])) == count)


def events_in(file: Path) -> list[dict[str, Any]]:
    """Without a line that is being written."""
    whole, _, _ = file.read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]
