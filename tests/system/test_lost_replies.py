# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a lost reply or request never gives a lock twice, never leaks one, and is told honestly.

Method: a proxy lets one script through and swallows its reply (or drops the request), and then cuts
the connection, or stays silent so that the client gives up. Leases are 30 s: whatever stays behind
would block the check at the end of each test for longer than that check waits.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
import redlatch
from support.servers import Server
from support.wait import wait_until

from .actor import HELD, Actor, Pending, Spawn
from .conftest import queue_length
from .proxy import FaultProxy, Loss


# Of one command: what is waited for when the proxy is silent.
TIMEOUT = "?command_timeout=300ms"
CLEAN_UP_S = 3.0
CUT, SILENT = True, False

both_ways = pytest.mark.parametrize("then_cut", [CUT, SILENT], ids=["cut", "silent"])
reply_or_request = pytest.mark.parametrize("lost", ["reply", "request"])


class Context(NamedTuple):
    """`actor` goes through the proxy, `other` does not."""

    server: Server
    proxy: FaultProxy
    actor: Actor
    other: Actor
    name: str

    def lose(self, lost: str, then_cut: bool) -> Loss:
        lose = self.proxy.lose_reply if lost == "reply" else self.proxy.lose_request
        return lose(then_cut=then_cut)

    def queue(self, actor: Actor, thread: int = 1) -> Pending:
        """Wait for the lock in a thread, and return when queued."""
        length = queue_length(self.server, self.name)
        waiting = actor.begin("acquire", thread=thread, lease=thread, name=self.name, wait=-1)
        wait_until(lambda: queue_length(self.server, self.name) == length + 1)
        return waiting

    def holder(self) -> str:
        with self.server.connect() as connection:
            value = connection.cmd("GET", self.name)
        return "" if value is None else value.decode()

    def check_free(self) -> None:
        """Nothing of what happened blocks anybody."""
        self.other.ok("acquire", thread=9, lease=9, name=self.name, wait=int(CLEAN_UP_S * 1000))
        self.other.ok("release", thread=9, lease=9)
        assert queue_length(self.server, self.name) == 0


@pytest.fixture
def context(shared_server: Server, proxy: FaultProxy, spawn: Spawn, name: str) -> Context:
    actor, other = spawn(proxy.url + TIMEOUT), spawn(shared_server.url)
    actor.ok("connect")
    return Context(shared_server, proxy, actor, other, name)


@both_ways
@reply_or_request
def test_one_try(context: Context, lost: str, then_cut: bool) -> None:
    """Goal: a try whose answer is lost says so, and the lock is given back soon.
    Method: lose it; the key must go long before its lease of 30 s."""
    loss = context.lose(lost, then_cut)
    reply = context.actor.call("acquire", name=context.name, wait=0)
    assert loss.done.is_set()
    if reply.status == "RL_OK":  # sent again in time
        context.actor.ok("release")
    else:
        assert reply.status == "RL_E_OUTCOME_UNKNOWN", reply
        assert reply.message
    if lost == "reply":
        assert loss.reply[0] == 1
    context.check_free()


@both_ways
@reply_or_request
def test_a_free_lock(context: Context, lost: str, then_cut: bool) -> None:
    """Goal: a wait rides out the loss and is not blocked by its own grant.
    Method: lose the first answer; the second gives the same lock to the same token."""
    loss = context.lose(lost, then_cut)
    reply = context.actor.ok("acquire", name=context.name, wait=5000)
    assert reply.seconds < CLEAN_UP_S
    token = context.actor.ok("look")["token"]
    assert context.holder() == token
    assert loss.command[8].decode() == token
    if lost == "reply":
        # The same grant, not a second one.
        assert int(loss.reply[1]) == reply.number("fence")
    context.actor.ok("release")
    context.check_free()


@both_ways
@reply_or_request
def test_a_place_in_the_queue(context: Context, lost: str, then_cut: bool) -> None:
    """Goal: queueing twice gives one place, in front of those who came later.
    Method: lose the answer to the first request; another waiter comes; release."""
    context.other.ok("acquire", name=context.name, wait=0)
    loss = context.lose(lost, then_cut)
    first = context.actor.begin("acquire", name=context.name, wait=-1)
    assert loss.done.wait(5.0)
    wait_until(lambda: queue_length(context.server, context.name) == 1)
    if lost == "request":
        assert context.holder() == context.other.ok("look")["token"]
    second = context.queue(context.other, 2)
    context.other.ok("inspect", name=context.name)
    # All is calm again before the release.
    wait_until(lambda: context.actor.call("inspect", thread=5, name=context.name).status == "RL_OK")
    assert queue_length(context.server, context.name) == 2
    context.other.ok("release")
    assert first.get().status == "RL_OK"
    assert not second.is_done
    context.actor.ok("release")
    assert second.get().status == "RL_OK"
    context.other.ok("release", lease=2)
    context.check_free()


@both_ways
def test_a_poll(context: Context, then_cut: bool) -> None:
    """Goal: a lost answer to a waiter that looks again keeps its one place.
    Method: the holder's lease of 600 ms lets the waiter look often; lose one look."""
    context.other.ok("acquire", name=context.name, wait=0, ttl_ms=600)
    waiting = context.queue(context.actor)
    loss = context.lose("reply", then_cut)
    assert loss.done.wait(5.0)
    assert loss.reply[0] == 0
    assert len(loss.command[10]) == 51  # the queue member: it is an ACQUIRE that queues
    assert queue_length(context.server, context.name) == 1
    time.sleep(0.1)  # some releases meet the client while it is away
    context.other.ok("release")
    assert waiting.get().status == "RL_OK"
    context.actor.ok("release", lease=1)
    context.check_free()


