# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a client that knows nothing of retained locks shares them with clients that do. It waits as
for any holder, for `retain` at most, and recalls nobody; to newer clients it is a usual holder.

Method: the C runner of this tree, and that of the last commit before retained locks with the
library of that commit, on one server. A lease of 60 s, so that a lock which comes earlier was
released, and did not expire.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.servers import Server
from support.wait import wait_until

from .old_build import runner_of
from .runners import Runner

LAST_WITHOUT_RETAIN = "0ee7bdff888fd5c896ec3efa7cc3da949ad289f9"
LEASE_MS = 60_000
RETAIN_MS = 1500
WAIT_MS = 30_000
FENCES = 1024  # of a grant, for local acquisitions
ROUNDS = 60


class Client:
    """A runner with the lock `m`. Each call is expected to be `OK`."""

    def __init__(self, command: list[str], url: str, name: str, *options: str) -> None:
        self._runner, self._name = Runner(command), name
        self.ok("- open", f"url={url}", "connect_timeout=20s", "command_timeout=20s")
        self.ok("- lock", "id=m kind=mutex", f"name={name}", f"ttl_ms={LEASE_MS}", *options)
        # Only a client whose messages arrive retains a lock.
        self.ok("- connect wait_ms=20000")

    def call(self, *words: str) -> str:
        return self._runner.call(" ".join(words), WAIT_MS / 1000 + 30)

    def ok(self, *words: str) -> str:
        reply = self.call(*words)
        assert reply.split()[0] == "OK", (words, reply)
        return reply

    def acquire(self, wait_ms: int = WAIT_MS) -> int:
        return _fence(self.ok("m acquire", f"wait_ms={wait_ms}"))

    def start(self) -> None:
        assert self.call("m acquire", f"wait_ms={WAIT_MS}", "&1") == "STARTED"

    def granted(self) -> int:
        return _fence(self.ok("m wait &1"))

    def release(self) -> None:
        self.ok("m release")

    def waiting(self) -> int:
        found = re.search(r" waiting=(\d+)", self.ok("- inspect", f"name={self._name}"))
        assert found
        return int(found[1])

    def end(self) -> None:
        self._runner.end()

    def kill(self) -> None:
        self._runner.kill()


def _fence(reply: str) -> int:
    found = re.search(r" fence=(\d+)", reply)
    assert found, reply
    return int(found[1])


Open = Callable[..., Client]


@pytest.fixture(scope="module")
def old_program() -> Path:
    return runner_of(LAST_WITHOUT_RETAIN)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return str(request.node.name.partition("[")[0])


@pytest.fixture(params=["redis", "valkey"])
def server(request: pytest.FixtureRequest, servers: dict[str, Server]) -> Server:
    if request.param not in servers:
        pytest.skip(f"needs {request.param}-server")
    return servers[request.param]


@pytest.fixture
def open_client(
    server: Server, name: str, commands: dict[str, list[str]], old_program: Path
) -> Iterator[Open]:
    opened: list[Client] = []

    def open_one(*options: str, is_old: bool = False) -> Client:
        command = [str(old_program)] if is_old else commands["c"]
        opened.append(Client(command, server.unix_url, name, *options))
        return opened[-1]

    yield open_one
    try:
        for client in opened:
            client.end()
    finally:
        for client in opened:
            client.kill()


