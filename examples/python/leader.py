# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Several processes stand by, and one of them leads until it ends, or loses the term: then it stops
its work and stands by again.

    python3 leader.py redis://localhost:6379 [ID]
"""

import sys

import redlatch


def work(fence: int) -> None:
    """A process that is paused in a step continues it: the fence lets others refuse that."""
    print("works, fence", fence, flush=True)


def lead(term: redlatch.Term) -> None:
    print("leads, fence", term.fence, flush=True)
    # A loss ends the wait of 0.1 s at once.
    while not term.wait_lost(timeout=0.1):
        work(term.fence)


def main() -> None:
    if len(sys.argv) not in (2, 3):
        print("usage: leader.py URL [ID]", file=sys.stderr)
        sys.exit(64)
    id = sys.argv[2] if len(sys.argv) == 3 else None  # None: host and process id
    try:
        # The next one leads at the latest 3 s after this one has crashed. It stands by as long as
        # it takes, also while the server is away.
        election = redlatch.connect(sys.argv[1]).election("leader", id=id, ttl=3)
        while True:
            try:
                with election.term() as term:
                    lead(term)
            except redlatch.LockLost as error:
                print("stopped:", error, flush=True)
    except redlatch.Error as error:
        sys.exit(f"leader: {error}")


if __name__ == "__main__":
    main()
