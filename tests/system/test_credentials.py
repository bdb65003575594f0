# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a credential that ends never ends a held lease, nor the place of a waiter, on one server,
behind Sentinel, on a cluster and on a Redlock.

Method: each token is an ACL user of its own, which all servers delete when it ends, a little before
its client thinks so: that closes the connections that have not got another one by then, as the
services with tokens do. Some questions for a token fail. For passwords in a file: a rotation, with
CLIENT KILL, or while a proxy holds the old password back.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.cluster import NEVER_MS, Cluster
from support.sentinel import SentinelGroup
from support.servers import Server, available_kinds
from support.wait import LIMIT, wait_until

from .actor import HELD, Actor, Pending, Reply, Spawn
from .conftest import queue_length, queued_tokens
from .plays import QUIET_S, HandOff, scripts_within
from .proxy import FaultProxy


KIND = available_kinds()[-1]
RIGHTS = ("~*", "&*", "+@all")
VALID_MS = 2000  # asked for again after the half
REAL_S = 1.8
TTL_MS = 4000
FAILURE_EVERY = 3  # questions of an actor
QUESTIONS, ANSWERS = 1, 2  # threads of an actor


@dataclass(frozen=True)
class Place:
    """Servers that know the users, and how a client reaches them; several URLs are a Redlock."""

    servers: Sequence[Server]
    urls: Sequence[str]

    @property
    def of(self) -> dict[str, int]:
        """The argument of commands that names the client."""
        return {"redlock": 0} if len(self.urls) > 1 else {"client": 0}

    def start(self, spawn: Spawn) -> Actor:
        if len(self.urls) == 1:
            return spawn(self.urls[0])
        actor = spawn("")
        actor.ok("redlock_open", urls=" ".join(self.urls), options="durable=yes", **self.of)
        return actor

    def everywhere(self, *words: str) -> None:
        for server in self.servers:
            with server.connect() as connection:
                connection.cmd(*words)


@contextlib.contextmanager
def place_of(kind: str, **options: str) -> Iterator[Place]:
    said = "&".join(f"{key}={value}" for key, value in options.items())
    if kind == "sentinel":
        with SentinelGroup(KIND, replicas=1, down_after_ms=NEVER_MS) as group:
            yield Place(group.servers, [group.url(**options)])
    elif kind == "cluster":
        with Cluster(KIND, replicas=0, node_timeout_ms=NEVER_MS) as nodes:
            yield Place(nodes.servers, [nodes.url(**options)])
    else:
        with contextlib.ExitStack() as stack:
            count = 3 if kind == "redlock" else 1
            servers = [stack.enter_context(Server(KIND)) for _ in range(count)]
            yield Place(servers, [f"{server.url}?{said}" for server in servers])


