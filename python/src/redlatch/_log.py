# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The log of a client, line by line, to the logger `redlatch`."""

from __future__ import annotations

import logging

from . import _core

# Without a handler: a program without a logging setup sees warnings on standard error.
logger = logging.getLogger("redlatch")

_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO}

# A wait wakes up for the log: it may say that the thread waits for itself.
LOG_SLICE_S = 5

_log_next = _core.client_log_next


def pass_on_log(client: _core.Client) -> None:
    """Write the lines of the log since the last call. Every call of a client ends with this."""
    while line := _log_next(client):
        level, _, text = line.decode("utf-8", "replace").partition(" ")
        logger.log(_LEVELS.get(level, logging.WARNING), "%s", text)
