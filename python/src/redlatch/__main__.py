# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""`python3 -m redlatch` names the installed command."""

from __future__ import annotations

import os
import sys


def main() -> int:
    beside = os.path.join(os.path.dirname(sys.executable), "redlatch")
    command = beside if os.path.exists(beside) else "redlatch"
    # The arguments may have a password in a URL.
    print(f"redlatch: the command is not run by -m: {command} --help", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
