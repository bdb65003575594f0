# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: several --url are a quorum: `run` holds most of them, `status` shows each.

Method: three servers, of which tests stop some. They are younger than the restart guard, which most
tests switch off.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from support.resp import Connection
from support.servers import Server, available_kinds
from support.wait import LIMIT, wait_until

from .harness import AT_ONCE, HOLD, Cli, Running
from .terminal import Terminal

Nodes = list[Server]

BUSY, USAGE, UNAVAILABLE, LOST = 75, 64, 69, 79
NO_GUARD = "--restart-guard=off"
# A busy machine leaves none out of a round.
EVERYWHERE = (NO_GUARD, "--node-timeout=5s")
# A busy machine answers in time. Only one test waits for a server that does not.
LIMITS = "?command_timeout=3s&connect_timeout=3s"


@pytest.fixture(scope="module")
def shared_nodes() -> Iterator[Nodes]:
    with Server(available_kinds()[0]) as a, Server(available_kinds()[-1]) as b:
        with Server(available_kinds()[0]) as c:
            yield [a, b, c]


@pytest.fixture
def nodes(shared_nodes: Nodes) -> Iterator[Nodes]:
    yield shared_nodes
    for node in shared_nodes:
        if node.is_running:
            node.resume()
        else:
            node.start()


@pytest.fixture
def urls(nodes: Nodes) -> list[str]:
    return [nodes[0].url + LIMITS, *(node.unix_url + LIMITS for node in nodes[1:])]


@pytest.fixture
def quorum(binary: str, urls: list[str]) -> Cli:
    """By the variable; the words are an empty command line's."""
    return Cli(binary, " ".join(urls))


def status(quorum: Cli, name: str, *options: str) -> dict[str, Any]:
    done = quorum.run("status", NO_GUARD, *options, "-o", "json", name)
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@contextmanager
def hold(cli: Cli, name: str, *options: str) -> Iterator[Running]:
    """Held in the block, and released at its end, unless the holder has ended before."""
    with cli.hold(name, *options) as held:
        yield held
        held.close_stdin()
        held.wait()


@contextmanager
def hold_all(quorum: Cli, name: str, *options: str) -> Iterator[Running]:
    """Held in the block by all servers."""
    with hold(quorum, name, *EVERYWHERE, *options) as held:
        wait_until(lambda: status(quorum, name)["held_on"] == 3)
        yield held


# ---- passwords ----


@pytest.mark.parametrize("is_option", [True, False])
def test_password_of_a_pipe_is_for_all_servers(
    quorum: Cli, nodes: Nodes, name: str, is_option: bool
) -> None:
    for node in nodes:
        with Connection(node.unix_url) as connection:
            connection.cmd("ACL", "SETUSER", "piped", "on", ">sesame", "~*", "&*", "+@all")
    read_end, write_end = os.pipe()
    os.write(write_end, b"sesame\n")
    os.close(write_end)
    path = f"/dev/fd/{read_end}"
    words = ["--user", "piped", *(["--password-file", path] if is_option else [])]
    env = {} if is_option else {"REDLATCH_PASSWORD_FILE": path}
    words += ["status", NO_GUARD, "-o", "json", name]
    done = quorum.run(*words, env=env, pass_fds=[read_end])
    os.close(read_end)
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["reached"], answer["voting"]) == (3, 3), answer


# ---- run ----


def test_run_holds_most_servers(quorum: Cli, name: str, nodes: Nodes, binary: str) -> None:
    with hold_all(quorum, name) as held:
        for node in nodes:
            assert Cli(binary, node.url).is_held(name)
        done = quorum.run("run", "-n", *EVERYWHERE, name, "true", code=BUSY)
        assert "is busy: held by " in done.stderr and "on 3 of 3 servers" in done.stderr
        quorum.run("run", "-w", "2s", *EVERYWHERE, name, "true", code=BUSY)
    assert held.wait() == 0
    assert quorum.run("run", "-w", "10", NO_GUARD, name, "true").returncode == 0
    wait_until(lambda: status(quorum, name)["held_on"] == 0)


def test_urls_by_flag_are_those_of_the_variable(
    binary: str, quorum: Cli, urls: list[str], name: str
) -> None:
    flags = [word for url in urls for word in ("--url", url)]
    bare = Cli(binary, None)
    with hold(quorum, name, *EVERYWHERE):
        assert bare.run(*flags, "run", "-n", NO_GUARD, name, "true").returncode == BUSY
        assert bare.run("status", *flags, NO_GUARD, name).returncode == 0
    # Flags win over the variable, and do not add to it.
    dead = {"REDLATCH_URL": "redis://127.0.0.1:1 redis://127.0.0.1:2 redis://127.0.0.1:3"}
    bare.run(*flags, "run", "-w", "10", NO_GUARD, name, "true", env=dead, code=0)


