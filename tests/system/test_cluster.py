# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: one client serves locks on all nodes of a cluster; a slot that moves and a failover cost
holders and waiters time, and neither their lease nor their place.

Method: real clusters; actors and runners hold, wait and release while a slot moves, also by hand
and with a stop in the middle.
"""

from __future__ import annotations

import contextlib
import itertools
import resource
import time
from collections.abc import Callable, Iterator

import pytest
from conformance.runners import Runner
from support.cluster import NEVER_MS, Cluster, Node, moves_of
from support.resp import RespError
from support.servers import available_kinds
from support.wait import wait_until

from .actor import HELD, Spawn
from .conftest import aux_key, client_ids, queue_length, queued_tokens, subscriber_count
from .plays import cli


TTL_MS = 6000
# A client finds out that a node has stopped when a renewal, up to 5 s later, has had no answer for
# 2 s; and a busy machine takes some seconds for a failover.
FAILOVER_TTL_MS = 15_000
MOVED_TTL_MS = 3000  # a holder learns of a move with its next renewal
LONG_TTL_MS = 120_000  # so that only a release frees the lock within a test
WAIT_MS = 30_000


@pytest.fixture(scope="module")
def clusters() -> Iterator[Callable[[str], Cluster]]:
    """Of each kind three primaries. No node is ever taken for dead; tests use names of their own.
    """
    running: dict[str, Cluster] = {}
    with contextlib.ExitStack() as stack:

        def of_kind(kind: str) -> Cluster:
            if kind not in running:
                cluster = Cluster(kind, replicas=0, node_timeout_ms=NEVER_MS)
                running[kind] = stack.enter_context(cluster)
            return running[kind]

        yield of_kind


# Without sharded channels: PUBLISH reaches waiters at all nodes, and counts those at its own.
PLAIN = "redis-6.2"


@pytest.fixture(params=available_kinds())
def cluster(
    request: pytest.FixtureRequest, clusters: Callable[[str], Cluster]
) -> Iterator[Cluster]:
    """A test that fails in the middle of a move leaves no slot on the move."""
    running = clusters(request.param)
    yield running
    for slot in running.moving:
        running.move_keys(slot)
        running.finish_classic(slot)


@pytest.fixture
def one_cluster(request: pytest.FixtureRequest, clusters: Callable[[str], Cluster]) -> Cluster:
    """Of the kind that has more kinds of moves, or of the kind that the test names."""
    return clusters(getattr(request, "param", available_kinds()[-1]))


def names_at(cluster: Cluster, node: Node, name: str) -> Iterator[str]:
    """Locks whose slot this node has."""
    views = node.views()[0]
    for number in itertools.count():
        candidate = f"{name}-{number}"
        if views.has(cluster.slot_of(candidate)):
            yield candidate


def value(node: Node, key: str) -> str | None:
    """The value at this node, which may have the key while it does not have the slot."""
    with node.connect() as connection:
        found = connection.pipe([["ASKING"], ["GET", key]])[1]
    if isinstance(found, RespError):
        return None
    return found.decode() if isinstance(found, bytes) else None


def holder_of(cluster: Cluster, key: str) -> str | None:
    return value(cluster.owner_of(key), key)


def ttl_ms(cluster: Cluster, key: str) -> int:
    return int(cluster.owner_of(key).cmd("PTTL", key))


def connection_count(cluster: Cluster) -> int:
    return sum(len(client_ids(node)) for node in cluster.running)


def move(cluster: Cluster, name: str, kind: str = "classic") -> Node:
    """Move the slot of this lock. Its new node."""
    slot = cluster.slot_of(name)
    to = cluster.others(slot)[0]
    cluster.move_slot(slot, to, kind)
    return to


# ---- one client, several nodes ----


def test_one_client_has_locks_on_all_primaries(
    cluster: Cluster, spawn: Spawn, name: str
) -> None:
    """Goal: three locks on three nodes at once; each excludes others, and is released at its node.
    Method: one client; another one tries; the keys at the nodes."""
    actor, other = spawn(cluster.url()), spawn(cluster.url())
    names = [next(names_at(cluster, node, name)) for node in cluster.primaries]
    for number, one in enumerate(names):
        actor.ok("acquire", lease=number, name=one, wait=0, ttl_ms=TTL_MS)
        assert other.call("acquire", lease=number, name=one, wait=0).status == "RL_BUSY"
    for node, one in zip(cluster.primaries, names):
        assert value(node, one) is not None
        assert len(client_ids(node)) == 2
    for number, one in enumerate(names):
        actor.ok("release", lease=number)
        assert holder_of(cluster, one) is None


def test_a_cluster_is_found_by_the_address_of_one_node(
    cluster: Cluster, spawn: Spawn, name: str
) -> None:
    """Goal: `redis://` of a node is a client of the cluster, also for callers that began to wait
    before it was known, and excludes the others. Method: locks at all nodes, by two clients."""
    node = cluster.primaries[1]
    actor, other = spawn(f"redis://127.0.0.1:{node.port}"), spawn(cluster.url())
    for number, at in enumerate(cluster.primaries):
        one = next(names_at(cluster, at, name))
        actor.ok("acquire", lease=number, name=one, wait=WAIT_MS, ttl_ms=TTL_MS)
        assert other.call("acquire", lease=number, name=one, wait=0).status == "RL_BUSY"
        move(cluster, one)
        actor.ok("release", lease=number)
        assert holder_of(cluster, one) is None
    refused = spawn(f"redis://127.0.0.1:{node.port}/3")
    reply = refused.call("acquire", name=name, wait=0)
    assert reply.status == "RL_E_UNSUPPORTED" and "db must be 0 (got 3)" in reply.message, reply


def test_callers_wait_while_a_client_lacks_descriptors_for_a_cluster(
    one_cluster: Cluster, spawn: Spawn, name: str
) -> None:
    """Goal: a client without a descriptor more, while it connects or becomes one of a cluster, ends
    no wait. Method: a limit of the process with room for 0 to 3 descriptors, lifted once it is felt
    or all have their locks."""
    actor = spawn(one_cluster.url())
    numbers = range(1, 4)
    for number in numbers:  # the process has its record and its threads now
        actor.ok("acquire", thread=number, lease=number, name=name, wait=WAIT_MS, ttl_ms=TTL_MS)
        actor.ok("release", lease=number)
        actor.ok("free", lease=number)
    for room in range(4):
        actor.ok("open", client=1, url=f"redis://127.0.0.1:{one_cluster.primaries[0].port}")
        old = resource.prlimit(actor.pid, resource.RLIMIT_NOFILE)
        limit = (actor.descriptor_count + room, old[1])
        resource.prlimit(actor.pid, resource.RLIMIT_NOFILE, limit)
        waiting = [
            actor.begin(
                "acquire", thread=number, client=1, lease=number, name=f"{name}-{number}", wait=-1
            )
            for number in numbers
        ]
        while not all(one.is_done for one in waiting):
            if "Too many open files" in actor.call("log_line", client=1)["line"]:
                break
        resource.prlimit(actor.pid, resource.RLIMIT_NOFILE, old)
        assert [one.get().status for one in waiting] == ["RL_OK"] * len(waiting), room
        for number in numbers:
            actor.ok("release", lease=number)
            actor.ok("free", lease=number)
        actor.ok("shutdown", client=1)
        actor.ok("close", client=1)


def test_one_used_node_is_one_connection(one_cluster: Cluster, spawn: Spawn, name: str) -> None:
    """Goal: nodes that have no lock of the client cost nothing; closing gives back all. Method: the
    servers' lists of clients, the descriptors and threads of the process."""
    actor = spawn("")
    url = one_cluster.url()
    names = names_at(one_cluster, one_cluster.primaries[1], name)

    def use(count: int) -> None:
        actor.ok("open", client=1, url=url)
        for _ in range(count):
            actor.ok("acquire", client=1, name=next(names), wait=WAIT_MS, ttl_ms=TTL_MS)
            actor.ok("release")
            actor.ok("free")  # a lease keeps its client

    def close() -> None:
        actor.ok("shutdown", client=1)
        actor.ok("close", client=1)

    use(1)  # the process has its record open now
    close()
    wait_until(lambda: connection_count(one_cluster) == 0)
    before = (actor.descriptor_count, actor.thread_count)
    use(5)
    wait_until(lambda: connection_count(one_cluster) == 1)
    assert len(client_ids(one_cluster.primaries[1])) == 1
    one_node = actor.thread_count
    for node in one_cluster.primaries:
        one = next(names_at(one_cluster, node, f"{name}-each"))
        actor.ok("acquire", client=1, name=one, wait=WAIT_MS, ttl_ms=TTL_MS)
        actor.ok("release")
        actor.ok("free")
    wait_until(lambda: connection_count(one_cluster) == 3)
    assert actor.thread_count == one_node
    close()
    wait_until(lambda: (actor.descriptor_count, actor.thread_count) == before)
    wait_until(lambda: connection_count(one_cluster) == 0)


