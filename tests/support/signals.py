# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Signals of the programs under test are not those of whoever started the tests."""

from __future__ import annotations

import signal


def stop_ignoring() -> None:
    """Whoever started the tests in the background, or with nohup, made these ignored: for a program
    under test as well, which rightly would not undo that."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
