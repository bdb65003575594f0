# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""sentinel: what a failover costs, in time and in grants."""

from __future__ import annotations

from report import Metric, Row
from topics import Bench, Column, Figures, rows_of, say

DOWN_AFTER_MS = 1000
_OUTAGE = (
    (Metric("no grant / the sentinels", "sentinels"), lambda r: r["service_s"] / r["sentinels_s"]),
    (
        Metric("after the sentinels", at_most=1000, unit="ms"),
        lambda r: 1000 * (r["service_s"] - r["sentinels_s"]),
    ),
    (Metric("no grant", unit="s"), lambda r: r["service_s"]),
    (Metric("the sentinels", unit="s"), lambda r: r["sentinels_s"]),
)


def _per_1000(r: Figures, name: str) -> float:
    return 1000 * r[name] / r["failovers"]


def _grants(is_confirmed: bool) -> tuple[Column, ...]:
    limit = 0 if is_confirmed else None
    return (
        (Metric("failovers", unit=""), lambda r: r["failovers"]),
        (Metric("granted", unit="per 1,000"), lambda r: _per_1000(r, "granted")),
        (
            Metric("granted twice", at_most=limit, unit="per 1,000"),
            lambda r: _per_1000(r, "again"),
        ),
        (Metric("held at once", unit="per 1,000"), lambda r: _per_1000(r, "at_once")),
        (Metric("longest overlap", unit="s"), lambda r: r["overlap_s"]),
    )


def sentinels(bench: Bench) -> list[Row]:
    rows = []
    common = {"down_after_ms": DOWN_AFTER_MS, "min_replicas": 0}
    for how, what in (("kill", "killed"), ("stop", "stopped")):
        case = f"primary {what}"
        say(f"sentinel {case}")
        with bench.session("sentinel", case, "none") as session:
            count = int(bench.pick(5, 30))
            rounds = session.run("failovers.py", case="outage", how=how, count=count, **common)
        rows += rows_of("sentinel", case, rounds, _OUTAGE)
    for how, what in (("cut", "no replica connected"), ("running", "replicas connected")):
        for least in (0, 1):
            case = f"grant before the kill, {what}, min_replicas {least}"
            say(f"sentinel {case}")
            asked = {**common, "min_replicas": least}
            with bench.session("sentinel", case, "none") as session:
                count = int(bench.pick(5, 100))
                rounds = session.run("failovers.py", case="grants", how=how, count=count, **asked)
            rows += rows_of("sentinel", case, rounds, _grants(least > 0))
    return rows