class Tokens:
    """Gives tokens to actors, and has the servers end them."""

    def __init__(self, place: Place, actors: Sequence[Actor]) -> None:
        self._place = place
        self._questions: dict[Actor, Pending] = {}
        self._counts = dict.fromkeys(actors, 0)
        self._ends: dict[str, float] = {}
        self.given_count = self.ended_count = self.failure_count = 0
        for actor in actors:
            actor.ok("credentials_watch", thread=QUESTIONS, **place.of)
            self._await_question(actor)

    def serve(self) -> None:
        now = time.monotonic()
        for token in [token for token, end in self._ends.items() if end <= now]:
            del self._ends[token]
            self._place.everywhere("ACL", "DELUSER", token)
            self.ended_count += 1
        for actor, question in list(self._questions.items()):
            if question.is_done:
                self._answer(actor)
                self._await_question(actor)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        def is_true() -> bool:
            self.serve()
            return condition()

        wait_until(is_true)

    def get(self, pending: Pending) -> Reply:
        self.wait_until(lambda: pending.is_done)
        return pending.get()

    def _await_question(self, actor: Actor) -> None:
        asked = actor.begin("credentials_wanted", thread=QUESTIONS, wait=-1, **self._place.of)
        self._questions[actor] = asked

    def _answer(self, actor: Actor) -> None:
        self._counts[actor] += 1
        if self._counts[actor] % FAILURE_EVERY == 0:
            self.failure_count += 1
            actor.ok("credentials_fail", thread=ANSWERS, reason="no token now", **self._place.of)
            return
        self.given_count += 1
        token = f"token{self.given_count}"
        self._place.everywhere("ACL", "SETUSER", token, "on", f">{token}", *RIGHTS)
        login = {"user": token, "password": token, "valid_ms": VALID_MS}
        given = actor.ok("credentials_set", thread=ANSWERS, **login, **self._place.of)
        self._ends[token] = given.began + REAL_S


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("server", {}),
        ("server", {"protocol": "2"}),
        ("sentinel", {}),
        ("cluster", {}),
        pytest.param("redlock", {}, marks=pytest.mark.not_judged),
    ],
    ids=["server", "server-resp2", "sentinel", "cluster", "redlock"],
)
def test_a_token_that_ends_never_ends_a_lease(
    kind: str, options: dict[str, str], spawn: Spawn, name: str
) -> None:
    """Goal: leases outlive their ttl and many tokens, some of which come late; a waiter is served.
    Method: four names, which on a cluster are at several nodes."""
    with place_of(kind, **options) as place:
        holder, waiter = place.start(spawn), place.start(spawn)
        tokens = Tokens(place, [holder, waiter])
        names = [f"{name}-{i}" for i in range(4)]
        held = []
        for lease, one in enumerate(names):
            asked = holder.begin(
                "acquire", name=one, lease=lease, wait=20_000, ttl_ms=TTL_MS, **place.of
            )
            held.append(tokens.get(asked))
            assert held[-1].status == "RL_OK", held[-1]
        waiting = waiter.begin("acquire", name=names[0], wait=-1, **place.of)
        end = held[-1].ended + 1.5 * TTL_MS / 1000
        tokens.wait_until(lambda: tokens.ended_count >= 6 and time.monotonic() > end)
        assert tokens.failure_count >= 2
        for lease, _ in enumerate(names):
            seen = holder.ok("look", lease=lease)
            assert seen.number("state") == HELD, seen
            assert seen.number("fence") == held[lease].number("fence")
        assert not waiting.is_done, waiting.reply
        for lease, _ in enumerate(names):
            assert tokens.get(holder.begin("release", lease=lease)).status == "RL_OK"
        reply = tokens.get(waiting)
        assert reply.status == "RL_OK", reply
        assert tokens.get(waiter.begin("release")).status == "RL_OK"


def connections_of(server: Server, user: str) -> set[str]:
    with server.connect() as connection:
        clients = connection.cmd("CLIENT", "LIST").decode()
    return set(re.findall(rf"^id=(\d+) .* user={user} ", clients, re.MULTILINE))


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_waiter_stays_where_it_is_when_its_user_changes(
    one_server: Server, spawn: Spawn, name: str, protocol: int
) -> None:
    """Goal: AUTH moves no waiter, ends no connection, and messages come as before. With RESP2 the
    connection for messages keeps its first user.
    Method: CLIENT LIST before and after; a hand-off that waits for no poll."""
    place = Place([one_server], [f"{one_server.url}?protocol={protocol}"])
    holder, waiter = place.start(spawn), place.start(spawn)
    for user in ("one", "two"):
        place.everywhere("ACL", "SETUSER", user, "on", f">{user}", *RIGHTS)
    for actor in (holder, waiter):
        actor.ok("credentials_set", user="one", password="one")
    holder.ok("acquire", name=name, wait=0)
    waiting = waiter.begin("acquire", name=name, wait=-1)
    wait_until(lambda: queue_length(one_server, name) == 1)
    before, places = connections_of(one_server, "one"), queued_tokens(one_server, name)
    assert len(before) == (4 if protocol == 2 else 2)
    for actor in (holder, waiter):
        actor.ok("credentials_set", thread=ANSWERS, user="two", password="two")
    wait_until(lambda: len(connections_of(one_server, "two")) == 2)
    assert connections_of(one_server, "one") | connections_of(one_server, "two") == before
    assert queued_tokens(one_server, name) == places
    scripts = scripts_within(one_server, QUIET_S)
    released = holder.ok("release")
    assert HandOff(waiting.get().ended - released.began, scripts).is_by_message
    waiter.ok("release")


