# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The limits of servers that are not quite Redis, and what a client does there.

One table: tests/system/test_servers.py plays a lock under each limit, tests/conformance runs its
cases there (test_limits.py), and tools/gen_servers.py makes the tables of docs/servers.md from it.
Plain data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

HANDS_OFF = "hands off"  # a release notifies the next waiter
POLLS = "polls"  # a waiter asks again each 10 to 250 ms
REFUSED = "refused"


# In front of the name of a command that clients do not find; the driver of a test still does.
HIDDEN = "HIDDEN-"
SECRET = "open-sesame"  # of the user of a limit


def without(*commands: str) -> tuple[str, ...]:
    """Arguments of a server that does not know these commands."""
    return tuple(word for name in commands for word in ("--rename-command", name, HIDDEN + name))


CLUSTER = ("--cluster-enabled", "yes")  # of one node, as of a service behind one address


def user(*rules: str) -> tuple[str, ...]:
    """Arguments of a server with a user `limited`, who has all rights but these."""
    return ("--user", "limited", "on", f">{SECRET}", "~*", "&*", "+@all", *rules)


_SHARDED = {"SSUBSCRIBE", "SPUBLISH", "SUNSUBSCRIBE"}


def cases(reason: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, reason)


# Nothing shows that a waiter that polls has died.
DEAD_WAITERS = {
    **cases(
        "the server grants the lock to a dead waiter for its provisional lease",
        "fifo-dead-waiter",
    ),
    **cases(
        "readers behind a writer that has died in the queue wait until all holders have released, "
        "and for its provisional lease",
        "rw-dead-waiters*",
    ),
    **cases(
        "if a reader dies while it waits to upgrade, other upgrades get `RL_E_DEADLOCK` until its "
        "lease has ended",
        "rw-upgrade-killed*",
    ),
}
UNHEARD = {
    **cases("a recall reaches no holder", "recall-*"),
    **cases("a lock is not retained, because its client could not be asked for it", "retain-*"),
}
MUTE = {
    **UNHEARD,
    **cases("a recall for which a message would be sent is refused", "unheard-free"),
}
NO_WAIT = cases("`min_replicas` is refused", "replicas-too-few", "replicas-too-few-for-a-waiter")
NO_CONFIG = cases("the findings about settings are `unknown`", "health-good", "health-danger")
NO_INFO = {
    **cases("a node without `INFO` has no vote under a `restart_guard`", "redlock-young"),
    **cases(
        "without `INFO` a client learns that a node is a replica only when it refuses a write",
        "redlock-replicas",
    ),
}
NO_UNDECLARED = cases(
    "readers of the `hash-rw` format write keys that a script does not name", "rw-*-hash-rw"
)


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
    # Cases of tests/conformance that go otherwise, and why; they stand in the page. A '*' is any
    # text.
    differs: Mapping[str, str] = field(default_factory=dict)

    def is_different(self, case: str) -> bool:
        return any(fnmatchcase(case, pattern) for pattern in self.differs)

    @property
    def has_user(self) -> bool:
        return "--user" in self.args

    @property
    def is_cluster(self) -> bool:
        return "--cluster-enabled" in self.args

    @property
    def names_sharded_channels(self) -> bool:
        """A server without them does not know a command that the limit names."""
        return any(word.lstrip("-+").upper() in _SHARDED for word in self.args)


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
        differs={**DEAD_WAITERS, **MUTE},
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
        differs=NO_WAIT,
    ),
    Limit(
        "no-info",
        "no `INFO`, no `CONFIG`",
        "`redlatch doctor` shows less; a node of a Redlock needs `INFO` for its `restart_guard`",
        without("INFO", "CONFIG"),
        differs={**NO_CONFIG, **NO_INFO},
    ),
    Limit(
        "no-config",
        "no `CONFIG`",
        "`redlatch doctor` shows less",
        without("CONFIG"),
        differs=NO_CONFIG,
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
        differs=cases(
            "a user without the right to `INFO` cannot see the version; with `protocol=2` it works",
            "health-rights",
        ),
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
        "the version and the role are not known",
        without("HELLO", "INFO"),
        query="protocol=2",
        differs={
            **NO_INFO,
            **cases("the version and the role are `unknown`", "health-good"),
        },
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
        "except readers of the `hash-rw` format, which write keys of Redisson",
        proxy="undeclared",
        differs=NO_UNDECLARED,
    ),
    Limit("no-role", "no `ROLE`", "it is never sent", without("ROLE")),
    Limit(
        "user-no-sharded",
        "a user without the right to `SSUBSCRIBE` and `SPUBLISH`",
        "not by plain channels, as other clients of the server use its sharded ones; `pushes` of "
        "`redlatch doctor` names the missing right",
        user("-ssubscribe", "-spublish"),
        result=POLLS,
        message="ssubscribe",
        differs={**DEAD_WAITERS, **UNHEARD},
    ),
    Limit(
        "user-no-publish",
        "a user without the right to `SPUBLISH` and `PUBLISH`",
        "a release by this user does not notify a waiter; `pushes` names the right",
        user("-spublish", "-publish"),
        result=POLLS,
        message="SPUBLISH",
        differs={**DEAD_WAITERS, **MUTE},
    ),
    Limit(
        "user-no-channels",
        "a user without a right to the channels (`resetchannels`)",
        "`pushes` says so",
        user("resetchannels"),
        result=POLLS,
        message="channel",
        differs={**DEAD_WAITERS, **MUTE},
    ),
    Limit(
        "user-no-client",
        "a user without the right to `CLIENT`",
        "waiters behind a lock of another library poll",
        user("-client"),
    ),
    Limit(
        "user-no-wait",
        "a user without the right to `WAIT`",
        "`min_replicas` is refused: `RL_E_DENIED`",
        user("-wait"),
        option="min_replicas",
        status="RL_E_DENIED",
        message="WAIT",
        differs=NO_WAIT,
    ),
    Limit(
        "user-no-info",
        "a user without the right to `INFO` and `CONFIG`",
        "as without these commands",
        user("-info", "-config"),
        differs={**NO_CONFIG, **NO_INFO},
    ),
    Limit(
        "user-no-script",
        "a user without the right to `SCRIPT`",
        "as without this command",
        user("-script"),
    ),
    Limit(
        "eviction",
        "keys are evicted (`allkeys-lru`)",
        "exclusion is not safe: if a key is evicted, another caller can get the lock before "
        "the holder notices; the log has a warning",
        ("--maxmemory-policy", "allkeys-lru", "--maxmemory", "100mb"),
        differs=cases("health warns of the policy, as it should", "health-good"),
    ),
)