def test_the_command_sees_all_nodes(cluster: Cluster, spawn: Spawn, name: str) -> None:
    """Goal: ls shows the locks of all nodes, each once; status and force-release go to the node of
    each name. Method: two locks on each of three nodes."""
    actor = spawn(cluster.url())
    names: list[str] = []
    for node in cluster.primaries:
        names += itertools.islice(names_at(cluster, node, name), 2)
    for number, one in enumerate(names):
        actor.ok("acquire", lease=number, name=one, wait=0, ttl_ms=LONG_TTL_MS)
        actor.ok("look", lease=number)

    def listed() -> list[str]:
        done = cli(cluster.url(), "-o", "tsv", "ls", f"{name}*")
        assert (done.returncode, done.stderr) == (0, ""), done
        rows = [line.split("\t")[0] for line in done.stdout.splitlines()]
        return sorted(row for row in rows if row.startswith(name))

    assert listed() == sorted(names)
    done = cli(cluster.url(), "-o", "tsv", "status", *names)
    assert done.stderr == "" and all(one in done.stdout for one in names), done
    done = cli(cluster.url(), "force-release", "--yes", *names[:-1])
    assert done.returncode == 0, done
    assert listed() == names[-1:]
    assert [holder_of(cluster, one) for one in names[:-1]] == [None] * (len(names) - 1)
    actor.ok("release", lease=len(names) - 1)
    assert listed() == []


