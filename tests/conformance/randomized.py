# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Random programs: what they do follows from a seed, how it went is recorded and judged.

PYTHONPATH=tests python3 -m conformance.randomized --seed 7 --steps 500
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from support.history import History
from support.record import Record
from support.servers import Server, available_kinds
from system.conftest import queued_tokens

from .case import Case, parse
from .driver import CaseFailed, World, run_steps
from .recorded import RecordedRunner
from .runners import PREPARE, RunnerFailed, capabilities

CLIENTS = ["a", "b", "c"]


class Lock(NamedTuple):
    kind: str
    names: list[str]
    options: str = ""
    needs: str = ""  # a capability of its runner

    @property
    def name(self) -> str:
        return self.names[0]

    def line(self, target: str, more: str) -> str:
        return f"lock {target} {self.kind} name={self.name}{more} {self.options}"


# Two locks of each client on a name of each kind, so that clients also wait for themselves.
LOCKS = {f"{c}.x{i}": Lock("mutex", ["rnd_x"]) for c in CLIENTS for i in (1, 2)}
LOCKS |= {f"{c}.r{i}": Lock("rw", ["rnd_r"]) for c in CLIENTS for i in (1, 2)}
# Owners with several locks of one client, and of several clients.
OWNERS = {"a.h1": "o1", "a.h2": "o1", "b.h1": "o1", "b.h2": "o2", "c.h1": "o2", "c.h2": "o3"}
LOCKS |= {lock: Lock("reentrant", ["rnd_h"], f"owner={own}") for lock, own in OWNERS.items()}
LOCKS |= {
    f"{c}.s{permits}": Lock("semaphore", ["rnd_s"], f"limit=3 permits={permits}", "permits")
    for c in CLIENTS
    for permits in (1, 2)
}
# Several names in two orders; there are other locks of each of them as well.
PAIRS = {
    "1": Lock("all", ["rnd_p", "rnd_q"], "names=rnd_p,rnd_q", "names"),
    "2": Lock("all", ["rnd_q", "rnd_p"], "names=rnd_q:read,rnd_p", "names"),
}
LOCKS |= {f"{c}.a{i}": pair for c in CLIENTS for i, pair in PAIRS.items()}
LOCKS |= {"a.p": Lock("mutex", ["rnd_p"]), "b.q": Lock("rw", ["rnd_q"])}
NAMES = sorted({name for lock in LOCKS.values() for name in lock.names})
# How often each is done; first what takes a lock, then what asks for a lease.
TAKING = {"acquire": 6, "start": 8, "attach": 2}
READING = {"acquire_read": 6, "start_read": 8}
USING = {"release": 10, "check": 2, "extend": 2, "show": 1, "detach": 1}
CHANGING = {"upgrade": 2, "start_upgrade": 4, "downgrade": 3}
OTHERS = {"inspect": 3, "cancel": 2, "script_flush": 1, "drop_connections": 1}
FORCING = {"force_release": 1, "force_release_by_token": 1, "evict": 1}
WEIGHTS = {**TAKING, **READING, **USING, **CHANGING, **FORCING, **OTHERS}
SERVED_MS = 8000
END_SECONDS = 15.0
# What is never an answer, whatever was done before.
WRONG = {"UNKNOWN", "E_INTERNAL", "E_NO_MEMORY", "E_FORKED", "E_CLOSED"}


