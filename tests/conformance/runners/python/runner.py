# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The Python runner of the conformance suite: reads a line, does it, prints a line.

SPEC.md says what the lines mean. Locks are taken and given back by the surface that users have:
`with`, and the methods of locks and leases. REDLATCH_RUNNER_DEFECT plants a defect in the package,
so that the suite can be seen to fail.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import elections
import recalls
import redlatch
import work
from answers import Answer, Values, levels_of, names_of, shown_of, stats_of
from lines import line_of, parse
from redlatch import Status, _candidacy, _convert, _kinds, _lock, _named_lock, _redlock, _wait


class Logged(threading.local):
    """What the end of a block logs in this thread, where users would see it."""

    error: redlatch.Error | None = None


class Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        for value in record.args if isinstance(record.args, tuple) else ():
            if isinstance(value, redlatch.Error):
                logged.error = value


class Lock:
    """A named lock of a case: how it is taken, and its last lease."""

    def __init__(
        self, kind: str, name: bytes, owner: bytes | None, options: dict[str, object]
    ) -> None:
        self.kind = kind
        self.name = name
        self.owner = owner
        self.permits: int = options.pop("permits", 1)  # type: ignore[assignment]
        self.names: bytes = options.pop("names", b"")  # type: ignore[assignment]
        self.limit: int = options.pop("limit", 0)  # type: ignore[assignment]
        self.options: Any = options
        self.lease: redlatch.Lease | None = None
        self.block = ExitStack()  # the block that ends with a release
        self.started: Started | None = None
        self.observer: elections.Observer | None = None
        self.listener: recalls.Listener | None = None

    def taking(self, op: str, wait: float) -> Callable[[ExitStack], redlatch.Lease | Status]:
        """A mutex is for the block; others have leases that end by themselves, in any thread."""
        if self.kind == "all":
            return lambda _: all_of(client, self, timeout=wait).acquire() or refusal(wait)
        if self.kind == "semaphore":
            pool = semaphore_of(client, self, timeout=wait)
            return lambda _: pool.acquire(self.permits) or refusal(wait)
        if op == "acquire" and self.kind != "reentrant":
            made = client.lock(self.name, timeout=wait, **self.options)
            return lambda block: block.enter_context(made)
        acquire: Callable[[], redlatch.Lease | None]
        if op == "acquire":
            owned = client.rlock(self.name, owner=self.owner, timeout=wait, **self.options)
            acquire = owned.acquire
        else:
            both, options = sides(client.rwlock, self)
            side = both.acquire_read if op == "acquire_read" else both.acquire_write
            acquire = partial(side, timeout=wait, **options)
        return lambda _: acquire() or refusal(wait)


def sides(make: Callable[..., Any], lock: Lock) -> tuple[Any, dict[str, Any]]:
    """A read-write lock, which has the format, and the options of its sides."""
    options = dict(lock.options)
    formats = {"format": options.pop("format")} if "format" in options else {}
    return make(lock.name, owner=lock.owner, **formats), options


def refusal(wait: float) -> Status:
    """What None and False say of an acquire and an upgrade."""
    return Status.TIMEOUT if wait else Status.BUSY


ATTACH_COUNT = 64
ATTACH_OPTIONS = ("ttl", "renew", "max_hold", "label")

client: Any  # a redlatch.Client, or a Redlock, whose locks are as the mutexes of a client
locks: dict[str, Lock] = {}
jobs: dict[int, threading.Thread] = {}
answers: dict[int, str] = {}
logged = Logged()


def seconds(values: Values, key: str) -> float:
    ms = int(values[key])
    return ms if ms == -1 else ms / 1000


def number(value: bytes) -> int:
    return int(value)


def in_seconds(value: bytes) -> float:
    return int(value) / 1000