def test_the_doctor_takes_a_lock(one_cluster: Cluster) -> None:
    """Goal: the lock of the trial is at the node that is asked, whatever its random name. Method:
    several times, because one of three names is there by chance."""
    for _ in range(4):
        done = cli(one_cluster.url(), "-o", "tsv", "doctor")
        found = [line.split("\t")[:2] for line in done.stdout.splitlines()]
        for trial in ("lock", "handover", "inspection", "listing"):
            assert ["ok", trial] in found, done.stdout


# ---- slots that move ----


def test_a_lease_and_its_waiters_move(cluster: Cluster, spawn: Spawn, name: str) -> None:
    """Goal: the lease is renewed at the new node under the same token; waiters keep their tickets,
    and are served in their order. Method: a holder, two waiters; each kind of move, twice."""
    for kind in moves_of(cluster.kind):
        holder, first, second = (spawn(cluster.url()) for _ in range(3))
        # The round before may have left the lock to other libraries, for a moment.
        reply = holder.ok("acquire", name=name, wait=WAIT_MS, ttl_ms=MOVED_TTL_MS)
        fence = reply.number("fence")
        waiting = []
        for number, actor in enumerate((first, second), 1):
            waiting.append(actor.begin("acquire", name=name, wait=WAIT_MS, ttl_ms=MOVED_TTL_MS))
            node = cluster.owner_of(name)
            wait_until(lambda: queue_length(node, name) == number)
        token = value(node, name)
        tickets = scores(node, name)
        node = move(cluster, name, kind)
        wait_until(lambda: ttl_ms(cluster, name) > MOVED_TTL_MS - 300)
        # Its connection there is used, and its waiters are in the queue under new members.
        wait_until(lambda: scores(node, name) == tickets and subscriber_count(node) >= 3)
        assert value(node, name) == token
        assert holder.ok("look").number("state") == HELD
        for owner, pending in zip((holder, first), waiting):
            assert not pending.is_done
            owner.ok("release")
            reply = pending.get()
            assert reply.status == "RL_OK" and reply.number("fence") > fence, reply
            fence = reply.number("fence")
        second.ok("release")
        assert holder_of(cluster, name) is None
        for actor in (holder, first, second):
            actor.close()


