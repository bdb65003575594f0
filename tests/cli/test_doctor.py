# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: `doctor` names what endangers locks on a server, says what to do, and by its exit code how
bad it is; it ends in time with any server, shows no secret, and leaves nothing on the server.

Method: real servers, each with one fault.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support.build import ROOT
from support.sentinel import NAME, NEVER_MS, SentinelGroup
from support.servers import Server, available_kinds, free_port
from support.wait import LIMIT, wait_until

from .harness import AT_ONCE, Cli

KIND = available_kinds()[0]
GOOD, WARNINGS, FAILURES = 0, 1, 2
USAGE, UNAVAILABLE, DENIED = 64, 69, 77
SHORT = "?command_timeout=300ms&connect_timeout=300ms"
PASSWORD = "hunter2-of-the-doctor"


class Report:
    """What `doctor -o json` says."""

    def __init__(self, cli: Cli, *options: str) -> None:
        begun = time.monotonic()
        done = cli.run("doctor", "-o", "json", *options)
        self.seconds = time.monotonic() - begun
        self.code = done.returncode
        self.errors = done.stderr
        self.text = done.stdout
        self.object: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
        self.checks: list[dict[str, str]] = self.object.get("checks", [])

    def all(self, name: str) -> list[dict[str, str]]:
        return [check for check in self.checks if check["id"] == name]

    def level(self, name: str) -> str:
        (check,) = self.all(name)
        assert bool(check["advice"]) == (check["level"] in ("note", "warn", "fail")), check
        return check["level"]

    def seen(self, name: str) -> str:
        return self.all(name)[0]["seen"]

    @property
    def bad(self) -> dict[str, str]:
        """Only what is neither ok nor a note."""
        good = ("ok", "note")
        return {check["id"]: check["level"] for check in self.checks if check["level"] not in good}


def configure(server: Server, *words: str) -> None:
    assert server.cmd("CONFIG", "SET", *words) in (b"OK", "OK")


def test_a_good_server_has_no_finding(own_cli: Cli, own_server: Server) -> None:
    report = Report(own_cli)
    assert (report.code, report.bad, report.errors) == (GOOD, {}, "")
    assert report.object["schema"] == 1 and report.object["level"] == "ok"
    assert report.object["server"].startswith(own_server.url)
    tried = ("lock", "handover", "inspection", "listing")
    for name in (*tried, "reachable", "eviction", "host-clock"):
        assert report.level(name) == "ok"
    assert "notified" in report.seen("handover")
    assert own_server.cmd("KEYS", "*") == []
    for output in ("table", "tsv", "jsonl"):
        done = own_cli.run("doctor", "-o", output, code=GOOD)
        assert len(done.stdout.splitlines()) == len(report.checks) + (output == "table")
    assert own_cli.run("doctor", "-o", "table").stdout.endswith("\n0 findings\n")


def test_a_server_that_keeps_nothing_is_a_note(own_cli: Cli, own_server: Server) -> None:
    """A restart forgets all locks: that is no finding, and not simply ok."""
    report = Report(own_cli)
    assert (report.code, report.level("persistence")) == (GOOD, "note")
    assert "a restart forgets all locks" in report.seen("persistence")
    for output, line in (("table", r"^note +persistence "), ("tsv", "^note\tpersistence\t")):
        assert re.search(line, own_cli.run("doctor", "-o", output).stdout, re.MULTILINE)
    configure(own_server, "appendonly", "yes")
    assert Report(own_cli).level("persistence") == "ok"


@pytest.mark.parametrize(
    ("setting", "value", "check", "level"),
    [
        ("maxmemory-policy", "allkeys-lru", "eviction", "warn"),
        ("maxmemory-policy", "volatile-ttl", "eviction", "warn"),
        ("timeout", "5", "idle-timeout", "warn"),
        ("maxclients", "1", "connections", "warn"),
    ],
)
def test_a_setting_is_found(
    own_cli: Cli, own_server: Server, setting: str, value: str, check: str, level: str
) -> None:
    own_server.cmd("CONFIG", "SET", setting, value)
    report = Report(own_cli)
    assert (report.bad, report.code) == ({check: level}, WARNINGS)
    assert value in report.seen(check)
    table = own_cli.run("doctor", "-o", "table").stdout
    assert table.endswith("\n1 finding (0 fail, 1 warn)\n")
    (line,) = [line for line in table.splitlines() if line.startswith("warn")]
    assert f" {check} " in line and " -> " in line


