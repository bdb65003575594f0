# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The lines of the conformance protocol, in and out: words, percent-encoding, nothing about locks.
"""

from __future__ import annotations

from urllib.parse import quote_from_bytes, unquote_to_bytes

from answers import Values
from redlatch import Status

PLAIN = "".join(map(chr, range(33, 127))).replace("%", "")


def decode(word: str) -> tuple[str, bytes]:
    key, _, text = word.partition("=")
    return key, unquote_to_bytes(text)


def encode(value: object) -> str:
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    return quote_from_bytes(value, safe=PLAIN) if isinstance(value, bytes) else str(value)


def line_of(status: Status, shown: dict[str, object]) -> str:
    return " ".join([status.name, *(f"{key}={encode(value)}" for key, value in shown.items())])


def parse(line: str) -> tuple[str, str, Values, int]:
    """Target, operation, values, and the number of the job, 0 for none."""
    words = line.split()
    job = int(words.pop()[1:]) if words[-1].startswith("&") else 0
    return words[0], words[1], dict(map(decode, words[2:])), job
