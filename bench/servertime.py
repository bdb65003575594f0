# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""P20: what the server spends on a cycle that nobody else wants, by its own INFO commandstats.

The floor is SET NX PX with a compare-and-delete script, on the same server in the same run.
"""

from __future__ import annotations

from report import Metric, Row
from topics import Bench, Figures, Session, rows_of, say

_WARMUP_CYCLES = 500
_COLUMNS = (
    (
        Metric("server time / raw", "plain", at_most=2.0),
        lambda r: r["library_us"] / r["plain_us"],
    ),
    (Metric("library", unit="us/cycle"), lambda r: r["library_us"]),
    (Metric("raw", unit="us/cycle"), lambda r: r["plain_us"]),
)


def server_time(session: Session, only: str, cycles: int, held: int = 0) -> float:
    """Microseconds of a cycle, one round; of commands that clients send, which include what their
    scripts call. What the library sends in addition while it opens is taken off."""
    used = []
    for count in (_WARMUP_CYCLES, _WARMUP_CYCLES + cycles):
        before = _used_us(session, only)
        session.run(
            "uncontended",
            scripts=session.programs.scripts,
            rounds=1,
            cycles=count,
            blocks=1,
            warmup=0,
            only=only,
            held=held,
        )
        used.append(_used_us(session, only) - before)
    return (used[1] - used[0]) / cycles


def _used_us(session: Session, only: str) -> float:
    times = session.server.command_us()
    # The library's SET commands are called by its scripts, and are part of their time.
    names = ("evalsha", "set") if only == "plain" else ("evalsha",)
    return sum(times.get(name, 0.0) for name in names)


def server_times(bench: Bench) -> list[Row]:
    say("P20")
    rounds: list[Figures] = []
    cycles = int(bench.pick(3000, 10_000))
    with bench.session("P20") as session:
        for number in range(int(bench.pick(7, 15))):
            order = ("plain", "library") if number % 2 == 0 else ("library", "plain")
            rounds.append({f"{only}_us": server_time(session, only, cycles) for only in order})
    return rows_of("P20", "one thread", rounds, _COLUMNS)
