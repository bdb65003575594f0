# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""What is measured: one function for each target, which returns its rows.

A raw result of a program is a dictionary of figures in the unit that its name ends in. All
comparisons are made here, between figures of one round of one run.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from machine import Load, Pins, Programs, Server
from report import Metric, Row

Figures = dict[str, float]
Column = tuple[Metric, Callable[[Figures], float]]


@dataclass
class Bench:
    """What all topics need; `conditions` and `raw` are filled as they run."""

    build: Path
    server_binary: str
    pin: str
    is_quick: bool
    machine: dict[str, object]
    conditions: list[dict[str, object]] = field(default_factory=list)
    raw: list[dict[str, object]] = field(default_factory=list)
    server_version: str = ""

    def pick(self, quick: float, full: float) -> float:
        return quick if self.is_quick else full

    def session(
        self, topic: str, case: str = "", pin: str | None = None, servers: int = 1
    ) -> Session:
        return Session(self, topic, case, Pins.of(pin or self.pin), servers)


class Session:
    """Fresh servers, mostly one, and the programs against it; the load of others is watched."""

    def __init__(self, bench: Bench, topic: str, case: str, pins: Pins, servers: int) -> None:
        self._bench = bench
        self._topic = topic
        self._case = case
        self._pins = pins
        self.servers = [Server(bench.server_binary, pins.server) for _ in range(servers)]
        self.server = self.servers[0]
        self.use(bench.build)
        bench.server_version = self.server.version()
        self._load = Load(self.servers, pins)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._bench.conditions.append(
            {
                "topic": self._topic,
                "case": self._case,
                "server_core": self._pins.server,
                "client_core": self._pins.client,
                "others_percent": self._load.percent(),
            }
        )
        for server in self.servers:
            server.__exit__()

    def use(self, build: Path) -> None:
        """From here on the programs are those of this build."""
        self.programs = Programs(build, self._pins.client)

    def run(self, program: str, **arguments: object) -> list[Figures]:
        """The rows of its result, or the one result that it has."""
        process = self.programs.start(program, {"port": self.server.port, **arguments})
        output, _ = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"{program} failed")
        return self.keep(program, arguments, json.loads(output))

    def keep(
        self, program: str, arguments: dict[str, object], result: dict[str, object]
    ) -> list[Figures]:
        record = {"topic": self._topic, "case": self._case, "program": program}
        shown = {name: value for name, value in arguments.items() if name != "scripts"}
        self._bench.raw.append({**record, "arguments": shown, "result": result})
        rows = result.get("rows", [result])
        assert isinstance(rows, list)
        return rows


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def rows_of(
    topic: str,
    case: str,
    rounds: Sequence[Figures],
    columns: Iterable[Column],
) -> list[Row]:
    return [Row.of(topic, case, metric, map(figure, rounds)) for metric, figure in columns]


# ---- P1 -----------------------------------------------------------------------------------------

_UNCONTENDED = (
    (
        Metric("p50 / same scripts", "scripts", at_most=1.10),
        lambda r: r["library_p50_us"] / r["scripts_p50_us"],
    ),
    (
        Metric("p50 / raw", "plain", at_most=1.20),
        lambda r: r["library_p50_us"] / r["plain_p50_us"],
    ),
    (
        Metric("same scripts / raw", "plain"),
        lambda r: r["scripts_p50_us"] / r["plain_p50_us"],
    ),
    (Metric("ping / raw", "plain"), lambda r: r["ping_p50_us"] / r["plain_p50_us"]),
    (
        Metric("p99 / same scripts", "scripts"),
        lambda r: r["library_p99_us"] / r["scripts_p99_us"],
    ),
    (
        Metric("CPU / same scripts", "scripts"),
        lambda r: r["library_cpu_us"] / r["scripts_cpu_us"],
    ),
    (
        Metric("semaphore / mutex", "library", at_most=1.15),
        lambda r: r["permit_p50_us"] / r["library_p50_us"],
    ),
    (
        Metric("eight names / one", "library", at_most=1.5),
        lambda r: r["eight_p50_us"] / r["library_p50_us"],
    ),
    (Metric("library p50", unit="us"), lambda r: r["library_p50_us"]),
)


