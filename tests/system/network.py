# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A network of several servers, the nodes, and of hosts with clients, that can be cut anywhere.

    with Network() as network:
        actor = network.actor(host=1)
        network.cut(1, 4, requests=False)  # what node 4 answers does not get to host 1 any more

Each node and each host is a network namespace of its own, with a bridge between them, which is in
one as well: nothing is made in the machine's own. Packets vanish because the sender is given a
wrong hardware address: without a trace, from one to one, in one direction. Where no namespaces can
be made, a proxy for each host and node takes their place, and can do the same.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence

import pytest
from support.sentinel import Place
from support.servers import Server, available_kinds

from .actor import Actor
from .proxy import FaultProxy

_NOBODY = "02:00:00:00:00:ff"
_LIMIT_S = 10.0
# Says when it is there, and ends with us.
_HOLDER = ("sh", "-c", "echo; exec cat")


class _Space:
    """A network namespace, which ends with its process; that ends with this one."""

    def __init__(self, within: _Space | None = None) -> None:
        options = ["--net"] if within else ["--user", "--map-root-user", "--net"]
        self._process = subprocess.Popen(
            [*(within.wrapper if within else ()), "unshare", *options, *_HOLDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout
        if not self._process.stdout.readline():
            self.close()
            raise OSError("no network namespaces here")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def wrapper(self) -> list[str]:
        """What a program is started by to be in it."""
        target = f"--target={self.pid}"
        return ["nsenter", target, "--user", "--preserve-credentials", "--net", "--"]

    def ip(self, *commands: str) -> None:
        done = subprocess.run(
            [*self.wrapper, "ip", "-batch", "-"],
            input="\n".join(commands),
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )
        if done.returncode != 0:
            raise OSError(done.stderr)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()


class Namespaces:
    """Addresses: of nodes 10.99.0.N, of hosts 10.99.1.N."""

    def __init__(self, node_count: int, host_count: int) -> None:
        self._stack = contextlib.ExitStack()
        try:
            self._bridge = self._space(None)
            self._bridge.ip("link add br0 type bridge", "link set br0 up")
            self._nodes = [self._joined(f"10.99.0.{i + 1}") for i in range(node_count)]
            self._hosts = [self._joined(f"10.99.1.{i + 1}") for i in range(host_count)]
        except BaseException:
            self._stack.close()
            raise

    def server(self, node: int, kind: str, args: Sequence[str]) -> Server:
        address, space = self._nodes[node]
        return Server(kind, args, host=address, wrapper=space.wrapper)

    def url(self, host: int, node: int, server: Server) -> str:
        return server.url

    def wrapper(self, host: int) -> list[str]:
        return self._hosts[host][1].wrapper

    def actor(self, host: int, url: str = "") -> Actor:
        """A process on a host, with a client of this URL. It ends with the network."""
        actor = Actor(wrapper=self.wrapper(host))
        self._stack.callback(actor.close)
        if url:
            actor.ok("open", url=url)
        return actor

    def cut(self, host: int, node: int, *, requests: bool, replies: bool) -> None:
        ways = [(self._hosts[host], self._nodes[node])] if requests else []
        ways += [(self._nodes[node], self._hosts[host])] if replies else []
        for (_, sender), (address, _) in ways:
            sender.ip(f"neighbour replace {address} lladdr {_NOBODY} dev eth0 nud permanent")

    def heal(self) -> None:
        for _, space in (*self._nodes, *self._hosts):
            space.ip("neighbour flush dev eth0 nud permanent")

    def places(self) -> list[Place]:
        """Of the nodes, for servers that the test starts."""
        return [Place(address, space.wrapper) for address, space in self._nodes]

    def part(self, nodes: Sequence[int], hosts: Sequence[int]) -> None:
        """Cut these off from all others, in both directions."""
        inside = [self._nodes[i] for i in nodes] + [self._hosts[i] for i in hosts]
        outside = [one for one in (*self._nodes, *self._hosts) if one not in inside]
        self._part(inside, outside)

    def part_nodes(self, nodes: Sequence[int]) -> None:
        """Cut these off from the other nodes, but not from the hosts."""
        inside = [self._nodes[i] for i in nodes]
        self._part(inside, [one for one in self._nodes if one not in inside])

    def _part(
        self, inside: Sequence[tuple[str, _Space]], outside: Sequence[tuple[str, _Space]]
    ) -> None:
        for senders, receivers in ((inside, outside), (outside, inside)):
            for _, space in senders:
                space.ip(
                    *(
                        f"neighbour replace {address} lladdr {_NOBODY} dev eth0 nud permanent"
                        for address, _ in receivers
                    )
                )

    def close(self) -> None:
        self._stack.close()

    def _space(self, within: _Space | None) -> _Space:
        space = _Space(within)
        self._stack.callback(space.close)
        return space

    def _joined(self, address: str) -> tuple[str, _Space]:
        space = self._space(self._bridge)
        port = f"port{space.pid}"
        self._bridge.ip(
            f"link add name {port} type veth peer name eth0 netns {space.pid}",
            f"link set {port} master br0 up",
        )
        space.ip(f"address add {address}/16 dev eth0", "link set eth0 up", "link set lo up")
        return address, space


class _Proxies:
    """Where there are no namespaces: a connection that is made while it is cut hangs."""

    def __init__(self) -> None:
        self._proxies: dict[tuple[int, int], FaultProxy] = {}

    def server(self, node: int, kind: str, args: Sequence[str]) -> Server:
        return Server(kind, args)

    def url(self, host: int, node: int, server: Server) -> str:
        if (host, node) not in self._proxies:
            self._proxies[host, node] = FaultProxy(server.port)
        return self._proxies[host, node].url

    def wrapper(self, host: int) -> list[str]:
        return []

    def cut(self, host: int, node: int, *, requests: bool, replies: bool) -> None:
        proxy = self._proxies[host, node]
        proxy.drops_requests |= requests
        proxy.drops_replies |= replies

    def heal(self) -> None:
        for proxy in self._proxies.values():
            is_cut = proxy.drops_requests or proxy.drops_replies
            proxy.drops_requests = proxy.drops_replies = False
            if is_cut:
                proxy.cut()  # what was dropped is not sent again, as TCP would

    def close(self) -> None:
        for proxy in self._proxies.values():
            proxy.close()


def can_have_namespaces() -> bool:
    tools = all(shutil.which(tool) for tool in ("ip", "nsenter", "unshare"))
    if tools and not os.environ.get("REDLATCH_TEST_PROXIES"):
        with contextlib.suppress(OSError):
            _Space().close()
            return True
    return False


def could_not_run(what: str) -> None:
    if path := os.environ.get("REDLATCH_COULD_NOT_RUN"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{what}\n")


@contextlib.contextmanager
def namespaces(node_count: int) -> Iterator[Namespaces]:
    """With two hosts; the test is skipped where they cannot be made."""
    if not can_have_namespaces():
        could_not_run("partitions of sentinels and clusters: need network namespaces")
        pytest.skip("network namespaces cannot be made here")
    with contextlib.closing(Namespaces(node_count, 2)) as spaces:
        yield spaces


def _fabric(node_count: int, host_count: int) -> Namespaces | _Proxies:
    if can_have_namespaces():
        with contextlib.suppress(OSError):
            return Namespaces(node_count, host_count)
    could_not_run("packets that vanish: need network namespaces; proxies took their place")
    return _Proxies()


class Network:
    """The nodes run, each with the options `args`. Actors end with it."""

    def __init__(self, node_count: int = 5, host_count: int = 2, args: Sequence[str] = ()) -> None:
        self._stack = contextlib.ExitStack()
        self._fabric = _fabric(node_count, host_count)
        self._stack.callback(self._fabric.close)
        kinds = available_kinds()
        self.nodes = [
            self._fabric.server(i, kinds[i % len(kinds)], args) for i in range(node_count)
        ]

    def __enter__(self) -> Network:
        try:
            for node in self.nodes:
                self._stack.enter_context(node)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def url(self, host: int, node: int) -> str:
        return self._fabric.url(host, node, self.nodes[node])

    def urls(self, host: int = 0) -> str:
        """Those of all nodes, as host `host` reaches them."""
        return " ".join(self.url(host, node) for node in range(len(self.nodes)))

    def actor(self, host: int = 0, urls: str = "", **options: str) -> Actor:
        """A process on a host, with a Redlock. Its nodes are young: without `restart_guard`, there
        is no guard."""
        actor = Actor(wrapper=self._fabric.wrapper(host))
        self._stack.callback(actor.close)
        options = {"restart_guard": "off", **options}
        said = ",".join(f"{name}={value}" for name, value in options.items())
        actor.ok("redlock_open", urls=urls or self.urls(host), options=said)
        return actor

    def cut(
        self, host: int, *nodes: int, requests: bool = True, replies: bool = True
    ) -> None:
        """From now on what the host and these nodes send each other vanishes."""
        for node in nodes:
            self._fabric.cut(host, node, requests=requests, replies=replies)

    def heal(self) -> None:
        self._fabric.heal()

    def holders(self, name: str) -> list[str | None]:
        """What each node has in the lock's key; None also where nobody answers."""
        return [_value(node, name) for node in self.nodes]


def _value(node: Server, name: str) -> str | None:
    try:
        with node.connect(timeout=0.2) as connection:
            value = connection.cmd("GET", name)
    except OSError:
        return None
    return None if value is None else value.decode()
