# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A report that every host starts each night, and that one of them makes: once for each day. If it
fails there, another host may try.

    python3 nightly.py redis://localhost:6379 "$(date +%F)"
"""

import sys
from datetime import timedelta

import redlatch


def report(day: str) -> str:
    """The work. An exception would leave the next host a try."""
    return f"done: the report of {day}"


def report_once(client: redlatch.Client, day: str) -> str:
    # A host that starts during a run waits for its end.
    once = client.once("nightly", every=timedelta(days=2), key="{day}")
    # LockLost would mean that another host may have begun it, too.
    return once(report)(day) or f"skipped: the report of {day} is done"


def main() -> None:
    if len(sys.argv) != 3:
        print("usage: nightly.py URL DAY", file=sys.stderr)
        sys.exit(64)
    try:
        print(report_once(redlatch.connect(sys.argv[1]), sys.argv[2]))
    except redlatch.Error as error:
        sys.exit(f"nightly: {error}")


if __name__ == "__main__":
    main()
