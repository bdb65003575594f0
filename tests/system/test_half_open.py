# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a client whose old connection the server still counts waits by messages on its new one.

Method: a proxy that goes silent for the present connections and keeps its side to the server open;
INFO commandstats counts the scripts afterwards.
"""

from __future__ import annotations

import pytest
from support.servers import Server
from support.wait import SLACK_S, wait_until

from .actor import HELD, Actor, Spawn
from .conftest import queue_length, queued_tokens
from .plays import MESSAGE_S, scripts_within
from .proxy import FaultProxy


WAITERS = 20
MEASURED_S = 2.0  # by polling each waiter would send several in a second
TIMEOUT_S = 0.5
LIMITS = "command_timeout=500ms&connect_timeout=2s&health=no"


def lose_connection(actor: Actor, proxy: FaultProxy) -> None:
    """The present one dies, and the client has noticed it and connected anew."""
    before = proxy.link_count
    proxy.silence()
    wait_until(lambda: actor.call("inspect", thread=31, name="any").status == "RL_OK")
    assert proxy.link_count > before


@pytest.mark.parametrize("protocol", ["", "&protocol=2"], ids=["resp3", "resp2"])
def test_waiters_are_notified_behind_a_dead_connection(
    server: Server, spawn: Spawn, name: str, protocol: str
) -> None:
    """Goal: no polls after an outage, twice; a held lease keeps its token, and a waiter its place.
    Method: waiters behind a holder elsewhere, beside a lease that is held."""
    with FaultProxy(server.port) as proxy:
        holder = spawn(server.url)
        client = spawn(f"{proxy.url}?{LIMITS}{protocol}")
        holder.ok("acquire", name=name, wait=0, ttl_ms=60_000)
        client.ok("acquire", thread=30, lease=30, name=name + "-held", wait=0, ttl_ms=60_000)
        token = client.ok("look", thread=30, lease=30)["token"]
        waiting = []
        for i in range(WAITERS):
            # Without a search for other libraries, which leaves the lock free for a moment.
            words = {"name": name, "wait": -1, "burst": 0, "foreign": 0}
            waiting.append(client.begin("acquire", thread=i, lease=i, **words))
            wait_until(lambda n=i: queue_length(server, name) == n + 1)
        tokens = queued_tokens(server, name)
        for _ in range(2):
            lose_connection(client, proxy)
            wait_until(lambda: queue_length(server, name) == WAITERS)
            assert scripts_within(server, MEASURED_S) < WAITERS
            old, tokens = tokens, queued_tokens(server, name)
            assert not any(token in old for token in tokens), "no message reaches the old tokens"
        held = client.ok("look", thread=30, lease=30)
        assert held["token"] == token and held.number("state") == HELD
        for i in range(3):
            released = (holder if i == 0 else client).ok("release", thread=max(i - 1, 0),
                                                         lease=max(i - 1, 0))
            assert waiting[i].get().ended - released.began < MESSAGE_S


def test_a_silent_connection_for_messages_is_noticed(
    server: Server, spawn: Spawn, name: str
) -> None:
    """Goal: with RESP2 a dead connection for messages costs no hand-off: while a lock is waited
    for it is found within two command timeouts, and the next hand-off is by message.
    Method: a proxy swallows that connection alone, without an end, long before the release."""
    with FaultProxy(server.port) as proxy:
        holder = spawn(server.url)
        client = spawn(f"{proxy.url}?{LIMITS}&protocol=2")
        holder.ok("acquire", name=name, wait=0, ttl_ms=60_000)
        waiting = client.begin("acquire", name=name, wait=-1)
        wait_until(lambda: queue_length(server, name) == 1)
        before = proxy.link_count
        proxy.silence(only_subscribed=True)
        wait_until(lambda: proxy.link_count > before, 10 * TIMEOUT_S)
        wait_until(lambda: queue_length(server, name) == 1)
        assert scripts_within(server, MEASURED_S) < WAITERS
        released = holder.ok("release")
        assert waiting.get().ended - released.began < MESSAGE_S


def test_a_hand_off_on_a_silent_connection_for_messages_has_a_bound(
    server: Server, spawn: Spawn, name: str
) -> None:
    """Goal: a release whose message is swallowed is found within two command timeouts and a
    provisional lease, not by the safety poll after the end of the holder's lease.
    Method: as above; the release comes at once."""
    with FaultProxy(server.port) as proxy:
        holder = spawn(server.url)
        client = spawn(f"{proxy.url}?{LIMITS}&protocol=2")
        holder.ok("acquire", name=name, wait=0, ttl_ms=60_000)
        waiting = client.begin("acquire", name=name, wait=-1)
        wait_until(lambda: queue_length(server, name) == 1)
        proxy.silence(only_subscribed=True)
        released = holder.ok("release")
        assert waiting.get().ended - released.began < 2 * TIMEOUT_S + 3.0 + SLACK_S
