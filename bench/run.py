#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Measure redlatch against floors of the same run: tables on standard output, all figures as JSON.

    scripts/bench --quick           some minutes
    scripts/bench                   everything, and longer
    scripts/bench --only P1,P3      some of it
    scripts/bench --against COMMIT  this tree and that commit, in alternate rounds

The targets are those of docs/benchmarks.md. An absolute time says little about another machine; a
ratio of two figures of one run does. `!` marks a missed target, (a-b) the range over the rounds.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import os
import shutil
import sys
from pathlib import Path

import against
import machine
from bindings import bindings
from clusters import clusters
from goroutines import goroutines
from permits import permits
from quorums import quorums
from report import Row, table
from sentinels import sentinels
from servertime import server_times
from sharing import sharing
from topics import TOPICS, Bench, instructions, say

TOPICS["P7"] = quorums
TOPICS["P8"] = bindings
TOPICS["P12"] = goroutines
TOPICS["P20"] = server_times
TOPICS["permits"] = permits
TOPICS["RW"] = sharing
TOPICS["sentinel"] = sentinels
TOPICS["cluster"] = clusters

ROOT = Path(__file__).resolve().parents[1]

TITLES = {
    "P1": "acquire and release, nobody else wants the lock, one thread",
    "P2": "threads with keys of their own, one client",
    "P3": "hand-off, 1 ms in the critical section",
    "P4": "waiting",
    "P5": "hand-off between threads of one process",
    "P6": "leases held and renewed",
    "P7": "acquire and release on most of five servers",
    "P8": "acquire and release from Python, Go and Java, nobody else wants the lock; then two do",
    "P9": "asyncio tasks with keys of their own, one client",
    "P10": "the holder's process is killed, lease 2 s",
    "P11": "the server restarts without its data",
    "P12": "goroutines with keys of their own, one client",
    "P20": "the server's time for acquire and release, nobody else wants the lock",
    "permits": "semaphores",
    "RW": "readers and writers of one lock",
    "sentinel": "failovers of a primary with two replicas and three sentinels",
    "cluster": "a node of a cluster, compared with a server of its own",
    "endurance": "what grows",
    "callgrind": "instructions in user space",
}


def parse(words: list[str]) -> argparse.Namespace:
    default_build = os.environ.get("REDLATCH_BUILD_DIR", str(ROOT / "build" / "release"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="shorter, and fewer cases")
    parser.add_argument("--only", help=f"of {','.join(TOPICS)}")
    parser.add_argument(
        "--against",
        metavar="COMMIT",
        help=f"ratios to that commit, built below build/, of {','.join(against.TOPICS)}",
    )
    parser.add_argument("--callgrind", action="store_true", help="count instructions, too")
    parser.add_argument("--json", type=Path, help="default: bench/result.json in the build folder")
    parser.add_argument(
        "--pin",
        choices=("two", "one", "none"),
        default="two",
        help="server and clients on a core each, on the same one, or anywhere (two)",
    )
    parser.add_argument("--server", default="redis-server", help="program of the server")
    parser.add_argument("--build", type=Path, default=Path(default_build), help="build folder")
    args = parser.parse_args(words)
    if args.against is not None:
        try:
            args.against = against.resolve(args.against)
        except against.UnknownCommit as error:
            parser.error(str(error))
    known = list(TOPICS) if args.against is None else list(against.TOPICS)
    args.topics = known if args.only is None else [name for name in args.only.split(",") if name]
    if unknown := set(args.topics) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if shutil.which(args.server) is None:
        parser.error(f"{args.server} is not there")
    if args.callgrind and shutil.which("valgrind") is None:
        parser.error("--callgrind needs valgrind")
    if not (args.build / "bench" / "bench_uncontended").exists():
        parser.error(f"{args.build} has no benchmarks: configure with -DREDLATCH_BUILD_BENCH=ON")
    return args


def warn_of_others(bench: Bench) -> None:
    for session in bench.conditions:
        loads = session["others_percent"]
        assert isinstance(loads, dict)
        if worst := {name: load for name, load in loads.items() if load >= 10}:
            shown = ", ".join(f"{name}: {load} %" for name, load in worst.items())
            say(f"{session['topic']} {session['case']}: others used the machine ({shown})")


def document(args: argparse.Namespace, bench: Bench, rows: list[Row], date: str) -> str:
    return json.dumps(
        {
            "date": date,
            "commit": machine.commit(ROOT),
            **({"against": args.against} if args.against else {}),
            "server": bench.server_version,
            "machine": bench.machine,
            "pin": args.pin,
            "is_quick": args.quick,
            "rows": [row.as_json() for row in rows],
            "conditions": bench.conditions,
            "raw": bench.raw,
        },
        indent=1,
    )


def main() -> int:
    args = parse(sys.argv[1:])
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    bench = Bench(args.build, args.server, args.pin, args.quick, machine.description())
    rows: list[Row] = []
    if args.against is None:
        measurements = [(name, TOPICS[name]) for name in args.topics]
    else:
        builds = against.build(args.build, args.against)
        measurements = [
            (name, functools.partial(against.compare, builds=builds, topic=name))
            for name in args.topics
        ]
    if args.callgrind:
        measurements.append(("callgrind", instructions))
    for name, measure in measurements:
        found = measure(bench)
        rows += found
        print(f"## {name}: {TITLES[name]}\n\n{table(found)}\n", flush=True)
    compared = f" against {args.against}" if args.against else ""
    print(f"{bench.server_version}, commit {machine.commit(ROOT)}{compared}, {date}")
    warn_of_others(bench)
    target = args.json or args.build / "bench" / "result.json"
    target.write_text(document(args, bench, rows, date) + "\n")
    missed = [row for row in rows if row.is_met is False]
    say(f"{len(missed)} targets missed; all figures: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
