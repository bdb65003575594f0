# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a process may be interrupted by signals, and run for long.

Method: timers that interrupt each system call, tens of thousands of operations and hundreds of
reconnects with memory, threads and descriptors counted.
"""

from __future__ import annotations

from support.servers import Server
from support.wait import wait_until

from .actor import Actor, Spawn
from .conftest import queue_length
from .proxy import FaultProxy


# What an allocator may keep without leaking.
FLAT_KIB = 1024


# ---- signals ----


def test_signals_at_a_thousand_hertz(one_server: Server, spawn: Spawn, name: str) -> None:
    """Goal: EINTR in any system call changes no result.
    Method: SIGPROF and SIGALRM each millisecond, without SA_RESTART, during thousands of
    operations of five threads; a new client connects meanwhile."""
    actor = spawn(one_server.url)
    actor.ok("signals", thread=9, us=1000)
    running = [
        actor.begin(
            "loop", thread=thread, name=name, wait=20_000, count=1000, mixed=2, seed=thread,
            burst=16 * (thread % 2), hold_us=50,
        )
        for thread in range(4)
    ]
    actor.ok("open", thread=5, client=1, url=one_server.url)
    actor.ok("reopen", thread=5, url=one_server.url, name="reopened", count=30)
    for pending in running:
        reply = pending.get(60.0)
        assert reply.status == "RL_OK", reply
        assert reply.number("count") == 1000
    assert actor.ok("signals", thread=9, us=0).number("count") > 300


def test_an_interrupted_wait_keeps_its_place(
    one_server: Server, spawn: Spawn, name: str
) -> None:
    """Goal: rl_request_wait returns RL_INTERRUPTED after a signal, and nothing else changes; calls
    that block go on, and keep their limits.
    Method: signals while one request is driven and another thread is in rl_acquire."""
    actor, other = spawn(one_server.url), spawn(one_server.url)
    other.ok("acquire", name=name, wait=0)
    actor.ok("start", name=name, wait=-1, burst=0)
    wait_until(lambda: queue_length(one_server, name) == 1)
    actor.ok("signals", thread=9, us=1000)
    limited = actor.begin("acquire", thread=1, lease=1, name=name, wait=300, burst=0)
    interruptions = 0
    for count in range(400):
        # The system chooses the thread that gets a signal.
        if count >= 20 and interruptions > 0:
            break
        reply = actor.call("wait", wait=50)
        assert reply.status in ("RL_INTERRUPTED", "RL_PENDING"), reply
        interruptions += reply.status == "RL_INTERRUPTED"
    assert interruptions > 0
    reply = limited.get()
    assert reply.status == "RL_TIMEOUT" and 0.3 <= reply.seconds < 2.0
    wait_until(lambda: queue_length(one_server, name) == 1)
    other.ok("release")
    while (reply := actor.call("wait", wait=5000)).status == "RL_INTERRUPTED":
        pass
    assert reply.status == "RL_OK"
    actor.ok("signals", thread=9, us=0)


# ---- what a process uses ----


def usage(actor: Actor) -> tuple[int, int]:
    return actor.descriptor_count, actor.thread_count


def test_many_cycles_use_no_more(one_server: Server, spawn: Spawn, name: str) -> None:
    """Goal: memory, descriptors and threads stay flat over 20,000 acquires and releases, in the
    client and on the server.
    Method: warm up, count, run, count."""
    actor, other = spawn(one_server.url), spawn(one_server.url)
    other.ok("connect")
    with one_server.connect() as connection:

        def server_keys() -> int:
            return int(connection.cmd("DBSIZE"))

        actor.ok("loop", name=name, wait=0, count=2000)
        memory, used, keys = actor.memory_kib, usage(actor), server_keys()
        actor.ok("loop", name=name, wait=0, count=20_000, limit=120.0)
        assert actor.memory_kib - memory < FLAT_KIB
        assert usage(actor) == used
        assert server_keys() == keys
        # The same with an opponent: queues, pushes, cancels.
        pair = [who.begin("loop", name=name, wait=9000, count=500) for who in (actor, other)]
        assert {pending.get().status for pending in pair} == {"RL_OK"}
        memory = actor.memory_kib
        pair = [who.begin("loop", name=name, wait=9000, count=3000) for who in (actor, other)]
        assert {pending.get(60.0).status for pending in pair} == {"RL_OK"}
        assert actor.memory_kib - memory < FLAT_KIB
        assert usage(actor) == used


def test_many_reconnects_use_no_more(proxy: FaultProxy, spawn: Spawn, name: str) -> None:
    """Goal: memory, descriptors and threads stay flat over 100 lost connections.
    Method: cut the connection of a client that holds a lock, and use it, again and again."""
    actor = spawn(proxy.url)
    actor.ok("acquire", name=name, wait=0)

    def reconnect(count: int) -> None:
        for _ in range(count):
            proxy.cut()
            actor.ok("extend", ttl_ms=30_000)

    reconnect(20)
    memory, used = actor.memory_kib, usage(actor)
    reconnect(100)
    assert actor.memory_kib - memory < FLAT_KIB
    assert usage(actor) == used
    actor.ok("release")


def test_many_clients_use_no_more(one_server: Server, spawn: Spawn, name: str) -> None:
    """Goal: a closed client leaves nothing: no thread, no descriptor, no memory, no connection.
    Method: open, use and close 200 of them."""
    actor = spawn(one_server.url)
    actor.ok("reopen", url=one_server.url, name=name, count=20)
    memory, used = actor.memory_kib, usage(actor)
    actor.ok("reopen", url=one_server.url, name=name, count=200)
    assert actor.memory_kib - memory < FLAT_KIB
    assert usage(actor) == used
    with one_server.connect() as connection:
        wait_until(lambda: b" name=redlatch " not in connection.cmd("CLIENT", "LIST"))
