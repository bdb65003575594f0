# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: `status` and `force-release` tell the truth to people and programs."""

from __future__ import annotations

import json
import re
import time
from datetime import datetime, timezone

from support.servers import Server
from support.wait import wait_until

from .harness import Cli
from .terminal import Terminal

RFC3339 = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z"


def parsed(text: str) -> float:
    assert re.fullmatch(RFC3339, text), text
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_json_of_a_held_lock(cli: Cli, name: str) -> None:
    with cli.hold(name) as held, cli.start("run", name, "--", "true"):
        wait_until(lambda: cli.waiting(name) == 1)
        wait_until(lambda: "holder" in cli.status(name)["holders"][0])
        answer = cli.status(name)
        assert answer["schema"] == 1
        assert (answer["name"], answer["state"]) == (name, "held")
        assert (answer["mode"], answer["fair"]) == ("exclusive", True)
        assert answer["server"].startswith("unix://")
        [holder] = answer["holders"]
        assert holder["holder"].endswith(f"/{held.pid}")
        assert holder["fence"] == answer["fence"] > 0
        now = datetime.now(timezone.utc).timestamp()
        assert now - 60 < parsed(holder["acquired_at"]) <= parsed(answer["server_time"]) < now + 5
        assert 0 < parsed(holder["lease_until"]) - parsed(answer["server_time"]) <= 30
        assert len(holder["token"]) == 32
        [waiter] = answer["waiters"]
        assert parsed(waiter["since"]) >= parsed(holder["acquired_at"])


def test_json_of_a_free_lock(cli: Cli, name: str) -> None:
    answer = cli.status(name)
    assert (answer["state"], answer["holders"], answer["waiting"]) == ("free", [], 0)
    assert "mode" not in answer


def test_json_of_a_foreign_lock_and_of_no_lock(
    cli: Cli, name: str, shared_server: Server
) -> None:
    with shared_server.connect() as connection:
        connection.cmd("SET", name, "foreign\n", "PX", 60000)
        connection.cmd("SET", name + "-eternal", "foreign")
        connection.cmd("SADD", name + "-set", "x")
    answer = cli.status(name)
    assert answer["state"] == "foreign"
    assert answer["holders"][0]["token"] == "foreign\n"
    assert "fence" not in answer["holders"][0]
    assert "lease_until" not in cli.status(name + "-eternal")["holders"][0]
    answer = cli.status(name + "-set")
    assert (answer["state"], answer["type"]) == ("no_lock", "set")
    assert cli.run("status", name, name + "-set").returncode == 0


def test_json_of_several_is_one_line_each(cli: Cli, name: str) -> None:
    with cli.hold(name):
        done = cli.run("status", "-o", "json", name, name + "-free")
        states = [json.loads(line)["state"] for line in done.stdout.splitlines()]
        assert (done.returncode, states) == (1, ["held", "free"])


def test_table(cli: Cli, name: str) -> None:
    with cli.hold(name, "--ttl", "20m") as held, cli.start("run", name, "--", "true"):
        wait_until(lambda: cli.waiting(name) == 1)
        wait_until(lambda: "holder" in cli.status(name)["holders"][0])
        text = cli.run("status", name).stdout
        assert re.match(rf"{name} +HELD \(exclusive, fair\)\n", text)
        assert re.search(rf"^  holder    \S+/{held.pid}$", text, re.M)
        assert re.search(r"^  label     sh -c '.*'$", text, re.M)
        assert re.search(r"^  token     \S{32}$", text, re.M)
        assert re.search(rf"^  since     {RFC3339} \(\d\.\d\ds\)$", text, re.M)
        assert re.search(rf"^  lease     until {RFC3339} \(19m5\ds left\)$", text, re.M)
        assert re.search(r"^  fence     \d+$", text, re.M)
        assert re.search(r"^  waiting   1: \S{32} \(\d\.\d\ds\)$", text, re.M)


def test_table_of_a_free_lock(cli: Cli, name: str) -> None:
    assert re.match(rf"{name} +FREE\n", cli.run("status", name).stdout)


def test_force_release_shows_whom_it_removed_and_serves_the_next(cli: Cli, name: str) -> None:
    with cli.hold(name, "--ttl", "600ms") as held:
        fence = cli.status(name)["fence"]
        with cli.start("run", name, "--", "sh", "-c", "echo $REDLATCH_FENCE") as waiter:
            wait_until(lambda: cli.waiting(name) == 1)
            done = cli.run("force-release", "--yes", name)
            assert done.returncode == 0
            assert done.stdout == ""
            assert f"/{held.pid}\n" in done.stderr
            assert re.search(r"waiting +1: ", done.stderr)
            assert f"removed lock '{name}'; it was held by" in done.stderr
            assert waiter.wait_output() == 0
            assert int(waiter.out.text) > fence
        assert held.wait() == 79


def test_force_release_if_owner(cli: Cli, name: str) -> None:
    with cli.hold(name):
        token = cli.status(name)["holders"][0]["token"]
        done = cli.run("force-release", "--yes", "--if-owner", "x" * 32, name)
        assert done.returncode == 1
        assert "nothing was changed" in done.stderr
        assert cli.is_held(name)
        assert cli.run("force-release", "--yes", "--if-owner", token, name).returncode == 0
        assert not cli.is_held(name)


def test_force_release_of_nothing_and_of_no_lock(
    cli: Cli, name: str, shared_server: Server
) -> None:
    done = cli.run("force-release", "--yes", name)
    assert (done.returncode, "nobody holds" in done.stderr) == (1, True)
    with shared_server.connect() as connection:
        connection.cmd("SADD", name, "x")
        assert cli.run("force-release", "--yes", name).returncode == 1
        assert connection.cmd("EXISTS", name) == 1


def test_force_release_of_a_foreign_lock(cli: Cli, name: str, shared_server: Server) -> None:
    with shared_server.connect() as connection:
        connection.cmd("SET", name, "foreign", "PX", 60000)
        assert cli.run("force-release", "--yes", name).returncode == 0
        assert connection.cmd("EXISTS", name) == 0


def test_force_release_asks_for_the_name_on_a_terminal(cli: Cli, name: str) -> None:
    with cli.hold(name):
        for answer, code in ((b"y\n", 1), (b"\x04", 1), (name.encode() + b"\n", 0)):
            assert cli.is_held(name)
            with Terminal([cli.binary, "force-release", name], cli.env) as terminal:
                terminal.wait_for("Type the name")
                terminal.write(answer)
                assert terminal.wait() == code
        assert not cli.is_held(name)


def test_force_release_removes_only_who_was_shown(cli: Cli, name: str) -> None:
    with cli.hold(name) as first:
        with Terminal([cli.binary, "force-release", name], cli.env) as terminal:
            terminal.wait_for("Type the name")
            first.close_stdin()
            assert first.wait() == 0
            with cli.hold(name):
                terminal.write(name.encode() + b"\n")
                assert terminal.wait() == 1
                assert cli.is_held(name)


def test_answers_are_quick(cli: Cli, name: str) -> None:
    began = time.monotonic()
    for _ in range(10):
        cli.run("status", name)
    assert time.monotonic() - began < 5
