# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Random programs, judged by the model; a failing one is shrunk to the text of a case.

PYTHONPATH=tests python3 -m conformance.randomized --seed 7 --steps 500
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from support.servers import Server, available_kinds

from .case import Case, parse
from .driver import CaseFailed, World, run_steps
from .model import (
    CLIENT_OPERATIONS,
    LOCK_OPERATIONS,
    SERVER_OPERATIONS,
    SHARED_OPERATIONS,
    Answer,
    Model,
    Operation,
)
from .runners import PREPARE, capabilities

CLIENTS = ["a", "b", "c"]
# Two locks of each client on a name of each kind, so that clients also wait for themselves.
KINDS = {"rnd_h": "reentrant", "rnd_r": "rw", "rnd_x": "mutex"}
LOCKS = {f"{c}.{name[-1]}{i}": name for c in CLIENTS for name in KINDS for i in (1, 2)}
# Of the reentrant ones: owners with several locks of one client, and of several clients.
OWNERS = {"a.h1": "o1", "a.h2": "o1", "b.h1": "o1", "b.h2": "o2", "c.h1": "o2", "c.h2": "o3"}
GRANT_SECONDS = 10.0
SHRINK_SECONDS = 40.0


@dataclass
class Program:
    """What is done. What it answers is the model's business, so that any part may be left out."""

    seed: int
    strict: bool
    operations: list[Operation]


@dataclass
class Failure:
    message: str
    text: str  # as a case


def generate(seed: int, steps: int) -> Program:
    rng = random.Random(seed)
    kinds = {**LOCK_OPERATIONS, **SHARED_OPERATIONS, **CLIENT_OPERATIONS, **SERVER_OPERATIONS}
    readable = sorted(lock for lock, name in LOCKS.items() if KINDS[name] == "rw")
    operations = []
    for kind in rng.choices(list(kinds), list(kinds.values()), k=steps):
        targets = CLIENTS
        if kind in LOCK_OPERATIONS or kind in SHARED_OPERATIONS:
            targets = readable if kind in SHARED_OPERATIONS else sorted(LOCKS)
        target = rng.choice(targets)
        operations.append((kind, target, rng.randrange(1 << 30)))
    return Program(seed, rng.random() < 0.5, operations)


def as_case(program: Program, lines: Iterable[str] | None = None) -> str:
    """The text of a case: all locks for none, else these lines with the locks that they use."""
    def options(lock: str) -> str:
        is_strict = program.strict or KINDS[LOCKS[lock]] != "mutex"
        burst = " local_burst=0" if is_strict else ""
        return f"name={LOCKS[lock]}{burst}{' owner=' + OWNERS[lock] if lock in OWNERS else ''}"

    text = "\n".join(lines or ())
    locks = [lock for lock in LOCKS if lines is None or f"{lock} " in text]
    made = [f"lock {lock} {KINDS[LOCKS[lock]]} {options(lock)}" for lock in locks]
    return "\n".join(["case random-found", f"client {' '.join(CLIENTS)}", *made, text]) + "\n"