def scores(node: Node, name: str) -> list[bytes]:
    """The tickets of all waiters, in their order."""
    found: list[bytes] = node.cmd("ZRANGE", aux_key(name, "q"), 0, -1, "WITHSCORES")
    return found[1::2]


# The keys that are moved before the move stands still.
HALVES = {"none": [], "K": ["K"], "beside": ["f", "i"], "all": None}


def stand_in_the_middle(cluster: Cluster, name: str, half: str) -> Node:
    slot = cluster.slot_of(name)
    to = cluster.others(slot)[0]
    cluster.begin_classic(slot, to)
    chosen = HALVES[half]
    if chosen is None:
        cluster.move_keys(slot)
    elif chosen:
        cluster.move_keys(slot, [name if key == "K" else aux_key(name, key) for key in chosen])
    return to


def test_a_lease_outlives_a_move_that_stands_still(
    cluster: Cluster, spawn: Spawn, name: str
) -> None:
    """Goal: a lease is kept for three times its ttl in the middle of a move, wherever its keys are;
    another client does not get the lock. Method: four locks, their keys moved in part."""
    lease_ms = 1000
    actor, other = spawn(cluster.url()), spawn(cluster.url())
    names = {half: f"{name}-{half}" for half in HALVES}
    assert len({cluster.slot_of(one) for one in names.values()}) == len(names)
    tokens = {}
    targets = {}
    for number, (half, one) in enumerate(names.items()):
        actor.ok("acquire", lease=number, name=one, wait=0, ttl_ms=lease_ms)
        tokens[half] = actor.ok("look", lease=number)["token"]
        targets[half] = stand_in_the_middle(cluster, one, half)
    end = time.monotonic() + 3 * lease_ms / 1000
    while time.monotonic() < end:
        for number, one in enumerate(names.values()):
            assert actor.ok("look", lease=number).number("state") == HELD, one
            reply = other.call("acquire", lease=number, name=one, wait=100, ttl_ms=1000)
            assert reply.status != "RL_OK", (one, reply)
    for number, (half, one) in enumerate(names.items()):
        cluster.move_keys(cluster.slot_of(one))
        cluster.finish_classic(cluster.slot_of(one))
        assert value(targets[half], one) == tokens[half]
        actor.ok("release", lease=number, limit=WAIT_MS / 1000)
        wait_until(lambda: value(targets[half], one) is None)
        other.ok("acquire", lease=number, name=one, wait=WAIT_MS, ttl_ms=1000)
        other.ok("release", lease=number)


