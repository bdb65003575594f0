# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The limits of servers that are not quite Redis, and what a client does there.

One table: tests/system/test_servers.py plays a lock under each limit, and tools/gen_servers.py
makes the first table of docs/servers.md from it. Plain data.
"""

from __future__ import annotations

from dataclasses import dataclass

HANDS_OFF = "hands off"  # a release notifies the next waiter
POLLS = "polls"  # a waiter asks again each 10 to 250 ms
REFUSED = "refused"


def without(*commands: str) -> tuple[str, ...]:
    """Arguments of a server that does not know these commands."""
    return tuple(word for name in commands for word in ("--rename-command", name, ""))


@dataclass(frozen=True)
class Limit:
    name: str
    text: str  # in the page
    effect: str  # in the page, behind the result
    args: tuple[str, ...] = ()  # of the server
    proxy: str = ""  # a rule of the proxy before the server
    result: str = HANDS_OFF
    channels: str = "sharded"  # as `redlatch doctor` shows them
    query: str = ""  # of the URL
    status: str = ""  # REFUSED: of the call
    message: str = ""  # .. and a part of its message
    option: str = ""  # an acquire option that is refused, while all else works


LIMITS = (
    Limit("none", "none: Redis or Valkey", "all features"),
    Limit(
        "no-sharded",
        "no `SSUBSCRIBE`, no `SPUBLISH`",
        "by plain channels",
        without("SSUBSCRIBE", "SPUBLISH"),
        channels="plain",
    ),
    Limit(
        "no-spublish",
        "`SSUBSCRIBE`, but no `SPUBLISH`",
        "by plain channels",
        without("SPUBLISH"),
        channels="plain",
    ),
    Limit(
        "no-channels",
        "no channels at all",
        "a release does not notify a waiter",
        without("SSUBSCRIBE", "SPUBLISH", "SUBSCRIBE", "PUBLISH"),
        result=POLLS,
        channels="plain",
    ),
    Limit(
        "no-tracking",
        "no `CLIENT TRACKING`",
        "waiters behind a lock of another library poll",
        without("CLIENT"),
    ),
    Limit(
        "no-wait",
        "no `WAIT`",
        "`min_replicas` is refused: `RL_E_UNSUPPORTED`",
        without("WAIT"),
        option="min_replicas",
        status="RL_E_UNSUPPORTED",
        message="WAIT",
    ),
    Limit(
        "no-info",
        "no `INFO`, no `CONFIG`",
        "`redlatch doctor` shows less; a node of a Redlock needs `INFO` for its `restart_guard`",
        without("INFO", "CONFIG"),
    ),
    Limit(
        "no-select",
        "no `SELECT`",
        "in database 0",
        without("SELECT"),
    ),
    Limit(
        "no-select-db-1",
        "no `SELECT`, and a URL with database 1",
        "`RL_E_UNSUPPORTED`, which names the database",
        without("SELECT"),
        result=REFUSED,
        query="db=1",
        status="RL_E_UNSUPPORTED",
        message="SELECT 1",
    ),
    Limit(
        "no-script-load",
        "no `SCRIPT LOAD`",
        "the first use of a script sends its text",
        without("SCRIPT"),
    ),
    Limit(
        "no-scripts",
        "no `EVAL`, no `EVALSHA`",
        "`RL_E_UNSUPPORTED`, which names the command",
        without("EVAL", "EVALSHA"),
        result=REFUSED,
        status="RL_E_UNSUPPORTED",
        message="EVAL",
    ),
    Limit(
        "no-hello",
        "RESP2 only, no `HELLO`",
        "with a second connection; waiters behind a lock of another library poll",
        without("HELLO"),
    ),
    Limit(
        "lowered-hello",
        "`HELLO 3` is answered with RESP2",
        "as with RESP2 only",
        proxy="lowered",
    ),
    Limit(
        "no-version",
        "no `HELLO`, no `INFO`",
        "`RL_E_UNSUPPORTED`; with `protocol=2` it works",
        without("HELLO", "INFO"),
        result=REFUSED,
        status="RL_E_UNSUPPORTED",
        message="protocol=2",
    ),
    Limit(
        "no-version-protocol-2",
        "the same, with the option `protocol=2`",
        "by plain channels",
        without("HELLO", "INFO"),
        channels="plain",
        query="protocol=2",
    ),
    Limit(
        "no-keyless",
        "scripts without keys are refused",
        "every script names a key",
        proxy="keyless",
    ),
    Limit(
        "no-undeclared",
        "keys that a script does not name are refused",
        "except readers of the hash_rw format, which write keys of Redisson",
        proxy="undeclared",
    ),
    Limit("no-role", "no `ROLE`", "it is never sent", without("ROLE")),
    Limit(
        "eviction",
        "keys are evicted (`allkeys-lru`)",
        "a lock whose key is evicted is lost; a warning",
        ("--maxmemory-policy", "allkeys-lru", "--maxmemory", "100mb"),
    ),
)
