# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: `status` and `force-release` tell the truth to people and programs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import datetime, timezone

import pytest
from support.servers import Server
from support.wait import wait_until

from .harness import Cli
from .terminal import Terminal

RFC3339 = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z"


def parsed(text: str) -> float:
    assert re.fullmatch(RFC3339, text), text
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_json_of_a_held_lock(cli: Cli, name: str) -> None:
    with cli.hold(name) as held, cli.start("run", name, "--", "true", waits=name):
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
    done = cli.run("status", "-o", "json", name + "-set")
    answer = json.loads(done.stdout)
    assert (answer["state"], answer["type"]) == ("no_lock", "set")


@pytest.mark.parametrize("form", ["table", "json", "tsv"])
def test_status_of_a_key_of_another_type_is_78_as_run(
    cli: Cli, name: str, form: str, shared_server: Server
) -> None:
    shared_server.cmd("SADD", name, "x")
    for words in ([name], [name + "-free", name], [name, name + "-free"]):
        done = cli.run("status", "-o", form, *words, code=78)
        assert f"the key of lock '{name}' is of the type set and no lock: use ano" in done.stderr
    assert cli.run("run", "-n", name, "true").returncode == 78


def test_a_value_without_end_is_called_data_of_another_program(
    cli: Cli, name: str, shared_server: Server
) -> None:
    with shared_server.connect() as connection:
        connection.cmd("SET", name, "7")
        says = "data of another program, or a lock without end"
        advice = ": use another name, or --namespace\n"
        assert f"HELD: {says}{advice}" in cli.run("status", "-o", "table", name).stdout
        done = cli.run("run", "-n", name, "true", code=75)
        assert done.stderr.endswith(f"is busy: {says}, 0 waiting{advice}")
        # With an end it is the lock of another library.
        connection.cmd("PEXPIRE", name, "60000")
        assert says not in cli.run("run", "-n", name, "true").stderr
        assert says not in cli.run("status", "-o", "table", name).stdout


def test_json_of_several_is_one_line_each(cli: Cli, name: str) -> None:
    with cli.hold(name):
        done = cli.run("status", "-o", "json", name, name + "-free")
        states = [json.loads(line)["state"] for line in done.stdout.splitlines()]
        assert (done.returncode, states) == (1, ["held", "free"])


def test_table(cli: Cli, name: str) -> None:
    with cli.hold(name, "--ttl", "20m") as held, cli.start("run", name, "--", "true", waits=name):
        wait_until(lambda: "holder" in cli.status(name)["holders"][0])
        text = cli.run("status", "-o", "table", name).stdout
        assert re.match(rf"{name} +HELD \(exclusive, fair\)\n", text)
        assert re.search(rf"^  holder    \S+/{held.pid}$", text, re.M)
        assert re.search(r"^  label     sh -c '.*'$", text, re.M)
        assert re.search(r"^  token     \S{32}$", text, re.M)
        assert re.search(rf"^  since     {RFC3339} \(\d\.\d\ds\)$", text, re.M)
        assert re.search(rf"^  lease     until {RFC3339} \(19m5\ds left\)$", text, re.M)
        stops = rf"^  stops     by {RFC3339} \(19m5\ds\) if it is removed now$"
        assert re.search(stops, text, re.M)
        assert re.search(r"^  fence     \d+$", text, re.M)
        assert re.search(r"^  waiting   1: \S+ writes \(\d\.\d\ds\)$", text, re.M)


def test_table_of_a_free_lock(cli: Cli, name: str) -> None:
    assert re.match(rf"{name} +FREE\n", cli.run("status", "-o", "table", name).stdout)