def rotate(place: Place, path: Path, password: str) -> None:
    """Replace the file, then the password of the user."""
    new = path.with_suffix(".new")
    new.write_text(password + "\n")
    new.rename(path)
    place.everywhere("ACL", "SETUSER", "app", "reset", "on", f">{password}", *RIGHTS)


@pytest.mark.parametrize("kind", ["sentinel", "cluster"])
def test_a_file_is_read_for_each_connection(
    kind: str, spawn: Spawn, name: str, tmp_path: Path
) -> None:
    """Goal: a lease outlives the rotation of its password on every node.
    Method: the file is replaced, then the password; the server ends all connections of the user."""
    path = tmp_path / "password"
    with place_of(kind, user="app", password_file=str(path)) as place:
        rotate(place, path, "first")
        actor = place.start(spawn)
        for lease in range(4):
            actor.ok("acquire", name=f"{name}-{lease}", lease=lease, wait=0)
        before = [connections_of(server, "app") for server in place.servers]
        rotate(place, path, "second")
        place.everywhere("CLIENT", "KILL", "USER", "app")
        for lease in range(4):
            actor.ok("extend", lease=lease)
            actor.ok("release", lease=lease)
        for server, old in zip(place.servers, before):
            assert not connections_of(server, "app") & old


class Gate:
    """Holds back, once closed, each command that contains a password."""

    def __init__(self, password: str) -> None:
        self._password = password.encode()
        self._is_open = threading.Event()
        self._is_open.set()
        self.has_held = threading.Event()

    def close(self) -> None:
        self._is_open.clear()

    def open(self) -> None:
        self._is_open.set()

    def rewrite(self, command: list[bytes]) -> list[bytes]:
        if self._password in command and not self._is_open.is_set():
            self.has_held.set()
            self._is_open.wait(LIMIT)
        return command


@pytest.mark.parametrize("is_side", [False, True], ids=["commands", "confirmations"])
def test_a_file_is_read_again_when_its_password_is_refused(
    spawn: Spawn, name: str, tmp_path: Path, is_side: bool
) -> None:
    """Goal: a connection whose old password is refused is made with the new one of the file, and no
    acquire fails.
    Method: a proxy holds the old password back until the file and the user have the new one. The
    connection for commands is cut; that for confirmations is made by the first acquire."""
    gate, path = Gate("first"), tmp_path / "password"
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(Server(KIND, ["--repl-diskless-sync-delay", "0"]))
        proxy = stack.enter_context(FaultProxy(server.port))
        stack.callback(gate.open)
        place = Place([server], [])
        proxy.rewrite = gate.rewrite
        rotate(place, path, "first")
        actor = spawn(f"{proxy.url}?user=app&password_file={path}")
        actor.ok("acquire", name=f"{name}-first", wait=0)
        actor.ok("release")
        if is_side:
            replica_of = ["--replicaof", server.host, str(server.port)]
            stack.enter_context(Server(KIND, replica_of))
            gate.close()
            needs = {"min_replicas": 1, "sync_timeout": "20s"}
            waiting = actor.begin("acquire", name=name, wait=-1, **needs)
        else:
            holder = spawn(server.url)
            holder.ok("acquire", name=name, wait=0)
            waiting = actor.begin("acquire", name=name, wait=-1)
            wait_until(lambda: queue_length(server, name) == 1)
            gate.close()
            proxy.cut()
        assert gate.has_held.wait(LIMIT)
        rotate(place, path, "second")
        gate.open()
        if not is_side:
            holder.ok("release")
        reply = waiting.get()
        assert reply.status == "RL_OK", reply
        actor.ok("release")
        with server.connect() as connection:
            refused = [entry[1] for entry in connection.cmd("ACL", "LOG")]
        assert refused == [1]  # the old one was tried, once
