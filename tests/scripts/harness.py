# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""One lock on a real server, and clients that send scripts by hand, one request at a time.

Nothing is retried and nothing is hidden: a test plays lost replies, late copies and dead hosts by
choosing what to send and when. Expiry and overdue waits are played without sleeping: by PEXPIRE,
and by tickets of the past.
"""

from __future__ import annotations

import base64
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from support.resp import Argument, Connection, RespError
from support.servers import Server

from .invariants import AGREES, IMMORTAL
from .messages import Grant, Head, Recalled, Told, parse  # noqa: F401: for the tests
from .texts import (  # noqa: F401: the tests take them from here
    PROVISIONAL_MS,
    CLOCK_SLACK_MS,
    FENCE_STEP,
    FENCE_TTL_MS,
    HASH_NAMES,
    HASH_RW_NAMES,
    PERMITS_NAMES,
    TTL_MS,
    MAX_ENTRIES,
    MORE,
    NAMES,
    NEVER,
    NO_LIMIT,
    OWN_NAMES,
    QUEUE_TTL_MS,
    REFUSED,
    ROOT,
    SCRIPTS,
    SHARED,
    TURN,
    aux_key,
    check_of,
    compose,
)

def member_of(token: str, provisional_ms: int = PROVISIONAL_MS, wait_ms: int = NO_LIMIT) -> str:
    member = f"{token}x{provisional_ms:05d}{wait_ms:013d}"
    assert len(member) == 51
    return member


def eventually(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait until the condition holds; fail when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not come true in time"
        time.sleep(0.0005)


@dataclass(frozen=True)
class Held:
    fence: str
    now: int
    count: int = 1  # Of the owner's holds, hash format.


@dataclass(frozen=True)
class Busy:
    pttl: int
    now: int
    ticket: str
    rank: int
    holder: bytes
    kind: str
    flags: int = 0
    reader: bytes = b""


class Lock:
    """The key names of one lock; `w` of a semaphore is its cap."""

    def __init__(
        self, namespace: str, name: str, *, is_hash: bool = False, has_permits: bool = False
    ) -> None:
        self.namespace = namespace
        self.is_hash, self.has_permits = is_hash, has_permits
        self.k = namespace + name
        mark = "h" if is_hash else "s" if has_permits else ""
        letters = "qicr" if has_permits else "qiwr"
        self.q, self.i, self.w, self.r = (aux_key(namespace, self.k, mark + x) for x in letters)
        self.f = aux_key(namespace, self.k, "f")
        self.o = aux_key(namespace, self.k, "o")
        self.v = aux_key(namespace, self.k, "v")
        self.e = aux_key(namespace, self.k, "e")

    @property
    def keys(self) -> list[str | bytes]:
        return [self.k, self.q, self.f, self.r]

    def script(self, name: str) -> str:
        """The text for this format."""
        return name + (".hash" if self.is_hash else ".permits" if self.has_permits else "")


class World:
    """A server with one lock on it, an operator's connection, and clients."""

    def __init__(self, server: Server, texts: dict[str, str], sharded: bool) -> None:
        self.server = server
        self.sharded = sharded
        names = [*NAMES, *(f"{name}.hash" for name in HASH_NAMES)]
        names += [f"{name}.permits" for name in PERMITS_NAMES]
        self.texts = {name: texts[f"{name}.sharded" if sharded else name] for name in names}
        self.sha = {name: _sha1(text) for name, text in self.texts.items()}
        self.admin = server.connect()
        self.admin.cmd("FLUSHALL")
        self.load()
        self.lock = Lock("app:", "orders")
        self.prefix = "app:rl1:"
        self.may_be_immortal: set[str] = set()
        self.broken: list[str] = []
        self.may_disagree = False  # A test that spoils K or R says so.
        self.clients: list[Client] = []

    def load(self) -> None:
        for text in self.texts.values():
            self.admin.cmd("SCRIPT", "LOAD", text)

    def client(self, lock: Lock | None = None, owner: str = "", polls: bool = False) -> Client:
        client = Client(self, lock or self.lock, owner, polls)
        self.clients.append(client)
        return client

    # Each makes a client, and returns it with the token of what it did.

    def new_holder(self, owner: str = "", **options: Any) -> tuple[Client, str]:
        client = self.client(owner=owner)
        return client, client.hold(**options)

    def new_reader(self, owner: str = "", **options: Any) -> tuple[Client, str]:
        client = self.client(owner=owner)
        return client, client.share(**options)

    def new_waiter(self, owner: str = "", **options: Any) -> tuple[Client, str]:
        client = self.client(owner=owner)
        return client, client.wait(**options)

    def new_waiting_reader(self, owner: str = "", **options: Any) -> tuple[Client, str]:
        client = self.client(owner=owner)
        return client, client.wait_to_read(**options)

    def run(
        self,
        name: str,
        keys: Sequence[str | bytes],
        *args: Argument,
        connection: Connection | None = None,
    ) -> Any:
        """One script call; afterwards no key may be without expiry, and K and R agree."""
        kind = name.partition(".")[0]
        has_cap = name.endswith(".permits")
        if (kind in ("acquire", "acquire_read", "release") or has_cap) and len(keys) == 4:
            readers = keys[3]  # W is beside R
            last = "c" if has_cap else "w"
            keys = [*keys, readers[:-1] + (last.encode() if isinstance(readers, bytes) else last)]
        if kind == "release" and len(args) < 5 and len(keys) < 6:
            args = (*args, *TURN)
        try:
            return (connection or self.admin).cmd(
                "EVALSHA", self.sha[name], len(keys), *keys, *args
            )
        finally:
            found = {key.decode(errors="replace") for key in self.admin.cmd("EVAL", IMMORTAL, 0)}
            found -= self.may_be_immortal
            self.broken += [f"{key} without expiry after {name}" for key in found]
            if not self.may_disagree:
                wrong = self.admin.cmd("EVAL", AGREES, 2, self.lock.k, self.lock.r).decode()
                self.broken += [f"{wrong} after {name}"] if wrong else []

    def serve_queue(self, connection: Connection | None = None) -> tuple[int, int]:
        count, now, flags = self.run(
            self.lock.script("serve_queue"), self.lock.keys, self.prefix, connection=connection
        )
        assert 13 == len(str(now))
        return count, flags

    def force_release(
        self, expected: str = "", connection: Connection | None = None
    ) -> tuple[int, int]:
        result, now, flags, *wrong_type = self.run(
            self.lock.script("force_release"),
            self.lock.keys,
            expected,
            self.prefix,
            connection=connection,
        )
        assert len(str(now)) == 13 and bool(wrong_type) == (result == -2)
        return result, flags

    def inspect(self, limit: int = 256) -> list[Any]:
        lock = self.lock
        last = [lock.w] if lock.has_permits else [] if lock.is_hash else [lock.o, lock.e]
        keys = [lock.k, lock.q, lock.f, lock.i, lock.r, *last]
        reply: list[Any] = self.run(lock.script("inspect"), keys, limit)
        return reply

    def holder(self) -> str | None:
        value = self.admin.cmd("GET", self.lock.k)
        return None if value is None else value.decode()

    def owners(self) -> dict[str, int]:
        """Hash format: what K says."""
        found = self.admin.cmd("HGETALL", self.lock.k)
        return {owner.decode(): int(count) for owner, count in zip(found[::2], found[1::2])}

    def readers(self) -> dict[str, int]:
        """Who shares the lock, or holds it for its owner: token to expiry."""
        found = self.admin.cmd("ZRANGE", self.lock.r, 0, -1, "WITHSCORES")
        return {member.decode()[:32]: int(float(ms)) for member, ms in zip(found[::2], found[1::2])}

    def end_lease(self, token: str, in_ms: int = -1) -> None:
        """Let the lease of one of several end, as if its time had come: K follows the rest."""
        text = """
        for _, member in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
          local is_it = string.sub(member, 1, 32) == ARGV[1]
          if is_it then redis.call('ZADD', KEYS[2], ARGV[2], member) end
        end
        local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
        redis.call('PEXPIREAT', KEYS[2], last)
        return redis.call('PEXPIREAT', KEYS[1], last)
        """
        end = self.now_us() // 1000 + in_ms if in_ms >= 0 else 1
        assert self.admin.cmd("EVAL", text, 2, self.lock.k, self.lock.r, token, end) == 1

    def pttl(self, key: str | None = None) -> int:
        pttl: int = self.admin.cmd("PTTL", key or self.lock.k)
        return pttl

    def queue(self) -> list[str]:
        return [member.decode() for member in self.admin.cmd("ZRANGE", self.lock.q, 0, -1)]

    def keys(self) -> set[str]:
        return {key.decode(errors="replace") for key in self.admin.cmd("KEYS", "*")}

    def put(self, command: str, key: str, *words: Argument, ms: int) -> None:
        """A key of any type, for so long."""
        self.admin.cmd(command, key, *words)
        self.admin.cmd("PEXPIRE", key, ms)

    def now_us(self) -> int:
        seconds, micros = self.admin.cmd("TIME")
        return int(seconds) * 1_000_000 + int(micros)

    def expire(self, key: str | None = None) -> None:
        """Let a lease run out, by the server's own expiry."""
        key = key or self.lock.k
        assert self.admin.cmd("PEXPIRE", key, 1) == 1
        eventually(lambda: self.admin.cmd("EXISTS", key) == 0)

    def enqueue_dead(self, count: int) -> None:
        """Put `count` waiters at the end of the queue that nobody receives messages for."""
        text = """
        local last = tonumber(redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2] or ARGV[2])
        for i = 1, ARGV[1] do
          redis.call('ZADD', KEYS[1], string.format('%.0f', last + i),
            string.format('dead%018d%010xx%05d9999999999999', last % 1e6 + i, i, 3000) .. ARGV[3])
        end
        return redis.call('PEXPIRE', KEYS[1], 600000)
        """
        rest = "1/1" if self.lock.has_permits else ""
        self.admin.cmd("EVAL", text, 1, self.lock.q, count, self.now_us(), rest)

    @contextmanager
    def out_of_memory(self) -> Iterator[None]:
        """While inside, the server refuses whatever may need memory."""
        self.admin.cmd("CONFIG", "SET", "maxmemory", 1)
        try:
            yield
        finally:
            self.admin.cmd("CONFIG", "SET", "maxmemory", 0)

    @contextmanager
    def user(self, *rules: str) -> Iterator[Connection]:
        """A connection that is logged in as a user with these ACL rules."""
        self.admin.cmd("ACL", "SETUSER", "limited", "reset", "on", ">pw", *rules)
        connection = self.server.connect()
        try:
            connection.cmd("AUTH", "limited", "pw")
            yield connection
        finally:
            connection.close()
            self.admin.cmd("ACL", "DELUSER", "limited")

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.admin.close()


