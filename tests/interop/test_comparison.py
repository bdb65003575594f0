# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: each cell of the table in README that compares lock libraries is true.

Method: the real libraries on a real server, a proof for each cell (proofs.py). A cell without a
proof, or with other words than its proof has, fails.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.build import ROOT
from support.servers import Server

from .bench import Bench, Proof
from .conftest import Farm
from .proofs import (
    api_of_node,
    api_of_redis_py,
    api_of_redsync,
    command,
    has_no_fence,
    hears_nothing,
    is_a_plain_mutex,
    is_not_renewed,
    is_of_go,
    is_of_java,
    is_of_node,
    is_of_python,
    is_overtaken,
    locks_of_redis_py,
    node_aborts_a_signal,
    node_renews_in_using,
    polls,
    redisson_has_a_fair_lock,
    redisson_has_a_fenced_lock,
    redisson_is_reentrant_and_shared,
    redisson_notifies_with_keyspace_events,
    redisson_renews,
    redisson_shows_a_random_value,
    redisson_waits_silently,
    redlatch_cancels_and_stops,
    redlatch_has_fences,
    redlatch_is_of_all,
    redlatch_is_reentrant_and_shared,
    redlatch_renews,
    redlatch_serves_in_order,
    redlatch_shows_the_holder,
    redlatch_waits_silently,
    shows_a_random_value,
)

COLUMNS = ["redis-py", "redsync", "Redisson", "node-redlock", "redlatch"]
HEADER = f"| | {' | '.join(COLUMNS)} |"

HEX, BASE64 = "[0-9a-f]{32}", "[A-Za-z0-9+/]{22}=="
NOTIFIED = "a waiter is notified, it does not poll"
ORDER = "first come, first served"
RENEWED = "renewed while the holder works"
LOSS = "the holder is notified of a loss"
FENCE = "a fencing token"
HOLDER = "a waiter sees who holds the lock"
MODES_OF_LOCKS = "reentrant and read-write locks"
LANGUAGES = "one lock for programs in"

PROOFS: dict[tuple[str, str], tuple[str, Proof]] = {
    (NOTIFIED, "redis-py"): ("polls each 0.1 s", polls("redis-py", "SET", 0.1, 0.2)),
    (NOTIFIED, "redsync"): ("polls each 50 to 250 ms", polls("redsync", "SET", 0.05, 0.25)),
    (NOTIFIED, "Redisson"): ("yes", redisson_waits_silently),
    (NOTIFIED, "node-redlock"): (
        "polls each 100 to 300 ms",
        polls("node-redlock", "EVALSHA", 0.1, 0.3),
    ),
    (NOTIFIED, "redlatch"): ("yes", redlatch_waits_silently),
    (ORDER, "redis-py"): ("no", is_overtaken("redis-py")),
    (ORDER, "redsync"): ("no", is_overtaken("redsync")),
    (ORDER, "Redisson"): ("`getFairLock`", redisson_has_a_fair_lock),
    (ORDER, "node-redlock"): ("no", is_overtaken("node-redlock")),
    (ORDER, "redlatch"): ("yes, between clients", redlatch_serves_in_order),
    (RENEWED, "redis-py"): ("no", is_not_renewed("redis-py")),
    (RENEWED, "redsync"): ("no", is_not_renewed("redsync")),
    (RENEWED, "Redisson"): ("yes", redisson_renews),
    (RENEWED, "node-redlock"): ("in `using`", node_renews_in_using),
    (RENEWED, "redlatch"): ("yes", redlatch_renews),
    (LOSS, "redis-py"): ("no: its release fails", hears_nothing("redis-py", api_of_redis_py)),
    (LOSS, "redsync"): ("no: its release fails", hears_nothing("redsync", api_of_redsync)),
    (LOSS, "Redisson"): (
        "`addListener`, if the server sends keyspace events",
        redisson_notifies_with_keyspace_events,
    ),
    (LOSS, "node-redlock"): ("`using` aborts a signal", node_aborts_a_signal),
    (LOSS, "redlatch"): ("yes: cancels a task, stops a command", redlatch_cancels_and_stops),
    (FENCE, "redis-py"): ("no", has_no_fence("redis-py", HEX)),
    (FENCE, "redsync"): ("no", has_no_fence("redsync", BASE64)),
    (FENCE, "Redisson"): ("`getFencedLock`", redisson_has_a_fenced_lock),
    (FENCE, "node-redlock"): ("no", has_no_fence("node-redlock", HEX)),
    (FENCE, "redlatch"): ("yes", redlatch_has_fences),
    (HOLDER, "redis-py"): ("no", shows_a_random_value("redis-py", HEX)),
    (HOLDER, "redsync"): ("no", shows_a_random_value("redsync", BASE64)),
    (HOLDER, "Redisson"): ("no", redisson_shows_a_random_value),
    (HOLDER, "node-redlock"): ("no", shows_a_random_value("node-redlock", HEX)),
    (HOLDER, "redlatch"): ("yes: host, process, label", redlatch_shows_the_holder),
    (MODES_OF_LOCKS, "redis-py"): ("no", is_a_plain_mutex("redis-py", locks_of_redis_py)),
    (MODES_OF_LOCKS, "redsync"): ("no", is_a_plain_mutex("redsync", api_of_redsync)),
    (MODES_OF_LOCKS, "Redisson"): ("yes", redisson_is_reentrant_and_shared),
    (MODES_OF_LOCKS, "node-redlock"): ("no", is_a_plain_mutex("node-redlock", api_of_node)),
    (MODES_OF_LOCKS, "redlatch"): ("yes", redlatch_is_reentrant_and_shared),
    (LANGUAGES, "redis-py"): ("Python", is_of_python),
    (LANGUAGES, "redsync"): ("Go", is_of_go),
    (LANGUAGES, "Redisson"): ("Java", is_of_java),
    (LANGUAGES, "node-redlock"): ("Node", is_of_node),
    (LANGUAGES, "redlatch"): ("Python, Go, Java, C, shell", redlatch_is_of_all),
}


def cells_of(page: str) -> dict[tuple[str, str], str]:
    """The cells of the table, by row and column."""
    _, _, below = page.partition(f"{HEADER}\n")
    found = {}
    for line in below.splitlines()[1:]:
        if not line.startswith("| "):
            break
        row, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        found.update({(row, column): cell for column, cell in zip(COLUMNS, cells, strict=True)})
    return found


def test_each_cell_of_the_table_has_its_proof() -> None:
    cells = cells_of((ROOT / "README.md").read_text())
    assert cells == {cell: text for cell, (text, _) in PROOFS.items()}


@pytest.mark.parametrize("cell", PROOFS, ids=" - ".join)
def test_cell(
    cell: tuple[str, str], processes: Farm, one_server: Server, name: str, tmp_path: Path
) -> None:
    _, proof = PROOFS[cell]
    with one_server.connect() as connection:
        proof(Bench(processes, one_server, connection, name, tmp_path))