def test_full_memory_is_found(own_cli: Cli, own_server: Server) -> None:
    configure(own_server, "maxmemory", "1mb")
    report = Report(own_cli)
    assert report.level("memory") == "fail" and report.code == FAILURES
    assert report.level("lock") == "fail" and "OOM" in report.seen("lock")


def test_replicas_that_nothing_waits_for_are_found(own_cli: Cli, own_server: Server) -> None:
    with Server(KIND, ["--replicaof", own_server.host, str(own_server.port)]) as replica:

        def has_replica() -> bool:
            return b"connected_slaves:1" in own_server.cmd("INFO", "replication")

        wait_until(has_replica)
        report = Report(own_cli)
        assert (report.bad, report.code) == ({"replicas": "fail"}, FAILURES)
        assert report.seen("replicas").startswith("1 replica, min-replicas-to-write 0")
        configure(own_server, "min-replicas-to-write", "1")

        def is_good() -> bool:  # once the replica has acknowledged
            return Report(own_cli).code == GOOD

        wait_until(is_good)
        on_replica = Report(Cli(own_cli.binary, replica.url))
        assert on_replica.level("reachable") == "fail" and on_replica.code == 69
        assert "is a replica and READONLY" in on_replica.seen("reachable")


def test_replicas_that_have_to_confirm_are_tried(own_cli: Cli, own_server: Server) -> None:
    with Server(KIND, ["--replicaof", own_server.host, str(own_server.port)]) as replica:
        configure(own_server, "min-replicas-to-write", "1")

        def is_good() -> bool:  # once the replica has acknowledged
            return Report(own_cli, "--min-replicas", "1").code == GOOD

        wait_until(is_good)
        report = Report(own_cli, "--min-replicas", "1")
        assert report.seen("min-replicas") == "a grant is confirmed by 1 replica"
        assert report.level("min-replicas") == "ok"
        assert Report(own_cli).all("min-replicas") == []
        report = Report(own_cli, "--min-replicas=2")
        assert (report.bad, report.code) == ({"min-replicas": "fail"}, FAILURES)
        assert report.level("min-replicas") == "fail" and replica.is_running
        own_server.cmd("ACL", "SETUSER", "default", "-wait")
        report = Report(own_cli, "--min-replicas", "1")
        assert report.bad == {"min-replicas": "fail", "wait": "unknown"}, report.text
        assert "WAIT" in report.seen("min-replicas")
        assert own_server.cmd("EXISTS", "redlatch-doctor") == 0


@pytest.fixture
def limited(binary: str, own_server: Server) -> Cli:
    """Of a user with a password, who may not ask for settings."""
    rights = ["on", f">{PASSWORD}", "~*", "&*", "+@all", "-info", "-config", "-wait"]
    own_server.cmd("ACL", "SETUSER", "alice", *rights)
    url = f"redis://alice:{PASSWORD}@{own_server.host}:{own_server.port}{SHORT}"
    return Cli(binary, url)


def test_a_missing_right_is_unknown(limited: Cli) -> None:
    report = Report(limited)
    assert set(report.bad.values()) == {"unknown"}, report.bad
    assert {"eviction", "memory", "replicas", "idle-timeout", "wait"} <= set(report.bad)
    assert report.code == GOOD and report.object["unknown"] == len(report.bad)
    assert PASSWORD not in report.text + report.errors
    assert "0 findings, " in limited.run("doctor", "-o", "table").stdout


def test_the_rights_of_health_are_enough(binary: str, own_server: Server) -> None:
    """With what tools/acl.py --health prints all is known, and the server refuses nothing."""
    tool = [sys.executable, str(ROOT / "tools" / "acl.py"), "bob", PASSWORD, "app:", "--health"]
    line = subprocess.run(tool, capture_output=True, text=True, check=True, timeout=30).stdout
    own_server.cmd(*shlex.split(line))
    url = own_server.url.replace("redis://", f"redis://bob:{PASSWORD}@")
    report = Report(Cli(binary, f"{url}{SHORT}&namespace=app:"))
    assert (report.bad, report.code, report.errors) == ({}, GOOD, "")
    assert own_server.cmd("ACL", "LOG") == []


def test_a_right_that_locks_need_is_found(limited: Cli, own_server: Server) -> None:
    own_server.cmd("ACL", "SETUSER", "alice", "-scan")
    report = Report(limited)
    assert report.level("listing") == "warn" and report.code == WARNINGS
    own_server.cmd("ACL", "SETUSER", "alice", "-pexpire", "-set")
    report = Report(limited)
    assert report.level("lock") == "fail" and report.code == FAILURES
    assert PASSWORD not in report.text + report.errors


