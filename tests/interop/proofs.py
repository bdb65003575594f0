# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A proof for each cell of the table in README that compares lock libraries.

They wait for events, such as ten polls of another lock, and compare no time with the speed of the
machine. A "no" is proven by one case that a "yes" excludes.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import re
import socket
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
import redlatch
from conformance.runners import PREPARE, Runner
from redis.lock import Lock
from support.build import built
from support.go import run_go
from support.servers import Server
from support.wait import LIMIT, wait_until

from .bench import LIBRARIES, RENEWED_MS, Bench, Proof
from .conftest import TTL_MS, queue_length
from .monitor import Monitor
from .peer import Pending, Side
from .programs import BUILD, SOURCES
from .test_redisson import WATCHDOG, WATCHDOG_MS
from .test_string import refuses

ROUNDS = 20
# A proof of a "no" repeats a race that the waiter may win: with Redisson, five times of six.
TRIES = 2000
# Nothing renews or ends it while a test runs.
LONG_MS = 600_000
SHORT_MS = 1000
TICK_S = 0.005

EXIT_BUSY, EXIT_LOST = 75, 79  # of `redlatch run`

# What an interface needs to notify a holder of a loss.
NOTICE = re.compile(r"lost|listen|notif|callback|signal|abort|cancel|done|event|watch|^on_", re.I)
MODES = re.compile(r"(?<!th)read|write|shared|rw", re.I)
SUBSCRIBED_TO_NOTHING = {("sub", "0"), ("psub", "0"), ("ssub", "0")}


def take(side: Side, owner: str) -> None:
    """For a short time, which a busy machine may have let pass before the library returns."""
    tried = partial(side.call, "acquire", owner=owner, wait_ms=0, ttl_ms=SHORT_MS)
    wait_until(lambda: tried().value)


# ---- waits without polling -----------------------------------------------------------------------


def polls(column: str, verb: str, least_s: float, most_s: float) -> Proof:
    """A waiter asks again and again, at least `least_s` and at most `most_s` apart."""

    def proof(bench: Bench) -> None:
        side = bench.side(column)
        assert side.tries(owner="holder", ttl_ms=LONG_MS)
        with Monitor(bench.server) as monitor:
            waiting = side.waits(owner="waiter", wait_ms=-1)

            def gaps() -> list[float]:
                asked = [seen.time for seen in monitor.commands(bench.name) if seen.verb == verb]
                return sorted(after - before for before, after in zip(asked, asked[1:]))

            # A busy machine makes gaps longer. One is wrong if the clock of the server is set.
            wait_until(lambda: len(gaps()) > 2 and gaps()[1] < most_s)
            assert gaps()[1] > least_s - TICK_S
        side.release(owner="holder")
        assert waiting.get().value
        side.release(owner="waiter")

    return proof


def redisson_waits_silently(bench: Bench) -> None:
    side = bench.side("Redisson")
    assert side.tries(owner="holder", ttl_ms=LONG_MS)
    with Monitor(bench.server) as monitor:
        waiting = side.waits(owner="waiter", wait_ms=LONG_MS)
        # It tries, subscribes, tries again, and waits.
        wait_until(lambda: [s.verb for s in monitor.commands(bench.name)].count("EVALSHA") == 2)
        silent(bench, monitor)
        assert not waiting.is_done
    side.release(owner="holder")
    assert waiting.get().value
    side.release(owner="waiter")


def redlatch_waits_silently(bench: Bench) -> None:
    holder, waiter = bench.side("redlatch"), bench.side("redlatch", number=2)
    assert holder.tries(ttl_ms=LONG_MS)
    with Monitor(bench.server) as monitor:
        waiting = waiter.waits(wait_ms=-1)
        wait_until(lambda: queue_length(holder) == 1)
        silent(bench, monitor)
        assert not waiting.is_done
    holder.release()
    assert waiting.get().value
    waiter.release()


def silent(bench: Bench, monitor: Monitor) -> None:
    """The waiters of the lock ask at most once while another library polls ten times."""
    before = len(monitor.commands(bench.name))
    bench.polls(monitor)
    other = len(monitor.commands(f"{bench.name}-other"))
    assert len(monitor.commands(bench.name)) - other <= before + 1


