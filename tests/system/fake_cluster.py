# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Nodes of a cluster that answer as a test needs it, in this process.

    with FakeCluster(2) as cluster:
        cluster.moved_to = lambda node: cluster.addresses[1 - node]  # each names the other one
        actor = Actor(cluster.url)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from support.cluster import SLOT_COUNT, slot_of

from .hostile import Command, HostileServer, array, bulk, integer, polite, push

VERSION = "7.4.0"


def greeting() -> bytes:
    """The answer to HELLO 3 of a node."""
    fields = ["server", "redis", "version", VERSION, "mode", "cluster", "role", "master", "proto"]
    return b"%5\r\n" + b"".join(map(bulk, fields)) + integer(3)


class FakeCluster:
    """Each node says that all have equal parts of the slots. Scripts grant everything, except
    where `moved_to` names the address of another node for that one, by its number."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.moved_to: Callable[[int], str | None] = lambda _: None
        self.channels_to_end = 0  # so many subscriptions end as soon as they have begun
        self.channels = 0
        self.redirects = 0
        self.map_reads = 0
        self._stack = contextlib.ExitStack()
        self.nodes: list[HostileServer] = []

    @property
    def addresses(self) -> list[str]:
        return [node.url.removeprefix("redis://") for node in self.nodes]

    @property
    def url(self) -> str:
        return f"redis+cluster://{self.addresses[0]}"

    def first_slot(self, node: int) -> int:
        return round(node * SLOT_COUNT / self.count)

    def name_at(self, node: int) -> str:
        """A lock whose slot this node has."""
        slots = range(self.first_slot(node), self.first_slot(node + 1))
        return next(name for name in map(str, range(SLOT_COUNT)) if slot_of(name) in slots)

    def _answer(self, node: int, command: Command) -> list[bytes] | None:
        match [word.upper() for word in command[:2]]:
            case [b"HELLO", *_]:
                return [greeting()]
            case [b"CLUSTER", b"INFO"]:
                return [bulk("cluster_state:ok\r\n")]
            case [b"CLUSTER", b"SLOTS"]:
                self.map_reads += 1
                return [self._slots()]
            case [b"SSUBSCRIBE", _]:
                self.channels += 1
                if self.channels <= self.channels_to_end:
                    end = push(bulk("sunsubscribe"), bulk(command[1]), integer(0))
                    return [polite(command) + end]
            case [b"EVALSHA", _] | [b"EVAL", _] if (key := _key(command)) is not None:
                to = self.moved_to(node)
                if to is not None:
                    self.redirects += 1
                    return [b"-MOVED %d %s\r\n" % (slot_of(key), to.encode())]
        return None

    def _slots(self) -> bytes:
        parts = []
        for number, address in enumerate(self.addresses):
            host, _, port = address.rpartition(":")
            server = array(bulk(host), integer(int(port)), bulk(f"{number:040}"))
            first, end = self.first_slot(number), self.first_slot(number + 1)
            parts.append(array(integer(first), integer(end - 1), server))
        return array(*parts)

    def __enter__(self) -> FakeCluster:
        for number in range(self.count):
            answer = self._answer_of(number)
            self.nodes.append(self._stack.enter_context(HostileServer(answer)))
        return self

    def _answer_of(self, number: int) -> Callable[[Command], list[bytes] | None]:
        return lambda command: self._answer(number, command)

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _key(command: Command) -> bytes | None:
    """The first key of a script."""
    return command[3] if int(command[2]) > 0 else None
