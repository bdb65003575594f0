# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Two builds compared in one run: this tree, and another commit, built in a worktree below build/.

Rounds of the two alternate, each pair in its own order, because a loaded machine changes from one
second to the next: a ratio is that of one pair. The other commit's library is measured by the
programs of this tree or, where its API is too old for them, by its own; a row that those lack is
named as missing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from report import Metric, Row
from servertime import server_time
from topics import Bench, Figures, Session, rows_of, say

ROOT = Path(__file__).resolve().parents[1]
_PROGRAMS = ("uncontended", "parallel", "handoff", "waiting", "local_pass", "renewal")

Measure = Callable[[Session, int], Figures]


class UnknownCommit(Exception):
    """The text of the option names no commit of this repository."""


@dataclass(frozen=True)
class Case:
    """What one round of one build measures; `figures` are names of the result, and as shown."""

    topic: str
    case: str
    program: str
    measure: Measure
    figures: tuple[tuple[str, str], ...]
    rounds: tuple[int, int]  # quick, and in full
    pin: str | None = None


@dataclass(frozen=True)
class Builds:
    here: Path
    there: Path
    commit: str


# ---- the other build -----------------------------------------------------------------------------


def resolve(text: str) -> str:
    """The commit that `text` names, twelve digits of it."""
    words = ["rev-parse", "--verify", "--quiet", "--short=12", "--end-of-options"]
    done = _git(ROOT, *words, f"{text}^{{commit}}")
    if done.returncode != 0:
        raise UnknownCommit(f"--against must be a commit of this repository (got {text!r})")
    return done.stdout.strip()


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, check=False
    )


def build(here: Path, commit: str) -> Builds:
    """Builds the commit in a worktree, which stays there for the next comparison."""
    tree = ROOT / "build" / f"against-{commit}"
    if not tree.exists():
        _git(ROOT, "worktree", "prune")
        done = _git(ROOT, "worktree", "add", "--detach", str(tree), commit)
        if done.returncode != 0:
            raise RuntimeError(f"no worktree of {commit}: {done.stderr.strip()}")
    for name in (".deps", ".venv"):
        if (ROOT / name).exists() and not (tree / name).exists():
            (tree / name).symlink_to(ROOT / name)
    options = {"BENCH": "ON", "EXAMPLES": "OFF", "JAVA": "OFF", "CLI": "OFF"}
    words = [f"-DREDLATCH_BUILD_{name}={value}" for name, value in options.items()]
    _put_programs(tree / "bench")
    if not _make(tree, words):
        say(f"{commit} cannot be built with the measuring programs of this tree: its own are used")
        _git(tree, "checkout", "--", "bench")
        if not _make(tree, words):
            raise RuntimeError(f"{commit} cannot be built")
    return Builds(here, tree / "build" / "release", commit)


def _make(tree: Path, options: list[str]) -> bool:
    targets = [f"bench_{name}" for name in _PROGRAMS]
    for words in (
        ["cmake", "--preset", "release", *options],
        ["cmake", "--build", "--preset", "release", "--target", *targets],
    ):
        if subprocess.run(words, cwd=tree, stdout=sys.stderr, check=False).returncode != 0:
            return False
    return True


def _put_programs(target: Path) -> None:
    """Of this tree; a file that is the same keeps its time, and is not compiled again."""
    target.mkdir(exist_ok=True)
    source = Path(__file__).parent
    for path in (source / "CMakeLists.txt", *source.glob("*.cc"), *source.glob("*.h")):
        copy = target / path.name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copy)


# ---- what is compared ----------------------------------------------------------------------------


def _uncontended(session: Session, number: int) -> Figures:
    return session.run(
        "uncontended",
        scripts=session.programs.scripts,
        rounds=1,
        cycles=2000,
        blocks=4,
        warmup=0.1,
        only="library",
    )[0]


def _server_time(session: Session, number: int) -> Figures:
    return {"server_us": server_time(session, "library", cycles=4000)}


def _parallel(threads: int) -> Measure:
    def measure(session: Session, number: int) -> Figures:
        return session.run(
            "parallel",
            scripts=session.programs.scripts,
            threads=threads,
            rounds=1,
            seconds=0.5,
            only="library",
        )[0]

    return measure