# ---- first come, first served --------------------------------------------------------------------


def is_overtaken(column: str, asked: int = 1) -> Proof:
    """A try that comes after a waiter, which has sent some commands, gets the lock before it."""

    def proof(bench: Bench) -> None:
        side = bench.side(column)
        for _ in range(TRIES):
            assert side.tries(owner="first")
            with Monitor(bench.server) as monitor:
                waiting = side.waits(owner="waiter", wait_ms=LONG_MS)
                wait_until(lambda: len(monitor.commands(bench.name)) >= asked)
            released = side.begin("release", owner="first")
            late = side.begin("acquire", owner="first", wait_ms=0)
            assert not released.get().error
            if late.get().value:
                assert not waiting.is_done
                side.release(owner="first")
            assert waiting.get().value
            side.release(owner="waiter")
            if late.get().value:
                return
        pytest.fail("the waiter was always first")

    return proof


def serves_in_order(holder: Side, waiters: list[Side], length: Callable[[], int]) -> None:
    """Of a holder that tries again at once, and three waiters, each gets the lock in its turn."""
    for _ in range(ROUNDS):
        assert holder.tries(owner="holder")
        waiting: list[Pending] = []
        for number, waiter in enumerate(waiters):
            waiting.append(waiter.waits(owner=f"waiter {number}", wait_ms=LONG_MS))
            wait_until(lambda: length() == len(waiting))
        released = holder.begin("release", owner="holder")
        late = holder.begin("acquire", owner="holder", wait_ms=0)
        assert not released.get().error
        # Each of them keeps it until this one releases it: another order would stop here.
        for number, waiter in enumerate(waiters):
            assert waiting[number].get().value
            assert late.get().value is False
            waiter.release(owner=f"waiter {number}")


def redisson_has_a_fair_lock(bench: Bench) -> None:
    is_overtaken("Redisson", asked=3)(bench)
    side = bench.side("Redisson", kind="fair")
    queue = f"redisson_lock_queue:{{{bench.name}}}"
    serves_in_order(side, [side] * 3, lambda: int(bench.connection.cmd("LLEN", queue)))


def redlatch_serves_in_order(bench: Bench) -> None:
    holder, *waiters = [bench.side("redlatch", number=number) for number in range(1, 5)]
    serves_in_order(holder, waiters, partial(queue_length, holder))


# ---- a fencing token -----------------------------------------------------------------------------


def has_no_fence(column: str, value: str) -> Proof:
    """A lock is a random value, and no number stays from which the next one could rise."""

    def proof(bench: Bench) -> None:
        side, values = bench.side(column), set()
        for _ in range(2):
            assert side.tries()
            assert bench.keys() == [bench.name.encode()]
            values.add(bench.connection.cmd("GET", bench.name).decode())
            side.release()
            assert bench.keys() == []
        assert len(values) == 2 and all(re.fullmatch(value, one) for one in values)

    return proof


def redisson_has_a_fenced_lock(bench: Bench) -> None:
    fences = []
    for number in (1, 2, 1):
        side = bench.side("Redisson", kind="fenced", number=number)
        fences.append(side.ok("acquire", wait_ms=0))
        side.release()
    assert fences[0] < fences[1] < fences[2]
    plain = bench.side("Redisson")
    assert plain.tries() and bench.connection.cmd("HVALS", bench.name) == [b"1"]
    plain.release()
    # What is left is the counter of the fenced lock.
    wait_until(lambda: bench.keys() == [f"redisson_lock_token:{{{bench.name}}}".encode()])


def redlatch_has_fences(bench: Bench) -> None:
    fences = []
    for _ in range(3):
        with redlatch.connect(bench.server.url) as client, client.lock(bench.name) as lease:
            fences.append(lease.fence)
    assert fences[0] < fences[1] < fences[2]


# ---- renewed while the holder works --------------------------------------------------------------


def is_not_renewed(column: str) -> Proof:
    """The lock of a holder that lives is free after its ttl, and another one gets it."""

    def proof(bench: Bench) -> None:
        side = bench.side(column)
        with Monitor(bench.server) as monitor:
            take(side, "holder")
            asked = len(monitor.commands(bench.name))
            wait_until(lambda: not bench.exists())
            assert len(monitor.commands(bench.name)) == asked
        assert side.tries(owner="other")
        side.release(owner="other")

    return proof


