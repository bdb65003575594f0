# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A transfer between two accounts: both are locked together, or none, so that a transfer the other
way round at the same time cannot deadlock. An account is a file with a number.

    python3 transfer.py redis://localhost:6379 accounts anna bert 5
"""

import sys
from pathlib import Path

import redlatch


def transfer(folder: Path, source: str, target: str, amount: int) -> str:
    balances = {name: int((folder / name).read_text()) for name in (source, target)}
    if balances[source] < amount:
        return f"refused: {source} has only {balances[source]}"
    balances[source] -= amount
    balances[target] += amount
    for name, balance in balances.items():
        (folder / name).write_text(f"{balance}\n")
    return f"moved {amount}: {source} has {balances[source]}, {target} has {balances[target]}"


def main() -> None:
    if len(sys.argv) != 6:
        print("usage: transfer URL FOLDER FROM TO AMOUNT", file=sys.stderr)
        sys.exit(64)
    url, folder, source, target, amount = sys.argv[1:]
    try:
        client = redlatch.connect(url)
        # The order of the names does not matter.
        with client.lock_all([f"account/{source}", f"account/{target}"]) as lease:
            said = transfer(Path(folder), source, target, int(amount))
            lease.check()
        print(said)
    except (redlatch.Error, OSError, ValueError) as error:
        sys.exit(f"transfer: {error}")


if __name__ == "__main__":
    main()