class Run:
    """One program on one server, and the lines that it has become."""

    def __init__(
        self,
        world: World,
        rng: random.Random,
        is_strict: bool,
        locks: dict[str, Lock],
        able: set[str],
        record: Record,
    ) -> None:
        self.world, self.rng, self.record = world, rng, record
        self.locks = locks
        self.is_strict = is_strict  # no lock is passed on inside a client
        self.able_to_cancel = able
        self.is_calm = rng.random() < 0.5
        self.waiting: dict[str, str] = {}  # what each lock has started
        self.lines: list[str] = []
        self.modes: dict[str, str] = {}  # of its last lease, also of one that has ended
        self.held: set[str] = set()  # as far as is known here
        self.tokens: list[str] = []

    def go(self, steps: int) -> None:
        run_steps(self.world, self.world.case.steps)
        # A holder that does not know of its loss may still pass the lock on inside its client.
        without = set() if self.is_strict else set(FORCING)
        without |= {"drop_connections"} if self.is_calm else set()
        kinds = [kind for kind in WEIGHTS if kind not in without]
        for kind in self.rng.choices(kinds, [WEIGHTS[kind] for kind in kinds], k=steps):
            self._step(kind)
            self._poll()
        self._finish()
        self.world.end()

    def say(self, target: str, text: str) -> str:
        """Have a client or a lock do something. @return the status."""
        client, _, lock = target.partition(".")
        reply = self.world.clients[client].call(f"{lock or '-'} {text}")
        status, *words = reply.split()
        self.lines.append(f"{target} {text} -> {status}")
        if status in WRONG:
            raise CaseFailed(f"{target} {text} -> {reply}")
        values = dict(word.split("=", 1) for word in words)
        if lock and "token" in values and status == "OK" and not text.startswith("detach"):
            self.tokens.append(values["token"])
            self.modes[target] = values["mode"]
            self.held.add(target)
        return status

    def _step(self, kind: str) -> None:
        lock = self.rng.choice(list(self.locks))
        of_kind = self.locks[lock].kind
        if kind == "cancel":
            self._cancel(lock)
        elif kind in FORCING or kind in OTHERS:
            name = self.rng.choice(self.locks[lock].names)
            getattr(self, f"_{kind}")(lock.partition(".")[0], name)
        elif of_kind != "rw" and (kind in READING or kind in CHANGING):
            return
        elif kind in TAKING or kind in READING:
            # A lease that is held would be replaced by the one that comes.
            if lock not in self.waiting and lock not in self.held:
                self._take(lock, kind)
        elif lock in self.modes and self.waiting.get(lock) != "start_upgrade":
            # What it is already, it says without asking the server.
            needed = "WRITE" if kind == "downgrade" else "READ"
            if kind not in CHANGING or self.modes[lock] == needed:
                self._use(lock, kind)

    def _take(self, lock: str, kind: str) -> None:
        of_kind = self.locks[lock].kind
        if kind in ("acquire", "start") and of_kind == "rw" and self.rng.random() < 0.7:
            kind += "_write"
        if kind == "attach":
            if self.tokens and of_kind not in ("reentrant", "all"):
                self.say(lock, f"attach token={self.rng.choice(self.tokens)}")
        elif kind.startswith("start"):
            self._start(lock, kind)
        else:
            self.say(lock, f"{kind} wait_ms=0")

    def _start(self, lock: str, kind: str) -> None:
        self.say(lock, f"{kind} wait_ms=-1")
        self.waiting[lock] = kind
        suffix = "sq" if self.locks[lock].kind == "semaphore" else "q"
        for name in self.locks[lock].names:
            tokens = queued_tokens(self.world.server, name, suffix)
            if tokens:
                self.record.queue(name, tokens)

    def _use(self, lock: str, kind: str) -> None:
        if kind == "start_upgrade":
            if lock not in self.waiting and lock in self.held:
                self._start(lock, kind)
            return
        lengths = {"extend": f" ttl_ms={30_000 + self.rng.randrange(30_000)}"}
        status = self.say(lock, kind + lengths.get(kind, " wait_ms=0" if kind == "upgrade" else ""))
        if kind in CHANGING and status == "OK":
            self.modes[lock] = "READ" if kind == "downgrade" else "WRITE"
        # Several names cannot be detached.
        is_detached = kind == "detach" and status != "E_INVALID"
        if kind == "release" or is_detached or status in ("E_LOST", "E_NOT_HELD"):
            self.held.discard(lock)

    def _cancel(self, lock: str) -> None:
        if lock in self.waiting and lock.partition(".")[0] in self.able_to_cancel:
            self._settle(lock, self.say(lock, "cancel"))

    def _poll(self) -> None:
        for lock in list(self.waiting):
            self._settle(lock, self.say(lock, "poll wait_ms=0"))

    def _settle(self, lock: str, status: str) -> None:
        if status == "PENDING":
            self.lines.pop()
        elif self.waiting.pop(lock) == "start_upgrade" and status == "OK":
            self.modes[lock] = "WRITE"

    # ---- of clients, and of the server ----

    def _inspect(self, client: str, name: str) -> None:
        self.say(client, f"inspect name={name}")

    def _force_release(self, client: str, name: str) -> None:
        self.say(client, f"force_release_any name={name}")

    def _force_release_by_token(self, client: str, name: str) -> None:
        # The other holds of an owner have another fence from then on, which no checker knows.
        if self.tokens and name != "rnd_h":
            self.say(client, f"force_release name={name} token={self.tokens[-1]}")

    def _script_flush(self, _: str, __: str) -> None:
        self.world.command("SCRIPT", "FLUSH")

    def _evict(self, _: str, name: str) -> None:
        # Those who wait would only find out when they look again, some time later.
        if not any(name in self.locks[lock].names for lock in self.waiting):
            number = self.record.call("force", name=name)
            self.world.command("DEL", name)
            self.record.returned(number, "ok")
            self.lines.append(f"@ del {name}")

    def _drop_connections(self, _: str, __: str) -> None:
        self.world.fault_drop_connections()
        self.lines.append("@ drop_connections")
        # A client learns of it with its next command, and whether that was done it cannot know.
        self._do(*(f"until {client} inspect name=rnd_x -> OK" for client in CLIENTS))

    def _do(self, *lines: str) -> None:
        """Lines of a case."""
        case = parse("\n".join([_header({}), *lines]), "random")[0]
        run_steps(self.world, case.steps)

    def _finish(self) -> None:
        """Everything is given back; then nothing may be held."""
        end = time.monotonic() + END_SECONDS
        for lock in list(self.waiting):
            self._cancel(lock)
        while self.held or self.waiting:
            if time.monotonic() > end:
                raise CaseFailed(f"still waiting: {self.waiting}")
            for lock in list(self.held):
                self._use(lock, "release")
            if not self.held:  # One that waits is behind a lease that was detached.
                for name in sorted({n for lock in self.waiting for n in self.locks[lock].names}):
                    self.say("a", f"force_release_any name={name}")
            self._poll()
        for name in NAMES:
            self.say("a", f"force_release_any name={name}")
            self._do(f"until a inspect name={name} -> OK state=0 waiting=0")


