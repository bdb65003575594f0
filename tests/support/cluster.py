# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Real clusters of Redis or Valkey, on the loopback device.

    with Cluster(nodes=3, replicas=1) as cluster:
        slot = cluster.slot_of("orders")
        cluster.move_slot(slot, cluster.others(slot)[0])  # awaited
        cluster.failover(cluster.owner(slot), how="kill")

Each node is a `Server`: it can be killed, paused and resumed, and ends when the test ends, even by
SIGKILL. A test in the middle of a move uses begin_classic, move_keys and finish_classic.
"""

from __future__ import annotations

import binascii
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .resp import RespError
from .servers import (
    Server,
    ServerFailed,
    available_kinds,
    free_port,
    has_atomic_moves,
    has_port_of_bus,
)
from .tls import Certificate
from .wait import LIMIT, wait_until

SLOT_COUNT = 16384
# After this time without an answer a node is taken for dead: long enough for a busy machine.
NODE_TIMEOUT_MS = 2000
MANUAL_FAILOVER_S = 6.0  # the servers' own limit is 5 s
BUS_DISTANCE = 10_000  # of the bus from the port, where it cannot be chosen
# For tests without a failure: no node is ever taken for dead.
NEVER_MS = 600_000
MIGRATE_MS = 5000


def slot_of(key: str | bytes) -> int:
    data = key.encode() if isinstance(key, str) else key
    start = data.find(b"{")
    end = data.find(b"}", start + 1)
    if start >= 0 and end > start + 1:
        data = data[start + 1 : end]
    return binascii.crc_hqx(data, 0) % SLOT_COUNT


def _set_slot(node: Node, slot: int, *words: str) -> None:
    """Valkey asks the replicas first, which may have been silent for a moment on a busy machine."""

    def is_done() -> bool:
        try:
            node.cmd("CLUSTER", "SETSLOT", slot, *words)
        except RespError as error:
            if str(error).startswith("NOREPLICAS"):
                return False
            raise
        return True

    wait_until(is_done)


def moves_of(kind: str) -> tuple[str, ...]:
    """The kinds of moves of a slot, the newest last."""
    return ("classic", "atomic") if has_atomic_moves(kind) else ("classic",)


@dataclass(frozen=True)
class View:
    """What a node says of itself or of another one: a line of CLUSTER NODES."""

    id: str
    port: int
    flags: list[str]
    primary_id: str
    epoch: int
    is_linked: bool
    slots: list[range] = field(default_factory=list)

    def has(self, slot: int) -> bool:
        return any(slot in part for part in self.slots)


@dataclass(frozen=True)
class Place:
    """What a node has of its own."""

    host: str = "127.0.0.1"
    env: Mapping[str, str] = field(default_factory=dict)  # as that of a clock
    tls: Certificate | None = None  # then the nodes reach each other over TLS only, all of them
    wrapper: Sequence[str] = ()  # a command that executes the server's, in another network


def low_port() -> int:
    """A free port that has room above it for that of the bus."""
    port = free_port()
    while port + BUS_DISTANCE > 0xFFFF:
        port = free_port()
    return port


class Node(Server):
    """One node. It keeps its name and its view of the cluster when it is restarted."""

    def __init__(self, kind: str, args: Sequence[str], at: Place | None = None) -> None:
        at = at or Place()
        options = ["--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT_MS)]
        options += ["--cluster-config-file", "nodes.conf", "--repl-diskless-sync-delay", "0"]
        if at.tls:
            # Else a node does not know the TLS ports of the others.
            options += ["--tls-cluster", "yes", "--tls-replication", "yes"]
        if at.host != Place.host:  # it calls the others from any address, and they believe that
            options += ["--cluster-announce-ip", at.host]
        super().__init__(
            kind, [*options, *args], at.env, host=at.host, tls=at.tls, wrapper=at.wrapper
        )
        self.bus_port = 0
        self.forgets = False  # what it had, a replica has
        self.id = ""

    def views(self) -> list[View]:
        """Of all nodes that it knows, itself first."""
        lines = [line.split() for line in self.cmd("CLUSTER", "NODES").decode().splitlines()]
        return sorted(map(_view, lines), key=lambda view: "myself" not in view.flags)

    @property
    def cluster_port(self) -> int:
        """By which the other nodes know it."""
        return self.tls_port if self.tls else self.port

    def _command(self, folder: Path) -> list[str]:
        command = super()._command(folder)
        if not has_port_of_bus(self.kind):
            return command
        # Not the port and 10,000, which may be above 65,535.
        return [*command, "--cluster-port", str(self.bus_port)]

    def _choose_port(self) -> int:
        return free_port() if has_port_of_bus(self.kind) else low_port()

    def _launch(self) -> None:
        is_first = not self.bus_port
        if is_first:
            is_free = has_port_of_bus(self.kind)
            self.bus_port = free_port() if is_free else self.port + BUS_DISTANCE
        try:
            super()._launch()
        except ServerFailed:
            if is_first:
                self.bus_port = 0
            raise


class Cluster:
    """Primaries with the slots in equal parts, and replicas of each; all of them ready."""

    def __init__(
        self,
        kind: str | None = None,
        *,
        nodes: int = 3,
        replicas: int = 1,
        node_timeout_ms: int = NODE_TIMEOUT_MS,
        args: Sequence[str] = (),
        places: Mapping[int, Place] | None = None,  # by the number of the node
    ) -> None:
        self.kind = kind or available_kinds()[0]
        self._stack = contextlib.ExitStack()
        count = nodes * (1 + replicas)
        self.servers = [Node(self.kind, args, (places or {}).get(i)) for i in range(count)]
        self._timeout_ms = node_timeout_ms
        self._first = self.servers[:nodes]  # the primaries at the start
        self._moving: dict[int, tuple[Node, Node]] = {}  # slot: from, to

    # ---- what is where

    slot_of = staticmethod(slot_of)

    @property
    def running(self) -> list[Node]:
        return [node for node in self.servers if node.is_running and not node.is_paused]

    @property
    def primaries(self) -> list[Node]:
        return [node for node in self.running if "master" in node.views()[0].flags]

    def replicas_of(self, primary: Node) -> list[Node]:
        return [node for node in self.running if node.views()[0].primary_id == primary.id]

    def owner(self, slot: int) -> Node:
        """The primary that has the slot; of two that say so, the one with the later claim."""
        claims = []
        for node in self.running:
            view = node.views()[0]
            if "master" in view.flags and view.has(slot):
                claims.append((view.epoch, node.id, node))
        assert claims, f"no running node has slot {slot}"
        return max(claims)[2]

    def owner_of(self, key: str | bytes) -> Node:
        return self.owner(slot_of(key))

    def others(self, slot: int) -> list[Node]:
        """The primaries that do not have the slot."""
        owner = self.owner(slot)
        return [node for node in self.primaries if node is not owner]

    def url(self, *, scheme: str = "redis+cluster", **options: str) -> str:
        is_tls = scheme.startswith("rediss")
        ports = [node.tls_port if is_tls else node.port for node in self.servers]
        hosts = ",".join(f"{node.host}:{port}" for node, port in zip(self.servers, ports))
        said = "&".join(f"{key}={value}" for key, value in options.items())
        return f"{scheme}://{hosts}{'?' + said if said else ''}"

    # ---- moves of a slot

    @property
    def moving(self) -> list[int]:
        """Slots in the middle of a move that was begun by hand."""
        return list(self._moving)

    def move_slot(self, slot: int, to: Node, kind: str = "classic") -> None:
        """Move the slot with its keys, and wait until all nodes know it."""
        if kind == "atomic":
            self._move_atomically(slot, to)
        else:
            assert kind == "classic", kind
            self.begin_classic(slot, to)
            self.move_keys(slot)
            self.finish_classic(slot)

    def begin_classic(self, slot: int, to: Node) -> None:
        source = self.owner(slot)
        assert source is not to
        _set_slot(to, slot, "IMPORTING", source.id)
        _set_slot(source, slot, "MIGRATING", to.id)
        self._moving[slot] = (source, to)

    def move_keys(self, slot: int, keys: Sequence[str | bytes] | None = None) -> None:
        """Move these keys, or all."""
        source, to = self._moving[slot]
        with source.connect() as connection:
            while True:
                batch = keys or connection.cmd("CLUSTER", "GETKEYSINSLOT", slot, 100)
                if batch:
                    where = (to.host, to.cluster_port, "", 0, MIGRATE_MS)
                    connection.cmd("MIGRATE", *where, "KEYS", *batch)
                if keys or not batch:
                    return

    def finish_classic(self, slot: int) -> None:
        """The target says that it has the slot, then the source, then the other primaries. Then
        wait until all nodes know it: a node that claims its next slot with an old epoch loses it
        again to a late message of the source, and with it the keys."""
        source, to = self._moving.pop(slot)
        rest = [node for node in self.primaries if node not in (source, to)]
        for node in (to, source, *rest):
            _set_slot(node, slot, "NODE", to.id)
        self.await_owner(slot, to)

    def break_off(self, slot: int) -> None:
        """The nodes forget the move, wherever the keys are: the source still has the slot."""
        for node in self._moving.pop(slot):
            _set_slot(node, slot, "STABLE")

    def claim_early(self, slot: int) -> None:
        """The target says that it has the slot, whatever keys the source still has."""
        _, to = self._moving.pop(slot)
        _set_slot(to, slot, "NODE", to.id)
        self.await_owner(slot, to)

    def await_owner(self, slot: int, owner: Node, limit: float = LIMIT) -> None:
        """Wait until all nodes that run know that `owner` has the slot."""

        def is_known() -> bool:
            said = [
                view.id
                for node in self.running
                for view in node.views()
                if view.has(slot) and "master" in view.flags
            ]
            # A node that does not know the newest epoch would claim the next slot with an old one.
            epochs = {
                view.epoch for node in self.running for view in node.views() if view.id == owner.id
            }
            return said == [owner.id] * len(self.running) and len(epochs) == 1

        try:
            wait_until(is_known, limit)
        except AssertionError as error:
            views = {node.id: node.cmd("CLUSTER", "NODES").decode() for node in self.running}
            said = "".join(f"\nsays {name}:\n{text}" for name, text in views.items())
            raise AssertionError(f"not all know that {owner.id} has slot {slot}:{said}") from error

    def _move_atomically(self, slot: int, to: Node) -> None:
        source = self.owner(slot)
        source.cmd("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", to.id)

        def is_over() -> bool:
            for job in source.cmd("CLUSTER", "GETSLOTMIGRATIONS"):
                facts = dict(zip(job[::2], job[1::2]))
                is_it = facts.get(b"slot_ranges") == b"%d-%d" % (slot, slot)
                if is_it and facts.get(b"target_node") == to.id.encode():
                    assert facts[b"state"] not in (b"failed", b"canceled"), facts
                    return bool(facts[b"state"] == b"success")
            return False

        wait_until(is_over)
        self.await_owner(slot, to)

    # ---- failures

    def failover(self, primary: Node, how: str = "planned", limit: float = LIMIT) -> Node:
        """Another node becomes the primary in place of this one. The new one, when all that run
        know it. A primary that is stopped stays so."""
        assert how in ("planned", "kill", "stop"), how
        slot = primary.views()[0].slots[0].start
        candidates = self.replicas_of(primary)
        if how == "kill":
            primary.kill()
        elif how == "stop":
            self.stop(primary)
        ends = 0.0  # of the time that a request of a planned failover has

        def successor() -> Node | None:
            nonlocal ends
            for node in candidates:
                view = node.views()[0]
                if "master" in view.flags and view.has(slot):
                    return node
            # A replica that does not get all writes within 5 s gives up, and can be asked again:
            # one that was stopped while it was paused takes none for some seconds.
            if how == "planned" and time.monotonic() > ends:
                candidates[0].cmd("CLUSTER", "FAILOVER")
                ends = time.monotonic() + MANUAL_FAILOVER_S
            return None

        new = wait_until(successor, limit)
        assert new
        self.await_owner(slot, new, limit)
        self.await_ok(limit)
        return new

    def stop(self, node: Node) -> None:
        """SIGSTOP: the kernel still accepts connections and data, nothing is answered."""
        node.pause()

    def resume(self, node: Node) -> None:
        """One that another node has replaced is a replica soon."""
        node.resume()

    def rejoin(self, node: Node, limit: float = LIMIT) -> None:
        """Bring back what was killed or stopped, and replaced meanwhile; wait for the replica."""
        if node.is_running:
            self.resume(node)
        else:
            node.start()

        def is_replica() -> bool:
            is_linked = b"master_link_status:up" in node.cmd("INFO", "replication")
            return is_linked and "slave" in node.views()[0].flags

        wait_until(is_replica, limit)
        self.await_ok(limit)

    def await_ok(self, limit: float = LIMIT) -> None:
        """Wait until all nodes that run say that all slots have a primary."""

        def is_ok() -> bool:
            infos = [node.cmd("CLUSTER", "INFO") for node in self.running]
            return all(b"cluster_state:ok" in info for info in infos)

        wait_until(is_ok, limit)

    # ---- start and end

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> Cluster:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        for node in self.servers:
            self._stack.enter_context(node)
            node.id = node.cmd("CLUSTER", "MYID").decode()
        share = SLOT_COUNT / len(self._first)
        for i, node in enumerate(self.servers):
            # Else all have the epoch 0, and settle that one after the other.
            node.cmd("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            if i < len(self._first):
                first, last = round(i * share), round((i + 1) * share) - 1
                node.cmd("CLUSTER", "ADDSLOTS", *range(first, last + 1))
        for i, node in enumerate(self.servers):
            # Each pair: what one hears of others from a third takes longer. One of the two alone:
            # else they begin two handshakes, and the superfluous one lasts for the node timeout.
            for other in self.servers[i + 1 :]:
                node.cmd("CLUSTER", "MEET", other.host, other.cluster_port, other.bus_port)
        for node in self.servers:
            wait_until(lambda: self._knows_all(node))
        replicas = self.servers[len(self._first) :]
        for i, node in enumerate(replicas):
            node.cmd("CLUSTER", "REPLICATE", self._first[i % len(self._first)].id)
        for node in replicas:
            wait_until(lambda: b"master_link_status:up" in node.cmd("INFO", "replication"))
        self.await_ok()
        # Not from the start: a handshake that fails lasts for this time.
        for node in self.servers:
            node.cmd("CONFIG", "SET", "cluster-node-timeout", self._timeout_ms)
        for primary in self._first:
            slots = primary.views()[0].slots
            if slots:
                self.await_owner(slots[0].start, primary)

    def _knows_all(self, node: Node) -> bool:
        views = node.views()
        known = {view.id for view in views if "handshake" not in view.flags and view.is_linked}
        return known == {one.id for one in self.servers} and len(views) == len(known)


def _view(words: list[str]) -> View:
    slots = []
    for text in words[8:]:
        if not text.startswith("["):  # a slot that is being moved
            first, _, last = text.partition("-")
            slots.append(range(int(first), int(last or first) + 1))
    port = int(words[1].partition("@")[0].rpartition(":")[2])
    flags = words[2].split(",")
    return View(words[0], port, flags, words[3], int(words[6]), words[7] == "connected", slots)