RECALLABLE = 1 << 39


class Client:
    """One client object: an id, a connection and a subscription to its channel."""

    def __init__(self, world: World, lock: Lock, owner: str, polls: bool) -> None:
        self.world = world
        self.lock, self.owner = lock, owner
        self.polls = polls  # as its entries say
        self.cid = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        self.channel = world.prefix + self.cid
        self.connection = world.server.connect()
        self.subscription: Connection | None = None
        self._last_rid = 0
        self.subscribe()

    def subscribe(self, at: Server | None = None) -> None:
        self.subscription = (at or self.world.server).connect(protocol=3)
        self.subscription.send("SSUBSCRIBE" if self.world.sharded else "SUBSCRIBE", self.channel)
        assert self.subscription.push(5.0) is not None

    def die(self) -> None:
        """As when the process ends: the kernel closes its connections, and the server notices."""
        assert self.subscription is not None
        self.subscription.close()
        self.subscription = None
        query = "SHARDNUMSUB" if self.world.sharded else "NUMSUB"
        eventually(lambda: self.world.admin.cmd("PUBSUB", query, self.channel)[1] == 0)

    def token(self, is_recallable: bool = False) -> str:
        self._last_rid += 1
        return f"{self.cid}{self._last_rid + (RECALLABLE if is_recallable else 0):010x}"

    def owner_of(self, token: str) -> list[Argument]:
        """The argument that only some formats have: the owner, or permits and limit."""
        return [self.owner or token] if self.lock.is_hash or self.lock.has_permits else []

    def member(
        self, token: str, mode: str = "x", claim_ms: int = PROVISIONAL_MS, wait_ms: int = NO_LIMIT
    ) -> str:
        text = member_of(token, claim_ms, wait_ms)
        return text[:32] + mode + ("+" if self.polls else "0") + text[34:] + self.owner

    def acquire(self, token: str, **options: Any) -> Held | Busy:
        """ACQUIRE that queues; see _ask() for the options."""
        return self._answer(self._ask("acquire", token, "x", **options))

    def try_acquire(self, token: str, *, ttl_ms: int = TTL_MS) -> Held | Busy:
        """ACQUIRE that never queues."""
        return self.acquire(token, ttl_ms=ttl_ms, queues=False)

    def read(self, token: str, *, sibling: str = "", **options: Any) -> Held | Busy:
        """ACQUIRE READ."""
        return self._answer(self._ask("acquire_read", token, "s", more=[sibling], **options))

    def upgrade(self, token: str, **options: Any) -> Held | Busy | int:
        """UPGRADE. -1: the token has nothing; -2: another reader waits to upgrade."""
        reply = self._ask("upgrade", token, "u", **options)
        if reply[0] < 0:
            assert len(reply) == 2 and len(str(reply[1])) == 13
            return int(reply[0])
        return self._answer(reply)

    def downgrade(
        self,
        token: str,
        ttl_ms: int = TTL_MS,
        connection: Connection | None = None,
        fence: str = "",
    ) -> tuple[int, int]:
        keys, prefix = self.lock.keys, self.world.prefix
        on = connection or self.connection
        args = (token, ttl_ms, prefix, fence)
        result, now, flags = self.world.run("downgrade", keys, *args, connection=on)
        assert len(str(now)) == 13
        return result, flags

    def extend_shared(
        self, token: str, ttl_ms: int = TTL_MS, *, is_marked: bool = False
    ) -> int:
        keys, name = [self.lock.k, self.lock.r], self.lock.script("extend_shared")
        keys += [self.lock.i] if is_marked else []
        return self._two(name, keys, token, ttl_ms, *self.owner_of(token))

    def _ask(
        self,
        name: str,
        token: str,
        mode: str,
        *,
        ttl_ms: int = TTL_MS,
        provisional_ms: int = PROVISIONAL_MS,
        wait_ms: int = NO_LIMIT,
        ticket: str | int = "",
        queues: bool = True,
        more: Sequence[Argument] = (),
        connection: Connection | None = None,
    ) -> list[Any]:
        member = self.member(token, mode, provisional_ms, wait_ms) if queues else ""
        words = (token, ttl_ms, member, ticket, self.world.prefix, *self.owner_of(token), *more)
        on = connection or self.connection
        reply: list[Any] = self.world.run(
            self.lock.script(name), self.lock.keys, *words, connection=on
        )
        return reply

    def _answer(self, reply: list[Any]) -> Held | Busy:
        if reply[0] == 1:
            _, fence, now = reply[:3]
            assert len(fence) == 16 and fence.isdigit() and len(str(now)) == 13
            # The fences of a client that may retain the lock.
            assert len(reply) == 4 or (len(reply) == 3 and not self.lock.is_hash)
            return Held(fence.decode(), now, *reply[3:])
        zero, pttl, now, place, rank, check, holder, kind, flags, *reader = reply
        assert zero == 0 and len(str(now)) == 13 and check.decode() == check_of(self.lock.k)
        assert len(holder) <= 64
        assert place == b"" if rank == -1 else len(place) == 16 and place.isdigit()
        return Busy(pttl, now, place.decode(), rank, holder, kind.decode(), flags, *reader)

    def hold(self, *, ttl_ms: int = TTL_MS) -> str:
        """Take the free lock; the token."""
        token = self.token()
        assert isinstance(self.acquire(token, ttl_ms=ttl_ms), Held)
        return token

    def share(self, *, ttl_ms: int = TTL_MS) -> str:
        """Read, with those who do; the token."""
        token = self.token()
        assert isinstance(self.read(token, ttl_ms=ttl_ms), Held)
        return token

    def wait_to_read(self, **options: Any) -> str:
        """Stand in the queue as a reader; the token."""
        return self._wait(self.read, options)

    def wait(self, **options: Any) -> str:
        """Stand in the queue of the held lock; the token."""
        return self._wait(self.acquire, options)

    def _wait(self, ask: Callable[..., Held | Busy], options: dict[str, Any]) -> str:
        token = self.token()
        reply = ask(token, **options)
        assert isinstance(reply, Busy) and reply.rank >= 0
        return token

    def wait_overdue(self) -> str:
        """Stand in the queue with a wait that has ended; the token."""
        token = self.token()
        self.acquire(token, wait_ms=1000, ticket=self.world.now_us() - 10_000_000)
        return token

    def release(self, token: str, connection: Connection | None = None) -> tuple[int, int]:
        return self._three("release", token, connection)

    def release_with_turn(
        self, token: str, burst: int, window_ms: int, grants: int = 1
    ) -> tuple[int, int]:
        """RELEASE of a client that was asked to leave others their turn, or not to."""
        return self._three("release", token, None, burst, window_ms, grants)

    def cancel(self, member: str, connection: Connection | None = None) -> tuple[int, int]:
        return self._three("cancel", member, connection)

    def _three(
        self, name: str, what: str, connection: Connection | None, *more: Argument
    ) -> tuple[int, int]:
        result, now, flags = self.world.run(
            self.lock.script(name),
            self.lock.keys,
            what,
            self.world.prefix,
            *self.owner_of(what[:32]),
            *more,
            connection=connection or self.connection,
        )
        # A release that nobody waits for does not read the clock.
        assert len(str(now)) == 13 or (name == "release" and result == 1 and now == 0)
        return result, flags

    def extend(self, token: str, ttl_ms: int = TTL_MS, *fields: str, info: bool = False) -> int:
        keys = [self.lock.k, self.lock.i] if info or fields else [self.lock.k]
        return self._two("extend", keys, token, ttl_ms, *fields)

    def raise_fence(self, token: str, fence: Argument) -> int:
        return self._two("raise_fence", [self.lock.k, self.lock.f], token, fence)

    def detach(self, token: str, count: int = 0, connection: Connection | None = None) -> int:
        lock = self.lock
        result, now = self.world.run(
            lock.script("detach"),
            [lock.k, lock.r, lock.i],
            token,
            count,
            *self.owner_of(token),
            connection=connection or self.connection,
        )
        assert len(str(now)) == 13
        return int(result)

    def attach(
        self,
        token: str,
        call: str,
        ttl_ms: int = TTL_MS,
        connection: Connection | None = None,
    ) -> tuple[int, int]:
        lock = self.lock
        result, now, count = self.world.run(
            lock.script("attach"),
            [lock.k, lock.r, lock.i],
            token,
            ttl_ms,
            call,
            *(self.owner_of(token) if lock.has_permits else []),
            connection=connection or self.connection,
        )
        assert len(str(now)) == 13
        return int(result), int(count)

    def _two(self, name: str, keys: Sequence[str | bytes], *args: Argument) -> int:
        result, now = self.world.run(name, keys, *args, connection=self.connection)
        assert len(str(now)) == 13
        return int(result)

    def messages(self) -> list[Grant | Head | Told | Recalled]:
        """All messages of the scripts that have been answered. None can still be under way: the
        server answers PING behind them."""
        if self.subscription is None:
            return []
        self.subscription.cmd("PING")
        found = []
        while self.subscription.pushes:
            kind, channel, text = self.subscription.pushes.popleft()
            assert kind == (b"smessage" if self.world.sharded else b"message")
            assert channel.decode() == self.channel
            found.append(parse(text.decode(), self.lock.k))
        return found

    def was_told(self, token: str, ms: int, slack_ms: int = CLOCK_SLACK_MS) -> bool:
        """Whether its one message says: you are the head, look again after `ms`."""
        found = self.messages()
        heads = [one for one in found if isinstance(one, Head) and one.rid == rid_of(token)]
        return len(found) == len(heads) == 1 and ms - slack_ms <= heads[0].ms <= ms

    def close(self) -> None:
        self.connection.close()
        if self.subscription is not None:
            self.subscription.close()


def as_held(reply: Held | Busy | int) -> Held:
    assert isinstance(reply, Held), reply
    return reply


def as_busy(reply: Held | Busy | int) -> Busy:
    assert isinstance(reply, Busy), reply
    return reply


def rid_of(token: str) -> str:
    return token[22:]


def error_of(call: Callable[[], object]) -> str:
    """The code of the error that the call must end in."""
    try:
        result = call()
    except RespError as error:
        return error.code
    raise AssertionError(f"no error, but {result!r}")


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()
