# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Runs a case: starts its clients, drives them, asks the server itself, makes the faults."""

from __future__ import annotations

import os
import signal
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from support.resp import Connection, RespError
from support.servers import Server
from system.limited import LimitedServer
from system.proxy import FaultProxy

from .case import ALL_BYTES, DEFAULT_UNTIL_MS, FAULTS, Case, Step, encode, substitute
from .runners import REPLY_SECONDS, Runner, RunnerFailed

# A reply is waited for this much longer than the case allows, to see how late it is.
SPARE_SECONDS = 5.0
POLL_SECONDS = 0.005
# An option of a client that is the driver's: its way to the server loses what the case says.
PROXIED = "proxied=1"
# .. it goes by TLS, and the server is one that it trusts, or not.
TRUSTING, DISTRUSTING = "tls=trusting", "tls=distrusting"
# Of a client, unless its case names them or takes the server away: on a busy machine an answer may
# take longer than the 2 s of the defaults.
LIMITS = ("connect_timeout=20s", "command_timeout=20s")
STRIKES = {"kill", "restart", "pause", "drop_connections", "lose_reply", "lose_request"}
# Commands of the server that make a key which is none of ours, and may have no expiry.
WRITING = {"set", "rpush", "lpush", "hset", "sadd", "zadd", "xadd"}


class CaseFailed(AssertionError):
    """A step did not go as the case says."""


@dataclass
class Clock:
    """How long a step took."""

    start: float = field(default_factory=time.monotonic)

    @property
    def ms(self) -> float:
        return (time.monotonic() - self.start) * 1000


def is_by_tls(case: Case) -> bool:
    options = {option for words in case.clients.values() for option in words}
    return bool(options & {TRUSTING, DISTRUSTING})


def assignments(case: Case, able: dict[str, set[str]]) -> list[dict[str, str]]:
    """Which runner plays which client: all the same, then a rotation of mixed ones."""
    names = [name for name, abilities in able.items() if case.needs <= abilities]
    clients = list(case.clients)
    same = [dict.fromkeys(clients, name) for name in names]
    if len(names) < 2 or len(clients) < 2:
        return same
    # One for each case, so that another runner costs little; over all cases every pair meets.
    turn = zlib.crc32(case.name.encode())
    mixed = {client: names[(i + turn) % len(names)] for i, client in enumerate(clients)}
    return [*same, mixed]


def limits_of(case: Case, options: list[str]) -> list[str]:
    is_struck = any(step.target == "@" and step.words[0] in STRIKES for step in case.steps)
    if is_struck or case.node_count > 1:
        return []
    named = {option.partition("=")[0] for option in options}
    return [limit for limit in LIMITS if limit.partition("=")[0] not in named]