def test_run_outlives_one_server_and_not_two(quorum: Cli, name: str, nodes: Nodes) -> None:
    with hold(quorum, name, *EVERYWHERE, "--ttl", "3s", "-k", "100ms") as held:
        nodes[2].kill()
        assert quorum.run("run", "-n", NO_GUARD, name, "true").returncode == BUSY
        # Well over the lease: what is left of the quorum renews it.
        begin = time.monotonic()
        wait_until(lambda: time.monotonic() - begin > 3.5)
        assert held.process.poll() is None
        nodes[1].kill()
        assert held.wait() == LOST
        held.err.wait_for(f"lost lock '{name}'")


def test_too_few_servers_are_named(quorum: Cli, name: str, nodes: Nodes) -> None:
    nodes[1].kill()
    nodes[2].kill()
    begin = time.monotonic()
    done = quorum.run("run", "-n", NO_GUARD, name, "true", code=UNAVAILABLE)
    assert time.monotonic() - begin < AT_ONCE
    for node in nodes[1:]:
        assert node.unix_path in done.stderr
    with quorum.start("run", NO_GUARD, "-w", "60", name, "--", "echo", "ran") as waiting:
        waiting.err.wait_for("still trying")
        nodes[1].start()
        assert waiting.wait() == 0
        waiting.out.wait_for("ran")


def test_signal_ends_the_wait(quorum: Cli, name: str) -> None:
    words = ["run", "-v", NO_GUARD, name, "--", *HOLD]
    with hold(quorum, name, *EVERYWHERE), quorum.start(*words) as waiting:
        waiting.err.wait_for("waiting for")
        waiting.send(signal.SIGTERM)
        assert waiting.wait() == 128 + signal.SIGTERM
    wait_until(lambda: status(quorum, name)["waiting"] == 0)


def test_signal_ends_the_attempt_to_connect(binary: str, name: str) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        limits = "?command_timeout=1h&connect_timeout=1h"
        urls = [f"redis://127.0.0.1:{one.getsockname()[1]}{limits}" for one in silent]
        with Cli(binary, " ".join(urls)).start("run", NO_GUARD, name, "true") as running:
            silent[0].settimeout(LIMIT)
            stack.enter_context(silent[0].accept()[0])
            running.send(signal.SIGTERM)
            assert running.wait() == 128 + signal.SIGTERM


def test_min_hold_leaves_it_to_its_lease_after_a_signal(quorum: Cli, name: str) -> None:
    words = ["run", *EVERYWHERE, "--ttl=9s", "--min-hold=60s", name, "--", "echo", "ran"]
    with quorum.start(*words) as running:
        running.out.wait_for("ran")
        wait_until(lambda: status(quorum, name)["held_on"] == 3)
        running.send(signal.SIGTERM)
        assert running.wait() == 0
    assert status(quorum, name)["held_on"] == 3


def test_fence_and_environment_of_the_child(quorum: Cli, name: str) -> None:
    say = ["sh", "-c", "echo $REDLATCH_LOCK $REDLATCH_FENCE $REDLATCH_MODE"]
    done = quorum.run("run", "-v", NO_GUARD, name, "--", *say)
    assert done.stdout == f"{name} 0 exclusive\n" and "(no fence)" in done.stderr
    fences = []
    for _ in range(2):
        done = quorum.run("run", "-w10", "--fenced", NO_GUARD, name, "--", *say)
        fences.append(int(done.stdout.split()[1]))
    assert 0 < fences[0] < fences[1]


def test_guard_keeps_young_servers_out(quorum: Cli, name: str, nodes: Nodes) -> None:
    done = quorum.run("run", "-n", name, "true", code=UNAVAILABLE)
    assert nodes[2].unix_path in done.stderr
    assert quorum.run("run", "-n", "--durable", name, "true").returncode == 0
    answer = json.loads(quorum.run("status", "-o", "json", name).stdout)
    assert answer["voting"] == 0
    assert all(not node["votes"] and node["why_no_vote"] for node in answer["nodes"])
    done = quorum.run("run", "-n", "--restart-guard=1s", "--ttl=2s", name, "true", code=USAGE)
    assert "restart_guard" in done.stderr


# ---- what is refused ----


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "-s", "NAME", "true"], "--shared"),
        (["run", "--yield-every", "3", "NAME", "true"], "--yield-every"),
        (["run", "--owner", "me", "NAME", "true"], "--owner"),
        (["run", "--restart-guard=never", "NAME", "true"], "--restart-guard must be"),
        (["run", "--node-timeout=0", "NAME", "true"], "--node-timeout must be"),
        (["run", "--min-validity=-1s", "NAME", "true"], "--min-validity must be"),
        (["ls"], "ls is about one server, and 3 are named"),
    ],
)
def test_usage_errors_with_a_quorum(quorum: Cli, words: list[str], said: str) -> None:
    done = quorum.run(*words, code=USAGE)
    assert said in done.stderr, done.stderr