def test_a_release_in_the_middle_is_done_when_the_slot_arrives(
    cluster: Cluster, spawn: Spawn, name: str
) -> None:
    """Goal: a release that no node carries out is repeated, and not left to the lease's end; a
    waiter gets the lock then. Method: release while the move stands still; the lease is long."""
    actor, other = spawn(cluster.url()), spawn(cluster.url())
    names = {half: f"{name}-{half}" for half in HALVES}
    waiting = {}
    for number, (half, one) in enumerate(names.items()):
        actor.ok("acquire", lease=number, name=one, wait=0, ttl_ms=LONG_TTL_MS)
        stand_in_the_middle(cluster, one, half)
        actor.ok("release_start", lease=number, request=number)
        waiting[half] = other.begin(
            "acquire", thread=number, lease=number, name=one, wait=WAIT_MS, ttl_ms=1000
        )
    for number, (half, one) in enumerate(names.items()):
        assert not waiting[half].is_done, one
        cluster.move_keys(cluster.slot_of(one))
        cluster.finish_classic(cluster.slot_of(one))
        assert waiting[half].get().status == "RL_OK", one
        other.ok("release", thread=number, lease=number)


# ---- other kinds of locks ----


class Clients:
    """Runners of the conformance suite: they know every kind of lock. A server on a busy machine
    may be silent for longer than the command_timeout of 2 s, and a try would say `unknown`."""

    def __init__(self, command: list[str], url: str, count: int) -> None:
        self._runners = [Runner(command) for _ in range(count)]
        for runner in self._runners:
            assert runner.call(f"- open url={url}?command_timeout=20s") == "OK"

    def say(self, client: int, line: str, expected: str) -> None:
        reply = self._runners[client].call(line)
        assert reply.split(" ")[0] == expected, (client, line, reply)

    def until(self, client: int, line: str, expected: str) -> None:
        wait_until(lambda: expected in self._runners[client].call(line).split(" "))

    def lock(self, kind: str, name: str) -> None:
        """The lock `m` of each client."""
        for number, runner in enumerate(self._runners):
            reply = runner.call(f"- lock id=m kind={kind.format(number)} name={name}")
            assert reply == "OK", reply

    def end(self) -> None:
        for runner in self._runners:
            runner.end()

    def __enter__(self) -> Clients:
        return self

    def __exit__(self, *_: object) -> None:
        for runner in self._runners:
            runner.kill()


# .. where 3 is RL_FORMAT_HASH_RW; each client is an owner of its own.
READ_WRITE = ["rw ttl_ms=8000", "rw owner=o{} format=3 ttl_ms=8000"]
READ_WRITE_TYPE = {READ_WRITE[0]: "string", READ_WRITE[1]: "hash"}


@pytest.mark.not_judged  # runners write no record
@pytest.mark.parametrize("one_cluster", sorted({available_kinds()[-1], PLAIN}), indirect=True)
@pytest.mark.parametrize("lock", READ_WRITE, ids=["string", "hash_rw"])
def test_readers_and_writers_move(
    one_cluster: Cluster, runner_command: list[str], name: str, lock: str
) -> None:
    """Goal: readers stay readers, an upgrade that waits stays in front, and a writer behind them
    waits on. Method: a move after each step."""
    with Clients(runner_command, one_cluster.url(), 3) as clients:
        clients.lock(lock, name)
        for kind in moves_of(one_cluster.kind):
            clients.say(0, "m acquire_read wait_ms=0", "OK")
            assert one_cluster.owner_of(name).cmd("TYPE", name) == READ_WRITE_TYPE[lock]
            clients.say(1, "m acquire_read wait_ms=0", "OK")
            clients.say(2, "m acquire_write wait_ms=30000 &1", "STARTED")
            clients.until(0, f"- inspect name={name}", "waiting=1")
            move(one_cluster, name, kind)
            for reader in (0, 1):
                clients.say(reader, "m check", "OK")
            clients.say(0, "m upgrade wait_ms=30000 &1", "STARTED")
            clients.until(1, f"- inspect name={name}", "waiting=2")
            move(one_cluster, name, kind)
            clients.say(1, "m release", "OK")
            clients.say(0, "m wait &1", "OK")
            clients.say(1, "m acquire_read wait_ms=0", "BUSY")
            move(one_cluster, name, kind)
            clients.say(0, "m check", "OK")
            clients.say(0, "m release", "OK")
            clients.say(2, "m wait &1", "OK")
            move(one_cluster, name, kind)
            clients.say(2, "m downgrade", "OK")
            clients.say(1, "m acquire_read wait_ms=0", "OK")
            for reader in (1, 2):
                clients.say(reader, "m release", "OK")
            assert one_cluster.owner_of(name).cmd("EXISTS", name) == 0
        clients.end()