def uncontended(bench: Bench) -> list[Row]:
    rows = []
    modes = ("two", "one") if bench.pin == "two" else (bench.pin,)
    for mode in modes:
        case = {"two": "two cores", "one": "one core", "none": "not pinned"}[mode]
        say(f"P1 {case}")
        with bench.session("P1", case, mode) as session:
            rounds = session.run(
                "uncontended",
                scripts=session.programs.scripts,
                rounds=int(bench.pick(9, 15)),
                cycles=int(bench.pick(800, 4000)),
                blocks=int(bench.pick(4, 20)),
                warmup=bench.pick(0.3, 1),
                only="all",
            )
        rows += rows_of("P1", case, rounds, _UNCONTENDED)
    return rows


# ---- P2 -----------------------------------------------------------------------------------------

_PARALLEL = (
    (
        Metric("rate / pipeline", "pipeline", at_least=0.8),
        lambda r: r["library_per_s"] / r["pipeline_per_s"],
    ),
    (
        Metric("rate / raw", "plain", at_least=1.8),
        lambda r: r["library_per_s"] / r["plain_per_s"],
    ),
    (
        Metric("rate / same scripts, own connections", "scripts"),
        lambda r: r["library_per_s"] / r["scripts_per_s"],
    ),
    (Metric("client CPU", at_most=11, unit="us/cycle"), lambda r: r["library_cpu_us"]),
    (Metric("CPU / raw", "plain"), lambda r: r["library_cpu_us"] / r["plain_cpu_us"]),
    (Metric("switches", unit="per cycle"), lambda r: r["library_switches"]),
    (Metric("library", unit="cycles/s"), lambda r: r["library_per_s"]),
)


def parallel(bench: Bench) -> list[Row]:
    rows = []
    for threads in (64,) if bench.is_quick else (1, 8, 64):
        say(f"P2 {threads} threads")
        with bench.session("P2", f"{threads} threads") as session:
            rounds = session.run(
                "parallel",
                scripts=session.programs.scripts,
                threads=threads,
                rounds=int(bench.pick(3, 9)),
                seconds=bench.pick(0.25, 1),
                only="all",
            )
        columns = [c for c in _PARALLEL if threads == 64 or c[0].floor or c[0].unit == "cycles/s"]
        if threads != 64:
            columns = [(_without_target(metric), figure) for metric, figure in columns]
        rows += rows_of("P2", f"{threads} threads", rounds, columns)
    return rows


def _without_target(metric: Metric) -> Metric:
    return Metric(metric.name, metric.floor, unit=metric.unit)


# ---- P3 -----------------------------------------------------------------------------------------


def ping(r: Figures) -> float:
    return (r["ping_after_pause_us_before"] + r["ping_after_pause_us_after"]) / 2


def busy_ping(r: Figures) -> float:
    return (r["ping_us_before"] + r["ping_us_after"]) / 2


def _handoff_columns(cell: dict[str, object], is_quick: bool) -> list[Column]:
    is_floor = cell["kind"] == "blpop"
    is_mixed = cell["burst"] != 0  # most turns are local, so p50 is, and p99 is the server's
    limits = [None] * 3 if is_floor else [5, None if is_mixed else 3, 15 if is_mixed else None]
    columns: list[Column] = [
        (
            Metric("p50 / ping", "PING after a pause of 1 ms", at_most=limits[0]),
            lambda r: r["p50_us"] / ping(r),
        ),
        (Metric("p50 / busy ping", "PING back to back"), lambda r: r["p50_us"] / busy_ping(r)),
        (Metric("p99 / p50", "p50", at_most=limits[1]), lambda r: r["p99_us"] / r["p50_us"]),
        (
            Metric("p99 / ping", "PING after a pause of 1 ms", at_most=limits[2]),
            lambda r: r["p99_us"] / ping(r),
        ),
        (Metric("p50", unit="us"), lambda r: r["p50_us"]),
    ]
    if is_floor:
        return columns
    return columns + [
        (
            Metric("commands", "one release", at_most=1.1, unit="per hand-off"),
            lambda r: (r["scripts"] - r["enqueues"]) / r["handoffs"],
        ),
        (
            # In a short run where it is cut counts for more than who was favoured.
            Metric("Jain", at_least=None if is_quick else 0.99, worst_counts=True, unit=""),
            lambda r: r["jain"],
        ),
        (
            Metric("fewest turns", at_least=1, worst_counts=True, unit=""),
            lambda r: r["fewest_turns"],
        ),
        (Metric("barged", at_most=0, worst_counts=True, unit=""), lambda r: r["barged"]),
    ]


