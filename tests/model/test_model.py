# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The grant protocol, searched through by Spin: every order of events within the bounds.

Each property holds, and each defect built into the model breaks one, with the assertion that is
meant for it. A run that explored less than it should is no evidence, and fails. Retained locks have
a model of their own: test_retained.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .spin import IS_LONG, search

MODEL = "grant.pml"

# What the bounds of a run are, and their defaults, is said at the top of the model.
ANY_TIME = "FENCED CANCELS=1"
THREE_ACQUIRES = "FENCED ACQUIRES=3"
AFTER_FAULT = "FENCED FAULTS=1 CUTS CRASHES"
OLD_COPY = "NO_PAUSE LEASE=1 TICKS=2 FAULTS=1 CUTS"
TIMELY = "TIMELY LEASE=4 ACQUIRES=3 FAULTS=1"
TIMELY_CRASH = f"{TIMELY} N=3 CRASHES"

# (what is shown, options, least number of states)
HOLDS = [
    ("one believer, fences rise, no stale write", ANY_TIME, 150_000),
    ("the same after a cut or a crash", f"{AFTER_FAULT} TICKS=2", 300_000),
    ("no stale write without fences or pauses", "NO_PAUSE CANCELS=1", 80_000),
    ("order, when an old copy of a request arrives", OLD_COPY, 300_000),
    ("idle no longer than a crash costs", TIMELY_CRASH, 80_000),
    ("idle no longer than a pause costs", f"{TIMELY} PAUSES", 50_000),
    ("idle no longer than a cut costs", f"{TIMELY} CUTS", 60_000),
]
HOLDS_LONG = [
    ("long: three acquisitions", THREE_ACQUIRES, 600_000),
    ("long: a cut or a crash", AFTER_FAULT, 1_200_000),
    ("long: three clients", "FENCED N=3 ACQUIRES=3 TICKS=2", 2_500_000),
    ("long: two old copies of requests", f"{OLD_COPY} FAULTS=2", 1_500_000),
    ("long: two faults in time", f"{TIMELY} FAULTS=2 CUTS CRASHES PAUSES", 1_500_000),
    ("long: four acquisitions in time", f"{TIMELY} ACQUIRES=4 CUTS CRASHES PAUSES", 300_000),
    ("long: three clients, a pause in time", f"{TIMELY} N=3 PAUSES", 500_000),
    ("long: three clients, a cut in time", f"{TIMELY} N=3 CUTS", 400_000),
]
# (what is wrong, options, the assertion that must fail)
BROKEN = [
    ("no fence at the resource, and a pause", "CANCELS=1", "no_stale_write"),
    ("a late push is believed", f"{ANY_TIME} NO_CLOCK_RULE", "one_believer"),
    ("a lease is counted from its answer", f"{ANY_TIME} NO_SEND_TIME", "one_believer"),
    ("RELEASE deletes whoever holds", f"{THREE_ACQUIRES} NO_OWNER", "one_believer"),
    ("a hand-off keeps the fence", f"{ANY_TIME} NO_FENCE", "fresh_fence"),
    ("EXTEND brings back what was gone", f"{THREE_ACQUIRES} NO_GAP", "fresh_fence"),
    ("a retry asks for a new ticket", f"{THREE_ACQUIRES} NO_SAME_TICKET", "served_in_order"),
    ("an old copy's later place stays", f"{OLD_COPY} NO_WAY_BACK", "served_in_order"),
    ("a retry is another queue entry", f"{OLD_COPY} NO_SAME_MEMBER", "granted_once"),
    ("a push gives the whole lease", f"{TIMELY_CRASH} NO_CLAIM", "idle_is_paid"),
    ("a dead waiter is not skipped", f"{TIMELY_CRASH} NO_SKIP", "idle_is_paid"),
    ("nobody says when to look again", f"{TIMELY_CRASH} NO_TELL", "idle_is_paid"),
    ("waiters do not poll", f"{TIMELY_CRASH} NO_POLL", "idle_is_paid"),
    ("queued without another look", f"{TIMELY_CRASH} NO_RECHECK", "idle_is_paid"),
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