OPTIONS: dict[str, tuple[str, Callable[[bytes], object]]] = {
    "ttl_ms": ("ttl", in_seconds),
    "max_hold_ms": ("max_hold", in_seconds),
    "renew": ("renew", number),
    "confirm": ("confirm", number),
    "max_local_handoffs": ("max_local_handoffs", number),
    "yield_every": ("yield_every", number),
    "yield_ms": ("yield_for", in_seconds),
    "min_replicas": ("min_replicas", number),
    "sync_timeout_ms": ("sync_timeout", in_seconds),
    "retain_ms": ("retain", in_seconds),
    "permits": ("permits", number),
    "limit": ("limit", number),
    "names": ("names", bytes),
    "label": ("label", bytes),
    "format": ("format", bytes.decode),
}


# ---- of the client -------------------------------------------------------------------------------


def semaphore_of(client: Any, lock: Lock, **terms: Any) -> Any:
    return client.semaphore(lock.name, lock.limit, **terms, **lock.options)


def all_of(client: Any, lock: Lock, **terms: Any) -> Any:
    pairs = (name.partition(b":") for name in lock.names.split(b",") if name)
    names = [(name, mode.decode() or "write") for name, _, mode in pairs]
    return client.lock_all(names, **terms, **lock.options)


def do_open(values: Values) -> Answer:
    global client
    options: Any = dict(values)
    if "urls" in options:
        client = redlatch.Redlock(options.pop("urls").split(), **options)
    else:
        client = redlatch.connect(wait=None, **options)
    return Status.OK, {}


def do_lock(values: Values) -> Answer:
    key, kind = values.pop("id").decode(), values.pop("kind").decode()
    name, owner = values.pop("name"), values.pop("owner", None)
    options: Any = {OPTIONS[word][0]: OPTIONS[word][1](value) for word, value in values.items()}
    locks[key] = Lock(kind, name, owner, options)
    # Options are looked at here.
    if kind == "mutex":
        client.lock(name, **options)
    elif kind in ("semaphore", "all"):
        (all_of if kind == "all" else semaphore_of)(client, locks[key])
    elif kind == "reentrant":
        client.rlock(name, owner=owner, **options)
    else:
        both, of_sides = sides(client.rwlock, locks[key])
        both.read(**of_sides)
    return Status.OK, {}


def do_connect(values: Values) -> Answer:
    client._connect(seconds(values, "wait_ms"))
    return Status.OK, {}


def do_shutdown(values: Values) -> Answer:
    client.close()
    return Status.OK, {}


def do_check_servers(values: Values) -> Answer:
    return levels_of(client.check(seconds(values, "wait_ms")))


def do_inspect(values: Values) -> Answer:
    return shown_of(client.inspect(values["name"]))


def do_force_release(values: Values) -> Answer:
    client.force_release(values["name"], values["token"])
    return Status.OK, {}


def do_force_release_any(values: Values) -> Answer:
    client.force_release(values["name"], any=True)
    return Status.OK, {}


def do_recall(values: Values) -> Answer:
    return recalls.heard(client.recall(values["name"], values["reason"]))


def do_resign(values: Values) -> Answer:
    return recalls.heard(client.resign(values["name"], values["reason"]))


def do_once_forget(values: Values) -> Answer:
    client.once_forget(values["name"])
    return Status.OK, {}


def do_leader(values: Values) -> Answer:
    return elections.leading(client.leader(values["name"]))


def do_participants(values: Values) -> Answer:
    return elections.listed(client.election(values["name"]).participants())


def do_list(values: Values) -> Answer:
    return names_of(client.list(values["pattern"]))


def do_statuses(values: Values) -> Answer:
    traits = {s: s.maybe_applied * 1 + s.retryable * 2 for s in Status}
    return Status.OK, {f"RL_{s.name}": f"{s.value}/{traits[s]}" for s in Status}


# ---- of a lock -----------------------------------------------------------------------------------


def granted(lock: Lock, lease: redlatch.Lease | Status) -> Answer:
    if isinstance(lease, Status):
        return lease, {}
    return Status.OK, held_by(lock, lease)


