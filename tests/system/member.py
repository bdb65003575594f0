# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""What test_languages.py has in Python: for some ms it takes one of ten locks, holds it for a
moment and gives it back, over and over. How that went stands in its record.

member.py URL NAME MS SEED
"""

from __future__ import annotations

import random
import sys
import time

import redlatch
from support import record

KEYS = 10
ONE_TRY_IN = 8
LONGEST_HOLD_S = 0.005
WAIT_S = 20
TTL_S = 1


def hold_once(client: redlatch.Client, name: str, choose: random.Random) -> None:
    key = f"{name}\0{choose.randrange(KEYS)}"
    wait = 0 if choose.randrange(ONE_TRY_IN) == 0 else WAIT_S
    with client.lock(key, ttl=TTL_S, timeout=wait):
        time.sleep(choose.random() * LONGEST_HOLD_S)


def main() -> None:
    url, name, ms, seed = sys.argv[1:]
    end = time.monotonic() + int(ms) / 1000
    choose = random.Random(int(seed))
    record.install()
    with redlatch.connect(url) as client:
        while time.monotonic() < end:
            try:
                hold_once(client, name, choose)
            except redlatch.Error:
                pass  # Somebody else has it, or it was lost on a busy machine.


if __name__ == "__main__":
    main()