def test_force_release_shows_the_removed_holder_and_serves_the_next(cli: Cli, name: str) -> None:
    with cli.hold(name, "--ttl", "600ms") as held:
        fence = cli.status(name)["fence"]
        with cli.start("run", name, "--", "sh", "-c", "echo $REDLATCH_FENCE", waits=name) as waiter:
            done = cli.run("force-release", "--yes", name, code=0)
            assert done.stdout == ""
            assert f"/{held.pid}\n" in done.stderr
            assert re.search(r"waiting +1: ", done.stderr)
            assert f"removed lock '{name}'; it was held by" in done.stderr
            assert waiter.wait_output() == 0
            assert int(waiter.out.text) > fence
        assert held.wait() == 79


@pytest.mark.parametrize("options", [[], ["-s"], ["--owner", "o"]])
def test_force_release_says_when_the_former_holder_stops(
    cli: Cli, name: str, options: list[str]
) -> None:
    with cli.hold(name, "--ttl", "20m", *options):
        done = cli.run("force-release", "--yes", name, code=0)
        stop = rf"; the former holder stops by {RFC3339} \(19m5\ds\) at the latest$"
        assert re.search(stop, done.stderr, re.M), done.stderr


def test_force_release_if_owner(cli: Cli, name: str) -> None:
    with cli.hold(name):
        token = cli.status(name)["holders"][0]["token"]
        done = cli.run("force-release", "--yes", "--if-owner", "x" * 32, name, code=1)
        assert "nothing was changed" in done.stderr
        assert cli.is_held(name)
        assert cli.run("force-release", "--yes", "--if-owner", token, name).returncode == 0
        assert not cli.is_held(name)


def test_force_release_of_nothing_and_of_no_lock(
    cli: Cli, name: str, shared_server: Server
) -> None:
    done = cli.run("force-release", "--yes", name)
    assert (done.returncode, "is not held" in done.stderr) == (1, True)
    with shared_server.connect() as connection:
        connection.cmd("SADD", name, "x")
        done = cli.run("force-release", "--yes", name)
        assert (done.returncode, "(got set)" in done.stderr) == (78, True)
        assert connection.cmd("EXISTS", name) == 1


def test_force_release_of_a_foreign_lock(cli: Cli, name: str, shared_server: Server) -> None:
    with shared_server.connect() as connection:
        connection.cmd("SET", name, "foreign", "PX", 60000)
        done = cli.run("force-release", "--yes", name, code=0)
        # Another library may not notice the loss at all.
        assert "stops" not in done.stderr
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
            assert first.finish() == 0
            with cli.hold(name):
                terminal.write(name.encode() + b"\n")
                assert terminal.wait() == 1
                assert cli.is_held(name)


@pytest.fixture
def ordered(cli: Cli, name: str) -> Iterator[list[str]]:
    """Two held locks, with a space and an odd byte in their names, in the order of `ls`."""
    names = [f"{name} a", f"{name}\tb"]
    with cli.hold(names[0], "--holder", "somebody", "--ttl", "20m"), cli.hold(names[1]):
        wait_until(lambda: all(cli.status(one)["holders"][0].get("holder") for one in names))
        yield names


def test_list_as_a_table(cli: Cli, name: str, ordered: list[str]) -> None:
    text = cli.run("ls", "-o", "table", f"{name}*").stdout
    head, *rows = text.splitlines()
    assert re.fullmatch(r"LOCK +MODE  HOLDER +HELD FOR +LEASE +FENCE  WAITING", head)
    assert len({len(line) for line in text.splitlines()}) == 1
    assert re.fullmatch(
        rf"{name} a +X     somebody +\d\.\d\ds +(20m00|19m5\d)s +\d+ +0", rows[0]
    )
    assert rows[1].startswith(rf"{name}\tb ")
    assert len(rows) == 2


