# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the rights that tools/acl.py names are enough and needed, refusals are told as such, and
without the right to publish or subscribe a lock still works, by looking.

Method: users of their own on real servers; each refusal is provoked.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.cluster import NEVER_MS, Cluster, slot_of
from support.servers import (
    Server,
    available_kinds,
    has_subcommand_rights,
    has_sharded_channels,
)
from support.wait import SLACK_S, wait_until

from .actor import HELD, LOST, Spawn
from .plays import POLL_S, SECRET, SPACE, add_user, minimal_rules, own_queue, play_everything


@pytest.fixture
def guarded() -> Iterator[Server]:
    """A server that asks everybody for a password."""
    with Server(available_kinds()[0], ["--requirepass", SECRET]) as running:
        yield running


# ---- who may come in ----


@pytest.mark.parametrize(
    ("who", "status"),
    [
        ("", "RL_E_DENIED"),
        (":wrong@", "RL_E_DENIED"),
        ("nobody:wrong@", "RL_E_DENIED"),
        (f"nobody:{SECRET}@", "RL_E_DENIED"),
        (f":{SECRET}@", "RL_OK"),
        (f"default:{SECRET}@", "RL_OK"),
    ],
)
def test_passwords(guarded: Server, spawn: Spawn, name: str, who: str, status: str) -> None:
    """Goal: a wrong password or user is RL_E_DENIED at once, whatever the wait, and is not shown.
    Method: each kind of call with each kind of user."""
    actor = spawn(guarded.url.replace("://", f"://{who}"))
    for command, wait in (("connect", 0), ("connect", -1), ("acquire", 0), ("acquire", 20_000)):
        reply = actor.call(command, name=f"{name}-{wait}-{command}", wait=wait)
        assert reply.status == status, reply
        assert reply.seconds < 5.0
        assert "wrong" not in reply.message and SECRET not in reply.message
    assert actor.call("inspect", name=name).status == status


def test_removal_of_the_user_is_reported(server: Server, spawn: Spawn, name: str) -> None:
    """Goal: a waiter whose user is deleted does not wait for ever; a holder learns of its loss.
    Method: ACL DELUSER, which cuts the user's connections."""
    url = add_user(server, "leaver")
    holder, waiter = spawn(url), spawn(url)
    holder.ok("acquire", name=name, wait=0, ttl_ms=900)
    waiting = waiter.begin("acquire", name=name, wait=-1)
    wait_until(lambda: own_queue(server, name) == 1)
    with server.connect() as connection:
        connection.cmd("ACL", "DELUSER", "leaver")
    assert waiting.get().status == "RL_E_DENIED"
    assert holder.call("wait_lost", wait=5000).number("state") == LOST
    reply = holder.call("release")
    assert reply.status == "RL_E_LOST" and "WRONGPASS" in reply.message, reply


# ---- what they may do ----


def test_the_minimal_rights_are_enough(server: Server, spawn: Spawn, name: str) -> None:
    """Goal: with what tools/acl.py prints everything works, and by push.
    Method: a user with just that; every call; the server's log of refusals stays empty."""
    url = add_user(server, "locker") + "&health=no"  # which asks for more
    assert play_everything(server, spawn(url), spawn(url), name).is_by_message
    with server.connect() as connection:
        assert connection.cmd("ACL", "LOG") == []


def test_replicas_are_waited_for_with_the_minimal_rights(
    server: Server, spawn: Spawn, name: str
) -> None:
    """Goal: min_replicas needs no more than what tools/acl.py prints, and needs WAIT.
    Method: a replica; the right is taken away."""
    with Server(server.kind, ["--replicaof", server.host, str(server.port)]):
        url = add_user(server, "locker") + "&health=no"

        def confirms() -> bool:
            with server.connect() as connection:
                connection.cmd("SET", "foreign:probe", "1", "PX", "1000")
                return int(connection.cmd("WAIT", "1", "100")) == 1

        wait_until(confirms)
        spawn(url).ok("acquire", name=name, wait=0, min_replicas=1, sync_timeout="10s", ttl_ms=900)
        with server.connect() as connection:
            assert connection.cmd("ACL", "LOG") == []
            connection.cmd("ACL", "SETUSER", "locker", "-wait")
        reply = spawn(url).call("acquire", name=f"{name}-2", wait=0, min_replicas=1)
        assert reply.status == "RL_E_DENIED" and "WAIT" in reply.message, reply


