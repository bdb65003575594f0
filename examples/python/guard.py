# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Several processes add to the number in a file; a lock keeps them from losing additions.

    python3 guard.py redis://localhost:6379 counter.txt 100
"""

import sys
from pathlib import Path

import redlatch


def add_one(path: Path) -> None:
    count = int(path.read_text() or 0) if path.exists() else 0
    path.write_text(f"{count + 1}\n")


def main() -> None:
    if len(sys.argv) < 3:
        print("usage: guard.py URL FILE [TIMES]", file=sys.stderr)
        sys.exit(64)
    times = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    try:
        counter = redlatch.connect(sys.argv[1]).lock("counter", timeout=30)
        for _ in range(times):
            # Raises LockLost at its end if the lock was lost: somebody else may have been inside.
            with counter:
                add_one(Path(sys.argv[2]))
    except redlatch.Error as error:
        sys.exit(f"guard: {error}")


if __name__ == "__main__":
    main()