@pytest.mark.not_judged  # runners write no record
@pytest.mark.parametrize("lock", READ_WRITE, ids=["string", "hash_rw"])
def test_an_upgrade_in_the_middle_of_a_move(
    cluster: Cluster, runner_command: list[str], name: str, lock: str
) -> None:
    """Goal: an upgrade of the only reader takes effect wholly or not at all at a node that gives
    its keys away, and no other client gets the lock. Method: the upgrade, before a writer that
    waits, so that no key of the script is absent; the move stands still with all keys at the
    source, then with K at the target."""
    with Clients(runner_command, cluster.url(), 3) as clients:
        clients.lock(lock, name)
        for half in ("none", "K"):
            clients.say(0, "m acquire_read wait_ms=0", "OK")
            clients.say(1, "m acquire_write wait_ms=30000 &1", "STARTED")
            clients.until(0, f"- inspect name={name}", "waiting=1")
            stand_in_the_middle(cluster, name, half)
            clients.say(0, "m upgrade wait_ms=30000 &1", "STARTED")
            # The slot is on the move.
            clients.say(2, "m acquire_read wait_ms=300", "TIMEOUT")
            clients.say(2, "m acquire_read wait_ms=0", "E_UNAVAILABLE")
            clients.say(0, "m check", "OK")
            slot = cluster.slot_of(name)
            cluster.move_keys(slot)
            cluster.finish_classic(slot)
            clients.say(0, "m wait &1", "OK")
            clients.say(2, "m acquire_read wait_ms=0", "BUSY")
            clients.say(0, "m release", "OK")
            clients.say(1, "m wait &1", "OK")
            clients.say(1, "m release", "OK")
        clients.end()


@pytest.mark.not_judged  # runners write no record
@pytest.mark.parametrize("lock", READ_WRITE, ids=["string", "hash_rw"])
def test_a_cancel_in_the_middle_of_a_move(
    cluster: Cluster, runner_command: list[str], name: str, lock: str
) -> None:
    """Goal: a cancelled writer, which waits before a reader, grants nothing by a script that the
    node breaks off; the reader gets in when the slot has arrived. Method: the writer's wait is over
    while the move stands still with all keys at the source."""
    with Clients(runner_command, cluster.url(), 3) as clients:
        clients.lock(lock, name)
        clients.say(0, "m acquire_read wait_ms=0", "OK")
        clients.say(1, "m acquire_write wait_ms=500 &1", "STARTED")
        clients.until(0, f"- inspect name={name}", "waiting=1")
        clients.say(2, "m acquire_read wait_ms=30000 &1", "STARTED")
        clients.until(0, f"- inspect name={name}", "waiting=2")
        slot = cluster.slot_of(name)
        source, to = cluster.owner(slot), stand_in_the_middle(cluster, name, "none")
        aborted = count_of_error(source, "ERR")
        clients.say(1, "m wait &1", "TIMEOUT")
        clients.say(0, "m check", "OK")
        assert count_of_error(source, "ERR") == aborted
        cluster.move_keys(slot)
        cluster.finish_classic(slot)
        clients.say(2, "m wait &1", "OK")
        clients.say(1, "m acquire_write wait_ms=0", "BUSY")
        clients.say(0, "m release", "OK")
        clients.say(1, "m acquire_write wait_ms=0", "BUSY")
        clients.say(2, "m release", "OK")
        wait_until(lambda: to.cmd("EXISTS", name) == 0)
        clients.end()