# What a service lacks, all together, on one server.
PROFILES = (
    Limit(
        "elasticache",
        "Amazon ElastiCache, cluster mode off",
        "the findings of health about settings are `unknown`",
        (*without("CONFIG"), "--maxmemory-policy", "volatile-lru", "--maxmemory", "100mb"),
        differs=NO_CONFIG,
    ),
    Limit(
        "elasticache-serverless",
        "Amazon ElastiCache Serverless",
        "except readers of the `hash-rw` format; `min_replicas` is refused",
        (*CLUSTER, *without("CONFIG", "WAIT")),
        proxy="undeclared",
        option="min_replicas",
        status="RL_E_UNSUPPORTED",
        message="WAIT",
        differs={**NO_CONFIG, **NO_UNDECLARED},
    ),
    Limit(
        "redis-cloud",
        "Redis Cloud; Azure Managed Redis, Enterprise policy",
        "`min_replicas` is refused here; whether Azure has `WAIT` is not known",
        without("SELECT", "ROLE", "READONLY", "WAIT"),
        option="min_replicas",
        status="RL_E_UNSUPPORTED",
        message="WAIT",
        differs=NO_WAIT,
    ),
    Limit(
        "upstash",
        "Upstash",
        "by plain channels; waiters behind a lock of another library poll",
        without("SSUBSCRIBE", "SPUBLISH", "CLIENT"),
        channels="plain",
    ),
    Limit(
        "dragonfly",
        "Dragonfly",
        "except readers of the `hash-rw` format; `min_replicas` is refused",
        without("WAIT"),
        proxy="undeclared",
        option="min_replicas",
        status="RL_E_UNSUPPORTED",
        message="WAIT",
        differs={**NO_WAIT, **NO_UNDECLARED},
    ),
    Limit(
        "garnet",
        "Garnet with `--lua`",
        "`min_replicas` is refused; waiters behind a lock of another library poll",
        without("SUNSUBSCRIBE", "CLIENT", "WAIT"),
        option="min_replicas",
        status="RL_E_UNSUPPORTED",
        message="WAIT",
        differs=NO_WAIT,
    ),
    Limit(
        "kvrocks",
        "Apache Kvrocks",
        "by plain channels; waiters behind a lock of another library poll",
        without("SPUBLISH", "CLIENT"),
        channels="plain",
    ),
)

ROWS = (*LIMITS, *PROFILES)
