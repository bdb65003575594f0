# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Retained locks, searched through by Spin: what test_model.py is for the grant protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from .spin import IS_LONG, search

MODEL = "retained.pml"

# What the bounds of a run are, and their defaults, is said at the top of the model. The lease ends
# before the time of retention in some runs, and after it in others.
ANY_TIME = "ACQUIRES=2 TICKS=3 RETAIN=3"
AFTER_FAULT = "ACQUIRES=2 TICKS=2 FAULTS=1 FORGED CUTS"
FORCED = "ACQUIRES=2 TICKS=2 FORCES=1"
TIMELY = "TIMELY LEASE=4 RETAIN=2"
TIMELY_FAULT = f"{TIMELY} FAULTS=1"
OLD_WAITER = f"{TIMELY} OLD=1 BLOCK=6"
LOST_FORCE = f"{TIMELY_FAULT} FORCES=1 CUTS ACQUIRES=3"
THREE = f"{TIMELY} N=3 ACQUIRES=3"

# (what is shown, options, least number of states)
HOLDS = [
    ("one believer, fences rise", ANY_TIME, 200_000),
    ("the same after a cut, a lost or forged recall", AFTER_FAULT, 500_000),
    ("the same after a force release", FORCED, 600_000),
    ("a waiter waits for the caller, and no longer", TIMELY, 30_000),
    ("or as long as the lost message costs", f"{TIMELY_FAULT} FORGED CUTS", 800_000),
    ("also if callers acquire in a loop", f"{TIMELY_FAULT} BLOCK=4 LOOP", 500_000),
    ("an old waiter waits for retain at most", OLD_WAITER, 2_000),
    ("the same if callers acquire in a loop", f"{OLD_WAITER} LOOP", 1_000),
    ("an old holder is no hindrance", f"{TIMELY} OLD=0", 1_000),
    ("a dead grant gives no local acquisition", f"{TIMELY} FORCES=1", 200_000),
    ("nor if the recall was lost with a connection", LOST_FORCE, 500_000),
    ("three clients in time", THREE, 80_000),
]
HOLDS_LONG = [
    ("long: more time for a fault", f"{AFTER_FAULT} TICKS=3", 1_200_000),
    ("long: more time after a force release", f"{FORCED} TICKS=3", 1_800_000),
    ("long: three acquisitions", "ACQUIRES=3 TICKS=3", 2_000_000),
    ("long: a cut and a force release", f"{TIMELY_FAULT} FORCES=1 CUTS", 4_000_000),
    ("long: three clients, four acquisitions", f"{TIMELY} N=3 ACQUIRES=4", 600_000),
]
# (what is wrong, options, the assertion that must fail)
BROKEN = [
    ("a recall of an idle lock is ignored", f"{TIMELY} NO_RECALL", "idle_is_paid"),
    ("nor does any time end it", f"{TIMELY} NO_RECALL NO_LIMIT", "idle_is_paid"),
    ("a recall that overtakes the grant is ignored", f"{TIMELY} NO_CROSSING", "idle_is_paid"),
    ("a recall is honoured while in use", f"{ANY_TIME} NO_USE", "one_believer"),
    ("retained past the end of the lease", f"{ANY_TIME} NO_VALIDITY", "one_believer"),
    ("a local acquisition has the fence before it", f"{ANY_TIME} NO_FENCE", "fresh_fence"),
    ("F leaves out the block", f"{ANY_TIME} NO_BLOCK", "fresh_fence"),
    ("no limit of time, and an old waiter", f"{OLD_WAITER} NO_LIMIT", "idle_is_paid"),
    ("the time counts from the local acquisition", f"{OLD_WAITER} LOOP NO_CAP", "waiter_is_served"),
    ("a try is busy while no caller has the lock", f"{TIMELY} NO_PATIENCE", "busy_is_true"),
    ("a grant by message is retained", f"{THREE} NO_EVIDENCE", "idle_is_paid"),
    ("force release recalls no holder", f"{TIMELY} FORCES=1 NO_FORCE_RECALL", "dead_grant_ends"),
    ("retained past its connection", f"{LOST_FORCE} NO_CUT_END", "dead_grant_ends"),
]


@pytest.mark.parametrize(
    "name,options,least", HOLDS + (HOLDS_LONG if IS_LONG else []), ids=lambda value: str(value)
)
def test_property_holds(tmp_path: Path, name: str, options: str, least: int) -> None:
    run = search(tmp_path, MODEL, name, options)
    assert run.failed == "" and run.is_complete
    assert run.states >= least, "the model does less than it did"


@pytest.mark.parametrize("name,options,assertion", BROKEN, ids=lambda value: str(value))
def test_defect_is_found(tmp_path: Path, name: str, options: str, assertion: str) -> None:
    assert search(tmp_path, MODEL, name, options).failed == assertion
