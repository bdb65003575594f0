# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Processes with lock libraries, of others or our own, that do what they are told.

    with Peer("go") as peer:
        peer.ok("open", client="a", kind="redsync", url=server.url)
        waiting = peer.begin("acquire", client="a", name="x", wait_ms=5000, ttl_ms=30_000)
        assert waiting.get().value is True

Each reads one JSON object per line and answers with one, in the order in which it is done. An
`owner` is a thread, or what the language has in its place: it does one command after the other.
Times are CLOCK_MONOTONIC in all of them. An error is an answer, too.

    clock                               the present time, ns
    open     client, kind, url          a client of the library `kind`; further arguments as it has
    acquire  client, name, wait_ms, ttl_ms    -> whether it was taken; waiting -1: its own limit
    release  client, name               what this owner took
    extend   client, name, ttl_ms
    crowd    client, name, wait_ms, ttl_ms, threads, run_ms, hold_ms, counter
             -> how often each of `threads` took the lock; each time it adds one to the number in
             the file `counter`, and between reading and writing that `hold_ms` pass; of kind read,
             it looks twice whether the number is the same

Of single libraries, for the table in README:

    api                                 names in the interface (redsync, Node)
    using    client, name, ttl_ms, threshold_ms    a block of using() begins (Node)
    aborted, finish    client, name     -> true, once its signal aborts; the block ends

A read-write lock is acquired by its `kind`, read or write.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
import time
from typing import Any

from support.wait import LIMIT

from .programs import command_of


class Reply:
    """What one command answered."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.value = values.get("value")
        self.error: str = values.get("error", "")
        self.began: float = values["from"] / 1e9
        self.ended: float = values["to"] / 1e9

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    def __repr__(self) -> str:
        return f"Reply({self.value!r}, {self.error!r}, {self.seconds:.3f} s)"


class Pending:
    """A command that was sent. get() waits for its reply."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._done = threading.Event()
        self._reply: Reply | None = None

    def set(self, reply: Reply | None) -> None:
        self._reply = reply
        self._done.set()

    @property
    def is_done(self) -> bool:
        return self._done.is_set()

    def get(self, limit: float = LIMIT) -> Reply:
        assert self._done.wait(limit), f"no reply in time to: {self._what}"
        assert self._reply is not None, f"ended while asked: {self._what}"
        return self._reply


class Peer:
    """One process."""

    def __init__(self, language: str) -> None:
        self._process = subprocess.Popen(
            command_of(language),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._numbers = itertools.count(1)
        self._pending: dict[int, Pending] = {}
        self._lock = threading.Lock()  # of _pending
        self._has_ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def begin(self, do: str, *, owner: str = "main", **arguments: Any) -> Pending:
        number = next(self._numbers)
        line = json.dumps({"id": number, "owner": owner, "do": do, **arguments})
        pending = Pending(line)
        with self._lock:
            assert not self._has_ended, f"ended before: {line}"
            self._pending[number] = pending
        assert self._process.stdin
        self._process.stdin.write(line + "\n")
        return pending

    def call(self, do: str, *, owner: str = "main", limit: float = LIMIT, **args: Any) -> Reply:
        return self.begin(do, owner=owner, **args).get(limit)

    def ok(self, do: str, *, owner: str = "main", limit: float = LIMIT, **args: Any) -> Reply:
        reply = self.call(do, owner=owner, limit=limit, **args)
        assert not reply.error, reply
        return reply

    def kill(self) -> float:
        """SIGKILL. The time at which it was gone, its sockets closed."""
        self._process.kill()
        self._process.wait(LIMIT)
        return time.monotonic()

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()
        self._reader.join(LIMIT)
        for stream in (self._process.stdin, self._process.stdout):
            assert stream
            stream.close()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            values = json.loads(line)
            with self._lock:
                pending = self._pending.pop(values["id"])
            pending.set(Reply(values))
        with self._lock:
            self._has_ended = True
            left = list(self._pending.values())
        for pending in left:
            pending.set(None)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Side:
    """A client of one library in a peer, of which there may be many, and the lock it looks at.

    `name` is what the library is told; its key may be another.
    """

    def __init__(self, peer: Peer, client: str, name: str, ttl_ms: int, **options: Any) -> None:
        self.peer = peer
        self._said = {"client": client, "name": name, "ttl_ms": ttl_ms, **options}

    def begin(self, do: str, *, owner: str = "main", **arguments: Any) -> Pending:
        # Those of different clients in one process are different, too.
        owner = f"{self._said['client']} {owner}"
        return self.peer.begin(do, owner=owner, **{**self._said, **arguments})

    def call(self, do: str, *, owner: str = "main", limit: float = LIMIT, **args: Any) -> Reply:
        return self.begin(do, owner=owner, **args).get(limit)

    def ok(self, do: str, *, owner: str = "main", limit: float = LIMIT, **args: Any) -> Any:
        reply = self.call(do, owner=owner, limit=limit, **args)
        assert not reply.error, reply
        return reply.value

    def tries(self, *, owner: str = "main", **arguments: Any) -> bool:
        """One try. Whether it was taken."""
        return bool(self.ok("acquire", owner=owner, wait_ms=0, **arguments))

    def waits(self, *, owner: str = "main", wait_ms: int = 20_000, **arguments: Any) -> Pending:
        return self.begin("acquire", owner=owner, wait_ms=wait_ms, **arguments)

    def release(self, *, owner: str = "main") -> float:
        """The time at which it was begun, by which it had not been released."""
        reply = self.call("release", owner=owner)
        assert not reply.error, reply
        return reply.began