def test_a_wrong_password_is_refused(own_cli: Cli, own_server: Server) -> None:
    configure(own_server, "requirepass", "right-one")
    url = own_server.url.replace("redis://", f"redis://:{PASSWORD}@") + SHORT
    report = Report(Cli(own_cli.binary, url))
    assert report.code == DENIED and report.level("reachable") == "fail"
    assert "WRONGPASS" in report.errors and PASSWORD not in report.errors + report.text


def test_a_dead_server_is_unavailable(own_cli: Cli) -> None:
    report = Report(Cli(own_cli.binary, f"redis://127.0.0.1:{free_port()}{SHORT}"))
    assert report.code == UNAVAILABLE and report.level("reachable") == "fail"
    assert "refused" in report.seen("reachable") and "refused" in report.errors


@pytest.mark.parametrize("wait", ["0", "700ms"])
def test_a_hung_server_is_given_up(own_cli: Cli, own_server: Server, wait: str) -> None:
    own_server.pause()
    report = Report(own_cli, "--wait", wait)
    own_server.resume()
    assert report.code == UNAVAILABLE and report.seconds < AT_ONCE
    assert report.level("reachable") == "fail"


def test_a_server_that_comes_back_is_waited_for(own_cli: Cli, own_server: Server) -> None:
    own_server.pause()
    with own_cli.start("doctor", "-o", "json", "--wait", f"{LIMIT:.0f}s") as running:
        own_server.resume()
        assert running.wait() == GOOD


def quorum_of(binary: str, *servers: Server) -> Cli:
    return Cli(binary, "\n".join(server.url for server in servers))


def test_a_quorum_needs_a_guard_or_the_disk(own_cli: Cli, own_server: Server) -> None:
    with Server(KIND) as b, Server(KIND) as c:
        quorum = quorum_of(own_cli.binary, own_server, b, c)
        options = ("--restart-guard=off", "--node-timeout=5s")
        report = Report(quorum, *options)
        assert [check["level"] for check in report.all("persistence")] == ["fail"] * 3
        assert report.level("quorum") == "ok" and report.code == FAILURES
        for node in (own_server, b, c):
            configure(node, "appendonly", "yes")
        configure(b, "appendfsync", "always")
        configure(c, "appendfsync", "always")
        levels = [check["level"] for check in Report(quorum, *options).all("persistence")]
        assert levels == ["fail", "ok", "ok"]
        configure(own_server, "appendfsync", "always")
        report = Report(quorum, *options)
        assert (report.bad, report.code) == ({}, GOOD)
        assert {check["server"] for check in report.all("lock")} == {
            node.url for node in (own_server, b, c)
        }


def test_a_quorum_shows_who_cannot_vote(own_cli: Cli, own_server: Server) -> None:
    with Server(KIND) as b, Server(KIND) as c:
        quorum = quorum_of(own_cli.binary, own_server, b, c)
        report = Report(quorum, "--node-timeout=5s")  # younger than the guard
        assert [check["level"] for check in report.all("vote")] == ["warn"] * 3
        assert report.level("quorum") == "fail" and "0 of 3" in report.seen("quorum")
        c.kill()
        report = Report(quorum, "--restart-guard=off", "--node-timeout=5s")
        assert [check["level"] for check in report.all("reachable")] == ["ok", "ok", "fail"]
        assert report.seen("quorum").startswith("2 of 3") and report.level("quorum") == "ok"
        b.kill()
        own_server.kill()
        report = Report(quorum, "--restart-guard=off")
        assert report.code == UNAVAILABLE and report.level("quorum") == "fail"


def test_one_server_under_two_urls_is_found(own_cli: Cli, own_server: Server) -> None:
    with Server(KIND) as b:
        urls = [own_server.url, own_server.unix_url, b.url]
        twice = Cli(own_cli.binary, "\n".join(url + SHORT for url in urls))
        report = Report(twice, "--restart-guard=off", "--node-timeout=5s")
    assert "warn" in [check["level"] for check in report.all("vote")], report.text


def test_the_way_to_a_remote_server_is_judged(own_cli: Cli) -> None:
    report = Report(Cli(own_cli.binary, f"redis://192.0.2.1:6379{SHORT}"))
    assert report.code == UNAVAILABLE and report.level("tls") == "warn"


# ---- sentinels ----

IDS = ("sentinels", "sentinel-primary", "sentinel-quorum")
SENTINEL_LIMITS = {"connect_timeout": "3s", "command_timeout": "1s"}


@pytest.fixture
def sentinel_group() -> Iterator[SentinelGroup]:
    lag = ["--min-replicas-to-write", "1"]
    with SentinelGroup(down_after_ms=NEVER_MS, args=lag) as running:
        yield running


