# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: `status`, `ls` and `force-release` tell the truth of locks that several have: readers, and
the holds of one owner.

Method: the holders are `run`s, and a client of the C ABI for what no command does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from support.servers import Server
from support.wait import wait_until

from .harness import Cli
from .peer import Peer
from .terminal import Terminal

LEASE = r"until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \((?:30|29|28|27)s left\)"


@pytest.fixture
def peer(shared_server: Server) -> Iterator[Peer]:
    with Peer(shared_server.unix_url) as it:
        yield it


def table(cli: Cli, name: str) -> str:
    return cli.run("status", "-o", "table", name).stdout


# ---- readers ----


def test_json_of_readers(cli: Cli, name: str, peer: Peer) -> None:
    tokens = [peer.token(peer.read(name)) for _ in range(3)]
    answer = cli.status(name)
    assert (answer["state"], answer["mode"], answer["fair"]) == ("held", "shared", True)
    assert (answer["holding"], "owner" in answer) == (3, False)
    assert sorted(holder["token"] for holder in answer["holders"]) == sorted(tokens)
    for holder in answer["holders"]:
        assert holder["mode"] == "shared"
        assert 20_000 < holder["remaining_ms"] <= 30_000 and holder["lease_until"]
        assert "fence" not in holder
    assert cli.run("status", name).returncode == 0


def test_json_of_a_mutex_has_mode_and_count(cli: Cli, name: str) -> None:
    with cli.hold(name):
        answer = cli.status(name)
        assert (answer["holding"], "owner" in answer) == (1, False)
        assert answer["holders"][0]["mode"] == "exclusive"
    assert cli.status(name + "-free")["holding"] == 0


def test_table_of_readers(cli: Cli, name: str, peer: Peer) -> None:
    tokens = sorted(peer.token(peer.read(name)) for _ in range(2))
    text = table(cli, name)
    assert re.match(rf"{name} +HELD \(shared, fair\)\n  readers   2\n", text)
    assert sorted(re.findall(rf"^  reader    (\S+) {LEASE}$", text, re.M)) == tokens
    assert re.search(r"^  fence     \d+$", text, re.M)


def test_table_of_many_readers_is_short(cli: Cli, name: str, peer: Peer) -> None:
    for _ in range(8):
        peer.read(name)
    assert "  reader    ..\n" not in table(cli, name)
    peer.read(name)
    text = table(cli, name)
    assert "\n  readers   9\n" in text
    assert len(re.findall(r"^  reader    \S{32} until", text, re.M)) == 8
    assert text.count("  reader    ..\n") == 1
    assert len(cli.status(name)["holders"]) == 9


def test_queue_says_who_reads_writes_and_waits_to_upgrade(
    cli: Cli, name: str, peer: Peer
) -> None:
    first, _ = peer.read(name), peer.read(name)
    with cli.start("run", name, "true", waits=name):
        with cli.start("run", "-s", name, "true"):
            wait_until(lambda: cli.waiting(name) == 2)
            peer.begin_upgrade(first)
            wait_until(lambda: cli.waiting(name) == 3)
            answer = cli.status(name)
            modes = [waiter["mode"] for waiter in answer["waiters"]]
            assert modes == ["upgrade", "exclusive", "shared"]
            assert all(waiter["since"] for waiter in answer["waiters"])
            assert answer["waiters"][0]["token"] == peer.token(first)
            ago = r"\(\d+\.\d\ds\)"
            assert re.search(
                rf"^  waiting   3: \S+ waits to upgrade {ago}, \S+ writes {ago}, \S+ reads {ago}$",
                table(cli, name),
                re.M,
            )


def test_list_has_readers(cli: Cli, name: str, peer: Peer) -> None:
    for which in ("a", "b", "b"):
        peer.read(f"{name}-{which}")
    pattern = f"{name}-*"
    rows = sorted(cli.run("ls", pattern).stdout.splitlines())
    assert [row.split("\t")[1:5] for row in rows] == [
        ["held", "shared", "1 reader", "-"],
        ["held", "shared", "2 readers", "-"],
    ]
    assert all(20_000 < int(row.split("\t")[5]) <= 30_000 for row in rows)
    text = cli.run("ls", "-o", "table", pattern).stdout
    assert re.search(rf"^{name}-b +S     2 readers +– +(30|29|28|27)s +\d+ +0$", text, re.M)
    [_, both] = json.loads(cli.run("ls", "-o", "json", pattern).stdout)["locks"]
    assert (both["name"], both["mode"], both["holding"]) == (f"{name}-b", "shared", 2)


# ---- reentrant locks ----