class World:
    """A server, or those of a quorum, and the clients of one case."""

    def __init__(
        self,
        server: Server,
        case: Case,
        commands: dict[str, list[str]],
        players: dict[str, str],
        defect: str = "",
        peers: Sequence[Server] = (),
        start: Callable[[list[str], str], Runner] = Runner,
    ) -> None:
        self.servers = [server, *peers]
        self.server = server  # that the last line with @ was for
        self.case = case
        self.bindings = {"all": ALL_BYTES}
        self.log: list[str] = []
        self._own_keys: set[bytes] = set()
        self._stopped: set[str] = set()
        self._connections: dict[Server, Connection] = {}
        self.clients: dict[str, Runner] = {}
        self.proxies: dict[str, FaultProxy] = {}
        for name in case.clients:  # All at once: some take a while to start.
            self.clients[name] = start(commands[players[name]], defect)
        for i, (name, options) in enumerate(case.clients.items()):
            # Every other client comes over TCP, so that both ways are used side by side.
            urls = [server.unix_url if i % 2 else server.url for server in self.servers]
            if PROXIED in options:
                urls = [self._proxied_url(name, server)]
            if TRUSTING in options:
                urls = [server.trusting_url for server in self.servers]
            if DISTRUSTING in options:
                urls = [server.tls_url for server in self.servers]
            ours = (PROXIED, TRUSTING, DISTRUSTING)
            words = [option for option in options if option not in ours]
            words += limits_of(case, words)
            key = "url" if case.node_count == 1 else "urls"
            text = encode(" ".join(urls).encode())
            self._expect_open(name, f"- open {key}={text} {' '.join(words)}")

    def _proxied_url(self, name: str, server: Server) -> str:
        if isinstance(server, LimitedServer):
            self.proxies[name] = server.proxy()
            return server.url_by(self.proxies[name])
        self.proxies[name] = FaultProxy(server.port)
        return self.proxies[name].url

    def _expect_open(self, name: str, line: str) -> None:
        reply = self.clients[name].call(line)
        if reply != "OK":
            raise CaseFailed(f"{self.case.name}: client {name} does not open: {reply}")

    # ---- the server ----

    def command(self, *words: bytes | str | int) -> str:
        """A raw command; its reply as a case writes it."""
        try:
            if self.server not in self._connections:
                self._connections[self.server] = self.server.connect()
            reply = self._connections[self.server].cmd(*words)
        except RespError as error:
            return encode(str(error).encode())
        except (OSError, TimeoutError):
            self.forget_connection()
            raise
        if reply is None:
            return "nil"
        if isinstance(reply, list):
            return str(len(reply))
        return encode(reply if isinstance(reply, bytes) else str(reply).encode())

    def forget_connection(self) -> None:
        connection = self._connections.pop(self.server, None)
        if connection is not None:
            connection.close()

    def do_server(self, words: list[str], node: int) -> str:
        """A line with @: a fault, or a command."""
        self.server = self.servers[node - 1]
        if words[0] in FAULTS:
            fault: Callable[..., None] = getattr(self, f"fault_{words[0]}")
            fault(*words[1:])
            return ""
        arguments = [unquote_to_bytes(substitute(word, self.bindings)) for word in words]
        if words[0] in WRITING:
            self._own_keys.add(arguments[1])
        return self.command(*arguments)

    def fault_sleep(self, ms: str) -> None:
        time.sleep(int(ms) / 1000)

    def fault_kill(self) -> None:
        self.forget_connection()
        self.server.kill()

    def fault_start(self) -> None:
        self.server.start()

    def fault_restart(self, after: str = "after_ms=0") -> None:
        self.fault_kill()
        self.fault_sleep(after.removeprefix("after_ms="))
        self.fault_start()

    def fault_pause(self) -> None:
        self.server.pause()

    def fault_resume(self) -> None:
        self.server.resume()

    def fault_drop_connections(self) -> None:
        for kind in ("normal", "pubsub"):
            self.command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")

    def fault_kill_client(self, name: str) -> None:
        """What comes next comes behind the end of its connections, also at a busy server."""
        before = self.command("CLIENT", "LIST").count("%20fd%3D")
        self.clients.pop(name).kill()
        end = time.monotonic() + 1
        while self.command("CLIENT", "LIST").count("%20fd%3D") >= before and time.monotonic() < end:
            time.sleep(0.001)

    def fault_pause_client(self, name: str) -> None:
        os.kill(self.clients[name].pid, signal.SIGSTOP)
        self._stopped.add(name)

    def fault_resume_client(self, name: str) -> None:
        os.kill(self.clients[name].pid, signal.SIGCONT)
        self._stopped.discard(name)

    def fault_lose_reply(self, name: str) -> None:
        self.proxies[name].lose_reply()

    def fault_lose_request(self, name: str) -> None:
        self.proxies[name].lose_request()

    # ---- steps ----

    def reply_to(self, step: Step) -> str:
        """Do it once."""
        if step.target == "@":
            return self.do_server(step.words, step.node)
        if step.client not in self.clients:
            raise CaseFailed(f"client {step.client} was killed")
        target = step.target.partition(".")[2] or "-"
        words = []
        for word in step.words:
            key, equals, value = word.partition("=")
            words.append(key + equals + substitute(value, self.bindings))
        job = [f"&{step.job}"] if step.job else []
        limit = REPLY_SECONDS
        if step.expected is not None and step.expected.within_ms is not None:
            limit = step.expected.within_ms / 1000 + SPARE_SECONDS
        return self.clients[step.client].call(" ".join([target, *words, *job]), limit)

    def judge(self, step: Step, reply: str, ms: float) -> str:
        """What is wrong with the reply; nothing if it is as expected."""
        expected = step.expected
        if expected is None:
            return "not started" if step.job and reply != "STARTED" else ""
        status, values = _split(reply) if step.target != "@" else ("", {"": reply})
        if expected.statuses and status not in expected.statuses:
            return "another status"
        for value in expected.values:
            if not value.holds(values.get(value.key), self.bindings):
                return f"not so: {value}"
        # Clocks that count whole milliseconds may be short of one.
        if ms < expected.at_least_ms - 1:
            return f"too early: {ms:.1f} ms"
        if expected.within_ms is not None and ms > expected.within_ms:
            return f"too late: {ms:.1f} ms"
        return ""

    def run_step(self, step: Step) -> None:
        clock = Clock()
        limit_ms = DEFAULT_UNTIL_MS
        if step.expected is not None and step.expected.within_ms is not None:
            limit_ms = step.expected.within_ms
        while True:
            reply = self.reply_to(step)
            ms = clock.ms
            wrong = self.judge(step, reply, ms)
            if not wrong or not step.is_until or ms > limit_ms:
                break
            time.sleep(POLL_SECONDS)
        self.log.append(f"{step.text.split('->')[0].rstrip():<60} -> {reply}  ({ms:.1f} ms)")
        if wrong:
            raise CaseFailed(self.report(step, reply, wrong))

    def report(self, step: Step, reply: str, wrong: str) -> str:
        lines = [f"{self.case.file}:{step.line}: {self.case.name} on {self.server.kind}: {wrong}"]
        lines += [f"  {step.text}", f"  got: {reply}", "so far:"]
        lines += [f"  {line}" for line in self.log[-30:]]
        return "\n".join(lines)

    def check_keys(self) -> None:
        """What is left on the server must go by itself."""
        immortal = []
        connection = self._connections[self.server]
        for key in connection.cmd("KEYS", "*"):
            if key not in self._own_keys and connection.cmd("PTTL", key) == -1:
                immortal.append(key)
        if immortal:
            raise CaseFailed(f"{self.case.name}: keys without expiry: {immortal}")

    def end(self) -> None:
        """End the clients as a user would, and look at what they leave."""
        for name in list(self._stopped):
            self.fault_resume_client(name)
        for name, runner in self.clients.items():
            try:
                runner.end()
            except RunnerFailed as error:
                raise CaseFailed(f"{self.case.name}: client {name}: {error}") from None
        for self.server in self.servers:
            self.command("PING")
            self.check_keys()

    def close(self) -> None:
        """Leave nothing running, whatever has happened."""
        for runner in self.clients.values():
            runner.kill()
        for proxy in self.proxies.values():
            proxy.close()
        for self.server in self.servers:
            if self.server.is_running:
                self.server.resume()
            else:
                self.server.start()
            self.forget_connection()


def _split(reply: str) -> tuple[str, dict[str, str]]:
    status, _, rest = reply.partition(" ")
    return status, dict(word.split("=", 1) for word in rest.split())


def run_case(
    server: Server,
    case: Case,
    commands: dict[str, list[str]],
    players: dict[str, str],
    defect: str = "",
    peers: Sequence[Server] = (),
) -> None:
    """Run `case` on an empty `server`, and its `peers`; CaseFailed says what went wrong."""
    for one in (server, *peers):
        with one.connect() as connection:
            connection.cmd("FLUSHALL")
    world = World(server, case, commands, players, defect, peers)
    try:
        run_steps(world, case.steps)
        world.end()
    finally:
        world.close()


def run_steps(world: World, steps: Iterable[Step]) -> None:
    for step in steps:
        try:
            world.run_step(step)
        except (RunnerFailed, OSError, TimeoutError) as error:
            raise CaseFailed(world.report(step, "nothing", str(error))) from None
