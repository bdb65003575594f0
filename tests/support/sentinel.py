# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Real primaries with replicas, and the sentinels that watch them, on the loopback device.

    with Replicated(replicas=2) as group:  # no sentinels
        group.replicas[0].pause()

    with SentinelGroup() as group:
        old = group.primary
        old.kill()
        new = group.await_switch(old)
        group.rejoin(old)

Each server is a `Server`: it can be killed, paused and resumed, and ends when the test ends, even
by SIGKILL. `places` puts servers elsewhere, such as into network namespaces.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from .resp import Connection, RespError
from .servers import (
    PORT_ATTEMPTS,
    Server,
    ServerFailed,
    available_kinds,
    debug_options,
    free_port,
)
from .tls import Certificate
from .wait import LIMIT, wait_until

NAME = "mymaster"
# A sentinel that takes a busy server for a dead one would begin a failover that no test asked for.
DOWN_AFTER_MS = 1000
# For tests without a failure: a failover happens on request only.
NEVER_MS = 600_000

Group = TypeVar("Group", bound="Replicated")


@dataclass(frozen=True)
class Place:
    """Where a server runs: its address, and what executes its command."""

    host: str = "127.0.0.1"
    wrapper: Sequence[str] = ()


@dataclass(frozen=True)
class Access:
    """What a server asks of its clients: nothing, a password, or a user and a password."""

    password: str = ""
    user: str = ""

    def lines(self) -> list[str]:
        """Of a configuration file."""
        if self.user:
            return ["user default off", f"user {self.user} on >{self.password} ~* &* +@all"]
        return [f"requirepass {self.password}"] if self.password else []

    def authenticate(self, connection: Connection) -> None:
        if self.password:
            connection.cmd("AUTH", *([self.user] if self.user else []), self.password)


def _arguments(lines: Sequence[str]) -> list[str]:
    """The same for a command line."""
    return [word for line in lines for word in f"--{line}".split()]


