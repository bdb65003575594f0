# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The scripts as the build makes them, and the numbers in them."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from support.resp import Argument

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "core" / "protocol" / "scripts"
NAMES = tuple(
    (
        "acquire release cancel serve_queue extend inspect force_release probe acquire_read "
        "extend_shared upgrade downgrade raise_fence detach attach vote once_begin once_forget "
        "recall"
    ).split()
)
HASH_NAMES = tuple(
    "acquire release cancel serve_queue inspect force_release extend_shared detach recall".split()
)
HASH_RW_NAMES = (*HASH_NAMES, "acquire_read", "upgrade", "downgrade")
# .. and in the permits format, with those that no other one has.
OWN_NAMES = ("set_cap", "stats")
PERMITS_NAMES = (*HASH_NAMES, "attach", *OWN_NAMES)
# What a RELEASE says of turns: when (by itself, never), how long, for how many grants it counts.
TURN: tuple[Argument, ...] = (-1, 150, 1)
NEVER: tuple[Argument, ...] = (0, 150, 1)
SHARED = "rl:shared"

TTL_MS = 30_000
PROVISIONAL_MS = 3_000
NO_LIMIT = 9_999_999_999_999
QUEUE_TTL_MS = 600_000
FENCE_TTL_MS = 3_600_000
FENCE_STEP = 32
MAX_ENTRIES = 256
MORE, REFUSED = 1, 2
CLOCK_SLACK_MS = 20  # TIME and the clock of expiry are read at different moments of one call.


def compose(target: Path, source: Path = SCRIPTS) -> dict[str, str]:
    """All texts as the build makes them: 'acquire', 'acquire.sharded', ... in `target`."""
    subprocess.run(
        [
            "cmake",
            f"-DSOURCE_DIR={source}",
            f"-DOUTPUT_DIR={target}",
            f"-DOUTPUT_CC={target / 'scripts_gen.cc'}",
            "-P",
            str(ROOT / "core" / "protocol" / "embed_scripts.cmake"),
        ],
        check=True,
        timeout=60,
    )
    return {path.name[: -len(".lua")]: path.read_text() for path in target.glob("*.lua")}


def aux_key(namespace: str, key: str, suffix: str) -> str:
    """A key in the slot of `key` and in the namespace; no two locks share one."""
    start = key.find("{")
    end = key.find("}", start + 1)
    if start >= 0 and end > start + 1:
        return f"{key}:rl1.{suffix}"
    return f"{namespace}{{{key}}}:rl1:{suffix}"


def check_of(key: str | bytes) -> str:
    data = key if isinstance(key, bytes) else key.encode()
    return hashlib.sha1(data).hexdigest()[:8]