@pytest.mark.parametrize(
    "flag", ["--restart-guard=1s", "--durable", "--fenced", "--node-timeout=1s", "--min-validity=0"]
)
def test_quorum_options_are_refused_with_one_server(cli: Cli, name: str, flag: str) -> None:
    for words in (["run", flag, name, "true"], ["status", flag, name], ["ls", flag]):
        done = cli.run(*words, code=USAGE)
        assert f"{flag.partition('=')[0]} needs a quorum" in done.stderr


def test_wrong_sets_of_servers_are_refused(binary: str, urls: list[str], name: str) -> None:
    def refused(*some: str) -> str:
        done = Cli(binary, " ".join(some)).run("run", "-n", NO_GUARD, name, "true", code=USAGE)
        return str(done.stderr)

    assert "2" in refused(*urls[:2])
    assert urls[0].partition("?")[0] in refused(urls[0], urls[1], urls[0])
    assert "oops" in refused(urls[0], urls[1], "oops://x")
    same = urls[0].replace("127.0.0.1", "localhost")
    assert same != urls[0] and "same server" in refused(urls[0], urls[1], same)
    done = Cli(binary, None).run("server", "-u", urls[0], "-u", urls[1], code=USAGE)
    assert "--url" in done.stderr


def test_replicas_are_named(binary: str, nodes: Nodes, urls: list[str], name: str) -> None:
    """Goal: one replica of three has no vote; with two of them there is no majority."""
    with Server(available_kinds()[0]) as replica, replica.connect() as connection:
        connection.cmd("REPLICAOF", "127.0.0.1", str(nodes[0].port))
        some = Cli(binary, " ".join([urls[0], urls[1], replica.url]))
        some.run("run", "-n", NO_GUARD, name, "true", code=0)
        with Server(available_kinds()[0]) as second, second.connect() as other:
            other.cmd("REPLICAOF", "127.0.0.1", str(nodes[0].port))
            some = Cli(binary, " ".join([urls[0], second.url, replica.url]))
            done = some.run("run", "-n", NO_GUARD, name, "true")
        assert done.returncode == 78 and "2 of 3 nodes are replicas" in done.stderr, done.stderr
        assert str(replica.port) in done.stderr and str(second.port) in done.stderr


# ---- status ----


def test_json_shows_each_server(quorum: Cli, name: str, nodes: Nodes) -> None:
    with hold_all(quorum, name, "--label", "run=7") as held:
        answer = status(quorum, name)
        assert (answer["schema"], answer["name"], answer["state"]) == (1, name, "held")
        assert answer["holder"].endswith(f"/{held.pid}") and answer["label"].startswith("run=7")
        assert (answer["needed"], answer["reached"], answer["voting"]) == (2, 3, 3)
        assert 0 < answer["remaining_ms"] <= 30000
        for node, shown in zip(nodes, answer["nodes"]):
            assert shown["server"].startswith((node.url, node.unix_url))
            assert shown["votes"] is True
            assert shown["lock"]["state"] == "held"
            assert shown["lock"]["holders"][0]["token"] == answer["token"]
        nodes[2].kill()
        answer = status(quorum, name)
        assert (answer["state"], answer["held_on"], answer["reached"]) == ("held", 2, 2)
        away = answer["nodes"][2]
        assert away["votes"] is False and "lock" not in away and away["why_no_answer"]


def test_exit_code_says_whether_a_quorum_holds_it(
    binary: str, quorum: Cli, name: str, nodes: Nodes
) -> None:
    def look(*options: str) -> Any:
        return quorum.run("status", NO_GUARD, "-o", "table", *options, name)

    done = look()
    assert done.returncode == 1 and "FREE" in done.stdout
    with hold(Cli(binary, nodes[0].url), name):
        done = look()
        assert done.returncode == 1 and "NO QUORUM: held on 1 of 3 servers" in done.stdout
        nodes[1].kill()
        done = look()
        assert done.returncode == UNAVAILABLE and "2 of 3 servers answer" in done.stdout
        assert "too few servers" in done.stderr
        nodes[1].start()
    with hold_all(quorum, name):
        done = look()
        assert done.returncode == 0 and "HELD on 3 of 3 servers, a majority" in done.stdout
        nodes[0].kill()
        nodes[2].kill()
        assert look().returncode == UNAVAILABLE


