# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A pool of three: of all processes that are started, on many hosts, three work at a time, and the
others wait for their turn. The work is a report, here the number of lines of the input.

    python3 pool.py redis://localhost:6379 < access.log
"""

import sys

import redlatch

POOL_SIZE = 3


def report() -> None:
    print(f"done: {sum(1 for _ in sys.stdin)} lines")


def main() -> None:
    if len(sys.argv) != 2:
        print("usage: pool.py URL < FILE", file=sys.stderr)
        sys.exit(64)
    try:
        # LockLost at the end would mean that more than three may have worked at the same time.
        with redlatch.connect(sys.argv[1]).semaphore("pool", POOL_SIZE):
            print("begun", flush=True)
            report()
    except redlatch.Error as error:
        sys.exit(f"pool: {error}")


if __name__ == "__main__":
    main()