class Replicated:
    """A primary, servers[0] at first, with replicas that are in step with it."""

    def __init__(
        self,
        kind: str | None = None,
        *,
        replicas: int = 2,
        args: Sequence[str] = (),
        access: Access = Access(),
        tls: Certificate | None = None,
        places: Sequence[Place] = (),
    ) -> None:
        self.kind = kind or available_kinds()[0]
        self.access = access
        self.tls = tls
        self._places = list(places) or [Place()]
        self._stack = contextlib.ExitStack()
        lines = ["repl-diskless-sync-delay 0", *access.lines()]
        if access.password:
            lines.append(f"masterauth {access.password}")
        if access.user:
            lines.append(f"masteruser {access.user}")
        if tls:
            lines.append("tls-replication yes")
        self._args = [*_arguments(lines), *debug_options(self.kind), *args]
        self.servers = [self._server(i) for i in range(replicas + 1)]

    @property
    def primary(self) -> Server:
        return self.servers[0]

    @property
    def replicas(self) -> list[Server]:
        primary = self.primary
        return [server for server in self.servers if server is not primary]

    def connect(self, server: Server, *, timeout: float = 10.0) -> Connection:
        """A connection to one of the servers, with its password."""
        connection = server.connect(timeout=timeout)
        try:
            self.access.authenticate(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def cmd(self, server: Server, *words: bytes | str | int) -> object:
        with self.connect(server) as connection:
            return connection.cmd(*words)

    def await_left(self, server: Server, limit: float = LIMIT) -> None:
        """Wait until no client of redlatch is connected to it. Sentinels name a new primary up to
        seconds before they announce the switch, and until then clients use the old one."""

        def is_left() -> bool:
            try:
                clients = self.cmd(server, "CLIENT", "LIST")
            except (OSError, EOFError):
                return False  # a server that changes its role ends all connections
            return isinstance(clients, bytes) and b" name=redlatch " not in clients

        wait_until(is_left, limit)

    def port(self, server: Server) -> int:
        """The one for clients, and for the other servers."""
        return server.tls_port if self.tls else server.port

    def replication(self, server: Server) -> dict[str, str]:
        """What INFO says of it."""

        def ask() -> bytes | None:
            # A server that becomes a replica closes the connections of its clients.
            with contextlib.suppress(ConnectionError):
                text = self.cmd(server, "INFO", "replication")
                assert isinstance(text, bytes)
                return text
            return None

        lines = (wait_until(ask) or b"").decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def await_replicas(self, count: int | None = None) -> None:
        """Wait until this many replicas, or all that run, are in step with the primary."""
        primary = self.primary

        def in_step() -> bool:
            wanted = count
            if wanted is None:
                wanted = sum(s.is_running for s in self.servers if s is not primary)
            found = self.replication(primary)
            states = [found.get(f"slave{i}", "") for i in range(len(self.servers))]
            return sum("state=online" in state for state in states) >= wanted

        wait_until(in_step)
        for server in self.servers:
            if count is None and server is not primary and server.is_running:
                wait_until(lambda: self.replication(server).get("master_link_status") == "up")

    def await_same(self) -> None:
        """Wait until all replicas that answer have what the primary has now."""
        wanted = int(self.replication(self.primary)["master_repl_offset"])
        for replica in self.replicas:
            if replica.is_running and not replica.is_paused:
                offset = "slave_repl_offset"
                wait_until(lambda: int(self.replication(replica).get(offset, 0)) >= wanted)

    def rejoin(self, server: Server) -> None:
        """Start a server that was killed, as a replica of the present primary: with nothing, and
        not for a moment as a primary."""
        primary = self.primary
        server.args = [*self._args, "--replicaof", primary.host, str(self.port(primary))]
        server.start()

    def close(self) -> None:
        self._stack.close()

    def __enter__(self: Group) -> Group:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _server(self, i: int) -> Server:
        place = self._place(i)
        server = Server(
            self.kind, self._args, host=place.host, wrapper=place.wrapper, tls=self.tls
        )
        server.forgets = False  # what it had, a replica has
        return server

    def _place(self, i: int) -> Place:
        return self._places[i % len(self._places)]

    def _start(self) -> None:
        primary = self.servers[0]
        for server in self.servers:
            self._stack.enter_context(server)
            if server is not primary:
                # At once; a server that is given its primary at its start waits for a second.
                self.cmd(server, "REPLICAOF", primary.host, self.port(primary))
        self.await_replicas()


class Sentinel(Server):
    """One sentinel. It writes what it has learned into its file, and keeps that when restarted."""

    def __init__(self, kind: str, place: Place, tls: Certificate | None, access: Access) -> None:
        super().__init__(kind, host=place.host, wrapper=place.wrapper, tls=tls)
        self.access = access
        self.id = secrets.token_hex(20)
        self.watched: list[str] = []  # lines of its file
        self.forgets = False

    @property
    def address(self) -> str:
        return f"{self.host}:{self.tls_port if self.tls else self.port}"

    def ask(self, *words: str, timeout: float = 5.0) -> object:
        """SENTINEL .."""
        with self.connect(timeout=timeout) as connection:
            self.access.authenticate(connection)
            return connection.cmd("SENTINEL", *words)

    def primary(self, name: str = NAME) -> tuple[str, int] | None:
        """The address that it says; None if it does not know the name, or does not answer."""
        try:
            found = self.ask("GET-MASTER-ADDR-BY-NAME", name, timeout=1.0)
        except (OSError, RespError):
            return None
        return (found[0].decode(), int(found[1])) if isinstance(found, list) else None

    def facts(self, *words: str) -> list[dict[str, str]]:
        """Of an answer that is a list of instances."""
        found = self.ask(*words)
        assert isinstance(found, list)
        texts = [[word.decode() for word in instance] for instance in found]
        return [dict(zip(text[::2], text[1::2])) for text in texts]

    def _command(self, folder: Path) -> list[str]:
        path = folder / "sentinel.conf"
        if not path.exists():
            path.write_text("\n".join([*self._lines(folder), *self.watched]) + "\n")
        return [self._binary, str(path), "--sentinel"]

    def _lines(self, folder: Path) -> list[str]:
        lines = [f"port {self.port}", f"bind {self.host}", "protected-mode no"]
        lines += [f"unixsocket {self.unix_path}", f"dir {folder}", f"logfile {folder}/log"]
        lines += [f"sentinel myid {self.id}", *self.access.lines()]
        if self.tls:
            lines += [f"tls-port {self.tls_port}", "tls-replication yes", "tls-auth-clients no"]
            lines += [f"tls-cert-file {self.tls.cert}", f"tls-key-file {self.tls.key}"]
            lines += [f"tls-ca-cert-file {self.tls.ca}"]
        if self.access.password:
            lines.append(f"sentinel sentinel-pass {self.access.password}")
        if self.access.user:
            lines.append(f"sentinel sentinel-user {self.access.user}")
        return lines


class SentinelGroup(Replicated):
    """A primary with replicas, and sentinels that know all of them and each other."""

    def __init__(
        self,
        kind: str | None = None,
        *,
        replicas: int = 2,
        sentinels: int = 3,
        down_after_ms: int = DOWN_AFTER_MS,
        args: Sequence[str] = (),
        access: Access = Access(),
        sentinel_access: Access = Access(),
        tls: Certificate | None = None,
        places: Sequence[Place] = (),
    ) -> None:
        super().__init__(
            kind, replicas=replicas, args=args, access=access, tls=tls, places=places
        )
        self._down_after_ms = down_after_ms
        self.sentinels = [
            Sentinel(self.kind, self._place(i), tls, sentinel_access) for i in range(sentinels)
        ]

    @property
    def primary(self) -> Server:
        """The one that the sentinels name; the most of those that answer."""
        said = [found for one in self._running_sentinels() if (found := one.primary())]
        if not said:
            return self.servers[0]
        return self._server_at(max(said, key=said.count))

    def url(self, name: str = NAME, *, user: str = "", **options: str) -> str:
        """redis-sentinel://, with the sentinels in their order; `user` is what is before the @."""
        hosts = ",".join(one.address for one in self.sentinels)
        start = f"{'rediss' if self.tls else 'redis'}-sentinel://{user + '@' if user else ''}"
        said = "&".join(f"{key}={value}" for key, value in options.items())
        return f"{start}{hosts}/{name}/0{'?' + said if said else ''}"

    def failover(self, limit: float = LIMIT) -> Server:
        """SENTINEL FAILOVER, as an operator. The new primary, when all sentinels name it."""
        old = self.primary
        end = time.monotonic() + limit
        while True:
            try:
                self._running_sentinels()[0].ask("FAILOVER", NAME)
                break
            except RespError as error:  # another failover has hardly ended
                assert error.code in ("INPROG", "NOGOODSLAVE") and time.monotonic() < end, error
                time.sleep(0.02)
        return self.await_switch(old, limit)

    def await_switch(self, old: Server, limit: float = LIMIT) -> Server:
        """Wait until all sentinels that run name another primary than `old`."""
        before = (old.host, self.port(old))

        def switched() -> list[Server]:
            said = {one.primary() for one in self._running_sentinels()}
            return [self._server_at(it) for it in said if it and it != before and len(said) == 1]

        return wait_until(switched, limit)[0]

    @property
    def epoch(self) -> int:
        """That of the last failover: each has a higher one, whoever asked for it."""
        masters = [one.facts("MASTERS")[0] for one in self._running_sentinels()]
        return max(int(master["config-epoch"]) for master in masters)

    def await_ready(self, count: int | None = None, limit: float = LIMIT) -> None:
        """Wait until all sentinels that run agree, and could replace the primary by one of `count`
        replicas, or of all that run. An old primary that was not killed is one after 10 s only."""
        self.await_replicas(count)
        wanted = sum(s.is_running for s in self.servers) - 1 if count is None else count
        wait_until(lambda: self._is_ready(wanted), limit)

    def _running_sentinels(self) -> list[Sentinel]:
        return [one for one in self.sentinels if one.is_running and not one.is_paused]

    def _server_at(self, address: tuple[str, int]) -> Server:
        return next(s for s in self.servers if (s.host, self.port(s)) == address)

    def _is_ready(self, count: int) -> bool:
        for one in self._running_sentinels():
            try:
                one.ask("CKQUORUM", NAME)
            except RespError:
                return False
            # It reads INFO every 10 s only, which is why `await_replicas` asks the servers.
            replicas = one.facts("REPLICAS", NAME)
            usable = [r for r in replicas if r["flags"] == "slave" and r["info-refresh"] != "0"]
            if one.facts("MASTERS")[0]["flags"] != "master" or len(usable) < count:
                return False
        return len({one.primary() for one in self._running_sentinels()}) == 1

    def _start(self) -> None:
        super()._start()
        for attempt in range(PORT_ATTEMPTS):
            try:
                self._start_sentinels()
                break
            except ServerFailed as error:
                # Another process may have taken a port between the check and the start.
                if attempt + 1 == PORT_ATTEMPTS or "in use" not in str(error):
                    raise
        for one in self.sentinels:
            self._stack.callback(one.close)
        self.await_ready()

    def _start_sentinels(self) -> None:
        for one in self.sentinels:
            one.port = free_port()
            one.tls_port = free_port() if self.tls else 0
        for one in self.sentinels:
            one.watched = list(self._watched(one))
        try:
            for one in self.sentinels:
                one.start()
        except BaseException:
            for one in self.sentinels:
                one.close()
            raise

    def _watched(self, sentinel: Sentinel) -> Iterator[str]:
        """What an operator writes, and what it would find out in a while: it is ready at once."""
        primary = self.servers[0]
        quorum = len(self.sentinels) // 2 + 1
        yield f"sentinel monitor {NAME} {primary.host} {self.port(primary)} {quorum}"
        yield f"sentinel down-after-milliseconds {NAME} {self._down_after_ms}"
        yield f"sentinel failover-timeout {NAME} 5000"
        yield f"sentinel parallel-syncs {NAME} {len(self.servers)}"
        if self.access.user:
            yield f"sentinel auth-user {NAME} {self.access.user}"
        if self.access.password:
            yield f"sentinel auth-pass {NAME} {self.access.password}"
        for replica in self.servers[1:]:
            yield f"sentinel known-replica {NAME} {replica.host} {self.port(replica)}"
        for one in self.sentinels:
            if one is not sentinel:
                host, port = one.address.rsplit(":", 1)
                yield f"sentinel known-sentinel {NAME} {host} {port} {one.id}"
