# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what a server refuses is told with the server's words, and ridden out where it passes.

Method: servers without memory, loading, busy, read-only, without replicas, or too old.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from support.servers import (
    Server,
    available_kinds,
    debug_options,
    has_replicas_for_scripts,
)
from support.wait import SLACK_S, wait_until

from .actor import HELD, LOST, Actor, Pending, Spawn
from .conftest import FOREIGN, queue_length
from .hostile import HostileServer, fake_hello
from .plays import RENEWED_TTL_MS, await_renewal
from .proxy import FaultProxy


# Of LOADING and BUSY: as long as two tries and a look need, and no longer.
TROUBLE_S = 1.2
ENDPOINT_TTL_MS = 3000
POLL_S = 15  # a waiter that relies on messages asks this often
LOADED_AT_ONCE = 2 << 20  # after so many bytes a server that loads its data looks at its clients


def check_refused(actor: Actor, word: str, *, lock: str, wait: int) -> None:
    """An acquire that ends with the server's words, in time."""
    reply = actor.call("acquire", lease=7, name=lock, wait=wait)
    assert reply.status == "RL_E_SERVER", reply
    assert word in reply.message
    assert wait / 1000 <= reply.seconds < wait / 1000 + SLACK_S


def first_done(pending: list[Pending]) -> int:
    wait_until(lambda: any(one.is_done for one in pending))
    return [one.is_done for one in pending].index(True)


# ---- no memory ----


def test_without_memory(server: Server, spawn: Spawn, name: str) -> None:
    """Goal: OOM is RL_E_SERVER with the server's words; what is held can be kept and given back,
    and who waits already is served.
    Method: maxmemory below what is used; all calls; then memory again."""
    holder, queued, late = (spawn(server.url + "?command_timeout=1s") for _ in range(3))
    holder.ok("acquire", name=name, wait=0, ttl_ms=RENEWED_TTL_MS)
    waiting = queued.begin("acquire", name=name, wait=-1, ttl_ms=RENEWED_TTL_MS)
    wait_until(lambda: queue_length(server, name) == 1)
    late.ok("connect")
    with server.connect() as connection:
        connection.cmd("CONFIG", "SET", "maxmemory-policy", "noeviction")
        connection.cmd("CONFIG", "SET", "maxmemory", 1)
        check_refused(late, "OOM", lock="free", wait=0)
        check_refused(late, "OOM", lock="free", wait=400)
        check_refused(late, "OOM", lock="free", wait=1050)  # longer than one command may take
        check_refused(late, "OOM", lock=name, wait=400)
        assert late.call("acquire", name=name, wait=0).status == "RL_BUSY"
        await_renewal(holder)
        holder.ok("extend", ttl_ms=2 * RENEWED_TTL_MS)
        late.ok("inspect", name=name)
        holder.ok("release")
        assert waiting.get().status == "RL_OK"
        queued.ok("release")
        riders = [late, queued]
        riding = [actor.begin("acquire", name="free", wait=20_000) for actor in riders]
        time.sleep(0.3)  # both are refused at least once
        connection.cmd("CONFIG", "SET", "maxmemory", 0)
    first = first_done(riding)
    riders[first].ok("release")
    assert {one.get().status for one in riding} == {"RL_OK"}
    riders[1 - first].ok("release")


# ---- trouble that passes ----


