#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Print the ACL line with which a client of redlatch can do its work and nothing else.

    tools/acl.py USER PASSWORD NAMESPACE | redis-cli

The commands are those that the scripts call, read from their sources, those of a connection,
WAIT, for min_replicas, and SCAN, for a list of the locks. With --health the user may also ask what
`redlatch doctor` and the check in the background ask (docs/health.md). That has CONFIG GET, which
shows the user all settings of the server, its passwords too. Without it use the option health=no,
or the server logs each refusal.
--cluster adds what a client asks the nodes of a cluster; each node needs the line.
One command that the server does not know voids a whole ACL SETUSER line: for servers before 7.0
give --plain, which leaves out the sharded channels.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1] / "core" / "protocol" / "scripts"

CONNECTION = (
    "hello auth select ping client|setname client|tracking client|caching script|load evalsha eval "
    "subscribe unsubscribe wait scan"
).split()
# TIME is in the scripts, WAIT and SCAN above.
HEALTH = ("info", "config|get", "client|trackinginfo", "cluster|info")
CLUSTER = ("asking", "cluster|info", "cluster|slots", "info")
SHARDED = ("spublish", "ssubscribe", "sunsubscribe")

_CALL = re.compile(r"redis\.p?call\('([A-Z@]+)'")


def script_commands(folder: Path = SCRIPTS) -> list[str]:
    """The commands that the scripts call, in lower case, but those of SHARDED: a server may not
    have them."""
    found = set()
    for path in folder.rglob("*.lua"):
        found.update(name.strip("@").lower() for name in _CALL.findall(path.read_text()))
    return sorted(found - set(SHARDED))


def rules(
    password: str,
    namespace: str,
    *,
    sharded: bool = True,
    health: bool = False,
    cluster: bool = False,
) -> list[str]:
    """The rules behind `ACL SETUSER name`. The password appears as its hash only."""
    if re.search(r"[\s\0]", namespace):
        raise ValueError("a server accepts no pattern with white space or a zero byte")
    pattern = re.sub(r"([*?\[\]\\])", r"\\\1", namespace)
    digest = hashlib.sha256(password.encode()).hexdigest()
    commands = [*CONNECTION, *script_commands(), *(SHARDED if sharded else ())]
    commands += HEALTH if health else ()
    commands += [name for name in CLUSTER if cluster and name not in commands]
    return [
        *("reset", "on", f"#{digest}", f"~{pattern}*"),
        # Before 7.0 a reset user may use all channels.
        *("resetchannels", f"&{pattern}rl1:*"),
        *(f"+{command}" for command in commands),
    ]


def quoted(word: str) -> str:
    """A word as redis-cli reads it."""
    if re.fullmatch(r"[!-~]+", word) and not re.search(r"[\"'\\]", word):
        return word
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\' else f"\\x{byte:02x}"
        for byte in word.encode()
    )
    return f'"{escaped}"'


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("user")
    parser.add_argument("password")
    parser.add_argument("namespace", help="what all lock names begin with, such as 'app:'")
    parser.add_argument("--plain", action="store_true", help="for servers before 7.0")
    parser.add_argument(
        "--health", action="store_true", help="with the questions of `redlatch doctor`"
    )
    parser.add_argument("--cluster", action="store_true", help="for the nodes of a cluster")
    args = parser.parse_args()
    if not args.password:
        parser.error("an empty password lets everybody in")
    try:
        options = {"sharded": not args.plain, "health": args.health, "cluster": args.cluster}
        words = rules(args.password, args.namespace, **options)
    except ValueError as error:
        parser.error(str(error))
    print(" ".join(quoted(word) for word in ["ACL", "SETUSER", args.user, *words]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
