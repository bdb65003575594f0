# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""How a lock is held, or waited for."""

from __future__ import annotations

from typing import Literal

from . import _core

HoldMode = Literal["read", "write"]
WaitMode = Literal["read", "write", "upgrade"]

WRITE = _core.constant(b"RL_MODE_WRITE", 0)
READ = _core.constant(b"RL_MODE_READ", 0)
UPGRADE = _core.constant(b"RL_MODE_UPGRADE", 0)