@contextmanager
def loading(server: Server) -> Iterator[None]:
    """The server loads its data, for TROUBLE_S."""

    def reload() -> None:
        with server.connect(timeout=30.0) as connection:
            connection.cmd("DEBUG", "RELOAD")

    with server.connect() as connection:
        connection.cmd("CONFIG", "SET", "rdbcompression", "no")
        connection.cmd("DEBUG", "POPULATE", int(TROUBLE_S * 40), FOREIGN, LOADED_AT_ONCE // 2)
        connection.cmd("CONFIG", "SET", "key-load-delay", 25_000)
        thread = threading.Thread(target=reload)
        thread.start()
        wait_until(lambda: "loading:1" in connection.cmd("INFO", "persistence").decode())
        yield
        assert thread.is_alive(), "it was over too early"
    thread.join(30.0)


@contextmanager
def busy(server: Server) -> Iterator[None]:
    """The server runs a script, for TROUBLE_S."""
    with server.connect() as connection, server.connect() as killer:
        connection.cmd("CONFIG", "SET", "lua-time-limit", 20)
        connection.send("EVAL", "while true do end", 0)
        began = time.monotonic()
        wait_until(lambda: "BUSY" in str(killer.pipe([["GET", "x"]])[0]))
        try:
            yield
            time.sleep(max(began + TROUBLE_S - time.monotonic(), 0.0))
        finally:
            killer.cmd("SCRIPT", "KILL")
            wait_until(lambda: "BUSY" not in str(killer.pipe([["GET", "x"]])[0]))


@pytest.mark.parametrize("trouble", [loading, busy], ids=["LOADING", "BUSY"])
@pytest.mark.parametrize("kind", available_kinds())
def test_trouble_that_passes(
    spawn: Spawn,
    name: str,
    kind: str,
    trouble: Callable[[Server], AbstractContextManager[None]],
) -> None:
    """Goal: LOADING and BUSY are told at once to who may not wait, and ridden out by who may; a
    client that connected meanwhile waits by push afterwards.
    Method: both, for clients that are connected and new ones; then count what a waiter sends."""
    word = "LOADING" if trouble is loading else "BUSY"
    with Server(kind, debug_options(kind)) as server:
        old, new = spawn(server.url), spawn(server.url)
        old.ok("acquire", name=name, wait=0)
        with trouble(server):
            for actor in (old, new):
                check_refused(actor, word, lock="free", wait=0)
                check_refused(actor, word, lock="free", wait=100)
            waiting = new.begin("acquire", name=name, wait=20_000)
            reply = old.call("inspect", name=name)
            assert reply.status == "RL_E_SERVER" and word in reply.message
        assert old.ok("look").number("state") == HELD
        wait_until(lambda: queue_length(server, name) == 1)

        def is_quiet() -> bool:
            before = server.script_count()
            time.sleep(0.8)  # one that polls asks three times
            return server.script_count() - before <= 1

        # What was refused before is sent again first.
        wait_until(is_quiet, 5.0)
        old.ok("release")
        assert waiting.get().status == "RL_OK"


# ---- writes refused ----


def test_a_replica_refuses(spawn: Spawn, name: str) -> None:
    """Goal: a replica is RL_E_SERVER with READONLY at connect; once promoted it serves who waited.
    Method: a replica of a second server; a connect, tries, a wait; then REPLICAOF NO ONE."""
    kind = available_kinds()[0]
    with (
        Server(kind, ["--repl-diskless-sync-delay", "0"]) as primary,
        Server(kind, ["--replicaof", "127.0.0.1", str(primary.port)]) as replica,
        replica.connect() as connection,
    ):
        wait_until(lambda: b"master_link_status:up" in connection.cmd("INFO", "replication"))
        actor = spawn(replica.url)
        reply = actor.call("connect", wait=0)
        assert reply.status == "RL_E_SERVER", reply
        assert "is a replica and READONLY: locks need its primary" in reply.message
        check_refused(actor, "READONLY", lock=name, wait=0)
        check_refused(actor, "READONLY", lock=name, wait=300)
        waiting = actor.begin("acquire", name=name, wait=20_000)
        time.sleep(0.2)  # it is refused at least once
        connection.cmd("REPLICAOF", "NO", "ONE")
        assert waiting.get().status == "RL_OK"
        actor.ok("release")


@contextmanager
def endpoint() -> Iterator[tuple[FaultProxy, Server, Callable[[], None]]]:
    """An address that leads to a server, its replica, and what makes that the primary: the address
    leads to it then, and connections to the old one stay open."""
    kind, at_once = available_kinds()[0], ["--repl-diskless-sync-delay", "0"]
    with (
        Server(kind, at_once) as old,
        Server(kind, [*at_once, "--replicaof", "127.0.0.1", str(old.port)]) as new,
        FaultProxy(old.port) as proxy,
        old.connect() as at_old,
        new.connect() as at_new,
    ):
        wait_until(lambda: b"master_link_status:up" in at_new.cmd("INFO", "replication"))

        def move() -> None:
            at_new.cmd("REPLICAOF", "NO", "ONE")
            at_old.cmd("REPLICAOF", "127.0.0.1", str(new.port))
            wait_until(lambda: b"master_link_status:up" in at_old.cmd("INFO", "replication"))
            proxy.lead_to(new.port)

        yield proxy, new, move


def test_an_endpoint_moves_to_another_primary(spawn: Spawn, name: str) -> None:
    """Goal: behind an address whose server is replaced by its replica, as managed services do,
    leases are renewed there, waiters keep their places, and releases are done.
    Method: a proxy is the address; its connections to the old primary stay open. Each client has a
    lease, whose renewal shows it that its server is a replica."""
    with endpoint() as (proxy, new, move):
        holder, *waiters = (spawn(proxy.url) for _ in range(3))
        holder.ok("acquire", name=name, wait=0, ttl_ms=ENDPOINT_TTL_MS)
        waiting = []
        for number, waiter in enumerate(waiters, 1):
            own = f"{name}-{number}"
            waiter.ok("acquire", name=own, lease=1, wait=0, ttl_ms=ENDPOINT_TTL_MS)
            waiting.append(waiter.begin("acquire", thread=1, name=name, wait=-1))
            wait_until(lambda count=number: queue_length(new, name) == count)
        move()
        kept = [
            holder.begin("wait_lost", wait=2 * ENDPOINT_TTL_MS),
            *(one.begin("wait_lost", lease=1, wait=2 * ENDPOINT_TTL_MS) for one in waiters),
        ]
        assert [one.get().number("state") for one in kept] == [HELD] * 3
        assert queue_length(new, name) == 2
        holder.ok("release")
        for waiter, one in zip(waiters, waiting):
            assert one.get().status == "RL_OK"
            waiter.ok("release", thread=1)
            waiter.ok("release", lease=1)
        with new.connect() as connection:
            assert connection.cmd("EXISTS", name, f"{name}-1", f"{name}-2") == 0


def test_waiters_at_a_replica_believe_no_grant(spawn: Spawn, name: str) -> None:
    """Goal: waiters whose server has become a replica get the lock one after the other, with
    fences of their own, and soon.
    Method: they send nothing before the release; the new primary counts no receiver for them, and
    its messages reach them by replication."""
    with endpoint() as (proxy, new, move):
        holder, *waiters = (spawn(proxy.url) for _ in range(5))
        holder.ok("acquire", name=name, wait=0, ttl_ms=ENDPOINT_TTL_MS)
        waiting = {}
        for waiter in waiters:
            waiting[waiter] = waiter.begin("acquire", name=name, wait=-1)
            wait_until(lambda count=len(waiting): queue_length(new, name) == count)
        move()
        kept = holder.ok("wait_lost", wait=2 * ENDPOINT_TTL_MS)
        assert kept.number("state") == HELD
        released = holder.ok("release").began
        fences = []
        while waiting:
            done = wait_until(lambda: [one for one in waiting if waiting[one].is_done])
            assert len(done) == 1
            reply = waiting.pop(done[0]).get()
            assert reply.status == "RL_OK", reply
            fences.append(reply.number("fence"))
            assert done[0].ok("wait_lost", wait=300).number("state") == HELD
            done[0].ok("release")
        assert reply.ended - released < POLL_S
        assert fences == sorted(set(fences)) and len(fences) == 4


@contextmanager
def without_replicas(server: Server) -> Iterator[None]:
    """The server has fewer replicas than it needs for a write."""
    with server.connect() as connection:
        connection.cmd("CONFIG", "SET", "min-replicas-to-write", 1)
        yield
        connection.cmd("CONFIG", "SET", "min-replicas-to-write", 0)


@contextmanager
def without_snapshots(server: Server) -> Iterator[None]:
    """The server is to save its data, and cannot. Method: a folder in the place of the file."""
    Path(server.unix_path).with_name("dump.rdb").mkdir()
    with server.connect() as connection:
        connection.cmd("CONFIG", "SET", "save", "100000 100000")
        connection.cmd("BGSAVE")
        failed = b"rdb_last_bgsave_status:err"
        wait_until(lambda: failed in connection.cmd("INFO", "persistence"))
        yield
        connection.cmd("CONFIG", "SET", "save", "")


REFUSALS = {"MISCONF": without_snapshots}
if has_replicas_for_scripts(available_kinds()[0]):
    REFUSALS["NOREPLICAS"] = without_replicas


@pytest.mark.parametrize("word", REFUSALS)
def test_a_holder_whose_renewals_are_refused(
    one_server: Server, spawn: Spawn, name: str, word: str
) -> None:
    """Goal: refusals that do not end cost the lock at its deadline, with the server's words as the
    reason; a refused release is tried again.
    Method: a server that refuses all writes; then one that does not."""
    holder, other = spawn(one_server.url), spawn(one_server.url)
    holder.ok("acquire", name=name, wait=0, ttl_ms=600)
    holder.ok("acquire", name="released", wait=0, lease=1)
    with REFUSALS[word](one_server):
        reply = holder.call("release", lease=1)
        assert reply.status == "RL_E_SERVER" and word in reply.message, reply
        reply = holder.call("wait_lost", wait=-1)
        assert reply.number("state") == LOST
        assert reply.seconds < 0.6 + SLACK_S
        reply = holder.call("release")
        assert reply.status == "RL_E_LOST" and word in reply.message, reply
    other.ok("acquire", name="released", wait=3000)
    other.ok("acquire", name=name, wait=3000)


# ---- too old ----


@pytest.mark.parametrize(
    "answer",
    [
        fake_hello("6.1.9"),
        b"%0\r\n",
        b"-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n",
    ],
    ids=["6.1", "none", "4"],
)
def test_servers_that_are_too_old(spawn: Spawn, name: str, answer: bytes) -> None:
    """Goal: a server that cannot do what is needed is RL_E_UNSUPPORTED at once, and the message
    says what is needed.
    Method: a fake server with that answer to HELLO; each kind of call."""
    with HostileServer(lambda command: [answer] if command[0] == b"HELLO" else None) as server:
        actor = spawn(server.url)
        for command, wait in (("connect", -1), ("acquire", 0), ("acquire", -1), ("inspect", 0)):
            reply = actor.call(command, name=name, wait=wait)
            assert reply.status == "RL_E_UNSUPPORTED", reply
            assert "6.2" in reply.message and server.url in reply.message
            assert reply.seconds < SLACK_S


@pytest.mark.parametrize("hello", [fake_hello("6.2.0"), fake_hello("7.2.0", "valkey")])
def test_servers_that_are_just_new_enough(spawn: Spawn, name: str, hello: bytes) -> None:
    """Goal: the oldest versions are not refused, so that the test before this one can fail.
    Method: the same fake server with other numbers."""
    with HostileServer(lambda command: [hello] if command[0] == b"HELLO" else None) as server:
        spawn(server.url).ok("acquire", name=name, wait=0)
