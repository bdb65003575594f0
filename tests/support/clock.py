# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Servers whose wall clock differs from the true one, by tests/sim/clock_shim.c."""

from __future__ import annotations

import mmap
import struct
import threading
import time
from pathlib import Path

from .build import built


class Clock:
    """The wall clock of the servers that have its environment: it runs, `offset_s` from the true
    one."""

    def __init__(self, path: Path, offset_s: float) -> None:
        self._offset_s = offset_s
        path.write_bytes(bytes(8))
        self._file = path.open("r+b")
        self._page = mmap.mmap(self._file.fileno(), 8)
        self._is_over = threading.Event()
        self.env = {
            "REDLATCH_CLOCK": str(path),
            "LD_PRELOAD": str(built("tests/sim/clock_shim.so")),
        }
        self._set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _set(self) -> None:
        self._page[:8] = struct.pack("<q", int((time.time() + self._offset_s) * 1e6))

    def _run(self) -> None:
        while not self._is_over.wait(0.001):
            self._set()

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._page.close()
        self._file.close()
