# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Servers with a limit of support/limits.py: a command that they do not know, a user with fewer
rights, or a proxy that is stricter about the keys of scripts or changes HELLO.

    with LimitedServer("redis", limit) as server:
        actor = Actor(server.url)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.build import built
from support.cluster import SLOT_COUNT, low_port
from support.limits import HIDDEN, SECRET, Limit
from support.resp import Argument, Connection
from support.servers import Server
from support.tls import Certificate
from support.wait import wait_until

from .proxy import FaultProxy

Rewrite = Callable[[list[bytes]], list[bytes]]

# In front of each script: `redis` with calls that know the keys of the script. The key of a command
# is its first argument; the commands that have none are named. DEL and EXISTS may have several.
_CHECKS = """\
local real, declared = redis, {}
for _, key in ipairs(KEYS) do declared[key] = true end
local keyless = {PUBLISH = 1, SPUBLISH = 1, TIME = 1, PUBSUB = 1, SCAN = 1}
local function undeclared(name, ...)
  name = string.upper(name)
  if keyless[name] then return nil end
  local count = (name == 'DEL' or name == 'EXISTS') and select('#', ...) or 1
  for i = 1, count do
    local key = select(i, ...)
    if not declared[key] then return 'ERR undeclared key ' .. tostring(key) end
  end
end
local redis = setmetatable({
  call = function(...)
    local why = undeclared(...)
    if why then error(why) end
    return real.call(...)
  end,
  pcall = function(...)
    local why = undeclared(...)
    if why then return {err = why} end
    return real.pcall(...)
  end,
}, {__index = real})
"""
_REFUSED = [b"SCRIPT.WITHOUT.KEYS"]  # a command that no server knows


def _is_script(command: list[bytes]) -> bool:
    return command[0].upper() in (b"EVAL", b"EVALSHA")


def keyless() -> Rewrite:
    """Refuses a script that names no key."""

    def rewrite(command: list[bytes]) -> list[bytes]:
        return _REFUSED if _is_script(command) and command[2] == b"0" else command

    return rewrite


def undeclared() -> Rewrite:
    """Refuses a script without keys, and each command in a script whose key it did not name."""
    texts = {
        hashlib.sha1(text, usedforsecurity=False).hexdigest().encode(): text
        for text in (path.read_bytes() for path in built("core/scripts").glob("*.lua"))
    }

    def rewrite(command: list[bytes]) -> list[bytes]:
        if not _is_script(command):
            return command
        if command[2] == b"0":
            return _REFUSED
        text = texts[command[1]] if command[0].upper() == b"EVALSHA" else command[1]
        return [b"EVAL", _CHECKS.encode() + text, *command[2:]]

    return rewrite


def lowered() -> Rewrite:
    """Answers HELLO 3 with RESP2."""

    def rewrite(command: list[bytes]) -> list[bytes]:
        is_hello_3 = command[0].upper() == b"HELLO" and command[1:2] == [b"3"]
        return [b"HELLO", b"2", *command[2:]] if is_hello_3 else command

    return rewrite


KEY_RULES = {"keyless": keyless, "undeclared": undeclared, "lowered": lowered}


class _Driver(Connection):
    """A connection past the limit, for the test itself: it knows the commands that are hidden."""

    def __init__(self, url: str, limit: Limit, *, protocol: int, timeout: float) -> None:
        self._limit = limit
        super().__init__(url, protocol=protocol, timeout=timeout)

    def cmd(self, *args: Argument, timeout: float | None = None) -> Any:
        first = (args[0].decode() if isinstance(args[0], bytes) else str(args[0])).upper()
        if self._limit.is_cluster and first in ("DEL", "EXISTS") and len(args) > 2:
            return sum(self.cmd(first, key) for key in args[1:])  # the keys are of several slots
        if HIDDEN + first in self._limit.args:
            args = (HIDDEN + first, *args[1:])
        return super().cmd(*args, timeout=timeout)


class LimitedServer(Server):
    """`url` and `unix_url` are those of clients, with what the limit needs in the query."""

    def __init__(self, kind: str, limit: Limit, *, tls: Certificate | None = None) -> None:
        super().__init__(kind, limit.args, tls=tls)
        self.limit = limit
        self._proxy: FaultProxy | None = None

    @property
    def url(self) -> str:
        return self.url_by(self._proxy)

    @property
    def unix_url(self) -> str:
        return self.url

    def url_by(self, proxy: FaultProxy | None) -> str:
        base = proxy.url if proxy else super().url
        if self.limit.has_user:
            base = base.replace("://", f"://limited:{SECRET}@")
        if self.limit.is_cluster:
            base = base.replace("redis://", "redis+cluster://")
        return base + (f"?{self.limit.query}" if self.limit.query else "")

    def proxy(self, port: int = 0) -> FaultProxy:
        """One more way to the server, with the rule of the limit."""
        proxy = FaultProxy(port or self.port)
        if self.limit.proxy:
            proxy.rewrite = KEY_RULES[self.limit.proxy]()
        return proxy

    def connect(self, *, protocol: int = 2, timeout: float = 10.0) -> Connection:
        url = f"unix://{self.unix_path}"
        return _Driver(url, self.limit, protocol=protocol, timeout=timeout)

    def start(self) -> Server:
        super().start()
        if self.limit.is_cluster:
            self._own_all_slots()
        return self

    def close(self) -> None:
        super().close()
        self._close_proxy()

    def _choose_port(self) -> int:
        self._close_proxy()
        port = low_port() if self.limit.is_cluster else super()._choose_port()
        if self.limit.proxy:
            self._proxy = self.proxy(port)
        return port

    def _close_proxy(self) -> None:
        if self._proxy:
            self._proxy.close()
            self._proxy = None

    def _command(self, folder: Path) -> list[str]:
        command = super()._command(folder)
        if not self.limit.is_cluster or not self._proxy:
            return command
        # This node is the whole cluster. It names the address of the proxy.
        return [*command, "--cluster-announce-port", self._proxy.url.rpartition(":")[2]]

    def _own_all_slots(self) -> None:
        with self.connect() as connection:
            if b"cluster_slots_assigned:0" in connection.cmd("CLUSTER", "INFO"):
                connection.cmd("CLUSTER", "ADDSLOTS", *range(SLOT_COUNT))
            wait_until(lambda: b"cluster_state:ok" in connection.cmd("CLUSTER", "INFO"))