class Run:
    """One program on one server, and the lines that it has become."""

    def __init__(self, world: World, program: Program, players: dict[str, str]) -> None:
        self.world = world
        self.lines: list[str] = []
        tokens = world.bindings
        able = {client: "cancels" in capabilities()[name] for client, name in players.items()}
        owners = {"rnd_h": OWNERS, "rnd_r": {}}
        self.model = Model(LOCKS, able, program.strict, lambda a, b: tokens[a] == tokens[b], owners)
        self.program = program
        # What a candidate answered when it was found to be granted: it says so once.
        self._found: tuple[str, str] = ("", "")

    def go(self) -> None:
        run_steps(self.world, self.world.case.steps)
        for operation in self.program.operations:
            self._follow(self.model.apply(operation))
        self._follow(self.model.finish())
        self.world.end()

    def _follow(self, answer: Answer) -> None:
        chosen: str | None = None
        while True:
            try:
                said = answer.send(chosen)
            except StopIteration:
                return
            chosen = None
            if isinstance(said, list):
                chosen = self._find_granted(said)
            else:
                self._do(said)

    def _do(self, line: str) -> None:
        self.lines.append(line)
        step = parse(as_case(self.program) + line, "random")[0].steps[-1]
        lock, reply = self._found
        if step.target != lock:
            run_steps(self.world, [step])
            return
        self._found = ("", "")
        if wrong := self.world.judge(step, reply, 0.0):
            raise CaseFailed(self.world.report(step, reply, wrong))

    def _find_granted(self, candidates: list[str]) -> str:
        """Ask the candidates in turn until one says that it has been granted."""
        if len(candidates) == 1:
            return candidates[0]
        end = time.monotonic() + GRANT_SECONDS
        while time.monotonic() < end:
            for lock in candidates:
                client, _, name = lock.partition(".")
                reply = self.world.clients[client].call(f"{name} poll wait_ms=0")
                if not reply.startswith("PENDING"):
                    self._found = (lock, reply)
                    return lock
            time.sleep(0.001)
        raise CaseFailed(f"nobody was granted, of {' '.join(candidates)}")


def run_program(
    server: Server, commands: dict[str, list[str]], program: Program, defect: str = ""
) -> Failure | None:
    """Run it on an empty server. @return what went wrong."""
    with server.connect() as connection:
        connection.cmd("FLUSHALL")
    case: Case = parse(as_case(program), "random")[0]
    players = sorted(name for name, able in capabilities().items() if "requests" in able)
    # There are more runners than clients: with a few seeds in a row each has its turn.
    assigned = {c: players[(program.seed + i) % len(players)] for i, c in enumerate(CLIENTS)}
    world = World(server, case, commands, assigned, defect)
    run = Run(world, program, assigned)
    try:
        run.go()
    except CaseFailed as error:
        return Failure(str(error), as_case(program, run.lines))
    finally:
        world.close()
    return None


def shrink(
    server: Server, commands: dict[str, list[str]], program: Program, defect: str = ""
) -> tuple[Program, Failure | None]:
    """Leave out what is not needed to fail: halves first, single operations last."""
    end = time.monotonic() + SHRINK_SECONDS
    failure = run_program(server, commands, program, defect)
    size = max(len(program.operations) // 2, 1)
    while failure is not None and time.monotonic() < end:
        is_smaller = False
        start = 0
        while start < len(program.operations) and time.monotonic() < end:
            rest = program.operations[:start] + program.operations[start + size :]
            smaller = replace(program, operations=rest)
            found = run_program(server, commands, smaller, defect)
            if found is None:
                start += size
            else:
                program, failure, is_smaller = smaller, found, True
        if size == 1 and not is_smaller:
            break
        size = max(size // 2, 1)
    return program, failure


def describe(seed: int, steps: int, failure: Failure) -> str:
    return (
        f"seed {seed}, {steps} steps (repeat with --seed {seed} --steps {steps}):\n"
        f"{failure.message}\n\nshrunk to:\n\n{failure.text}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Random programs, judged by a model.")
    parser.add_argument("--seed", type=int, help="default: a new one")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--runs", type=int, default=1, help="with the seeds that follow")
    parser.add_argument("--server", choices=available_kinds(), default=available_kinds()[0])
    arguments = parser.parse_args()
    first = arguments.seed
    if first is None:
        first = random.SystemRandom().randrange(1 << 32)
    with tempfile.TemporaryDirectory() as folder, Server(arguments.server) as server:
        commands = {name: PREPARE[name](Path(folder)) for name in capabilities()}
        for seed in range(first, first + arguments.runs):
            program = generate(seed, arguments.steps)
            failure = run_program(server, commands, program)
            if failure is not None:
                _, shrunk = shrink(server, commands, program)
                print(describe(seed, arguments.steps, shrunk or failure))
                return 1
    print(f"{arguments.runs} programs of {arguments.steps} steps from seed {first}: all as it must")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