def count_of_error(node: Node, prefix: str) -> int:
    """Error replies of this prefix so far: a script that the node breaks off is `ERR`."""
    lines = node.cmd("INFO", "errorstats").decode().splitlines()
    found = [line for line in lines if line.startswith(f"errorstat_{prefix}:")]
    return int(found[0].partition("count=")[2]) if found else 0


@pytest.mark.not_judged  # runners write no record
def test_reentrant_holds_move(one_cluster: Cluster, runner_command: list[str], name: str) -> None:
    """Goal: holds of one owner, in two processes, count together at the new node; the last release
    serves the waiter. Method: a move after each hold and each release."""
    with Clients(runner_command, one_cluster.url(), 3) as clients:
        clients.lock("reentrant owner=job ttl_ms=8000", name)
        clients.say(2, f"- lock id=n kind=reentrant owner=other name={name}", "OK")
        for kind in moves_of(one_cluster.kind):
            clients.say(0, "m acquire wait_ms=0", "OK")
            move(one_cluster, name, kind)
            clients.say(1, "m acquire wait_ms=30000", "OK")
            clients.say(2, "n acquire wait_ms=30000 &1", "STARTED")
            clients.until(0, f"- inspect name={name}", "waiting=1")
            assert one_cluster.owner_of(name).cmd("HGET", name, "job") == b"2"
            move(one_cluster, name, kind)
            clients.say(0, "m check", "OK")
            clients.say(0, "m release", "STILL_HELD")
            move(one_cluster, name, kind)
            clients.say(1, "m check", "OK")
            clients.say(1, "m release", "OK")
            clients.say(2, "n wait &1", "OK")
            clients.say(2, "n release", "OK")
            assert one_cluster.owner_of(name).cmd("EXISTS", name) == 0
        clients.end()


# ---- failovers ----


@pytest.mark.parametrize("how", ["planned", "kill", "stop"])
def test_a_failover_keeps_the_lease_and_the_places(spawn: Spawn, name: str, how: str) -> None:
    """Goal: the lease is renewed at the new primary under its token, and waiters keep their order.
    Method: a holder and two waiters; the replica has all that was granted."""
    with Cluster() as cluster:
        holder, first, second = (spawn(cluster.url()) for _ in range(3))
        old = cluster.owner_of(name)
        lease_ms = MOVED_TTL_MS if how == "planned" else FAILOVER_TTL_MS
        holder.ok("acquire", name=name, wait=0, ttl_ms=lease_ms)
        waiting = []
        for number, actor in enumerate((first, second), 1):
            waiting.append(actor.begin("acquire", name=name, wait=WAIT_MS, ttl_ms=TTL_MS))
            wait_until(lambda: queue_length(old, name) == number)
        token, places = value(old, name), scores(old, name)
        await_replica(cluster, old)
        new = cluster.failover(old, how)
        wait_until(lambda: new.cmd("PTTL", name) > lease_ms - 300)
        wait_until(lambda: scores(new, name) == places and subscriber_count(new) >= 3)
        assert value(new, name) == token
        assert holder.ok("look").number("state") == HELD
        if how == "stop":
            cluster.rejoin(old)
            assert client_ids(old) == [], "nothing is sent to the one that was replaced"
        for owner, pending in zip((holder, first), waiting):
            assert not pending.is_done
            owner.ok("release")
            assert pending.get().status == "RL_OK"
        second.ok("release")
        assert queued_tokens(new, name) == [] and value(new, name) is None


def await_replica(cluster: Cluster, primary: Node) -> None:
    """Wait until one replica has all that the primary has."""
    assert cluster.replicas_of(primary)
    with primary.connect() as connection:
        connection.cmd("SET", next(names_at(cluster, primary, "replicated")), 1, "PX", 1000)
        assert connection.cmd("WAIT", 1, 10_000) == 1
