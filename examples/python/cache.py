# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A cache that many processes read at the same time, and that one of them refreshes when it is too
old, while the others wait for the new value.

    python3 cache.py redis://localhost:6379 cache.txt
"""

import os
import sys
import time
from pathlib import Path

import redlatch

MAX_AGE_S = 60


def is_fresh(path: Path) -> bool:
    return path.exists() and path.stat().st_mtime + MAX_AGE_S > time.time()


def refresh(path: Path) -> None:
    """Something slow, such as a query."""
    time.sleep(1)
    path.write_text(f"value of process {os.getpid()}\n")
    print("refreshed")


def read_or_refresh(cache: redlatch.RWLock, path: Path) -> str:
    with cache.read():
        if is_fresh(path):
            return path.read_text()
    # Raises LockLost at its end if the lock was lost: somebody else may have refreshed it too.
    with cache.write():
        # Another may have refreshed it while this one waited.
        if not is_fresh(path):
            refresh(path)
        return path.read_text()


def main() -> None:
    if len(sys.argv) != 3:
        print("usage: cache.py URL FILE", file=sys.stderr)
        sys.exit(64)
    try:
        cache = redlatch.connect(sys.argv[1]).rwlock("cache")
        print(read_or_refresh(cache, Path(sys.argv[2])), end="")
    except redlatch.Error as error:
        sys.exit(f"cache: {error}")


if __name__ == "__main__":
    main()