def test_list_as_tsv_and_json(cli: Cli, name: str, ordered: list[str]) -> None:
    lines = cli.run("ls", f"{name}*").stdout.splitlines()  # No terminal: tsv.
    assert sorted(line.split("\t")[0] for line in lines) == [ordered[0], rf"{name}\tb"]
    [first] = [line.split("\t") for line in lines if "somebody" in line]
    assert first[1:4] == ["held", "exclusive", "somebody"]
    assert 0 <= int(first[4]) < 60_000 and 1_100_000 < int(first[5]) <= 1_200_000
    assert int(first[6]) == cli.status(ordered[0])["fence"] and first[7] == "0"

    answer = json.loads(cli.run("ls", "-o", "json", f"{name}*").stdout)
    assert answer["schema"] == 1 and answer["server"].startswith("unix://")
    assert sorted(lock["name"] for lock in answer["locks"]) == sorted(ordered)
    lines = cli.run("ls", "-o", "jsonl", f"{name}*").stdout.splitlines()
    locks = {lock["name"]: lock for lock in map(json.loads, lines)}
    assert sorted(locks) == sorted(ordered) and locks[ordered[0]]["schema"] == 1
    assert locks[ordered[0]]["holders"][0]["token"] == cli.status(ordered[0])["holders"][0]["token"]


def test_list_keeps_to_pattern_namespace_and_locks(
    cli: Cli, name: str, shared_server: Server
) -> None:
    shared_server.cmd("SET", f"{name}-other", "no lock of ours", "PX", 60000)
    with cli.hold(f"{name}-1"), cli.hold(f"{name}-2", "--namespace", "far:"):
        found = cli.run("ls", f"{name}*").stdout
        assert [line.split("\t")[0] for line in found.splitlines()] == [f"{name}-1"]
        found = cli.run("--namespace", "far:", "ls").stdout
        assert [line.split("\t")[0] for line in found.splitlines()] == [f"{name}-2"]
        assert cli.run("ls", f"{name}-[2-9]").stdout == ""


def test_list_continues_behind_a_lock_whose_queue_is_data(
    own_cli: Cli, own_server: Server
) -> None:
    with own_cli.hold("a"), own_cli.hold("b"), own_cli.hold("c"):
        own_server.cmd("RPUSH", "{b}:rl1:q", "data")
        done = own_cli.run("ls", "-o", "tsv", code=78)
        assert sorted(line.split("\t")[0] for line in done.stdout.splitlines()) == ["a", "c"]
        assert "the keys beside that of lock 'b', such as its queue, must" in done.stderr
        own_server.cmd("DEL", "{b}:rl1:q")


def test_names_behind_one_of_a_wrong_type_are_done(own_cli: Cli, own_server: Server) -> None:
    with own_cli.hold("a"), own_cli.hold("c"):
        with own_server.connect() as connection:
            connection.cmd("SET", "{b}:rl1:q", "data")
            connection.cmd("SET", "b", "q2Zb0Jr8S1GkM3xYt5Wn7A0000000001", "PX", "60000")
        done = own_cli.run("status", "-o", "tsv", "a", "b", "c", code=78)
        assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["a", "c"]
        assert own_cli.run("force-release", "--yes", "b", "c").returncode == 78
        assert own_cli.status("c")["state"] == "free"
        own_server.cmd("DEL", "b", "{b}:rl1:q")


def test_force_release_keeps_a_hash_of_another_program(
    cli: Cli, name: str, shared_server: Server
) -> None:
    with shared_server.connect() as connection:
        for field, value in (("colour", "red"), ("colour", "0xff"), ("n", "nan"), ("n", "1.5")):
            connection.cmd("HSET", name, field, value)
            done = cli.run("force-release", "--yes", name, code=1)
            assert "its key is a hash that no lock format has" in done.stderr
            assert connection.cmd("HGET", name, field) == value.encode()
            connection.cmd("DEL", name)
        connection.cmd("HSET", name, "mode", "write", "path", "/tmp")
        assert cli.run("force-release", "--yes", name).returncode == 1
        assert connection.cmd("DEL", name) == 1