def held_by(lock: Lock, lease: redlatch.Lease) -> dict[str, object]:
    lock.lease = lease
    shown = {"fence": lease.fence, "token": lease.token}
    shown = {**shown, "mode": lease.mode.upper(), "hold_count": lease.hold_count}
    if lock.kind == "all":
        shown["second_fence"] = list(lease.fences.values())[1]
    return {**shown, "permits": lease.permits} if lock.limit > 0 else shown


def acquiring(op: str) -> Callable[[Lock, Values], Answer]:
    def do_acquire(lock: Lock, values: Values) -> Answer:
        block = ExitStack()
        lease = lock.taking(op, seconds(values, "wait_ms"))(block)
        lock.block = block
        return granted(lock, lease)

    return do_acquire


class Started(threading.Thread):
    """What goes on by itself; a block that is entered there is left in another thread."""

    def __init__(self, work: Callable[[ExitStack], redlatch.Lease | Status]) -> None:
        super().__init__()
        self.work = work
        self.block = ExitStack()
        self.result: redlatch.Lease | Status = Status.PENDING
        self.start()

    def run(self) -> None:
        try:
            self.result = self.work(self.block)
        except redlatch.Error as error:
            self.result = error.status


def starting(op: str) -> Callable[[Lock, Values], Answer]:
    def do_start(lock: Lock, values: Values) -> Answer:
        lock.started = Started(lock.taking(op, seconds(values, "wait_ms")))
        return Status.PENDING, {}

    return do_start


def do_start_upgrade(lock: Lock, values: Values) -> Answer:
    wait = seconds(values, "wait_ms")
    lock.started = Started(lambda _: upgrade(lock, wait))
    return Status.PENDING, {}


def do_poll(lock: Lock, values: Values) -> Answer:
    started = lock.started
    assert started is not None
    wait = seconds(values, "wait_ms")
    started.join(None if wait == -1 else wait)
    if isinstance(started.result, Status):
        return started.result, {}
    if started.block is lock.block:
        return Status.OK, {}
    lock.block = started.block
    return granted(lock, started.result)


def upgrade(lock: Lock, wait: float) -> Status:
    return Status.OK if held(lock).upgrade(timeout=wait) else refusal(wait)


def do_upgrade(lock: Lock, values: Values) -> Answer:
    return upgrade(lock, seconds(values, "wait_ms")), {}


def do_downgrade(lock: Lock, values: Values) -> Answer:
    held(lock).downgrade()
    return Status.OK, {}


def terms_of(lock: Lock, values: Values) -> dict[str, Any]:
    """Those of an attach."""
    terms = {key: lock.options[key] for key in ATTACH_OPTIONS if key in lock.options}
    return {**terms, "fence": int(values.get("fence", 0))}


def do_attach(lock: Lock, values: Values) -> Answer:
    if lock.kind == "semaphore":
        fence = int(values.get("fence", 0))
        lease = semaphore_of(client, lock).attach(values["token"], lock.permits, fence=fence)
    else:
        lease = client.attach(lock.name, values["token"], **terms_of(lock, values))
    lock.block = ExitStack()
    lock.block.enter_context(lease)
    return granted(lock, lease)


def do_stats(lock: Lock, values: Values) -> Answer:
    return stats_of(semaphore_of(client, lock).stats())