@both_ways
@reply_or_request
@pytest.mark.parametrize("has_heir", [False, True], ids=["free", "handed on"])
def test_a_release(context: Context, lost: str, then_cut: bool, has_heir: bool) -> None:
    """Goal: a release whose answer is lost is done, says so, and does not touch the next holder.
    Method: lose it, with and without a waiter who gets the lock by it."""
    context.actor.ok("acquire", name=context.name, wait=0)
    heir = context.queue(context.other) if has_heir else None
    loss = context.lose(lost, then_cut)
    reply = context.actor.call("release")
    assert loss.done.is_set()
    # Silence lasts as long as the limit of the release itself.
    honest = ("RL_OK",) if then_cut else ("RL_OK", "RL_E_OUTCOME_UNKNOWN")
    assert reply.status in honest, reply
    if heir:
        assert heir.get(CLEAN_UP_S).status == "RL_OK"
        # The repeated release has come and gone.
        wait_until(lambda: context.actor.call("inspect", name=context.name).status == "RL_OK")
        look = context.other.ok("look", thread=1, lease=1)
        assert look.number("state") == HELD
        assert context.holder() == look["token"]
        context.other.ok("release", thread=1, lease=1)
    context.check_free()


@both_ways
@reply_or_request
def test_an_extension(context: Context, lost: str, then_cut: bool) -> None:
    """Goal: an extension whose answer is lost is sent again or unknown; the lock stays held.
    Method: lose it; the server's time to live and the client's deadline agree."""
    context.actor.ok("acquire", name=context.name, wait=0, ttl_ms=2000)
    loss = context.lose(lost, then_cut)
    reply = context.actor.call("extend", ttl_ms=20_000)
    assert loss.done.is_set()
    assert reply.status in ("RL_OK", "RL_E_OUTCOME_UNKNOWN"), reply
    assert reply.status == "RL_OK" or not then_cut
    with context.server.connect() as connection:
        before = connection.cmd("PTTL", context.name)
        look = context.actor.ok("look")
        left = connection.cmd("PTTL", context.name)
    assert look.number("state") == HELD
    # A renewal may come in between, and so may a pause of this process.
    assert look.number("remaining") <= max(before, left) + 5
    if reply.status == "RL_OK":
        assert left > 15_000
    context.actor.ok("release")
    context.check_free()


@both_ways
@reply_or_request
def test_a_cancel(context: Context, lost: str, then_cut: bool) -> None:
    """Goal: who gave up is not in the queue, and gets no lock that nobody wants.
    Method: lose the CANCEL; the holder releases at once, the lock must be free soon."""
    context.other.ok("acquire", name=context.name, wait=0)
    waiting = context.actor.begin("acquire", name=context.name, wait=2000)
    wait_until(lambda: queue_length(context.server, context.name) == 1)
    # In the middle of its wait it asks once who holds the lock.
    count = context.server.script_count()
    wait_until(lambda: context.server.script_count() > count)
    loss = context.lose(lost, then_cut)
    assert waiting.get().status == "RL_TIMEOUT"
    assert loss.done.wait(5.0)
    assert len(loss.command[7]) == 51  # the queue member
    if lost == "reply":
        assert queue_length(context.server, context.name) == 0
    context.other.ok("release")
    context.check_free()


@both_ways
@reply_or_request
def test_a_forced_release(context: Context, lost: str, then_cut: bool) -> None:
    """Goal: force_release is never sent twice: it would remove the next holder.
    Method: lose it while another waits, who must keep what he gets."""
    context.other.ok("acquire", name=context.name, wait=0)
    holder_token = context.holder()
    heir = context.queue(context.other)
    loss = context.lose(lost, then_cut)
    reply = context.actor.call("force", name=context.name)
    assert reply.status == "RL_E_OUTCOME_UNKNOWN", reply
    assert loss.done.is_set()
    wait_until(lambda: context.actor.call("inspect", name=context.name).status == "RL_OK")
    if lost == "reply":
        assert heir.get().status == "RL_OK"
        assert context.holder() == context.other.ok("look", lease=1)["token"]
        assert context.other.call("release").status == "RL_E_LOST"
    else:
        assert context.holder() == holder_token
        context.other.ok("release")
        assert heir.get().status == "RL_OK"
    context.other.ok("release", lease=1)
    context.check_free()


def test_the_last_of_several_names(context: Context) -> None:
    """Goal: names of which one is without an answer when the wait is over are a timeout.

    Method: the first name is awaited; the reply to the request for the second one is lost.
    """
    first, second = context.name, f"{context.name}2"
    context.other.ok("acquire", thread=1, lease=1, name=first, wait=0)
    with redlatch.connect(context.proxy.url) as client, ThreadPoolExecutor() as threads:
        waiting = threads.submit(client.lock_all([first, second]).acquire, timeout=2)
        with context.server.connect() as connection:
            wait_until(lambda: queue_length(context.server, first) == 1)
            wait_until(lambda: not connection.cmd("EXISTS", second))
            loss = context.proxy.lose_reply(then_cut=SILENT)
            context.other.ok("release", thread=1, lease=1)
            assert loss.done.wait(10) and connection.cmd("EXISTS", first) == 1
        assert waiting.result() is None
    context.check_free()
