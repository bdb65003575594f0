# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A job that several hosts start at the same time, and that one of them does: a report, here the
number of lines of the input. Whoever finds the lock taken skips it.

    python3 skip.py redis://localhost:6379 < access.log
"""

import sys

import redlatch


def report() -> None:
    print(f"done: {sum(1 for _ in sys.stdin.buffer)} lines")


def main() -> None:
    if len(sys.argv) != 2:
        print("usage: skip.py URL < FILE", file=sys.stderr)
        sys.exit(64)
    try:
        lease = redlatch.connect(sys.argv[1]).acquire("report", timeout=0)  # One try.
        if lease is None:
            print("skipped: another host does it")
            return
        # Raises LockLost at its end if the lock was lost: somebody else may have done it too.
        with lease:
            print("begun", flush=True)
            report()
    except redlatch.Error as error:
        sys.exit(f"skip: {error}")


if __name__ == "__main__":
    main()