def do_attach_all(lock: Lock, values: Values) -> Answer:
    barrier = threading.Barrier(ATTACH_COUNT)
    granted: list[redlatch.Lease] = []
    refused: list[redlatch.NotHeld] = []

    def attach() -> None:
        barrier.wait()
        try:
            granted.append(client.attach(lock.name, values["token"], **terms_of(lock, values)))
        except redlatch.NotHeld as error:
            refused.append(error)

    threads = [threading.Thread(target=attach) for _ in range(ATTACH_COUNT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shown: dict[str, object] = {"granted": len(granted), "refused": len(refused)}
    for lease in granted:
        lock.block = ExitStack()
        lock.block.enter_context(lease)
        shown |= held_by(lock, lease)
    return Status.OK, shown


def do_release(lock: Lock, values: Values) -> Answer:
    if lock.lease is None:
        client.lock(lock.name).release()  # Which says that it is not held.
    elif lock.lease._is_given_back or lock.kind != "mutex":
        return Status.OK if lock.lease.release() else Status.STILL_HELD, {}
    else:
        logged.error = None
        lock.block.close()  # The end of the block, which raises only what broke its promise.
        if logged.error is not None:
            raise logged.error
    return Status.OK, {}


def do_check(lock: Lock, values: Values) -> Answer:
    held(lock).check()
    return Status.OK, {}


def do_once(lock: Lock, values: Values) -> Answer:
    return work.run_once(client, lock.name, lock.options, values)


def do_flight(lock: Lock, values: Values) -> Answer:
    return work.fly(client, lock.name, lock.options, values)


def do_campaign(lock: Lock, values: Values) -> Answer:
    block = ExitStack()
    term = elections.campaigning(client, lock, values)(block)
    lock.block = block
    return granted(lock, term)


def do_start_campaign(lock: Lock, values: Values) -> Answer:
    lock.started = Started(elections.campaigning(client, lock, values))
    return Status.PENDING, {}


def do_observe(lock: Lock, values: Values) -> Answer:
    if lock.observer is None:
        lock.observer = elections.Observer(client, lock.name)
    return lock.observer.next(values)


def do_recalled(lock: Lock, values: Values) -> Answer:
    if lock.listener is None or lock.listener.lease is not lock.lease:
        lock.listener = recalls.Listener(held(lock))
    return lock.listener.wait(values)


def do_extend(lock: Lock, values: Values) -> Answer:
    held(lock).extend(int(values["ttl_ms"]) / 1000)
    return Status.OK, {}


def do_wait_lost(lock: Lock, values: Values) -> Answer:
    lease = held(lock)
    is_lost = lease.wait_lost(timeout=seconds(values, "wait_ms"))
    return Status.OK, {"state": "LOST" if is_lost else state_of(lease)}


def state_of(lease: redlatch.Lease | redlatch.AsyncLease) -> str:
    return "HELD" if lease.held else repr(lease).split()[2].upper()


def do_show(lock: Lock, values: Values) -> Answer:
    lease = held(lock)
    shown = {"state": state_of(lease), "remaining_ms": round(lease.remaining * 1000)}
    if isinstance(lease, (redlatch.Term, redlatch.AsyncTerm)):
        shown["leads"] = int(lease.is_leader())
    why = lease.lost_reason
    shown["lost"] = "NONE" if why is None else why.name
    return Status.OK, {**shown, "fence": lease.fence, "mode": lease.mode.upper()}


def do_detach(lock: Lock, values: Values) -> Answer:
    token = held(lock).detach()
    status, shown = do_show(lock, values)
    return status, {**shown, "token": token}


def held(lock: Lock) -> redlatch.Lease:
    assert lock.lease is not None
    return lock.lease


# ---- lines ---------------------------------------------------------------------------------------

OF_CLIENT: dict[str, Callable[[Values], Answer]] = {
    "open": do_open,
    "lock": do_lock,
    "connect": do_connect,
    "check": do_check_servers,
    "shutdown": do_shutdown,
    "inspect": do_inspect,
    "force_release": do_force_release,
    "force_release_any": do_force_release_any,
    "recall": do_recall,
    "resign": do_resign,
    "once_forget": do_once_forget,
    "leader": do_leader,
    "participants": do_participants,
    "list": do_list,
    "statuses": do_statuses,
}
OF_LOCK: dict[str, Callable[[Lock, Values], Answer]] = {
    "acquire": acquiring("acquire"),
    "acquire_read": acquiring("acquire_read"),
    "acquire_write": acquiring("acquire_write"),
    "start": starting("acquire"),
    "start_read": starting("acquire_read"),
    "start_write": starting("acquire_write"),
    "start_upgrade": do_start_upgrade,
    "poll": do_poll,
    "upgrade": do_upgrade,
    "downgrade": do_downgrade,
    "attach": do_attach,
    "stats": do_stats,
    "attach_all": do_attach_all,
    "release": do_release,
    "check": do_check,
    "once": do_once,
    "flight": do_flight,
    "campaign": do_campaign,
    "start_campaign": do_start_campaign,
    "observe": do_observe,
    "recalled": do_recalled,
    "extend": do_extend,
    "wait_lost": do_wait_lost,
    "show": do_show,
    "detach": do_detach,
}


def answer(target: str, op: str, values: Values) -> str:
    """Do it, and say how it went."""
    shown: dict[str, object] = {}
    try:
        if target == "-" and op in OF_CLIENT:
            status, shown = OF_CLIENT[op](values)
        elif target in locks and op in OF_LOCK:
            status, shown = OF_LOCK[op](locks[target], values)
        else:
            return "UNKNOWN"
    except redlatch.Error as error:
        status = error.status
    except TypeError as error:
        status = recalls.unsaid(error)
    return line_of(status, shown)


def run(line: str) -> str:
    """Do a line, or start it in a thread of its own, or wait for what was started."""
    target, op, values, job = parse(line)
    if job and op == "wait":
        jobs.pop(job).join()
        return answers[job]
    if not job:
        return answer(target, op, values)

    def work() -> None:
        answers[job] = answer(target, op, values)

    jobs[job] = threading.Thread(target=work)
    jobs[job].start()
    return "STARTED"


def own_owner(owner: bytes) -> bytes:
    return b"%d-%s" % (os.getpid(), owner)


def plant(defect: str) -> None:
    """Break the package as a careless change of it would."""
    error_init = redlatch.Error.__init__

    def cut_at_nul(value: bytes, what: str) -> bytes:
        return _convert.to_bytes(value, what).partition(b"\0")[0]

    def ignore_release(lease: redlatch.Lease) -> None:
        lease._is_given_back = True

    def wrong_status(error: redlatch.Error, message: str, status: Status) -> None:
        wrong = dict.fromkeys([Status.E_DEADLOCK, Status.E_ALREADY_HELD], Status.BUSY)
        wrong |= {Status.E_LOST: Status.E_NOT_HELD, Status.BUSY: Status.TIMEOUT}
        error_init(error, message, wrong.get(status, status))

    release = redlatch.Lease.release

    def forget_count(lease: redlatch.Lease) -> bool:
        release(lease)
        return True

    plants: dict[str, tuple[object, str, object]] = {
        "read_as_write": (_lock, "ACQUIRE_READ", _wait.ACQUIRE_WRITE),
        "write_as_read": (_lock, "ACQUIRE_WRITE", _wait.ACQUIRE_READ),
        "own_owner": (_kinds, "check_owner", own_owner),
        "forget_count": (redlatch.Lease, "release", forget_count),
        "deaf": (redlatch.Lease, "on_recall", recalls.unheard),
        "forget_retain": (redlatch._core, "acquire_options_set", recalls.without_retain),
        "forget_id": (_candidacy, "make_candidate_options", elections.without_id),
        "one_node": (_redlock, "_joined", lambda urls: urls[0]),
        "cut_at_nul": (_named_lock, "to_bytes", cut_at_nul),
        "ignore_release": (redlatch.Lease, "release", ignore_release),
        "wrong_status": (redlatch.Error, "__init__", wrong_status),
        "ignore_deadline": (redlatch._core, "lease_remaining_ms", lambda lease: 60_000),
    }
    if defect:
        setattr(*plants[defect])


def main() -> None:
    plant(os.environ.get("REDLATCH_RUNNER_DEFECT", ""))
    logging.getLogger("redlatch").addHandler(Handler())
    for line in sys.stdin:
        print(run(line), flush=True)
    client.close()  # Ends the waits of the jobs.
    observers = (lock.observer for lock in locks.values() if lock.observer)
    started = (lock.started for lock in locks.values() if lock.started)
    for job in (*jobs.values(), *started, *observers):
        job.join()


if __name__ == "__main__":
    main()
