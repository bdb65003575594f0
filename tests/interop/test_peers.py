# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the processes of this suite do what its tests rely on.

Method: their clocks against ours; Redisson against Redisson.
"""

from __future__ import annotations

import time

import pytest
from support.servers import Server
from support.wait import wait_until

from .conftest import Farm, count_attempts, is_in_soon
from .test_redisson import KINDS, theirs_of


@pytest.mark.parametrize("language", ["python", "go", "node", "java"])
def test_all_have_one_clock(processes: Farm, language: str) -> None:
    """Goal: times of different processes can be compared.
    Method: the time of another one, between two of ours."""
    peer = processes.peer(language)
    before = time.monotonic_ns()
    theirs = peer.ok("clock").value
    assert before <= theirs <= time.monotonic_ns()


@pytest.mark.parametrize("kind", KINDS)
def test_redisson_excludes_itself(
    processes: Farm, one_server: Server, name: str, kind: str
) -> None:
    """Goal: owners are threads, one waits for another, and only the holder gives back.
    Method: two owners, a waiter, a release by the wrong one."""
    side = theirs_of(processes, one_server, name, kind)
    assert side.tries(owner="one")
    assert not side.tries(owner="two")
    assert "IllegalMonitorState" in side.call("release", owner="two").error
    assert side.ok("state", owner="one")["is_held"]
    before = count_attempts(one_server)
    waiting = side.waits(owner="two")
    wait_until(lambda: count_attempts(one_server) >= before + 2)
    assert is_in_soon(waiting, side.release(owner="one"))
    side.release(owner="two")


def test_redisson_reads_and_writes(processes: Farm, one_server: Server, name: str) -> None:
    """Goal: readers share, a writer does not, and a writer may go down to reading.
    Method: owners of read and write locks."""
    read = theirs_of(processes, one_server, name, "read")
    write = theirs_of(processes, one_server, name, "write")
    assert write.tries(owner="one")
    assert not read.tries(owner="two")
    write.ok("downgrade", owner="one")
    assert read.tries(owner="two")
    assert not write.tries(owner="two")
    read.release(owner="one")
    read.release(owner="two")
    assert write.tries(owner="two")
    write.release(owner="two")


def test_redissons_two_kinds_do_not_exclude_each_other(
    processes: Farm, one_server: Server, name: str
) -> None:
    """Goal: a plain lock of theirs keeps no reader out, so ours in that form cannot either.
    Method: a plain lock and a read lock of two owners on one key."""
    plain = theirs_of(processes, one_server, name, "rlock")
    read = theirs_of(processes, one_server, name, "read")
    assert plain.tries(owner="one")
    assert read.tries(owner="two")
    assert plain.ok("force") is True
