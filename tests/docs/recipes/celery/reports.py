# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors

import time
from pathlib import Path

LIMIT_S = 60.0


def wait_for(file: str) -> None:
    end = time.monotonic() + LIMIT_S
    while not Path(file).exists():
        assert time.monotonic() < end, f"no {file}"
        time.sleep(0.01)


def write_report(day: str, fence: int) -> None:
    """Works until the driver says that it is enough."""
    with open(f"{day}.begun", "a") as file:
        file.write(f"{fence}\n")
    wait_for(f"{day}.end")