def report_on(binary: str, group: SentinelGroup) -> Report:
    return Report(Cli(binary, group.url(**SENTINEL_LIMITS)))


def test_good_sentinels_have_no_finding(binary: str, sentinel_group: SentinelGroup) -> None:
    report = report_on(binary, sentinel_group)
    assert {name: report.level(name) for name in IDS} == dict.fromkeys(IDS, "ok"), report.text
    assert (report.code, report.errors) == (GOOD, "")
    assert report.seen("sentinels") == "3 of 3 sentinels answer"
    primary = f"{sentinel_group.primary.host}:{sentinel_group.primary.port}"
    assert primary in report.seen("sentinel-primary")
    assert report.seen("sentinel-quorum") == "the quorum is 2 of 3 sentinels"
    cli = Cli(binary, sentinel_group.url(**SENTINEL_LIMITS))
    for output in ("table", "tsv"):
        text = cli.run("doctor", "-o", output).stdout
        assert all(name in text for name in IDS), text


def test_sentinels_behind_one_in_the_url_are_asked(
    binary: str, sentinel_group: SentinelGroup
) -> None:
    """One host name in the URL is enough, and a sentinel with two addresses counts once."""
    url = sentinel_group.url(**SENTINEL_LIMITS)
    first = sentinel_group.sentinels[0].address
    others = [one.address for one in sentinel_group.sentinels[1:]]
    url = url.replace(",".join([first, *others]), first.replace("127.0.0.1", "localhost"))
    report = Report(Cli(binary, url))
    assert report.seen("sentinels") == "3 of 3 sentinels answer"


def test_a_sentinel_that_does_not_answer_is_found(
    binary: str, sentinel_group: SentinelGroup
) -> None:
    one, two, three = sentinel_group.sentinels
    two.kill()
    report = report_on(binary, sentinel_group)
    assert report.bad == {"sentinels": "warn"} and report.code == WARNINGS
    assert report.seen("sentinels").startswith("2 of 3") and two.address in report.seen("sentinels")
    assert report.level("sentinels") == "warn"  # and has an advice
    three.pause()
    report = report_on(binary, sentinel_group)
    three.resume()
    assert report.bad == {"sentinels": "warn", "sentinel-quorum": "warn"}, report.text
    assert "there is no failover" in report.seen("sentinel-quorum")
    one.kill()
    three.kill()
    report = report_on(binary, sentinel_group)
    assert report.code == UNAVAILABLE and report.level("reachable") == "fail"
    assert report.level("sentinels") == "fail" and report.seen("sentinels").startswith("0 of 3")
    assert report.level("sentinel-primary") == "unknown"


def test_a_sentinel_that_disagrees_is_found(binary: str, sentinel_group: SentinelGroup) -> None:
    wrong = sentinel_group.sentinels[2]
    replica = sentinel_group.replicas[0]
    wrong.ask("REMOVE", NAME)
    report = report_on(binary, sentinel_group)
    assert report.bad == {"sentinel-primary": "warn"} and report.code == WARNINGS
    assert f"{wrong.address} does not know '{NAME}'" in report.seen("sentinel-primary")
    wrong.ask("MONITOR", NAME, replica.host, str(replica.port), "2")
    report = report_on(binary, sentinel_group)
    assert report.level("sentinel-primary") == "warn", report.text
    assert f"{wrong.address} names {replica.host}:{replica.port}" in report.seen("sentinel-primary")


def test_a_quorum_that_leaves_no_failover_is_found(
    binary: str, sentinel_group: SentinelGroup
) -> None:
    for one in sentinel_group.sentinels:
        one.ask("SET", NAME, "quorum", "3")
    report = report_on(binary, sentinel_group)
    assert report.bad == {"sentinel-quorum": "warn"} and report.code == WARNINGS
    sentinel_group.sentinels[0].ask("SET", NAME, "quorum", "2")
    report = report_on(binary, sentinel_group)
    assert report.bad == {"sentinel-quorum": "warn"}
    assert sentinel_group.sentinels[0].address in report.seen("sentinel-quorum")


def test_two_sentinels_are_too_few(binary: str) -> None:
    with SentinelGroup(
        down_after_ms=NEVER_MS, sentinels=2, args=["--min-replicas-to-write", "1"]
    ) as group:
        report = report_on(binary, group)
        assert report.bad == {"sentinels": "warn"} and report.code == WARNINGS
        assert "2 of 2 sentinels answer" in report.seen("sentinels")