def _header(locks: dict[str, Lock], burst: str = "") -> str:
    """The case that makes these locks."""
    lines = ["case random", f"client {' '.join(CLIENTS)}"]
    lines += [lock.line(target, burst) for target, lock in locks.items()]
    return "\n".join(lines)


def assigned(seed: int, names: list[str]) -> dict[str, str]:
    """There are more runners than clients: with a few seeds in a row each has its turn."""
    return {client: names[(seed + i) % len(names)] for i, client in enumerate(CLIENTS)}


def run_program(
    server: Server,
    commands: dict[str, list[str]],
    folder: Path,
    seed: int,
    steps: int,
    players: dict[str, str] | None = None,
    defect: str = "",
) -> str:
    """Run it on an empty server; the record is in `folder`. @return what went wrong."""
    with server.connect() as connection:
        connection.cmd("FLUSHALL")
    able = {name: found for name, found in capabilities().items() if "requests" in found}
    players = players or assigned(seed, sorted(able))
    rng = random.Random(seed)
    is_strict = rng.random() < 0.5
    locks = {
        target: lock
        for target, lock in LOCKS.items()
        if not lock.needs or lock.needs in able[players[target.partition(".")[0]]]
    }
    header = _header(locks, " max_local_handoffs=0" if is_strict else "")
    case: Case = parse(header, "random")[0]
    folder.mkdir()
    history = History(folder)
    start: Callable[[list[str], str], RecordedRunner] = partial(RecordedRunner, folder=folder)
    world = World(server, case, commands, players, defect, start=start)
    canceling = {client for client in CLIENTS if "cancels" in able[players[client]]}
    run = Run(world, rng, is_strict, locks, canceling, history.record)
    failure = ""
    try:
        run.go(steps)
    except (CaseFailed, RunnerFailed) as error:
        failure = f"{error}\n"
    finally:
        world.close()
        history.record.close()
    status, report = history.findings(is_fifo=run.is_calm, calm_ns=1, serve_ms=SERVED_MS)
    if status:
        failure += report
    return failure and "\n".join([f"seed {seed}, {steps} steps, {players}:", *run.lines, failure])


def main() -> int:
    parser = argparse.ArgumentParser(description="Random programs, judged by their histories.")
    parser.add_argument("--seed", type=int, help="default: a new one")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--runs", type=int, default=1, help="with the seeds that follow")
    parser.add_argument("--server", choices=available_kinds(), default=available_kinds()[0])
    arguments = parser.parse_args()
    first = arguments.seed
    if first is None:
        first = random.SystemRandom().randrange(1 << 32)
    with tempfile.TemporaryDirectory() as name, Server(arguments.server) as server:
        folder = Path(name)
        commands = {name: PREPARE[name](folder) for name in capabilities()}
        for seed in range(first, first + arguments.runs):
            failure = run_program(server, commands, folder / str(seed), seed, arguments.steps)
            if failure:
                print(failure)
                return 1
    print(f"{arguments.runs} programs of {arguments.steps} steps from seed {first}: all as it must")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