class Turn(threading.Thread):
    """Takes the lock that `client` waits for, and releases it."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self.fence = 0
        self.start()

    def run(self) -> None:
        self.fence = self._client.granted()
        self._client.ok("m check")
        self._client.release()


class Messages:
    """The recalls that scripts have published since this began."""

    def __init__(self, server: Server) -> None:
        self._lines, self._marks = server.connect(), server.connect()
        self._recalls: list[str] = []

    def __enter__(self) -> Messages:
        self._lines.cmd("MONITOR")
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._marks.close()

    def recalls(self) -> list[str]:
        """Up to a mark, which runs behind all that came before."""
        self._marks.cmd("ECHO", "end-of-messages")
        line = ""
        while "end-of-messages" not in line:
            line = str(self._lines.read())
            if re.search(r' lua\] "S?PUBLISH" "[^"]*" "r', line, re.IGNORECASE):
                self._recalls.append(line)
        return self._recalls


def is_in_time(began: float) -> bool:
    """Whether `retain` has ended since, which counts from the server's grant, and nothing later: a
    lock that is used in a loop would be released after half of its lease, without a limit."""
    return RETAIN_MS - 1 <= (time.monotonic() - began) * 1000 < LEASE_MS / 4


def test_old_waiter_gets_a_retained_lock_in_time(open_client: Open) -> None:
    new, old = open_client(f"retain_ms={RETAIN_MS}"), open_client(is_old=True)
    began = time.monotonic()
    first = new.acquire()
    new.release()
    assert old.call("m acquire wait_ms=0").startswith("BUSY")
    second = old.acquire()
    assert is_in_time(began)
    assert second > first
    old.ok("m check")
    assert new.call("m acquire wait_ms=0").startswith("BUSY")
    old.release()
    third = new.acquire()
    new.ok("m check")
    new.release()
    assert third > second


def test_old_waiter_is_served_while_a_new_holder_loops(open_client: Open) -> None:
    new, old = open_client(f"retain_ms={RETAIN_MS}"), open_client(is_old=True)
    began = time.monotonic()
    fences = [new.acquire()]
    new.release()
    old.start()
    wait_until(lambda: new.waiting() == 1)
    turn = Turn(old)
    while turn.is_alive():
        fences.append(new.acquire())
        # So slow that its fences do not run out: it would then release the lock.
        time.sleep(2 * WAIT_MS / 1000 / FENCES)
        new.release()
    turn.join()
    assert is_in_time(began)
    assert fences == sorted(set(fences)) and turn.fence > fences[1]
    assert turn.fence not in fences


def test_old_waiter_before_a_new_one(open_client: Open) -> None:
    holder, old = open_client(f"retain_ms={RETAIN_MS}"), open_client(is_old=True)
    new = open_client(f"retain_ms={RETAIN_MS}")
    first = holder.acquire()
    old.start()
    wait_until(lambda: holder.waiting() == 1)
    new.start()
    wait_until(lambda: holder.waiting() == 2)
    holder.release()
    second = old.granted()
    old.ok("m check")
    old.release()
    third = new.granted()
    new.ok("m check")
    new.release()
    assert first < second < third


def test_new_waiter_before_an_old_one(open_client: Open) -> None:
    holder, old = open_client(f"retain_ms={LEASE_MS}"), open_client(is_old=True)
    new = open_client(f"retain_ms={LEASE_MS}")
    first = holder.acquire()
    new.start()
    wait_until(lambda: holder.waiting() == 1)
    old.start()
    wait_until(lambda: holder.waiting() == 2)
    holder.release()
    second = new.granted()
    # Granted by message: it is not retained, though the old waiter recalls nobody.
    new.release()
    third = old.granted()
    old.release()
    assert first < second < third


def test_new_client_meets_an_old_holder(open_client: Open, server: Server) -> None:
    old, new = open_client(is_old=True), open_client(f"retain_ms={LEASE_MS}")
    with Messages(server) as messages:
        first = old.acquire()
        assert new.call("m acquire wait_ms=0").startswith("BUSY")
        new.start()
        wait_until(lambda: old.waiting() == 1)
        assert messages.recalls() == []
        old.ok("m check")
        old.release()
        second = new.granted()
        # The same check sees the recall of a holder that knows them.
        third = open_client("retain_ms=0")
        third.start()
        wait_until(messages.recalls)
        new.release()
        assert third.granted() > second > first
        third.release()


class Counter:
    """A number that is read and written in two steps, and refuses a fence that does not rise."""

    def __init__(self) -> None:
        self.value = 0
        self._fence = 0

    def add_one(self, fence: int) -> None:
        assert fence > self._fence
        self._fence = fence
        seen = self.value
        time.sleep(0.0005)  # for another holder to come between, if there is one
        assert self._fence == fence
        self.value = seen + 1


def test_both_builds_in_a_loop(open_client: Open) -> None:
    """Each way to wait: old clients, those that retain, and new ones that do not."""
    retaining = [open_client("retain_ms=60") for _ in range(2)]
    clients = [*retaining, open_client(), open_client(is_old=True), open_client(is_old=True)]
    counter = Counter()

    def add_all(client: Client) -> None:
        for _ in range(ROUNDS):
            counter.add_one(client.acquire())
            client.release()

    with ThreadPoolExecutor(len(clients)) as pool:
        for done in [pool.submit(add_all, client) for client in clients]:
            done.result()
    assert counter.value == ROUNDS * len(clients)