def test_list_never_asks_for_all_keys_at_once(own_cli: Cli, own_server: Server) -> None:
    with own_server.connect() as connection:
        for i in range(0, 3000, 500):
            connection.pipe([("SET", f"key{j}", "x") for j in range(i, i + 500)])
        connection.cmd("ACL", "SETUSER", "u", "on", ">p", "~*", "&*", "+@all", "-keys")
    url = own_server.url.replace("redis://", "redis://u:p@")
    with own_cli.hold("among-them"):
        found = own_cli.run("-u", url, "ls")
        assert (found.returncode, found.stdout.split("\t")[0]) == (0, "among-them")


def test_list_tells_locks_from_values_that_look_like_one(own_cli: Cli, own_server: Server) -> None:
    """Also those of other types, those that no name can have, and those that nobody may read."""
    with own_server.connect() as connection, own_cli.hold("held"), own_cli.hold("read", "--shared"):
        token = connection.cmd("GET", "held").decode()
        connection.cmd("SET", "hex", "5e3b2f4ac6d911f0a1b20242ac120002")  # redis-py
        connection.cmd("SET", "almost", "!" * 32)
        connection.cmd("SET", "longer", token + "x")
        connection.cmd("SET", "shorter", token[:-1])
        connection.cmd("SET", "n" * 1153, token)
        connection.cmd("SET", "secret", token)
        connection.cmd("HSET", "hash", token, "1")
        connection.cmd("RPUSH", "list", token)
        rights = ("~held", "~read", "~{held}*", "~{read}*", "~rl1:*", "&*", "+@all")
        connection.cmd("ACL", "SETUSER", "u", "on", ">p", *rights)
        url = own_server.url.replace("redis://", "redis://u:p@")
        found = own_cli.run("-u", url, "ls")
        names = [line.split("\t")[0] for line in found.stdout.splitlines()]
        assert (sorted(names), found.returncode) == (["held", "read"], 0), found


def test_empty_list(cli: Cli, name: str) -> None:
    done = cli.run("ls", name)
    assert (done.stdout, done.stderr) == ("", "")
    assert json.loads(cli.run("ls", "-o", "json", name).stdout)["locks"] == []
    done = cli.run("ls", "-o", "table", name)
    assert (done.stdout, done.stderr) == ("", "redlatch: no lock is held\n")


def test_form_from_flag_variable_and_terminal(cli: Cli, name: str) -> None:
    free = cli.run("status", name)
    assert free.stdout == f"{name}\tfree\t-\t-\t-\t-\t-\t0\n"
    variable = {"REDLATCH_OUTPUT": "json"}
    assert json.loads(cli.run("status", name, env=variable).stdout)["state"] == "free"
    assert cli.run("-o", "tsv", "status", name, env=variable).stdout == free.stdout
    done = cli.run("status", name, env={"REDLATCH_OUTPUT": "xml"})
    assert (done.returncode, "REDLATCH_OUTPUT must be table, json" in done.stderr) == (64, True)
    with Terminal([cli.binary, "status", name], cli.env) as terminal:
        assert terminal.wait() == 1
        assert re.match(rf"{name} +(\x1b\[1m)?FREE", terminal.text)


def test_color_is_for_terminals_unless_asked_for(cli: Cli, name: str) -> None:
    def on_terminal(*flags: str, **env: str) -> bool:
        words = [cli.binary, *flags, "status", name]
        with Terminal(words, cli.env | {"TERM": "xterm"} | env) as terminal:
            assert terminal.wait() == 1
            return "\x1b[" in terminal.text

    table = ["status", "-o", "table", name]
    assert "\x1b[" not in cli.run(*table).stdout
    assert "\x1b[1mFREE\x1b[0m" in cli.run("--color", "always", *table).stdout
    assert on_terminal()
    assert not on_terminal("--color", "never")
    assert not on_terminal(NO_COLOR="1")
    assert not on_terminal(TERM="dumb")
    assert on_terminal("--color", "always", NO_COLOR="1")


def test_answers_are_quick(cli: Cli, name: str) -> None:
    began = time.monotonic()
    for _ in range(10):
        cli.run("status", name)
    assert time.monotonic() - began < 5
