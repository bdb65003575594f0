# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Failovers of a primary, two replicas and three sentinels of its own, under two clients.

    case=outage how=kill|stop    how long no lock is granted, and how long the sentinels take
    case=grants how=cut|running  a lock is granted right before the primary is killed: whether the
                                 new primary grants it again. cut: no replica is connected then
    count                        failovers
    min_replicas                 of the locks; 0 = off
    down_after_ms                of the sentinels

Takes `name=value` arguments and prints one JSON object, as the programs in C++ do.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import redlatch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.resp import Connection, RespError  # noqa: E402
from support.sentinel import NAME, SentinelGroup  # noqa: E402
from support.servers import Server  # noqa: E402

TTL_S = 60.0
WAIT_S = 60.0
LOCK = "failover"
Row = dict[str, float]


class GroupFailed(Exception):
    """The sentinels did not do their part, so there is nothing to measure."""


def await_named(group: SentinelGroup, old: Server) -> float:
    """When (time.monotonic()) most of the sentinels named another primary."""
    before = str(group.port(old)).encode()
    end = time.monotonic() + WAIT_S
    with contextlib.ExitStack() as stack:
        asked: list[Connection] = [stack.enter_context(s.connect()) for s in group.sentinels]
        while time.monotonic() < end:
            said = [one.cmd("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME) for one in asked]
            if sum(address[1] != before for address in said) * 2 > len(said):
                return time.monotonic()
            time.sleep(0.001)
    raise GroupFailed("the sentinels named no other primary")


def end_service(how: str, old: Server) -> float:
    if how == "stop":
        old.pause()
    else:
        old.kill()
    return time.monotonic()


def recover(group: SentinelGroup, old: Server) -> None:
    """The next failover needs the old primary, as a replica."""
    group.await_switch(old)
    if old.is_running:
        old.kill()
    group.rejoin(old)
    group.await_ready()


class Taker:
    """A thread that acquires and releases one lock all the time."""

    def __init__(self, client: redlatch.Client) -> None:
        self._client = client
        self._is_over = False
        self._granted: list[tuple[float, float]] = []  # began, granted
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over:
            began = time.monotonic()
            try:
                lease = self._client.acquire(LOCK, ttl=TTL_S, timeout=WAIT_S)
                assert lease is not None
                self._granted.append((began, time.monotonic()))
                lease.release()
            except redlatch.Error:
                pass  # what was under way when the primary died
            time.sleep(0.001)

    def await_granted(self, since: float) -> float:
        """The first grant to a call that began later."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            for began, granted in self._granted[-1:]:
                if began > since:
                    return granted
            time.sleep(0.0005)
        raise RuntimeError("nothing was granted any more")

    def stop(self) -> None:
        self._is_over = True
        self._thread.join()


def outages(group: SentinelGroup, how: str, count: int, rows: list[Row]) -> None:
    """Until there are `count` rows."""
    client = redlatch.connect(group.url())
    taker = Taker(client)
    try:
        while len(rows) < count:
            taker.await_granted(time.monotonic())
            old = group.primary
            ended = end_service(how, old)
            named = await_named(group, old)
            granted = taker.await_granted(ended)
            rows.append({"sentinels_s": named - ended, "service_s": granted - ended})
            recover(group, old)
    finally:
        taker.stop()
        client.close()


@contextlib.contextmanager
def cut_off(group: SentinelGroup) -> Iterator[None]:
    """No replica gets what is written within; each is there again when the primary is dead."""
    replicas = group.replicas
    for replica in replicas:
        replica.pause()
    group.cmd(group.primary, "CLIENT", "KILL", "TYPE", "replica")
    try:
        yield
    finally:
        for replica in replicas:
            replica.resume()


def take(client: redlatch.Client, **options: float) -> redlatch.Lease | None:
    with contextlib.suppress(redlatch.Error):
        return client.acquire(LOCK, ttl=TTL_S, timeout=0, **options)
    return None


def take_at_new(client: redlatch.Client, group: SentinelGroup) -> redlatch.Lease | None:
    """One try that was answered."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        with contextlib.suppress(redlatch.Error):
            return client.acquire(LOCK, ttl=TTL_S, timeout=0)
        time.sleep(0.002)
    raise RuntimeError("the new primary did not answer")


def grants(group: SentinelGroup, how: str, count: int, min_replicas: int, found: Row) -> None:
    """How many of the first grants were given, and how many of these were given again."""
    options = {"min_replicas": min_replicas, "sync_timeout": 0.2} if min_replicas else {}
    with redlatch.connect(group.url()) as one, redlatch.connect(group.url()) as two:
        while found["failovers"] < count:
            take_at_new(two, group)
            group.cmd(group.primary, "FLUSHALL")
            group.await_same()
            old = group.primary
            with cut_off(group) if how == "cut" else contextlib.nullcontext():
                first = take(one, **options)
                was_granted = first is not None and first.held
                end_service("kill", old)
            await_named(group, old)
            second = take_at_new(two, group)
            found["failovers"] += 1
            found["granted"] += was_granted
            if was_granted and first is not None and second is not None:
                found["again"] += 1
                began = time.monotonic()
                found["at_once"] += first.held
                first.wait_lost(WAIT_S)
                found["overlap_s"] = max(found["overlap_s"], time.monotonic() - began)
            for lease in filter(None, (first, second)):
                with contextlib.suppress(redlatch.Error):
                    lease.release()
            recover(group, old)


def measure(said: dict[str, str]) -> dict[str, object]:
    """A group that is not whole again in time, as on a busy machine, is replaced: what was counted
    stays, because a long measurement would hardly ever end otherwise."""
    count = int(said["count"])
    rows: list[Row] = []
    found: Row = {"failovers": 0, "granted": 0, "again": 0, "at_once": 0, "overlap_s": 0}
    is_outage = said["case"] == "outage"
    groups_left = 2 + count // 10
    while True:
        try:
            with SentinelGroup(down_after_ms=int(said["down_after_ms"])) as group:
                if is_outage:
                    outages(group, said["how"], count, rows)
                else:
                    grants(group, said["how"], count, int(said["min_replicas"]), found)
            return {"rows": rows} if is_outage else dict(found)
        except (AssertionError, GroupFailed) as error:
            groups_left -= 1
            if groups_left == 0:
                raise
            print(f"failovers: a new group, because of: {error}", file=sys.stderr)


def main(words: list[str]) -> int:
    print(json.dumps(measure(dict(word.split("=", 1) for word in words))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
