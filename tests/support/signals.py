# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Programs under test do not inherit ignored signals from the shell that started the tests."""

from __future__ import annotations

import signal


def stop_ignoring() -> None:
    """A shell ignores these signals for tests that it starts in the background or with nohup. The
    programs under test would inherit that, and rightly would not undo it."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