def _handoff_cells(bench: Bench) -> list[dict[str, object]]:
    cells: list[dict[str, object]] = []
    for workers in (2, 16, 100) if bench.is_quick else (2, 16, 100, 1000):
        cells.append({"kind": "lock", "workers": workers, "processes": 1, "burst": 0})
        cells.append({"kind": "lock", "workers": workers, "processes": 1, "burst": 16})
        spread = {"kind": "lock", "workers": max(workers, 4), "processes": 4}
        cells.append({**spread, "burst": 0})
        cells.append({**spread, "burst": 16})
        if workers <= 100:
            cells.append({"kind": "blpop", "workers": workers, "processes": 1, "burst": 0})
    return cells


def _handoff_case(cell: dict[str, object]) -> str:
    place = "1 process" if cell["processes"] == 1 else f"{cell['processes']} processes"
    what = "BLPOP token" if cell["kind"] == "blpop" else f"max_local_handoffs {cell['burst']}"
    return f"{cell['workers']} workers, {place}, {what}"


def handoff(bench: Bench) -> list[Row]:
    cells = _handoff_cells(bench)
    results: list[list[Figures]] = [[] for _ in cells]
    with bench.session("P3") as session:
        for number in range(int(bench.pick(1, 3))):
            for cell, rounds in zip(cells, results):
                say(f"P3 round {number + 1}: {_handoff_case(cell)}")
                # Everybody needs several turns, or fairness would only show where we cut.
                seconds = 15 if cell["workers"] == 1000 else bench.pick(0.6, 4)
                rounds += session.run(
                    "handoff",
                    **cell,
                    hold=0.001,
                    warmup=bench.pick(0.1, 0.5),
                    seconds=seconds,
                    pings=int(bench.pick(100, 400)),
                )
    rows = []
    for cell, rounds in zip(cells, results):
        rows += rows_of("P3", _handoff_case(cell), rounds, _handoff_columns(cell, bench.is_quick))
    return rows


# ---- P4, endurance ------------------------------------------------------------------------------

_WAITING = (
    (
        Metric("memory", at_most=1024, unit="bytes per waiter"),
        lambda r: r["bytes_per_waiter"],
    ),
    (Metric("threads", at_most=3, unit=""), lambda r: r["threads"]),
    (Metric("connections", at_most=2, unit=""), lambda r: r["connections"]),
    (
        Metric("commands", at_most=1, unit="per name in 15 s"),
        lambda r: r["commands_per_name"],
    ),
    (Metric("start", unit="us"), lambda r: r["start_us"]),
    (Metric("CPU", unit="ms per s"), lambda r: r["cpu_ms_per_s"]),
)


def waiting(bench: Bench) -> list[Row]:
    rows = []
    for own, case in ((0, "10,000 waiters, one lock"), (1, "10,000 waiters, a lock each")):
        say(f"P4 {case}")
        with bench.session("P4", case) as session:
            seconds = bench.pick(15, 45)
            rounds = session.run("waiting", waiters=10_000, own=own, seconds=seconds)
        columns = list(_WAITING)
        if own:
            columns[0] = (Metric("memory", unit="bytes per waiter"), columns[0][1])
        else:
            columns.append((Metric("served", unit="us each"), lambda r: r["served_us"]))
        rows += rows_of("P4", case, rounds, columns)
    return rows


def endurance(bench: Bench) -> list[Row]:
    cycles = int(bench.pick(50_000, 1_000_000))
    say(f"endurance {cycles:,}")
    columns = (
        (Metric("memory grown", at_most=4096, unit="bytes"), lambda r: r["bytes_grown"]),
        (Metric("threads grown", at_most=0, unit=""), lambda r: r["threads_grown"]),
        (Metric("descriptors grown", at_most=0, unit=""), lambda r: r["descriptors_grown"]),
        (Metric("memory", unit="bytes"), lambda r: r["bytes"]),
        (Metric("a cycle", unit="us"), lambda r: r["cycle_us"]),
    )
    with bench.session("endurance") as session:
        rounds = session.run("endurance", cycles=cycles, names=100)
    return rows_of("endurance", f"{cycles:,} cycles", rounds, columns)