def _handoff(workers: int, burst: int) -> Measure:
    def measure(session: Session, number: int) -> Figures:
        return session.run(
            "handoff",
            kind="lock",
            workers=workers,
            processes=1,
            burst=burst,
            hold=0.001,
            warmup=0.1,
            seconds=1,
            pings=50,
        )[0]

    return measure


def _local_pass(threads: int) -> Measure:
    def measure(session: Session, number: int) -> Figures:
        return session.run(
            "local_pass", threads=threads, burst=16, hold=0, seconds=0.4
        )[0]

    return measure


def _waiting(session: Session, number: int) -> Figures:
    return session.run("waiting", waiters=10_000, own=0, seconds=15)[0]


def _renewal(session: Session, number: int) -> Figures:
    return session.run("renewal", leases=1000, ttl_ms=3000, settle=1.5, seconds=3)[0]


_CYCLE = (("library_p50_us", "p50"), ("library_p99_us", "p99"), ("library_cpu_us", "client CPU"))
_RATE = (("library_per_s", "rate"), ("library_cpu_us", "client CPU of a cycle"))
_TURN = (("p50_us", "p50"), ("p99_us", "p99"))

CASES = (
    Case("P1", "two cores", "uncontended", _uncontended, _CYCLE, (7, 15)),
    Case("P1", "one core", "uncontended", _uncontended, _CYCLE, (7, 15), pin="one"),
    *(
        Case("P2", f"{n} threads", "parallel", _parallel(n), _RATE, (7, 15))
        for n in (1, 8, 64)
    ),
    *(
        Case("P3", f"{n} workers, max_local_handoffs 0", "handoff", _handoff(n, 0), _TURN, (5, 11))
        for n in (2, 16, 100)
    ),
    Case("P4", "10,000 waiters, one lock", "waiting", _waiting,
         (("bytes_per_waiter", "memory"), ("start_us", "start")), (1, 3)),
    *(
        Case("P5", f"{n} threads, back to back", "local_pass", _local_pass(n),
             (("all_p50_us", "p50"),), (5, 11))
        for n in (2, 16)
    ),
    Case("P6", "1,000 leases of 3 s", "renewal", _renewal,
         (("cpu_us_per_renewal", "CPU of a renewal"),), (3, 7)),
    Case("P20", "one thread", "uncontended", _server_time,
         (("server_us", "server time of a cycle"),), (7, 15)),
)
TOPICS = tuple(dict.fromkeys(case.topic for case in CASES))


def _pair(session: Session, case: Case, builds: Builds, number: int) -> Figures:
    """One round of each build, the other one first in every second pair."""
    found: dict[str, Figures] = {}
    sides = [("here", builds.here), ("there", builds.there)]
    for side, folder in sides if number % 2 == 0 else reversed(sides):
        session.use(folder)
        found[side] = case.measure(session, number)
    return {
        f"{side}_{name}": found[side][name] for side in found for name, _ in case.figures
    }


def _ratio(name: str) -> Callable[[Figures], float]:
    return lambda r: r[f"here_{name}"] / r[f"there_{name}"]


def _columns(case: Case, commit: str) -> list[tuple[Metric, Callable[[Figures], float]]]:
    return [(Metric(f"{shown} / {commit}", commit), _ratio(name)) for name, shown in case.figures]


def compare(bench: Bench, builds: Builds, topic: str) -> list[Row]:
    rows = []
    for case in (case for case in CASES if case.topic == topic):
        pairs = []
        with bench.session(topic, case.case, case.pin) as session:
            say(f"{topic} {case.case}")
            try:
                for number in range(int(bench.pick(*case.rounds))):
                    pairs.append(_pair(session, case, builds, number))
            except (RuntimeError, KeyError) as error:  # Its own programs know older arguments.
                say(f"{topic} {case.case}: missing, {builds.commit} does not have it ({error})")
                continue
        rows += rows_of(topic, case.case, pairs, _columns(case, builds.commit))
    return rows
