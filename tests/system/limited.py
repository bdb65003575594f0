# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Rules of a proxy that makes a server stricter about the keys of scripts, or older.

    with FaultProxy(server.port) as proxy:
        proxy.rewrite = KEY_RULES["undeclared"]()
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from support.build import built

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