def wait_for_a_renewal(bench: Bench, owner_of: Callable[[], Any]) -> None:
    """Until the remaining time of the key rises, with the same owner."""
    owner, last = owner_of(), bench.connection.cmd("PTTL", bench.name)
    assert owner and last > 0

    def rises() -> bool:
        nonlocal last
        before, last = last, bench.connection.cmd("PTTL", bench.name)
        return bool(last > before)

    wait_until(rises)
    assert owner_of() == owner


def redisson_renews(bench: Bench) -> None:
    side = bench.side("Redisson")
    assert side.tries(ttl_ms=WATCHDOG)
    wait_for_a_renewal(bench, lambda: bench.connection.cmd("HGETALL", bench.name))
    side.release()


def node_renews_in_using(bench: Bench) -> None:
    is_not_renewed("node-redlock")(bench)
    side = bench.side("node-redlock")
    side.ok("using", ttl_ms=RENEWED_MS, threshold_ms=RENEWED_MS * 2 // 3)
    wait_for_a_renewal(bench, lambda: bench.connection.cmd("GET", bench.name))
    side.ok("finish")


def redlatch_renews(bench: Bench) -> None:
    side = bench.side("redlatch")
    assert side.tries(ttl_ms=RENEWED_MS)
    wait_for_a_renewal(bench, lambda: bench.connection.cmd("GET", bench.name))
    side.release()


# ---- the holder is notified of a loss ------------------------------------------------------------


def hears_nothing(column: str, api: Callable[[Bench], list[str]]) -> Proof:
    """The lock is deleted, and another client takes it and keeps it until its ttl is over. The
    holder asks nothing, is subscribed to nothing, and finds out when it releases. Its interface has
    nothing that could notify it."""

    def proof(bench: Bench) -> None:
        assert not list(filter(NOTICE.search, api(bench)))
        # One that has no subscribers of other tests.
        with Server(bench.server.kind) as server, server.connect() as connection:
            alone = replace(bench, server=server, connection=connection)
            holder, other = alone.side(column), alone.side(column, number=2)
            with Monitor(server) as monitor:
                take(holder, "holder")
                connection.cmd("DEL", bench.name)
                take(other, "other")
                asked = len(monitor.commands(bench.name))
                wait_until(lambda: not alone.exists())
                assert len(monitor.commands(bench.name)) == asked
                clients = connection.cmd("CLIENT", "LIST").decode()
                assert set(re.findall(r" (sub|psub|ssub)=(\d+)", clients)) <= SUBSCRIBED_TO_NOTHING
                flags = re.findall(r" flags=(\w+)", clients)
                assert flags and not any("t" in flag for flag in flags)  # CLIENT TRACKING
            assert refuses(holder, "release", LIBRARIES[column].refusals, owner="holder")

    return proof


def api_of_redis_py(_: Bench) -> list[str]:
    return [*vars(Lock), *Lock.__init__.__code__.co_varnames, *Lock.acquire.__code__.co_varnames]


def api_of_redsync(bench: Bench) -> list[str]:
    names: list[str] = bench.side("redsync").ok("api")
    assert "LockContext" in names and "delayFunc" in names
    return names


def redisson_notifies_with_keyspace_events(bench: Bench) -> None:
    side = bench.side("Redisson", watchdog_ms=WATCHDOG_MS)
    side.ok("listen")
    # Without the events nothing comes: the watchdog finds nothing to renew, and is silent.
    assert side.tries(ttl_ms=WATCHDOG)
    with Monitor(bench.server) as monitor:
        bench.connection.cmd("DEL", bench.name)
        wait_until(lambda: monitor.commands(bench.name))
    assert side.ok("events") == []
    before = bench.connection.cmd("CONFIG", "GET", "notify-keyspace-events")[1]
    bench.connection.cmd("CONFIG", "SET", "notify-keyspace-events", "Egx")
    try:
        assert side.tries(owner="again", ttl_ms=TTL_MS)
        bench.connection.cmd("DEL", bench.name)
        wait_until(lambda: side.ok("events") == [f"deleted {bench.name}"])
        assert side.tries(owner="again", ttl_ms=SHORT_MS)
        wait_until(lambda: f"expired {bench.name}" in side.ok("events"))
    finally:
        bench.connection.cmd("CONFIG", "SET", "notify-keyspace-events", before)


def node_aborts_a_signal(bench: Bench) -> None:
    side = bench.side("node-redlock")
    assert not list(filter(NOTICE.search, side.ok("api")))  # nothing but using()
    side.ok("using", ttl_ms=1000, threshold_ms=500)
    bench.connection.cmd("DEL", bench.name)
    assert side.ok("aborted") is True


def command(bench: Bench) -> list[str]:
    return [str(built("cli/redlatch")), "--url", bench.server.url, "run"]


def redlatch_cancels_and_stops(bench: Bench) -> None:
    async def work() -> None:
        async with client.aio.lock(bench.name, ttl=3, on_lost="cancel"):
            bench.connection.cmd("DEL", bench.name)
            await asyncio.Event().wait()

    with redlatch.connect(bench.server.url) as client:
        with pytest.raises(redlatch.LockLost):
            asyncio.run(asyncio.wait_for(work(), LIMIT))
    run = [*command(bench), "--ttl", "3s", bench.name, "--"]
    job = ["sh", "-c", "echo started; exec sleep 60"]
    with subprocess.Popen([*run, *job], stdout=subprocess.PIPE) as running:
        assert running.stdout and running.stdout.readline()
        bench.connection.cmd("DEL", bench.name)
        assert running.wait(LIMIT) == EXIT_LOST


# ---- a waiter sees who holds the lock ------------------------------------------------------------


def shows_a_random_value(column: str, value: str) -> Proof:
    """What the server keeps of a holder names neither its host nor its process."""

    def proof(bench: Bench) -> None:
        side = bench.side(column)
        assert side.tries()
        assert re.fullmatch(value, bench.connection.cmd("GET", bench.name).decode())
        assert bench.keys() == [bench.name.encode()]
        side.release()

    return proof


def redisson_shows_a_random_value(bench: Bench) -> None:
    side = bench.side("Redisson")
    assert side.tries()
    owner, _ = bench.connection.cmd("HGETALL", bench.name)
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:\d+", owner.decode())
    assert bench.keys() == [bench.name.encode()]
    side.release()


def redlatch_shows_the_holder(bench: Bench) -> None:
    side = bench.side("redlatch", options={"label": "the report of May"})
    assert side.tries()
    with redlatch.connect(bench.server.url) as waiter:
        with pytest.raises(redlatch.NotAcquired), waiter.lock(bench.name, timeout=0):
            pass
        holder = waiter.inspect(bench.name).holder
    assert holder and holder.since and holder.remaining
    assert holder.who == f"{socket.gethostname()}/{side.peer.pid}"
    assert holder.label == "the report of May"
    side.release()


# ---- reentrant, and read-write locks -------------------------------------------------------------


def is_a_plain_mutex(column: str, api: Callable[[Bench], list[str]]) -> Proof:
    """An owner's second try is refused, and no function makes a lock for readers."""

    def proof(bench: Bench) -> None:
        side = bench.side(column)
        assert side.tries()
        assert not side.tries()
        assert not list(filter(MODES.search, api(bench)))
        assert bench.connection.cmd("STRLEN", bench.name)
        bench.connection.cmd("DEL", bench.name)

    return proof


def locks_of_redis_py(_: Bench) -> list[str]:
    names = [name for name in dir(redis.Redis) if "lock" in name and name != "client_unblock"]
    assert names == ["lock"]
    return [*names, *vars(Lock)]


def api_of_node(bench: Bench) -> list[str]:
    names: list[str] = bench.side("node-redlock").ok("api")
    assert {"acquire", "using"} <= set(names)
    return names


def redisson_is_reentrant_and_shared(bench: Bench) -> None:
    side = bench.side("Redisson")
    assert side.tries() and side.tries() and not side.tries(owner="other")
    side.release()
    side.release()
    read, write = (bench.side("Redisson", kind=kind) for kind in ("read", "write"))
    assert read.tries(owner="one") and read.tries(owner="two")
    assert not write.tries(owner="three")
    read.release(owner="one")
    read.release(owner="two")
    assert write.tries(owner="three") and not read.tries(owner="one")
    write.release(owner="three")


def redlatch_is_reentrant_and_shared(bench: Bench) -> None:
    with redlatch.connect(bench.server.url) as one, redlatch.connect(bench.server.url) as other:
        with one.rlock(bench.name), one.rlock(bench.name):
            assert not other.rlock(bench.name, timeout=0).acquire()
        files = f"{bench.name}-files"
        with one.rwlock(files).read(), other.rwlock(files).read():
            assert not other.rwlock(files).acquire_write(timeout=0)
        with one.rwlock(files).write():
            assert not other.rwlock(files).acquire_read(timeout=0)


# ---- the same lock from several languages --------------------------------------------------------


def is_of_python(_: Bench) -> None:
    package = importlib.metadata.distribution("redis")
    files = [path for path in package.files or [] if path.parts[0] == "redis"]
    assert {path.suffix for path in files} <= {".py", ".pyc", ".typed"}
    assert not package.entry_points


def is_of_go(_: Bench) -> None:
    module = "github.com/go-redsync/redsync/v4"
    done = run_go(SOURCES / "go", "list", "-m", "-f", "{{.Dir}}", module)
    sources = list(Path(done.stdout.strip()).rglob("*.*"))
    assert any(path.name == "redsync.go" for path in sources)
    other = {".c", ".h", ".cc", ".py", ".java", ".js", ".sh", ".so"}
    assert not [path for path in sources if path.suffix in other]
    assert not [path for path in sources if "\npackage main\n" in code_of(path)]


def code_of(path: Path) -> str:
    is_code = path.suffix == ".go" and path.is_file() and "examples" not in path.parts
    return path.read_text() if is_code else ""


def is_of_java(bench: Bench) -> None:
    bench.side("Redisson")
    (jar,) = (BUILD / "java/jars").glob("redisson-*.jar")
    with zipfile.ZipFile(jar) as package:
        kinds = {Path(name).suffix for name in package.namelist()}
        manifest = package.read("META-INF/MANIFEST.MF").decode()
    assert ".class" in kinds and not kinds & {".so", ".h", ".py", ".js", ".go"}
    assert "Main-Class" not in manifest


def is_of_node(bench: Bench) -> None:
    bench.side("node-redlock")
    folder = BUILD / "node/node_modules/redlock"
    assert "bin" not in json.loads((folder / "package.json").read_text())
    kinds = {path.suffix for path in (folder / "dist").rglob("*") if path.is_file()}
    assert ".js" in kinds and kinds <= {".js", ".ts", ".map", ".json"}


def redlatch_is_of_all(bench: Bench) -> None:
    """Each language holds the lock in its turn, and all others are refused."""
    tried = [*command(bench), "--nonblock"]
    runners = [Runner(PREPARE[one](bench.folder)) for one in ("python", "go", "java", "c")]
    try:
        for runner in runners:
            runner.call(f"- open url={bench.server.url}")
            runner.call(f"- lock id=m kind=mutex name={bench.name}")
        for holder in runners:
            assert holder.call("m acquire wait_ms=0").startswith("OK ")
            others = [one.call("m acquire wait_ms=0") for one in runners if one is not holder]
            assert [reply.split()[0] for reply in others] == ["BUSY"] * 3
            shell = subprocess.run([*tried, bench.name, "--", "true"], capture_output=True)
            assert shell.returncode == EXIT_BUSY
            assert holder.call("m release").startswith("OK")
        running = [*tried, bench.name, "--", "cat"]
        with subprocess.Popen(running, stdin=subprocess.PIPE) as shell_holds:
            wait_until(bench.exists)
            for runner in runners:
                assert runner.call("m acquire wait_ms=0").startswith("BUSY")
            shell_holds.communicate(timeout=LIMIT)
            assert shell_holds.returncode == 0
    finally:
        for runner in runners:
            runner.kill()


# ---- the table -----------------------------------------------------------------------------------

HEX, BASE64 = "[0-9a-f]{32}", "[A-Za-z0-9+/]{22}=="
NOTIFIED = "a waiter is notified, it does not poll"
ORDER = "first come, first served"
RENEWED = "renewed while the holder works"
LOSS = "the holder is notified of a loss"
FENCE = "a fencing token"
HOLDER = "a waiter sees who holds the lock"
MODES_OF_LOCKS = "reentrant and read-write locks"
LANGUAGES = "one lock for programs in"

PROOFS: dict[tuple[str, str], tuple[str, Proof]] = {
    (NOTIFIED, "redis-py"): ("polls each 0.1 s", polls("redis-py", "SET", 0.1, 0.2)),
    (NOTIFIED, "redsync"): ("polls each 50 to 250 ms", polls("redsync", "SET", 0.05, 0.25)),
    (NOTIFIED, "Redisson"): ("yes", redisson_waits_silently),
    (NOTIFIED, "node-redlock"): (
        "polls each 100 to 300 ms",
        polls("node-redlock", "EVALSHA", 0.1, 0.3),
    ),
    (NOTIFIED, "redlatch"): ("yes", redlatch_waits_silently),
    (ORDER, "redis-py"): ("no", is_overtaken("redis-py")),
    (ORDER, "redsync"): ("no", is_overtaken("redsync")),
    (ORDER, "Redisson"): ("`getFairLock`", redisson_has_a_fair_lock),
    (ORDER, "node-redlock"): ("no", is_overtaken("node-redlock")),
    (ORDER, "redlatch"): ("yes, between clients", redlatch_serves_in_order),
    (RENEWED, "redis-py"): ("no", is_not_renewed("redis-py")),
    (RENEWED, "redsync"): ("no", is_not_renewed("redsync")),
    (RENEWED, "Redisson"): ("yes", redisson_renews),
    (RENEWED, "node-redlock"): ("in `using`", node_renews_in_using),
    (RENEWED, "redlatch"): ("yes", redlatch_renews),
    (LOSS, "redis-py"): ("no: its release fails", hears_nothing("redis-py", api_of_redis_py)),
    (LOSS, "redsync"): ("no: its release fails", hears_nothing("redsync", api_of_redsync)),
    (LOSS, "Redisson"): (
        "`addListener`, if the server sends keyspace events",
        redisson_notifies_with_keyspace_events,
    ),
    (LOSS, "node-redlock"): ("`using` aborts a signal", node_aborts_a_signal),
    (LOSS, "redlatch"): ("yes: cancels a task, stops a command", redlatch_cancels_and_stops),
    (FENCE, "redis-py"): ("no", has_no_fence("redis-py", HEX)),
    (FENCE, "redsync"): ("no", has_no_fence("redsync", BASE64)),
    (FENCE, "Redisson"): ("`getFencedLock`", redisson_has_a_fenced_lock),
    (FENCE, "node-redlock"): ("no", has_no_fence("node-redlock", HEX)),
    (FENCE, "redlatch"): ("yes", redlatch_has_fences),
    (HOLDER, "redis-py"): ("no", shows_a_random_value("redis-py", HEX)),
    (HOLDER, "redsync"): ("no", shows_a_random_value("redsync", BASE64)),
    (HOLDER, "Redisson"): ("no", redisson_shows_a_random_value),
    (HOLDER, "node-redlock"): ("no", shows_a_random_value("node-redlock", HEX)),
    (HOLDER, "redlatch"): ("yes: host, process, label", redlatch_shows_the_holder),
    (MODES_OF_LOCKS, "redis-py"): ("no", is_a_plain_mutex("redis-py", locks_of_redis_py)),
    (MODES_OF_LOCKS, "redsync"): ("no", is_a_plain_mutex("redsync", api_of_redsync)),
    (MODES_OF_LOCKS, "Redisson"): ("yes", redisson_is_reentrant_and_shared),
    (MODES_OF_LOCKS, "node-redlock"): ("no", is_a_plain_mutex("node-redlock", api_of_node)),
    (MODES_OF_LOCKS, "redlatch"): ("yes", redlatch_is_reentrant_and_shared),
    (LANGUAGES, "redis-py"): ("Python", is_of_python),
    (LANGUAGES, "redsync"): ("Go", is_of_go),
    (LANGUAGES, "Redisson"): ("Java", is_of_java),
    (LANGUAGES, "node-redlock"): ("Node", is_of_node),
    (LANGUAGES, "redlatch"): ("Python, Go, Java, C, shell", redlatch_is_of_all),
}
