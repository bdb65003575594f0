# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A cluster in the place of a case's server, and the rule which cases it can be used for."""

from __future__ import annotations

from typing import Any

from support.cluster import Cluster, Node
from support.resp import Argument, Connection

from .case import Case
from .driver import PROXIED, is_by_tls

# A node that dies is replaced by its replica, which is another test: tests/system/test_cluster.py.
FAULTS_OF_A_SERVER = {"kill", "start", "restart", "pause", "resume"}
# The server's keys are on several nodes, so these go to all primaries.
OF_EACH_KEY = {"DEL", "EXISTS"}  # they count keys, of any slots
OF_ALL = {"ACL", "CLIENT", "CONFIG", "DBSIZE", "FLUSHALL", "KEYS", "PING", "SCRIPT"}
REPLICATION = "replicaof"
UNCONFIRMED = "E_NOT_REPLICATED"


def reason_against(case: Case) -> str:
    """The reason for which a cluster cannot run this case; nothing if it can."""
    if case.node_count > 1:
        return "the nodes of a quorum are independent servers"
    options = {option for words in case.clients.values() for option in words}
    if PROXIED in options:
        return "a proxy stands before one address, and nodes name the addresses of all others"
    if is_by_tls(case):
        return "the nodes of this cluster have no certificate"
    for step in case.steps:
        if step.target == "@" and step.op in FAULTS_OF_A_SERVER:
            return f"a cluster is not one server: '{step.op}'"
        if step.target == "@" and step.op == REPLICATION:
            return "a primary of a cluster becomes a replica by CLUSTER REPLICATE only"
        if step.expected is not None and UNCONFIRMED in step.expected.statuses:
            return "the primaries of this cluster have replicas"
        if step.op == "lock" and _is_refused(step.words):
            return "the keys of this name do not share a slot, so it is refused"
    return ""


def _is_refused(words: list[str]) -> bool:
    name = next((word[5:] for word in words if word.startswith("name=")), "")
    if name == "${all}":
        return True  # it has a '}', and a '{' before it with something between them
    tag = name.partition("{")[2].partition("}")
    return "}" in name and not (tag[0] and tag[1])


class ClusterServer:
    """What the driver of a case needs of a server."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.kind = cluster.kind
        self.is_running = True

    @property
    def url(self) -> str:
        return self._cluster.url()

    @property
    def unix_url(self) -> str:
        return self._cluster.url()  # nodes name each other by host and port

    def resume(self) -> None:
        """No case of a cluster pauses a node."""

    def connect(self) -> ClusterConnection:
        return ClusterConnection(self._cluster)


class ClusterConnection:
    """Sends a command to the node that has its key, or to all primaries."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._connections: dict[Node, Connection] = {}

    def cmd(self, *words: Argument) -> Any:
        first = (words[0].decode() if isinstance(words[0], bytes) else str(words[0])).upper()
        if first in OF_EACH_KEY and len(words) > 2:
            return sum(self.cmd(words[0], key) for key in words[1:])
        if first not in OF_ALL:
            key = words[1] if isinstance(words[1], bytes) else str(words[1])
            return self._to(self._cluster.owner_of(key)).cmd(*words)
        replies = [self._to(node).cmd(*words) for node in self._cluster.primaries]
        if isinstance(replies[0], int) and first != "ACL":
            return sum(replies)
        if isinstance(replies[0], list):
            return [item for reply in replies for item in reply]
        if isinstance(replies[0], bytes):
            return b"".join(replies)
        assert len(set(replies)) == 1, replies
        return replies[0]

    def _to(self, node: Node) -> Connection:
        if node not in self._connections:
            self._connections[node] = node.connect()
        return self._connections[node]

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def __enter__(self) -> ClusterConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