# ---- P5 -----------------------------------------------------------------------------------------


def local_pass(bench: Bench) -> list[Row]:
    rows = []
    with bench.session("P5") as session:
        for threads in (2, 16):
            for hold, name, limit in ((0, "back to back", 5), (0.001, "after 1 ms", 15)):
                case = f"{threads} threads, {name}"
                say(f"P5 {case}")
                rounds = []
                for _ in range(int(bench.pick(1, 5))):
                    rounds += session.run(
                        "local_pass",
                        threads=threads,
                        burst=16,
                        hold=hold,
                        seconds=bench.pick(0.4, 2),
                    )
                columns = (
                    (Metric("p50", at_most=limit, unit="us"), lambda r: r["all_p50_us"]),
                    (
                        Metric("p50 / futex", "a futex wake"),
                        lambda r: r["all_p50_us"] / r["futex_p50_us"],
                    ),
                    (Metric("local p50", unit="us"), lambda r: r["local_p50_us"]),
                    (Metric("local p99", unit="us"), lambda r: r["local_p99_us"]),
                    (Metric("local share", unit=""), lambda r: r["local_count"] / r["all_count"]),
                    (Metric("futex p50", unit="us"), lambda r: r["futex_p50_us"]),
                )
                rows += rows_of("P5", case, rounds, columns)
    return rows


# ---- P6 -----------------------------------------------------------------------------------------


def renewal(bench: Bench) -> list[Row]:
    cases = [("1,000 leases of 3 s", 1000, 3000, 1.5, bench.pick(3, 12))]
    if not bench.is_quick:
        # Past the first wave of renewals, which is as sharp as the acquisitions were.
        cases.append(("10,000 leases of 30 s", 10_000, 30_000, 12.0, 12))
    columns = (
        (
            Metric("CPU", "one core", at_most=1, unit="%"),
            lambda r: r["cpu_share"] * 100,
        ),
        (Metric("threads", at_most=1, unit=""), lambda r: r["library_threads"]),
        (Metric("CPU", unit="us per renewal"), lambda r: r["cpu_us_per_renewal"]),
        (Metric("renewals", unit="per s"), lambda r: r["renewals_per_s"]),
        (Metric("switches", unit="per s"), lambda r: r["switches_per_s"]),
    )
    rows = []
    for case, leases, ttl_ms, settle, seconds in cases:
        say(f"P6 {case}")
        with bench.session("P6", case) as session:
            rounds = session.run(
                "renewal", leases=leases, ttl_ms=ttl_ms, settle=settle, seconds=seconds
            )
        rows += rows_of("P6", case, rounds, columns)
    return rows


# ---- P9 -----------------------------------------------------------------------------------------

_TASKS = (
    (
        Metric("rate / redis-py", "redis-py", at_least=5),
        lambda r: r["acquire_per_s"] / r["redis_py_per_s"],
    ),
    (
        Metric("`async with` rate / redis-py", "redis-py"),
        lambda r: r["with_per_s"] / r["redis_py_per_s"],
    ),
    (
        Metric("rate / pipeline", "pipeline"),
        lambda r: r["acquire_per_s"] / r["pipeline_per_s"],
    ),
    (Metric("CPU", unit="us/cycle"), lambda r: r["acquire_cpu_us"]),
    (Metric("redis-py CPU", unit="us/cycle"), lambda r: r["redis_py_cpu_us"]),
    (Metric("redis-py", unit="cycles/s"), lambda r: r["redis_py_per_s"]),
    (Metric("rate", unit="cycles/s"), lambda r: r["acquire_per_s"]),
)


def tasks(bench: Bench) -> list[Row]:
    # What redis-py is quickest with.
    asked = {"tasks": 1000, "connections": 50, "warmup": bench.pick(0.3, 1)}
    seconds = bench.pick(0.5, 2)
    rounds = []
    say("P9")
    with bench.session("P9") as session:
        for number in range(int(bench.pick(3, 7))):
            scripts = session.programs.scripts
            floor = {"scripts": scripts, "threads": 64, "rounds": 1, "seconds": seconds}
            (pipeline,) = session.run("parallel", **floor, only="pipeline")
            (ours,) = session.run("tasks.py", round=number, seconds=seconds, **asked)
            rounds.append({**pipeline, **ours})
    return rows_of("P9", "asyncio, 1,000 tasks", rounds, _TASKS)


