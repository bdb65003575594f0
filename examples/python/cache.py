# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A value that many processes want, and that takes long to compute: one of them computes it, the
others get its value, and so does every caller for a minute.

    python3 cache.py redis://localhost:6379
"""

import os
import sys
import time

import redlatch

TTL_S = 60
WAIT_S = 30


def compute() -> bytes:
    """Something slow, such as a query. An exception would reach the waiting callers, too."""
    print("computed", flush=True)
    time.sleep(1)
    return f"value of process {os.getpid()}".encode()


def main() -> None:
    if len(sys.argv) != 2:
        print("usage: cache.py URL", file=sys.stderr)
        sys.exit(64)
    try:
        client = redlatch.connect(sys.argv[1])
        print(client.single_flight("cache", TTL_S, compute, timeout=WAIT_S).decode())
    except redlatch.Error as error:
        sys.exit(f"cache: {error}")


if __name__ == "__main__":
    main()
