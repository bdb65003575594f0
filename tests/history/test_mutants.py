# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: each checker turns red when a lock goes wrong on a real server, and none without that.

Method: actors play short scenarios through a proxy that gives the server a changed script: the
clients are the real ones, the server has the defect. One more defect is in a client. Each scenario
is also played without any, and nothing may be found.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from conformance.recorded import RecordedRunner
from conformance.runners import PREPARE
from support.build import built
from support.history import History
from support.record import note_gone
from support.servers import Server, available_kinds
from support.wait import wait_until
from system.actor import Actor, Pending, Reply
from system.conftest import queue_length, queued_tokens
from system.proxy import FaultProxy

NAME = "m"
MIN_TTL_MS = 300
SERVE_MS = 2000


class Stage:
    """Three processes, of which the first two may be stopped; the history of what they do."""

    def __init__(
        self, server: Server, history: History, url: str, stack: ExitStack, runner: list[str]
    ) -> None:
        self.server, self.history, self.url, self.stack = server, history, url, stack
        self.runner = runner  # a command
        self.a, self.b, self.c = (stack.enter_context(Actor(url)) for _ in range(3))

    def hold(self, actor: Actor, **options: int) -> Reply:
        """Acquire, or have it if it can be had soon."""
        return actor.call("acquire", name=NAME, **{"wait": 0, "ttl_ms": 5000, **options})

    def queue(self, actor: Actor) -> Pending:
        """Wait in the queue, and be seen there."""
        length = queue_length(self.server, NAME)
        waiting = actor.begin("acquire", name=NAME, wait=20_000, burst=0, ttl_ms=5000)
        wait_until(lambda: queue_length(self.server, NAME) == length + 1)
        self.history.record.queue(NAME, queued_tokens(self.server, NAME))
        return waiting

    def try_for(self, actor: Actor, seconds: float) -> None:
        """Try again and again until it is had."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.hold(actor).status != "RL_OK":
            time.sleep(0.01)


# ---- scenarios -----------------------------------------------------------------------------------


def one_after_the_other(stage: Stage) -> None:
    for actor in (stage.a, stage.b, stage.a):
        stage.hold(actor)
        actor.call("release")


def tried_while_held(stage: Stage) -> None:
    stage.hold(stage.a)
    stage.hold(stage.b)
    stage.a.call("release")


def tried_during_a_lease(stage: Stage) -> None:
    stage.hold(stage.a, ttl_ms=600, renew=0)
    stage.try_for(stage.b, 0.4)


def a_holder_wakes_up_late(stage: Stage) -> None:
    """Its release, which it sends when it sees that its time is over, meets another owner."""
    stage.hold(stage.a, ttl_ms=MIN_TTL_MS, renew=0)
    stage.a.pause()
    stage.hold(stage.b, wait=5000)
    stage.a.resume()
    stage.a.call("look")
    stage.try_for(stage.c, 0.3)


def a_long_hold_with_renewals(stage: Stage) -> None:
    stage.hold(stage.a, ttl_ms=MIN_TTL_MS)
    stage.try_for(stage.b, 2.5 * MIN_TTL_MS / 1000)
    stage.a.call("look")
    stage.a.call("release")


def lost_or_not(stage: Stage) -> None:
    stage.hold(stage.a, ttl_ms=1200)
    stage.a.call("wait_lost", wait=700)


def extended_after_force(stage: Stage) -> None:
    stage.hold(stage.a, renew=0)
    waiting = stage.queue(stage.b)
    stage.c.call("force", name=NAME)
    waiting.get()
    stage.a.call("extend", ttl_ms=3000)
    stage.b.call("release")


def two_waiters(stage: Stage) -> None:
    stage.hold(stage.a)
    waiting = [(actor, stage.queue(actor)) for actor in (stage.b, stage.c)]
    for actor, _ in waiting:
        actor.begin("release")
    stage.a.call("release")
    for _, pending in waiting:
        pending.get()


def one_waiter_who_gives_up(stage: Stage) -> None:
    stage.hold(stage.a)
    waiting = stage.b.begin("acquire", name=NAME, wait=2500 + SERVE_MS)
    wait_until(lambda: queue_length(stage.server, NAME) == 1)
    # After a second it asks once who holds the lock, and would find it free.
    count = stage.server.script_count()
    wait_until(lambda: stage.server.script_count() > count)
    stage.a.call("release")
    waiting.get()


def passed_on_inside_clients(stage: Stage) -> None:
    loops = [
        actor.begin("loop", thread=thread, name=NAME, wait=5000, ms=300, burst=16)
        for thread in range(3)
        for actor in (stage.a, stage.b)
    ]
    for loop in loops:
        loop.get()


# ---- scenarios of semaphores, with three permits ----


class Pool:
    """Locks of one process, and how many permits each wants. Actors have no semaphores."""

    def __init__(self, stage: Stage, locks: dict[str, int], ttl_ms: int = 5000) -> None:
        self.stage = stage
        self.runner = RecordedRunner(stage.runner, "", stage.history.folder)
        stage.stack.callback(self.runner.kill)
        assert self.runner.call(f"- open url={stage.url}") == "OK"
        for lock, permits in locks.items():
            options = f"name={NAME} limit=3 permits={permits} ttl_ms={ttl_ms}"
            assert self.runner.call(f"- lock id={lock} kind=semaphore {options}") == "OK"

    def do(self, *lines: str) -> None:
        for line in lines:
            self.runner.call(line)

    def wait(self, lock: str) -> None:
        """Wait in the queue, and be seen there."""
        length = queue_length(self.stage.server, NAME, "sq")
        self.do(f"{lock} start wait_ms=20000")
        wait_until(lambda: queue_length(self.stage.server, NAME, "sq") == length + 1)
        self.look()

    def look(self) -> None:
        self.stage.history.record.queue(NAME, queued_tokens(self.stage.server, NAME, "sq"))


def two_want_two_each(stage: Stage) -> None:
    pool = Pool(stage, {"a": 2, "b": 2})
    pool.do("a acquire wait_ms=0", "b acquire wait_ms=0", "a release", "b release")


def one_is_given_back(stage: Stage) -> None:
    pool = Pool(stage, {"a": 2, "b": 1, "c": 2})
    pool.do("a acquire wait_ms=0", "b acquire wait_ms=0", "b release")
    pool.do("c acquire wait_ms=0", "a release", "c release")


def one_is_tried_for_during_renewals(stage: Stage) -> None:
    pool = Pool(stage, {"a": 3, "b": 1}, MIN_TTL_MS)
    pool.do("a acquire wait_ms=0")
    end = time.monotonic() + 2.5 * MIN_TTL_MS / 1000
    while time.monotonic() < end and not pool.runner.call("b acquire wait_ms=0").startswith("OK"):
        time.sleep(0.01)
    pool.do("b release", "a release")


def one_is_tried_for_while_two_are_waited_for(stage: Stage) -> None:
    pool = Pool(stage, {"a": 2, "b": 2, "c": 1})
    pool.do("a acquire wait_ms=0")
    pool.wait("b")
    pool.do("c acquire wait_ms=0")
    pool.look()
    pool.do("c release", "a release", "b poll wait_ms=20000", "b release")


# ---- mutants -------------------------------------------------------------------------------------


def attached_by_two(stage: Stage) -> None:
    stage.hold(stage.a)
    token = stage.a.call("look")["token"]
    stage.a.call("detach")
    stage.b.call("attach", name=NAME, token=token)
    stage.c.call("attach", name=NAME, token=token)
    stage.c.call("look")
    stage.b.call("release")


def attached_beside_its_holder(stage: Stage) -> None:
    stage.hold(stage.a)
    token = stage.a.call("look")["token"]
    stage.b.call("attach", name=NAME, token=token)
    stage.a.call("look")
    stage.b.call("release")


class Mutant(NamedTuple):
    defect: str
    script: str
    old: str  # all of these in the script
    new: str
    scenario: Callable[[Stage], None]
    found_by: set[str]


NOT_OWNER = (
    "if holder ~= token then\nreturn {type(holder) == 'string' and -1 or 0, now}\nend"
)

MUTANTS = [
    Mutant(
        "RELEASE deletes the key blindly",
        "release",
        "holder == token",
        "true",
        a_holder_wakes_up_late,
        {"service", "belief"},
    ),
    Mutant(
        "RELEASE keeps the key",
        "release",
        "redis.call('DEL', K)\nreturn {1, 0, unnoted}",
        "return {1, 0, unnoted}",
        one_after_the_other,
        {"service"},
    ),
    Mutant(
        "RELEASE serves the last waiter",
        "release",
        "redis.call('ZRANGE', Q, 0, 0, 'WITHSCORES')",
        "redis.call('ZREVRANGE', Q, 0, 0, 'WITHSCORES')",
        two_waiters,
        {"order"},
    ),
    Mutant(
        "RELEASE does not tell the waiter",
        "release",
        "'g' .. string.sub(member, 23, 38)",
        "'p' .. string.sub(member, 23, 38)",
        one_waiter_who_gives_up,
        {"liveness"},
    ),
    Mutant(
        "ACQUIRE ignores the holder",
        "acquire",
        "local is_open = not holder or readers > 0",
        "holder = false\nlocal is_open = true",
        tried_while_held,
        {"service", "belief"},
    ),
    Mutant(
        "ACQUIRE sets half of the lease",
        "acquire",
        "redis.call('SET', K, token, 'PX', ms)",
        "redis.call('SET', K, token, 'PX', math.floor(ms / 2))",
        tried_during_a_lease,
        {"service", "belief"},
    ),
    Mutant(
        "all fences are the same",
        "acquire",
        "return {1, number, now}",
        "return {1, '0000000000001000', now}",
        one_after_the_other,
        {"service", "fence"},
    ),
    Mutant(
        "fences rise by one, and leave none to a client's own hand-offs",
        "acquire release",
        "minted = string.format('%016d', us)",
        "minted = string.format('%016d', tonumber(redis.call('GET', F) or 0) + 1)",
        passed_on_inside_clients,
        {"service", "fence"},
    ),
    Mutant(
        "EXTEND says yes and does nothing",
        "extend",
        "redis.call('PEXPIRE', K, pttl)",
        "",
        a_long_hold_with_renewals,
        {"belief"},
    ),
    Mutant(
        "EXTEND creates the key again",
        "extend",
        NOT_OWNER,
        "if holder ~= token then\nredis.call('SET', K, token, 'PX', lease)\nend",
        extended_after_force,
        {"service"},
    ),
    Mutant(
        "EXTEND says no to the owner",
        "extend",
        "return {1, now}",
        "return {0, now}",
        lost_or_not,
        {"service"},
    ),
    Mutant(
        "ATTACH leaves the mark",
        "attach",
        "marked = marked + marked % 2",
        "",
        attached_by_two,
        {"belief"},
    ),
    Mutant(
        "ATTACH asks for no mark",
        "attach",
        "if is_detached and at or not is_detached and at ~= 1 then\nreturn {-1, now, 0}\nend",
        "",
        attached_beside_its_holder,
        {"belief"},
    ),
    Mutant(
        "ACQUIRE grants permits as long as there is one",
        "acquire.permits",
        "if is_open and used + permits <= math.min",
        "if is_open and used + 1 <= math.min",
        two_want_two_each,
        {"permits"},
    ),
    Mutant(
        "RELEASE gives back a permit too many",
        "release.permits",
        "readers, used = readers - 1, used - permits",
        "readers, used = readers - 1, used - permits - 1",
        one_is_given_back,
        {"permits"},
    ),
    Mutant(
        "EXTEND leaves the end of permits as it is",
        "extend_shared.permits",
        "redis.call('ZADD', R, 'GT', now + lease, token .. permits)",
        "",
        one_is_tried_for_during_renewals,
        {"permits"},
    ),
    Mutant(
        "all fences of permits are the same",
        "acquire.permits",
        "return {1, number, now}",
        "return {1, '0000000000001000', now}",
        one_is_given_back,
        {"fence"},
    ),
    Mutant(
        "ACQUIRE of permits ignores those who wait",
        "acquire.permits",
        "(limit, cap or limit) and\nredis.call('EXISTS', Q) == 0 then",
        "(limit, cap or limit) then",
        one_is_tried_for_while_two_are_waited_for,
        {"order"},
    ),
]
SCENARIOS = sorted({mutant.scenario for mutant in MUTANTS}, key=lambda scenario: scenario.__name__)


def planted(mutant: Mutant) -> Callable[[list[bytes]], list[bytes]]:
    """What the server gets in place of each command."""
    texts: dict[bytes, bytes] = {}
    for name in mutant.script.split():
        for variant in (f"{name}.lua", f"{name}.sharded.lua"):
            text = built(f"core/scripts/{variant}").read_text()
            assert mutant.old in text, f"{variant} has changed: {mutant.defect}"
            changed = text.replace(mutant.old, mutant.new).encode()
            texts[text.encode()] = changed
            texts[hashlib.sha1(text.encode()).hexdigest().encode()] = changed

    def rewrite(command: list[bytes]) -> list[bytes]:
        if command[0] in (b"EVAL", b"EVALSHA") and command[1] in texts:
            return [b"EVAL", texts[command[1]], *command[2:]]
        return command

    return rewrite


def found_in(report: str) -> set[str]:
    """The checkers that have found something."""
    return {line.split(": ")[1] for line in report.splitlines() if line.startswith("lock ")}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(available_kinds()[0]) as running:
        yield running


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return PREPARE["c"](tmp_path_factory.mktemp("runner"))


@pytest.fixture
def play(
    server: Server, history: History, runner: list[str]
) -> Iterator[Callable[..., tuple[int, str]]]:
    """Play a scenario, perhaps with a defect: the verdict on its history."""

    def run(scenario: Callable[[Stage], None], mutant: Mutant | None = None) -> tuple[int, str]:
        with ExitStack() as stack:
            proxy = stack.enter_context(FaultProxy(server.port))
            proxy.rewrite = planted(mutant) if mutant else None
            scenario(Stage(server, history, proxy.url, stack, runner))
        return history.findings(is_fifo=True, calm_ns=1, serve_ms=SERVE_MS)

    yield run
    with server.connect() as connection:
        connection.cmd("FLUSHALL")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_nothing_is_found_without_a_defect(
    play: Callable[..., tuple[int, str]], scenario: Callable[[Stage], None]
) -> None:
    status, report = play(scenario)
    assert status == 0, report


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.defect)
def test_a_defect_is_found(
    play: Callable[..., tuple[int, str]], mutant: Mutant, figure: Callable[[str], None]
) -> None:
    status, report = play(mutant.scenario, mutant)
    found = found_in(report)
    figure(f"{mutant.defect}: found by {', '.join(sorted(found)) or 'nobody'}")
    assert status == 1, report
    assert found == mutant.found_by, report


@pytest.mark.parametrize("defect", ["", "ignore_deadline"])
def test_a_client_that_ignores_its_deadline(
    server: Server, history: History, tmp_path: Path, figure: Callable[[str], None], defect: str
) -> None:
    """Goal: the service did nothing wrong then, and only the beliefs show it.
    Method: the Python runner; another process gets the lock when the lease is over."""
    runner = RecordedRunner(PREPARE["python"](tmp_path), defect, history.folder)
    with Actor(server.url) as other:
        assert runner.call(f"- open url={server.url}") == "OK"
        assert runner.call(f"- lock id=m kind=mutex name={NAME} ttl_ms=300 renew=0") == "OK"
        assert runner.call("m acquire wait_ms=0").startswith("OK ")
        other.ok("acquire", name=NAME, wait=5000, ttl_ms=5000)
        runner.kill()
        note_gone(runner.pid)
        other.ok("release")
    status, report = history.findings()
    found = found_in(report)
    if defect:
        figure(f"{defect}: found by {', '.join(sorted(found)) or 'nobody'}")
    assert status == (1 if defect else 0), report
    assert found == ({"belief"} if defect else set()), report


def test_each_checker_is_needed() -> None:
    """Goal: none of them could be left out."""
    alone = {next(iter(mutant.found_by)) for mutant in MUTANTS if len(mutant.found_by) == 1}
    assert {"service", "belief", "order", "liveness", "permits", "fence"} <= alone
