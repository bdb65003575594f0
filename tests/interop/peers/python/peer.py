# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A process with Python's lock libraries, redlatch among them, that does what it is told, one JSON
object per line: see tests/interop/peer.py.
"""

from __future__ import annotations

import json
import math
import os
import queue
import sys
import threading
import time
from abc import ABC, abstractmethod
from typing import Any, Callable

import redis
import redis_lock
import redlatch

Request = dict[str, Any]


class Library(ABC):
    """One lock library with a connection."""

    @abstractmethod
    def acquire(self, name: str, wait_ms: int, ttl_ms: int, request: Request) -> Any:
        """What was taken, or None: somebody else has it."""

    def release(self, held: Any) -> Any:
        held.release()

    @abstractmethod
    def extend(self, held: Any, ttl_ms: int) -> None: ...


class RedisPy(Library):
    def __init__(self, request: Request) -> None:
        self._client = redis.Redis.from_url(request["url"])

    def acquire(self, name: str, wait_ms: int, ttl_ms: int, request: Request) -> Any:
        lock = self._client.lock(name, timeout=ttl_ms / 1000)
        limit = {"blocking_timeout": wait_ms / 1000} if wait_ms > 0 else {}
        return lock if lock.acquire(blocking=wait_ms != 0, **limit) else None

    def extend(self, held: Any, ttl_ms: int) -> None:
        held.extend(ttl_ms / 1000, replace_ttl=True)


class PythonRedisLock(Library):
    """Its times are whole seconds."""

    def __init__(self, request: Request) -> None:
        self._client = redis.Redis.from_url(request["url"])

    def acquire(self, name: str, wait_ms: int, ttl_ms: int, request: Request) -> Any:
        lock = redis_lock.Lock(self._client, name, expire=math.ceil(ttl_ms / 1000))
        limit = {"timeout": math.ceil(wait_ms / 1000)} if wait_ms > 0 else {}
        return lock if lock.acquire(blocking=wait_ms != 0, **limit) else None

    def extend(self, held: Any, ttl_ms: int) -> None:
        held.extend(math.ceil(ttl_ms / 1000))


class Redlatch(Library):
    def __init__(self, request: Request) -> None:
        self._client = redlatch.connect(request["url"], namespace=request.get("namespace"))

    def acquire(self, name: str, wait_ms: int, ttl_ms: int, request: Request) -> Any:
        ttl, timeout = ttl_ms / 1000, -1 if wait_ms < 0 else wait_ms / 1000
        options = request.get("options", {})
        return self._client.acquire(name, ttl=ttl, timeout=timeout, **options)

    def extend(self, held: Any, ttl_ms: int) -> None:
        held.extend(ttl_ms / 1000)

    def force(self, name: str) -> None:
        self._client.force_release(name, any=True)

    def look(self, name: str) -> Request:
        info = self._client.inspect(name)
        return {"state": info.state.name, "waiting": info.waiting}


class RedlatchHash(Redlatch):
    """Its reentrant locks."""

    def acquire(self, name: str, wait_ms: int, ttl_ms: int, request: Request) -> Any:
        ttl, timeout = ttl_ms / 1000, -1 if wait_ms < 0 else wait_ms / 1000
        options = dict(request.get("options", {}))
        # Of a crowd, each thread is an owner.
        owner = options.pop("owner", f"{os.getpid()}:{threading.get_native_id()}")
        lock = self._client.rlock(name, owner=owner, ttl=ttl, timeout=timeout, **options)
        return lock.acquire()


class RedlatchRW(Redlatch):
    """What it has in the format of Redisson's read-write locks. `kind`: read, write or mutex."""

    def acquire(self, name: str, wait_ms: int, ttl_ms: int, request: Request) -> Any:
        ttl, timeout = ttl_ms / 1000, -1 if wait_ms < 0 else wait_ms / 1000
        options = {"ttl": ttl, "timeout": timeout, **request.get("options", {})}
        if request["kind"] == "mutex":
            return self._client.acquire(name, format="hash-rw", **options)
        lock = self._client.rwlock(name, format="hash-rw")
        is_read = request["kind"] == "read"
        return lock.acquire_read(**options) if is_read else lock.acquire_write(**options)


