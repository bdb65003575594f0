# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: while a slot moves no script lets two clients have one lock, and no waiter is lost.
Method: real clusters; each script is sent by hand to the node that a test chooses. A test of the
key that never exists runs without it, too: then the defect must show."""

from __future__ import annotations

import base64
import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.cluster import NEVER_MS, Cluster, Node, moves_of, slot_of
from support.resp import Argument, Connection, RespError
from support.servers import available_kinds
from support.wait import wait_until

from .harness import member_of
from .texts import NEVER, TTL_MS, TURN, aux_key

PREFIX = "rl1:"
MARKS = {"string": "", "hash": "h", "hash_rw": "m"}
_numbers = itertools.count(1)


MOVES = [(server, move) for server in available_kinds() for move in moves_of(server)]
each_move = pytest.mark.parametrize(
    ("cluster", "kind"), MOVES, indirect=["cluster"], ids=["-".join(pair) for pair in MOVES]
)


@pytest.fixture(scope="module", params=available_kinds())
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(request.param, nodes=3, replicas=0, node_timeout_ms=NEVER_MS) as running:
        yield running


class Slot:
    """One lock whose slot is at `source`, and is to move to `to`."""

    def __init__(
        self, cluster: Cluster, texts: dict[str, str], format: str = "string", k: str = "orders%d"
    ) -> None:
        self.cluster = cluster
        self.texts = texts
        self.format = format
        self.k = k % next(_numbers)
        self.slot = slot_of(self.k)
        self.source = cluster.owner(self.slot)
        self.to, self.third = cluster.others(self.slot)
        self.has_absent = True  # as on a cluster
        mark = MARKS[format]
        self.q, self.r, self.i = (aux_key("", self.k, mark + it) for it in "qri")
        self.f, self.n = aux_key("", self.k, "f"), aux_key("", self.k, "n")
        self.w = aux_key("", self.k, mark + "w")

    def run(
        self, node: Node, name: str, *args: Argument, keys: Sequence[str] = (), asking: bool = False
    ) -> Any:
        """The script with its keys, and the one that never exists. An error is returned."""
        suffix = "" if self.format == "string" else f".{self.format}"
        text = self.texts[f"{name}{suffix}.sharded"]
        named = list(keys) or [self.k, self.q, self.f, self.r]
        if not keys and name in ("acquire", "acquire_read", "release"):
            named.append(self.w)
        if self.has_absent and len(named) > 1:
            named.append(self.n)
        with node.connect() as connection:
            if asking:
                connection.cmd("ASKING")
            return connection.pipe([["EVAL", text, len(named), *named, *args]])[0]

    def acquire(self, node: Node, token: str, member: str = "", ttl_ms: int = TTL_MS) -> Any:
        owner = self.owner(token)
        return self.run(node, "acquire", token, ttl_ms, member, "", PREFIX, *owner)

    def read(self, node: Node, token: str, member: str = "", ttl_ms: int = TTL_MS) -> Any:
        return self.run(node, "acquire_read", token, ttl_ms, member, "", PREFIX, "")

    def upgrade(self, node: Node, token: str, *, asking: bool = False) -> Any:
        return self.run(node, "upgrade", token, TTL_MS, "", "", PREFIX, asking=asking)

    def part(self, node: Node, which: str, token: str, ttl_ms: int, *, asking: bool = False) -> Any:
        key = self.k if which == "k" else self.r
        more = [*self.owner(token), which]
        return self.run(node, "extend_shared", token, ttl_ms, *more, keys=[key], asking=asking)

    def owner(self, token: str) -> list[str]:
        return [token] if self.format == "hash" else []

    def move(self, kind: str) -> None:
        self.cluster.move_slot(self.slot, self.to, kind)

    def arrive(self) -> None:
        """The end of a classic move that has begun."""
        self.cluster.move_keys(self.slot)
        self.cluster.finish_classic(self.slot)


class Waiter:
    """A cid whose channel is in a slot of `node`, with a subscription."""

    def __init__(self, node: Node, *, avoid: int) -> None:
        view = node.views()[0]
        while True:
            self.cid = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
            self.slot = slot_of(PREFIX + self.cid)
            if view.has(self.slot) and self.slot != avoid:
                break
        self.subscription: Connection = node.connect(protocol=3)
        self.subscription.send("SSUBSCRIBE", PREFIX + self.cid)
        assert self.subscription.push(5.0) is not None
        self.last_rid = 0

    def token(self) -> str:
        self.last_rid += 1
        return f"{self.cid}{self.last_rid:010x}"


@contextmanager
def waiting_at(node: Node, lock: Slot) -> Iterator[Waiter]:
    waiter = Waiter(node, avoid=lock.slot)
    try:
        yield waiter
    finally:
        waiter.subscription.close()


def token() -> str:
    return base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=") + f"{next(_numbers):010x}"


def member(token: str, mode: str = "x", provisional_ms: int = 3000) -> str:
    text = member_of(token, provisional_ms)
    return text[:32] + mode + text[33:]


def is_refused(reply: object) -> bool:
    return isinstance(reply, RespError) and reply.code in ("TRYAGAIN", "ASK", "MOVED")


Texts = tuple[Path, dict[str, str]]


@pytest.mark.parametrize("has_absent", [True, False])
def test_an_upgrade_on_a_moving_slot_changes_nothing(
    cluster: Cluster, composed: Texts, has_absent: bool
) -> None:
    lock = Slot(cluster, composed[1], "hash_rw")
    reader, writer = token(), token()
    assert lock.read(lock.source, reader)[0] == 1
    with waiting_at(lock.source, lock) as waiter:
        writer = waiter.token()
        assert lock.acquire(lock.source, writer, member(writer))[0] == 0
        cluster.begin_classic(lock.slot, lock.to)  # K, Q, F and R are at the source
        lock.has_absent = has_absent
        reply = lock.upgrade(lock.source, reader)
        lock.has_absent = True
        if has_absent:
            assert is_refused(reply), reply
            assert lock.source.cmd("HEXISTS", lock.k, reader) == 1
        else:
            assert isinstance(reply, RespError) and "non local key" in str(reply)
        lock.arrive()
        has_two_holders = lock.acquire(lock.to, writer, member(writer))[0] == 1
        assert has_two_holders == (not has_absent)


@pytest.mark.parametrize("has_absent", [True, False])
def test_a_cancel_on_a_moving_slot_grants_nothing(
    cluster: Cluster, composed: Texts, has_absent: bool
) -> None:
    lock = Slot(cluster, composed[1])
    assert lock.read(lock.source, token(), ttl_ms=60_000)[0] == 1
    with waiting_at(lock.source, lock) as waiter:
        writer, reader = waiter.token(), waiter.token()
        assert lock.acquire(lock.source, writer, member(writer))[0] == 0
        assert lock.read(lock.source, reader, member(reader, "s"))[0] == 0
        while waiter.subscription.push(0.05) is not None:
            pass
        cluster.begin_classic(lock.slot, lock.to)
        lock.has_absent = has_absent
        reply = lock.run(lock.source, "cancel", member(writer), PREFIX)
        lock.has_absent = True
        message = waiter.subscription.push(0.2)
        if has_absent:
            assert is_refused(reply) and message is None, (reply, message)
        else:  # a part of it was done
            assert isinstance(reply, RespError) and "non local key" in str(reply), reply
            assert message is not None and message[-1].startswith(b"g")
        lock.arrive()


@pytest.mark.parametrize("has_absent", [True, False])
def test_keys_of_redisson_at_the_other_node_are_not_taken_for_absent(
    cluster: Cluster, composed: Texts, has_absent: bool
) -> None:
    lock = Slot(cluster, composed[1], "hash_rw")
    theirs = f"{{{lock.k}}}:uuid:1:rwlock_timeout:1"
    lock.source.cmd("HSET", lock.k, "mode", "read", "uuid:1", 1)
    lock.source.cmd("PEXPIRE", lock.k, TTL_MS)
    lock.source.cmd("SET", theirs, 1, "PX", TTL_MS)
    reader = token()
    assert lock.read(lock.source, reader)[0] == 1
    with waiting_at(lock.source, lock) as waiter:
        writer = waiter.token()
        assert lock.acquire(lock.source, writer, member(writer))[0] == 0
        assert lock.upgrade(lock.source, reader)[0] == 0, "their reader has it, too"
        cluster.begin_classic(lock.slot, lock.to)
        cluster.move_keys(lock.slot, [lock.k, lock.q, lock.f, lock.r])
        lock.has_absent = has_absent
        reply = lock.upgrade(lock.to, reader, asking=True)
        lock.has_absent = True
        if has_absent:
            assert is_refused(reply), reply
        else:
            assert reply[0] == 1, "two holders: their reader, and our writer"
            assert lock.source.cmd("PTTL", theirs) > 0
        lock.arrive()


@pytest.mark.parametrize("format", ["string", "hash", "hash_rw"])
def test_a_lease_is_extended_key_by_key_while_its_slot_moves(
    cluster: Cluster, composed: Texts, format: str
) -> None:
    lock = Slot(cluster, composed[1], format)
    held = token()
    take = lock.acquire if format == "hash" else lock.read
    assert take(lock.source, held, ttl_ms=20_000)[0] == 1
    cluster.begin_classic(lock.slot, lock.to)
    both = [lock.k, lock.r]
    whole = lock.run(lock.source, "extend_shared", held, TTL_MS, *lock.owner(held), keys=both)
    assert is_refused(whole)
    assert lock.part(lock.source, "k", held, 30_000)[0] == 2
    assert lock.part(lock.source, "r", held, 30_000)[0] == 2
    cluster.move_keys(lock.slot, [lock.k])  # K and R are apart
    assert lock.part(lock.source, "k", held, 40_000).code == "ASK"
    assert lock.part(lock.to, "k", held, 40_000, asking=True)[0] == 2
    assert lock.part(lock.source, "r", held, 40_000)[0] == 2
    assert lock.part(lock.source, "r", token(), 40_000)[0] == 0, "another token"
    lock.arrive()
    assert lock.to.cmd("PTTL", lock.k) > 30_000 and lock.to.cmd("PTTL", lock.r) > 30_000
    assert lock.acquire(lock.to, token())[0] == 0
    assert lock.run(lock.to, "extend_shared", held, TTL_MS, *lock.owner(held), keys=both)[0] > 0


def test_the_lock_key_alone_promises_a_reader_nothing(cluster: Cluster, composed: Texts) -> None:
    """A reader whose entry has ended has lost the lock, however long K lasts."""
    lock = Slot(cluster, composed[1])
    late, other = token(), token()
    assert lock.read(lock.source, late)[0] == 1 and lock.read(lock.source, other)[0] == 1
    lock.source.cmd("ZADD", lock.r, 1, late)
    assert lock.part(lock.source, "k", late, TTL_MS)[0] == 2
    assert lock.part(lock.source, "r", late, TTL_MS)[0] == 0
    assert lock.part(lock.source, "r", other, TTL_MS)[0] == 2


def test_a_lock_key_that_redisson_made_anew_extends_no_reader(
    cluster: Cluster, composed: Texts
) -> None:
    """Redisson clears no R: a reader whose field is not in K has lost the lock."""
    lock = Slot(cluster, composed[1], "hash_rw")
    held, other = token(), token()
    assert lock.read(lock.source, held)[0] == 1 and lock.read(lock.source, other)[0] == 1
    lock.source.cmd("HDEL", lock.k, held)
    assert lock.part(lock.source, "k", held, 60_000)[0] == -1, "others read"
    assert lock.source.cmd("PTTL", lock.k) <= TTL_MS
    assert lock.part(lock.source, "k", other, TTL_MS)[0] == 2


@pytest.mark.parametrize("format", ["string", "hash_rw"])
def test_a_writer_is_extended_by_the_lock_key_alone(
    cluster: Cluster, composed: Texts, format: str
) -> None:
    lock = Slot(cluster, composed[1], format)
    held = token()
    assert lock.acquire(lock.source, held)[0] == 1
    cluster.begin_classic(lock.slot, lock.to)
    assert lock.part(lock.source, "k", held, 60_000)[0] == 1
    assert lock.source.cmd("PTTL", lock.k) > TTL_MS
    assert lock.part(lock.source, "k", token(), 90_000)[0] == -1
    assert lock.source.cmd("PTTL", lock.k) <= 60_000
    lock.arrive()


@each_move
@pytest.mark.parametrize("format", ["string", "hash", "hash_rw"])
def test_a_dead_waiter_whose_channel_moved_blocks_no_queue(
    cluster: Cluster, composed: Texts, format: str, kind: str
) -> None:
    lock = Slot(cluster, composed[1], format)
    with waiting_at(lock.source, lock) as dead:
        holder, waiting = token(), dead.token()
        assert lock.acquire(lock.source, holder)[0] == 1
        assert lock.acquire(lock.source, waiting, member(waiting, "x", 200))[0] == 0
    lock.move(kind)  # its channel stays at the source
    release = [holder, PREFIX, *lock.owner(holder), *TURN]
    freed = lock.run(lock.to, "release", *release)
    assert freed[0] == 2, "K was given to the waiter, without a message"
    assert lock.to.cmd("ZCARD", lock.q) == 0
    assert 0 < lock.to.cmd("PTTL", lock.k) <= 200
    with waiting_at(lock.to, lock) as alive:
        mine = alive.token()
        wait_until(lambda: lock.acquire(lock.to, mine, member(mine))[0] == 1, 5.0)


SILENT_MS = 100  # for which waiters that no message reaches have K, all of them together


@each_move
@pytest.mark.parametrize("format", ["string", "hash", "hash_rw"])
def test_dead_waiters_whose_channels_moved_cost_no_more_than_one(
    cluster: Cluster, composed: Texts, format: str, kind: str
) -> None:
    """Goal: one call passes over all of them, and notifies each by the plain channel of its name,
    which reaches every node; the next waiter is notified when K is free. A live one comes back to
    its place by its ticket."""
    lock = Slot(cluster, composed[1], format)
    with waiting_at(lock.source, lock) as away, waiting_at(lock.to, lock) as here:
        away.subscription.send("SUBSCRIBE", PREFIX + away.cid)
        assert away.subscription.push(5.0) is not None
        holder = token()
        assert lock.acquire(lock.source, holder)[0] == 1
        silent = [away.token() for _ in range(20)]
        tickets = [lock.acquire(lock.source, it, member(it))[3] for it in silent]
        lock.move(kind)
        last = here.token()
        assert lock.acquire(lock.to, last, member(last))[4] == len(silent)
        release = [holder, PREFIX, *lock.owner(holder), *TURN]
        assert lock.run(lock.to, "release", *release)[0] == 2
        assert lock.to.cmd("ZCARD", lock.q) == 1
        assert lock.to.cmd("PTTL", lock.k) in (-2, *range(SILENT_MS + 1))
        notice = here.subscription.push(5.0)
        assert notice is not None and notice[2][:11].decode() == "n" + last[22:]
        assert int(notice[2][11:]) <= SILENT_MS
        heard = [away.subscription.push(5.0) for _ in silent]
        assert [it and it[2].decode() for it in heard] == [f"n{it[22:]}00000" for it in silent]
        # Those that live queue again, with a channel of this node, in front of the last one.
        back = here.token()
        text = [back, TTL_MS, member(back), tickets[3], PREFIX, *lock.owner(back)]
        assert lock.run(lock.to, "acquire", *text)[4] in (0, -1)
        wait_until(lambda: lock.acquire(lock.to, last, member(last))[0] == 0)
        wait_until(lambda: lock.acquire(lock.to, back, member(back))[0] == 1, 5.0)


@each_move
@pytest.mark.parametrize("format", ["string", "hash_rw"])
def test_readers_do_not_overtake_a_writer_whose_channel_moved(
    cluster: Cluster, composed: Texts, format: str, kind: str
) -> None:
    """Goal: the writer keeps its place while readers have K; readers behind it wait, also when it
    has left the queue to come back."""
    lock = Slot(cluster, composed[1], format)
    with waiting_at(lock.source, lock) as away, waiting_at(lock.to, lock) as here:
        readers = [token(), token()]
        for reader in readers:
            assert lock.read(lock.source, reader)[0] == 1
        writer, silent, behind = away.token(), away.token(), here.token()
        assert lock.acquire(lock.source, writer, member(writer))[0] == 0
        assert lock.read(lock.source, silent, member(silent, "s"))[0] == 0
        lock.move(kind)
        assert lock.read(lock.to, behind, member(behind, "s"))[0] == 0
        assert lock.run(lock.to, "release", readers[0], PREFIX, *TURN)[0] == 1
        assert lock.to.cmd("ZCARD", lock.r) == 1, "the other reader alone"
        assert lock.to.cmd("ZCARD", lock.q) == 3
        assert lock.run(lock.to, "release", readers[1], PREFIX, *TURN)[0] == 2
        assert lock.to.cmd("ZCARD", lock.q) == 1
        notice = here.subscription.push(5.0)
        assert notice is not None and notice[2][:11].decode() == "n" + behind[22:]
        assert int(notice[2][11:]) <= SILENT_MS
        wait_until(lambda: lock.read(lock.to, behind, member(behind, "s"))[0] == 1)


@each_move
def test_provisional_lease_is_no_hold_of_the_owner(
    cluster: Cluster, composed: Texts, kind: str
) -> None:
    """Goal: an owner that no message reaches comes back with another token, and has one hold."""
    lock = Slot(cluster, composed[1], "hash")

    def acquire(node: Node, it: str) -> Any:
        return lock.run(node, "acquire", it, TTL_MS, member(it) + "job", "", PREFIX, "job")

    with waiting_at(lock.source, lock) as away, waiting_at(lock.to, lock) as here:
        holder, silent, back = token(), away.token(), here.token()
        assert lock.acquire(lock.source, holder)[0] == 1
        assert acquire(lock.source, silent)[0] == 0
        lock.move(kind)
        assert lock.run(lock.to, "release", holder, PREFIX, holder, *TURN)[0] == 2
        # Absent: the 100 ms are over.
        assert lock.to.cmd("HKEYS", lock.k) in ([silent.encode()], [])
        counts: list[int] = []

        def is_granted() -> bool:
            answer = acquire(lock.to, back)
            counts.extend(answer[3:4] if answer[0] == 1 else [])
            return bool(counts)

        wait_until(is_granted)
        assert counts == [1]


@each_move
def test_holder_and_queue_are_the_same_after_a_move(
    cluster: Cluster, composed: Texts, kind: str
) -> None:
    lock = Slot(cluster, composed[1])
    holder, first, second = token(), token(), token()
    fence = lock.acquire(lock.source, holder)[1]
    for waiting in (first, second):
        assert lock.acquire(lock.source, waiting, member(waiting))[0] == 0
    lock.move(kind)
    assert lock.acquire(lock.to, holder)[:2] == [1, fence], "held as before"
    queue = [it[:32].decode() for it in lock.to.cmd("ZRANGE", lock.q, 0, -1)]
    assert queue == [first, second]


def test_a_live_waiter_whose_channel_moved_finds_its_grant(
    cluster: Cluster, composed: Texts
) -> None:
    lock = Slot(cluster, composed[1])
    with waiting_at(lock.source, lock) as waiter:
        holder, waiting = token(), waiter.token()
        assert lock.acquire(lock.source, holder)[0] == 1
        assert lock.acquire(lock.source, waiting, member(waiting))[0] == 0
        lock.move("classic")
        assert lock.run(lock.to, "release", holder, PREFIX, *TURN)[0] == 2
        assert lock.acquire(lock.to, waiting, member(waiting))[0] == 1


def test_a_refused_message_is_no_grant(cluster: Cluster, composed: Texts) -> None:
    """Without the right to publish the waiter keeps its place: it may be alive."""
    lock = Slot(cluster, composed[1])
    with waiting_at(lock.source, lock) as waiter:
        holder, waiting = token(), waiter.token()
        assert lock.acquire(lock.source, holder)[0] == 1
        assert lock.acquire(lock.source, waiting, member(waiting))[0] == 0
        rules = ["reset", "on", ">pw", "~*", "+@all", "resetchannels"]
        lock.source.cmd("ACL", "SETUSER", "limited", *rules)
        text = composed[1]["release.sharded"]
        keys = [lock.k, lock.q, lock.f, lock.r, lock.w, lock.n]
        with lock.source.connect() as connection:
            connection.cmd("AUTH", "limited", "pw")
            reply = connection.cmd("EVAL", text, len(keys), *keys, holder, PREFIX, *TURN)
        assert reply[0] == 1 and reply[2] == 2 and lock.source.cmd("ZCARD", lock.q) == 1


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_recall_reaches_a_client_whose_channel_has_moved(
    cluster: Cluster, composed: Texts, is_moved: bool
) -> None:
    """Its own node cannot publish to the sharded channel then, and counts no receiver elsewhere."""
    lock = Slot(cluster, composed[1])
    node = lock.third if is_moved else lock.source
    with waiting_at(node, lock) as holder, node.connect(protocol=3) as plain:
        plain.send("SUBSCRIBE", PREFIX + holder.cid)
        assert plain.push(5.0) is not None
        held = holder.token()
        assert lock.acquire(lock.source, held)[0] == 1
        reply = lock.run(lock.source, "recall", PREFIX, "why", keys=[lock.k, lock.r])
        assert reply[0] == (0 if is_moved else 1)
        message = (plain if is_moved else holder.subscription).push(5.0)
        assert message is not None and message[-1] == f"r{held[22:]}:why".encode()


@pytest.mark.parametrize("format", ["hash", "hash_rw"])
@pytest.mark.parametrize("k", ["orders%d", "{orders}%d"])
@pytest.mark.parametrize("subscribe", ["SUBSCRIBE", "SSUBSCRIBE"])
def test_redisson_gets_its_turn_where_it_subscribes(
    cluster: Cluster, composed: Texts, format: str, k: str, subscribe: str
) -> None:
    """Goal: a name with a hash tag of its own is no exception, and neither kind of channel is.
    Method: a waiter of theirs is played by its subscription; one of ours is in the queue."""
    lock = Slot(cluster, composed[1], format, k)
    prefix = {"hash": "redisson_lock__channel:", "hash_rw": "redisson_rwlock:"}[format]
    channel = prefix + (lock.k if "{" in lock.k else "{" + lock.k + "}")
    with waiting_at(lock.source, lock) as waiter, lock.source.connect(protocol=3) as theirs:
        holder, waiting = token(), waiter.token()
        assert lock.acquire(lock.source, holder)[0] == 1
        assert lock.acquire(lock.source, waiting, member(waiting))[0] == 0
        theirs.send(subscribe, channel)
        assert theirs.push(5.0) is not None
        release = [holder, PREFIX, *lock.owner(holder), *NEVER]
        assert lock.run(lock.source, "release", *release)[0] == 1, "K is left to them"
        message = theirs.push(5.0)
        assert message is not None and message[2] in (b"0", b"1"), message
        assert lock.source.cmd("EXISTS", lock.k) == 0
        assert lock.source.cmd("ZCARD", lock.q) == 1
