# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Several processes stand by, and one of them leads until it ends, or loses the lead: then it stops
its work and stands by again.

    python3 leader.py redis://localhost:6379
"""

import sys

import redlatch


def work(fence: int) -> None:
    """A process that is paused in a step goes on with it: the fence lets others refuse that."""
    print("works, fence", fence, flush=True)


def lead(lease: redlatch.Lease) -> None:
    print("leads, fence", lease.fence, flush=True)
    # A loss ends the wait of 0.1 s at once.
    while not lease.wait_lost(timeout=0.1):
        work(lease.fence)


def main() -> None:
    if len(sys.argv) != 2:
        print("usage: leader.py URL", file=sys.stderr)
        sys.exit(64)
    try:
        # The next one leads at the latest 3 s after this one has crashed. It stands by as long as
        # it takes, also while the server is away.
        leader = redlatch.connect(sys.argv[1]).lock("leader", ttl=3)
        while True:
            try:
                with leader as lease:
                    lead(lease)
            except redlatch.LockLost as error:
                print("stopped:", error, flush=True)
    except redlatch.Error as error:
        sys.exit(f"leader: {error}")


if __name__ == "__main__":
    main()