def test_the_minimal_rights_on_a_cluster(spawn: Spawn) -> None:
    """Goal: with what tools/acl.py prints for a cluster everything works, also while a slot moves.
    Method: each node has a user with just that; the key of a held lock is at the next node already.
    Without one of the rights the client says which."""
    with Cluster(replicas=0, node_timeout_ms=NEVER_MS) as cluster:
        rules = minimal_rules(cluster.kind, "locker", "--cluster")
        for node in cluster.servers:
            node.cmd(*rules)
        first = cluster.servers[0]
        url = f"redis+cluster://locker:{SECRET}@{first.host}:{first.port}?namespace={SPACE}"
        url += "&health=no"
        actor = spawn(url)
        for number in range(6):
            actor.ok("acquire", name=f"lock{number}", wait=0, lease=number, ttl_ms=60_000)
        slot = slot_of(f"{SPACE}lock0")
        cluster.begin_classic(slot, cluster.others(slot)[0])
        cluster.move_keys(slot, [f"{SPACE}lock0"])
        actor.ok("extend", lease=0, ttl_ms=90_000)
        assert [node.cmd("ACL", "LOG") for node in cluster.servers] == [[], [], []]
        map_right = "cluster|slots" if has_subcommand_rights(cluster.kind) else "cluster"
        for right in ("asking", map_right):
            for node in cluster.servers:
                node.cmd(*rules, f"-{right}")
            if right == "asking":
                reply = actor.call("extend", lease=0, ttl_ms=90_000)
            else:
                reply = spawn(url).call("acquire", name="lock9", wait=0)
            assert reply.status == "RL_E_DENIED" and right in reply.message, (right, reply)


@pytest.mark.parametrize(
    "changes",
    [
        ["-publish", "-spublish"],
        ["-subscribe", "-ssubscribe"],
        ["resetchannels"],
        ["-script", "resetchannels"],
    ],
    ids=["no publish", "no subscribe", "no channels", "no load, no channels"],
)
def test_fewer_rights_mean_looking(
    server: Server, spawn: Spawn, name: str, changes: list[str]
) -> None:
    """Goal: without publish or channel rights everything still works, waiters look for themselves.
    Method: take rights away; every call."""
    if not has_sharded_channels(server.kind):
        changes = [change for change in changes if change not in ("-spublish", "-ssubscribe")]
    url = add_user(server, "lesser", *changes)
    assert play_everything(server, spawn(url), spawn(url), name).seconds < POLL_S + SLACK_S


@pytest.mark.parametrize("lost_right", ["-evalsha", "-@all", "resetkeys", "off"])
def test_rights_taken_away_are_a_refusal(
    server: Server, spawn: Spawn, name: str, lost_right: str
) -> None:
    """Goal: a command that is not allowed gives RL_E_DENIED; a refused release is not forgotten.
    Method: take the right away while holding; acquire, release; give it back."""
    url = add_user(server, "loser")
    actor = spawn(url)
    actor.ok("acquire", name=name, wait=0)
    with server.connect() as connection:
        connection.cmd("ACL", "SETUSER", "loser", lost_right)
    if lost_right != "off":  # which ends no connection that is open
        for wait in (0, 1000):
            reply = actor.call("acquire", lease=1, name=f"{name}-2", wait=wait)
            assert reply.status == "RL_E_DENIED", reply
            assert "NOPERM" in reply.message or "ACL" in reply.message, reply
        assert actor.call("release").status == "RL_E_DENIED"
        assert spawn(url).call("acquire", name=f"{name}-2", wait=1000).status == "RL_E_DENIED"
    else:
        assert actor.ok("look").number("state") == HELD
        assert spawn(url).call("acquire", name=name, wait=1000).status == "RL_E_DENIED"
        actor.ok("release")
    add_user(server, "loser")
    # A refused release is tried again in the background.
    spawn(url).ok("acquire", name=name, wait=5000)