def test_table_has_a_line_for_each_server(quorum: Cli, name: str, nodes: Nodes) -> None:
    with hold_all(quorum, name) as held:
        nodes[1].pause()
        begin = time.monotonic()
        text = quorum.run("status", NO_GUARD, "-o", "table", name).stdout
        assert time.monotonic() - begin < AT_ONCE
        lines = [line.split(maxsplit=1)[1] for line in text.splitlines() if "  node " in line]
        assert f"/{held.pid}" in text and len(lines) == 3
        for i in (0, 2):
            assert " votes: held by " in lines[i] and " left, fence " in lines[i]
        assert lines[1].startswith(nodes[1].unix_url) and " does not answer: " in lines[1]
    text = quorum.run("status", "-o", "table", name).stdout
    assert text.count(" has no vote (") == 2  # one is paused


def test_tsv_has_the_columns_of_one_server_and_two(quorum: Cli, name: str, nodes: Nodes) -> None:
    with hold_all(quorum, name) as held:
        nodes[2].kill()
        text = quorum.run("status", NO_GUARD, "-o", "tsv", name).stdout
        rows = [line.split("\t") for line in text.splitlines()]
        assert [len(row) for row in rows] == [10] * 4
        assert rows[0][:3] == [name, "held", "exclusive"] and rows[0][8:] == ["2/3", "2/3"]
        assert rows[0][3].endswith(f"/{held.pid}")
        assert rows[1][:3] == [name, "held", "exclusive"] and rows[1][9] == "votes"
        assert rows[1][8].startswith(nodes[0].url)
        assert rows[3][:3] == [name, "unknown", "-"]


def test_another_library_is_recognised(quorum: Cli, name: str, nodes: Nodes) -> None:
    for node, ttl_ms in zip(nodes, (60000, 30000)):
        node.cmd("SET", name, "theirs", "PX", ttl_ms)
    answer = status(quorum, name)
    assert (answer["state"], answer["held_on"], answer["token"]) == ("foreign", 2, "theirs")
    # Until it has most of them no more.
    assert "holder" not in answer and 0 < answer["remaining_ms"] <= 30000
    text = quorum.run("status", NO_GUARD, "-o", "table", name).stdout
    assert "HELD by another lock library on 2 of 3 servers, a majority" in text
    done = quorum.run("run", "-n", NO_GUARD, name, "true", code=BUSY)
    assert "held by another lock library on 2 of 3" in done.stderr


# ---- force-release ----


def test_force_release_takes_it_from_every_server(quorum: Cli, name: str) -> None:
    done = quorum.run("force-release", NO_GUARD, "--yes", name, code=1)
    assert "nothing was changed" in done.stderr
    with hold_all(quorum, name, "--ttl", "2s") as held:
        quorum.run("force-release", NO_GUARD, "--yes", "--if-owner", "x" * 32, name, code=1)
        assert status(quorum, name)["held_on"] == 3
        done = quorum.run("force-release", NO_GUARD, "--yes", name, code=0)
        assert "from 3 of 3 servers" in done.stderr, done.stderr
        assert "; the former holder stops by 20" in done.stderr
        assert held.wait() == LOST
    wait_until(lambda: status(quorum, name)["state"] == "free")


def test_force_release_says_where_it_could_not(quorum: Cli, name: str, nodes: Nodes) -> None:
    with hold_all(quorum, name):
        nodes[2].kill()
        done = quorum.run("force-release", NO_GUARD, "--yes", name, code=UNAVAILABLE)
        assert "from 2 of 3 servers" in done.stderr
        assert f"cannot remove it from {nodes[2].unix_url}" in done.stderr


def test_force_release_asks_on_a_terminal(quorum: Cli, name: str) -> None:
    with hold_all(quorum, name):
        with Terminal([quorum.binary, "force-release", NO_GUARD, name], quorum.env) as terminal:
            terminal.wait_for("Type the name")
            terminal.write(name.encode() + b"\n")
            assert terminal.wait() == 0


def test_nested_run_of_the_same_name_is_warned(quorum: Cli, name: str) -> None:
    """Goal: a nested run of one name is warned, and one below a holder of another name is not."""

    def waits(name: str, limit: str) -> list[str]:
        return [quorum.binary, "run", *EVERYWHERE, "-w", limit, name, "true"]

    with quorum.start("run", *EVERYWHERE, name, "--", *waits(name, "10s")) as outer:
        outer.err.wait_for("held by the redlatch run that this one runs under")
    name += "-2"  # The first one, whose holder was killed, is held until its lease ends.
    with quorum.start("run", *EVERYWHERE, name, "--", *HOLD) as holder:
        holder.out.wait_for("ready")
        other = ["env", f"REDLATCH_RUNS={name},0,me", *waits(name, "2s")]
        done = quorum.run("run", *EVERYWHERE, name + "-3", "--", *other, code=BUSY)
        assert "runs under" not in done.stderr
