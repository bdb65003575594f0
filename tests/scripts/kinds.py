# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The kinds of hold, for tests of what is true of each."""

from __future__ import annotations

from typing import Any

import pytest

from .harness import PROVISIONAL_MS, SHARED, TTL_MS, Busy, Client, Held, Lock, World


class Kind:
    """How a client holds: alone, as one of the readers, as an owner that may hold again, or by the
    one permit of a semaphore."""

    def __init__(self, name: str, world: World) -> None:
        self.world = world
        self.is_shared = name == "readers"
        self.is_hash = name == "owners"
        if self.is_hash:
            world.lock = Lock("app:", "orders", is_hash=True)
        self.has_permits = name == "permits"
        if self.has_permits:
            world.lock = Lock("app:", "orders", has_permits=True)

    def clients(self, count: int) -> list[Client]:
        """Each is an owner of its own."""
        return [self.world.client(owner=self.owner(i)) for i in range(count)]

    def owner(self, number: int) -> str:
        return f"o{number}" if self.is_hash else "1/1" if self.has_permits else ""

    def ask(self, client: Client, token: str, **options: Any) -> Held | Busy:
        return (client.read if self.is_shared else client.acquire)(token, **options)

    def tries(self, client: Client, token: str, *, ttl_ms: int = TTL_MS) -> Held | Busy:
        if self.is_shared:
            return client.read(token, ttl_ms=ttl_ms, queues=False)
        return client.try_acquire(token, ttl_ms=ttl_ms)

    def hold(self, client: Client, *, ttl_ms: int = TTL_MS) -> str:
        return (client.share if self.is_shared else client.hold)(ttl_ms=ttl_ms)

    def wait(self, client: Client, *, provisional_ms: int = PROVISIONAL_MS) -> str:
        wait = client.wait_to_read if self.is_shared else client.wait
        return wait(provisional_ms=provisional_ms)

    def extend(self, client: Client, token: str, ttl_ms: int) -> int:
        is_alone = not self.is_shared and not self.is_hash and not self.has_permits
        return (client.extend if is_alone else client.extend_shared)(token, ttl_ms)

    def member(self, client: Client, token: str) -> str:
        return client.member(token, "s" if self.is_shared else "x")

    def holders(self) -> list[str]:
        holder = None if self.is_hash or self.has_permits else self.world.holder()
        if self.is_hash or self.has_permits or holder == SHARED:
            return list(self.world.readers())
        return [holder] if holder else []


# Marks of tests for two of them.
not_shared = pytest.mark.parametrize("kind", ["mutex", "owners", "permits"], indirect=True)
several = pytest.mark.parametrize("kind", ["readers", "owners"], indirect=True)