def test_json_of_a_reentrant_lock(cli: Cli, name: str) -> None:
    mine = ["--owner", "it's\tme"]
    with cli.hold(name, *mine), cli.hold(name, *mine), cli.start("run", "--owner=x", name, "true"):
        wait_until(lambda: cli.waiting(name) == 1)
        answer = cli.status(name)
        assert (answer["state"], answer["mode"]) == ("held", "exclusive")
        assert (answer["owner"], answer["holding"]) == ("it's\tme", 2)
        tokens = {holder["token"] for holder in answer["holders"]}
        assert len(tokens) == 2 and all(len(token) == 32 for token in tokens)
        assert {holder["mode"] for holder in answer["holders"]} == {"exclusive"}
        assert {holder["fence"] for holder in answer["holders"]} == {answer["fence"]}
        [waiter] = answer["waiters"]
        assert (waiter["mode"], len(waiter["token"])) == ("exclusive", 32)
        cells = cli.run("status", name).stdout.split("\t")
        assert cells[1:4] == ["held", "exclusive", "it's\\tme"]


def test_table_of_a_reentrant_lock(cli: Cli, name: str) -> None:
    with cli.hold(name, "--owner", "it's\tme"), cli.hold(name, "--owner", "it's\tme"):
        text = table(cli, name)
        rows = r"  owner     it's\\tme\n  holds     2\n"
        assert re.match(rf"{name} +HELD \(exclusive, reentrant, fair\)\n{rows}", text)
        assert len(re.findall(rf"^  hold      \S{{32}} {LEASE}$", text, re.M)) == 2


def test_mutex_in_the_hash_format_has_no_owner(cli: Cli, name: str, peer: Peer) -> None:
    token = peer.token(peer.take(name, "format", "hash"))
    answer = cli.status(name)
    assert (answer["state"], answer["holding"], "owner" in answer) == ("held", 1, False)
    assert answer["holders"][0]["token"] == token
    text = table(cli, name)
    assert re.match(rf"{name} +HELD \(exclusive, fair\)\n", text)
    assert f"\n  token     {token}\n" in text and "\n  owner" not in text


def test_hash_of_another_library_has_no_owner_of_ours(
    cli: Cli, name: str, shared_server: Server
) -> None:
    shared_server.cmd("HSET", name, "uuid:1", 2)
    answer = cli.status(name)
    assert (answer["state"], "owner" in answer, "mode" in answer) == ("foreign", False, False)
    assert answer["holders"][0]["token"] == "uuid:1" and "mode" not in answer["holders"][0]


# ---- force-release ----


def test_force_release_removes_all(cli: Cli, name: str, peer: Peer) -> None:
    for _ in range(2):
        peer.read(name)
    done = cli.run("force-release", "--yes", name, code=0)
    assert f"removed lock '{name}'; it was held by 2 readers, lease until" in done.stderr
    assert not cli.is_held(name)
    with cli.hold(name, "--owner", "me"), cli.hold(name, "--owner", "me"):
        done = cli.run("force-release", "--yes", name)
        assert f"removed lock '{name}'; it was held by owner 'me', 2 times, lease" in done.stderr
        assert not cli.is_held(name)


def test_force_release_of_one_among_several(cli: Cli, name: str, peer: Peer) -> None:
    first, second = peer.token(peer.read(name)), peer.token(peer.read(name))
    done = cli.run("force-release", "--yes", "--if-owner", first, name, code=0)
    assert f"removed 1 of the 2 readers of lock '{name}'" in done.stderr
    assert [holder["token"] for holder in cli.status(name)["holders"]] == [second]
    hashed = name + "-hash"
    with cli.hold(hashed, "--owner", "me"), cli.hold(hashed, "--owner", "me"):
        first, second = [holder["token"] for holder in cli.status(hashed)["holders"]]
        done = cli.run("force-release", "--yes", "--if-owner", first, hashed)
        assert f"removed 1 of the 2 holds of lock '{hashed}'" in done.stderr
        assert [holder["token"] for holder in cli.status(hashed)["holders"]] == [second]


def test_force_release_removes_only_the_readers_who_were_shown(
    cli: Cli, name: str, peer: Peer
) -> None:
    for _ in range(2):
        peer.read(name)
    with Terminal([cli.binary, "force-release", name], cli.env) as terminal:
        terminal.wait_for("Type the name")
        late = peer.token(peer.read(name))
        terminal.write(name.encode() + b"\n")
        assert terminal.wait() == 0
        assert "it was held by 2 readers" in terminal.text
    assert [holder["token"] for holder in cli.status(name)["holders"]] == [late]