LIBRARIES: dict[str, Callable[[Request], Library]] = {
    "redis-py": RedisPy,
    "python-redis-lock": PythonRedisLock,
    "redlatch": Redlatch,
    "redlatch-hash": RedlatchHash,
    "redlatch-rw": RedlatchRW,
}


class Process:
    def __init__(self) -> None:
        self._libraries: dict[str, Library] = {}
        self._held: dict[tuple[str, str, str], Any] = {}
        self._owners: dict[str, queue.Queue[Request]] = {}
        self._output = threading.Lock()

    def run(self) -> None:
        for line in sys.stdin:
            request = json.loads(line)
            waiting = self._owners.get(request["owner"])
            if waiting is None:
                waiting = self._owners[request["owner"]] = queue.Queue()
                threading.Thread(target=self._serve, args=(waiting,), daemon=True).start()
            waiting.put(request)

    def _serve(self, waiting: queue.Queue[Request]) -> None:
        while True:
            request = waiting.get()
            reply: Request = {"id": request["id"], "from": time.monotonic_ns()}
            try:
                reply["value"] = getattr(self, f"do_{request['do']}")(request)
            except Exception as error:
                reply["error"] = f"{type(error).__name__}: {error}"
            reply["to"] = time.monotonic_ns()
            with self._output:
                print(json.dumps(reply), flush=True)

    @staticmethod
    def _key(request: Request) -> tuple[str, str, str]:
        return request["owner"], request["client"], request["name"]

    def _library(self, request: Request) -> Library:
        return self._libraries[request["client"]]

    def _take(self, request: Request) -> Any:
        times = request["wait_ms"], request["ttl_ms"]
        return self._library(request).acquire(request["name"], *times, request)

    def do_clock(self, _: Request) -> int:
        return time.monotonic_ns()

    def do_open(self, request: Request) -> None:
        self._libraries[request["client"]] = LIBRARIES[request["kind"]](request)

    def do_acquire(self, request: Request) -> bool:
        held = self._take(request)
        if held is not None:
            self._held[self._key(request)] = held
        return held is not None

    def do_release(self, request: Request) -> Any:
        return self._library(request).release(self._held[self._key(request)])

    def do_extend(self, request: Request) -> None:
        self._library(request).extend(self._held[self._key(request)], request["ttl_ms"])

    def do_upgrade(self, request: Request) -> Any:
        return self._held[self._key(request)].upgrade(timeout=request["wait_ms"] / 1000)

    def do_downgrade(self, request: Request) -> None:
        self._held[self._key(request)].downgrade()

    def do_check(self, request: Request) -> None:
        self._held[self._key(request)].check()

    def do_look(self, request: Request) -> Request:
        library = self._library(request)
        assert isinstance(library, Redlatch)
        return library.look(request["name"])

    def do_force(self, request: Request) -> None:
        library = self._library(request)
        assert isinstance(library, Redlatch)
        library.force(request["name"])

    def do_crowd(self, request: Request) -> list[int]:
        counts: list[int] = [0] * request["threads"]
        failures: list[BaseException] = []
        end = time.monotonic() + request["run_ms"] / 1000

        def member(number: int) -> None:
            try:
                self._member(counts, number, request, end)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=member, args=(i,)) for i in range(len(counts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return counts

    def _member(self, counts: list[int], number: int, request: Request, end: float) -> None:
        """Take, add one to the number in a file, slowly, and give back, until the time is over.
        Who reads takes care that the number stays as it is."""
        while time.monotonic() < end:
            held = self._take(request)
            # Later, the others may be gone.
            if held is not None and time.monotonic() < end:
                with open(request["counter"], encoding="ascii") as file:
                    total = int(file.read())
                time.sleep(request["hold_ms"] / 1000)
                if request.get("kind") == "read":
                    with open(request["counter"], encoding="ascii") as file:
                        assert int(file.read()) == total, "written beside a reader"
                else:
                    with open(request["counter"], "w", encoding="ascii") as file:
                        file.write(str(total + 1))
                counts[number] += 1
            if held is not None:
                self._library(request).release(held)


if __name__ == "__main__":
    Process().run()
