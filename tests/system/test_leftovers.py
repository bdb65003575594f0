# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: after everything has ended, nothing stays on the server longer than it must.

Method: clients of all sorts come and go, many by SIGKILL; then what is left is looked at.
"""

from __future__ import annotations

import random

from support.servers import Server
from support.wait import wait_until

from .actor import Spawn


TTL_MS = 700
QUEUE_MS, FENCE_MS = 600_000, 3_600_000


def test_no_key_outlives_its_lease(server: Server, spawn: Spawn, name: str) -> None:
    """Goal: no lock outlives its lease, queue and fence end by themselves, nothing is for ever.
    Method: holders, waiters and loops on five names, half of the processes killed at random
    moments, the others closed; then the keys, their types and their times to live."""
    chosen = random.Random(3)
    actors = [spawn(server.url) for _ in range(10)]
    for number, actor in enumerate(actors):
        for thread in range(5):
            command = ("loop", "acquire", "start")[(number + thread) % 3]
            actor.begin(
                command,
                thread=thread,
                lease=thread,
                request=thread,
                name=f"{name}-{thread}",
                wait=chosen.choice([0, 100, -1]),
                ms=500,
                hold_us=3000,
                ttl_ms=TTL_MS,
                label="left behind",
                burst=chosen.choice([0, 16]),
            )
    with server.connect() as connection:
        wait_until(lambda: int(connection.cmd("DBSIZE")) >= 10)
        for actor in actors[:5]:
            actor.kill()
        for actor in actors[5:]:
            actor.call("shutdown", thread=9)
            actor.ok("close", thread=9, client=1)
        kept = [b":rl1:q", b":rl1:f"]

        def others() -> list[bytes]:
            keys = connection.cmd("KEYS", "*")
            return [key for key in keys if key[-6:] not in kept and not key.startswith(b"rl1:")]

        # What a killed holder left ends with its lease, or with the claim of a new one.
        wait_until(lambda: not others(), 3.0 + TTL_MS / 1000 + 2.0)
        for key in connection.cmd("KEYS", "*"):
            left = connection.cmd("PTTL", key)
            limit = QUEUE_MS if key.endswith(b"q") else FENCE_MS
            # The name of a killed client.
            assert 0 < left <= (60_000 if key.startswith(b"rl1:") else limit), key


def test_grant_of_an_old_queue_is_released(server: Server, spawn: Spawn, name: str) -> None:
    """Goal: the primary after a failover may have an old queue, with places of acquisitions that
    have ended; what it grants to them is given back at once, and does not last until its claim
    ends. Method: the place of an ended acquisition is put back, in front of a waiter."""
    queue = f"{{{name}}}:rl1:q"
    one, other = spawn(server.url), spawn(server.url)
    with server.connect() as connection, server.connect() as monitor:
        other.ok("acquire", name=name)
        first = one.begin("acquire", thread=1, name=name, wait=-1)
        wait_until(lambda: connection.cmd("ZCARD", queue) == 1)
        member, score = connection.cmd("ZRANGE", queue, 0, 0, "WITHSCORES")
        other.ok("release")
        assert first.get().status == "RL_OK"
        one.ok("release", thread=1)
        other.ok("acquire", name=name)
        second = one.begin("acquire", thread=2, lease=2, name=name, wait=-1)
        wait_until(lambda: connection.cmd("ZCARD", queue) == 1)
        connection.cmd("ZADD", queue, score, member)
        monitor.cmd("MONITOR")
        other.ok("release")
        token = member[:32].decode()
        said = ""
        while token not in said or " lua]" in said:
            said = str(monitor.read())
        assert '"EVAL' in said, said
        assert second.get().status == "RL_OK"