# ---- P10, P11 -----------------------------------------------------------------------------------


def takeover(bench: Bench) -> list[Row]:
    say("P10")
    metric = Metric("beyond the lease", "its end", at_most=20, worst_counts=True, unit="ms")
    with bench.session("P10") as session:
        rounds = session.run(
            "takeover", runs=int(bench.pick(2, 7)), ttl_ms=2000, waiters=4
        )
    return rows_of("P10", "holder killed, 4 waiters", rounds, [(metric, lambda r: r["beyond_ms"])])


def _restart_once(session: Session, burst: int, down_s: float) -> Figures:
    arguments: dict[str, object] = {"processes": 4, "threads": 25, "burst": burst}
    port = {"port": session.server.port}
    process = session.programs.start("restart", {**port, **arguments})
    assert process.stdout is not None
    if process.stdout.readline() != "waiting\n":
        raise RuntimeError("bench_restart failed before the restart")
    session.server.kill()
    time.sleep(down_s)
    back_at = session.server.start()
    output, _ = process.communicate()
    if process.returncode != 0:
        raise RuntimeError("bench_restart failed after the restart")
    result = json.loads(output)
    result["first_s"] = result.pop("first_ns") / 1e9 - back_at
    result["last_s"] = result.pop("last_ns") / 1e9 - back_at
    return session.keep("restart", {**arguments, "down_s": down_s}, result)[0]


def restart(bench: Bench) -> list[Row]:
    columns = (
        (
            Metric("all served", "PING answered", at_most=1, worst_counts=True, unit="s"),
            lambda r: r["last_s"],
        ),
        (Metric("first served", "PING answered", unit="s"), lambda r: r["first_s"]),
        (
            Metric("served", at_least=100, worst_counts=True, unit=""),
            lambda r: r["served"],
        ),
    )
    rows = []
    for burst in (0, 16):
        case = f"100 waiters, 4 processes, max_local_handoffs {burst}"
        say(f"P11 {case}")
        with bench.session("P11", case) as session:
            rounds = [
                _restart_once(session, burst, bench.pick(1, 2) + 0.1 * number)
                for number in range(int(bench.pick(1, 5)))
            ]
        rows += rows_of("P11", case, rounds, columns)
    return rows


# ---- instructions -------------------------------------------------------------------------------


def _instructions(session: Session, only: str, cycles: int) -> float:
    with TemporaryDirectory() as folder:
        wrapper = (
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={folder}/out",
            f"--log-file={folder}/log",
        )
        arguments: dict[str, object] = {
            "port": session.server.port,
            "scripts": session.programs.scripts,
            "rounds": 1,
            "blocks": 1,
            "cycles": cycles,
            "warmup": 0,
            "only": only,
        }
        process = session.programs.start("uncontended", arguments, wrapper)
        process.communicate()
        found = re.search(r"Collected : (\d+)", Path(folder, "log").read_text())
        if process.returncode != 0 or found is None:
            raise RuntimeError("valgrind failed")
        return float(found[1])


def instructions(bench: Bench) -> list[Row]:
    """User-space instructions of a cycle: the difference of two runs, so that starting is not
    counted."""
    figures: Figures = {}
    few, many = 500, 2500
    with bench.session("callgrind", pin="none") as session:
        for only in ("plain", "scripts", "library"):
            say(f"callgrind {only}")
            difference = _instructions(session, only, many) - _instructions(session, only, few)
            figures[only] = difference / (many - few)
        session.keep("uncontended", {"only": "callgrind"}, dict(figures))
    columns = (
        (Metric("library", unit="instructions"), lambda r: r["library"]),
        (Metric("same scripts", unit="instructions"), lambda r: r["scripts"]),
        (Metric("library / same scripts", "scripts"), lambda r: r["library"] / r["scripts"]),
    )
    return rows_of("callgrind", "acquire and release", [figures], columns)


TOPICS: dict[str, Callable[[Bench], list[Row]]] = {
    "P1": uncontended,
    "P2": parallel,
    "P3": handoff,
    "P4": waiting,
    "P5": local_pass,
    "P6": renewal,
    "P9": tasks,
    "P10": takeover,
    "P11": restart,
    "endurance": endurance,
}
