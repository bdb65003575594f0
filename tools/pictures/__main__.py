#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Makes the pictures of README from real runs, in about 20 s.

    .venv/bin/python tools/pictures          writes docs/pictures/*.svg
    .venv/bin/python tools/pictures FOLDER   writes them there

Needs a built `redlatch` command, a server, and dash. What is drawn are the recorded commands,
outputs and times. In the recording of the terminal, the name of this host and the process id of the
holder are replaced.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import handoff  # noqa: E402
import terminal  # noqa: E402


def main(words: list[str]) -> None:
    folder = Path(words[0]) if words else ROOT / "docs/pictures"
    folder.mkdir(parents=True, exist_ok=True)
    for name, files in (
        ("handoff", handoff.draw(handoff.record())),
        ("terminal", terminal.draw(terminal.record())),
    ):
        for suffix, text in files:
            (folder / f"{name}{suffix}.svg").write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
