# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: docs/operating.md says what a lock costs a server, and its commands do what it says.

Method: the commands and bytes of a real server are compared with the tables of the page; the blocks
of commands are run in each shell, beside locks that are held and waited for. test_blocks.py runs
the other blocks.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redlatch
from support.build import built
from support.program import run_to_end
from support.servers import Server, available_kinds
from support.wait import LIMIT, wait_until

from .pages import OPERATING, blocks

PAGE = OPERATING.read_text()
ALERT, LOSS = blocks(PAGE, "sh")
SHELLS = ("bash", "dash", "zsh")
# What the page says of versions and allocators that it does not name.
MORE = 1.25


@pytest.fixture(params=available_kinds())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(request.param) as running:
        yield running


@pytest.fixture(scope="module")
def one_server() -> Iterator[Server]:
    with Server(available_kinds()[0]) as running:
        yield running


# ---- what locks cost -----------------------------------------------------------------------------


def figure(row: str) -> int:
    """The number that the second column of a row begins with."""
    found = re.search(rf"^\| {re.escape(row)}.*? \| (\d+)", PAGE, re.MULTILINE)
    assert found, row
    return int(found[1])


class Calls:
    """Counts the commands that the server has executed since now, those of scripts included."""

    def __init__(self, server: Server) -> None:
        self._connection = server.connect()
        self._questions = 0
        self._before: dict[str, int] = {}
        self._before = self.counts()

    def __enter__(self) -> Calls:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def counts(self) -> dict[str, int]:
        text = self._connection.cmd("INFO", "commandstats").decode()
        found = re.findall(r"^cmdstat_(\S+?):calls=(\d+)", text, re.MULTILINE)
        counts = {name: int(count) - self._before.get(name, 0) for name, count in found}
        # A question is not yet in its own answer.
        counts["info"] = counts.get("info", 0) - self._questions
        self._questions += 1
        return {name: count for name, count in counts.items() if count}

    def requests(self) -> int:
        """Without the two publications by the probe, a script, when a client connects."""
        counts = self.counts()
        return sum(counts.values()) - counts.get("spublish", 0)


def test_commands_of_a_cycle(server: Server) -> None:
    times = 10
    with redlatch.connect(server.url, health=False) as client, Calls(server) as calls:
        for _ in range(times):
            with client.lock("report"):
                pass
        counts = calls.counts()
    requests = counts.pop("evalsha")
    assert requests == times * figure("an acquire and a release, without a waiter")
    inside = re.search(r"whose scripts call (\d+) commands", PAGE)
    assert inside and sum(counts.values()) == times * int(inside[1]), counts


def test_commands_of_a_connection(server: Server) -> None:
    opening = figure("the opening of a connection")
    with Calls(server) as calls, redlatch.connect(server.url, health=False):
        assert calls.requests() == opening
        loads = re.search(r"of which (\d+) are `SCRIPT LOAD`", PAGE)
        assert loads and calls.counts()["script|load"] == int(loads[1])
    health = figure("the questions about the [health](health.md) of the server, after that")
    with Calls(server) as calls, redlatch.connect(server.url):
        assert wait_until(lambda: at_least(calls.requests(), opening + health)) == opening + health


def at_least(count: int, limit: int) -> int:
    return count if count >= limit else 0


@pytest.mark.parametrize("protocol", [3, 2])
def test_connections(protocol: int, server: Server) -> None:
    words = {3: "A client has 1 connection,", 2: "With RESP2 it has 2,"}
    assert words[protocol] in PAGE
    with redlatch.connect(server.url, protocol=protocol, health=False) as client:
        threads = [threading.Thread(target=hold, args=[client, f"report-{n}"]) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
        count = len(server.cmd("CLIENT", "LIST").decode().splitlines()) - 1
    assert count == (1 if protocol == 3 else 2)


def hold(client: redlatch.Client, name: str) -> None:
    with client.lock(name):
        pass


def rows() -> dict[str, int]:
    """The larger of the two figures of each row of the table of keys."""
    table = PAGE[PAGE.index("| key | when |") :].partition("\n\n")[0]
    found = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert [len(row) for row in found] == [4] * 6
    return {f"{key}: {when}": max(int(a), int(b)) for key, when, a, b in found}


@contextmanager
def waiters(server: Server, count: int) -> Iterator[None]:
    """So many clients that wait for the lock, with the usual length of their names."""
    clients = [redlatch.connect(server.url, health=False) for _ in range(count)]
    requests = [threading.Thread(target=wait_in, args=[client]) for client in clients]
    for request in requests:
        request.start()
    with server.connect() as connection:
        wait_until(lambda: connection.cmd("ZCARD", "{report}:rl1:q") == count)
        # Each has written its name by then, or does so soon.
        wait_until(lambda: len(connection.cmd("KEYS", "rl1:*")) >= count)
    try:
        yield
    finally:
        for client in clients:
            client.close()
        for request in requests:
            request.join(LIMIT)


def wait_in(client: redlatch.Client) -> None:
    with pytest.raises(redlatch.Closed):
        client.acquire("report")


def test_bytes(server: Server) -> None:
    limits = {row: figure * MORE for row, figure in rows().items()}
    lock, fence, holder, queue, long_queue, name = limits.values()
    with server.connect() as connection, redlatch.connect(server.url, holder="host-1/4121") as ours:

        def size(key: str | bytes) -> int:
            return int(connection.cmd("MEMORY", "USAGE", key) or 0)

        lease = ours.acquire("report", label="day=monday")
        assert lease is not None
        wait_until(lambda: size("{report}:rl1:i"))
        assert 0 < size("{report}:rl1:i") <= holder
        assert 0 < size("report") <= lock and 0 < size("{report}:rl1:f") <= fence
        for count, limit in ((1, queue), (100, long_queue)):
            with waiters(server, count):
                assert 0 < size("{report}:rl1:q") <= limit
                names = connection.cmd("KEYS", "rl1:*")
                assert all(0 < size(key) <= name for key in names)
        lease.release()
        ours.close()
        ttls = {key: connection.cmd("PTTL", key) for key in connection.cmd("KEYS", "*")}
        assert ttls.keys() <= {b"{report}:rl1:f", b"{report}:rl1:i"}
        assert 0 < ttls[b"{report}:rl1:f"] <= 3_600_000
        assert ttls.get(b"{report}:rl1:i", 1) <= 30_000


# ---- commands ------------------------------------------------------------------------------------


def run(script: str, shell: str, url: str) -> subprocess.CompletedProcess[str]:
    binary = built("cli/redlatch").parent
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"needs {shell}")
    return run_to_end(
        [found, "-c", script], env={"PATH": f"{binary}:/usr/bin:/bin", "REDLATCH_URL": url}
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_alert(shell: str, one_server: Server) -> None:
    url = one_server.url
    hour, any_time = ALERT, ALERT.replace("limit_s=3600", "limit_s=0")
    assert any_time != hour
    assert (run(hour, shell, url).stdout, run(any_time, shell, url).returncode) == ("", 0)
    with redlatch.connect(url, holder="host-1/4121") as client:
        lease = client.acquire("report", label="day=monday")
        assert lease is not None
        wait_until(lambda: "-" not in run_ls(url).split("\t")[3:5])
        assert run(hour, shell, url).returncode == 0
        done = run(any_time, shell, url)
        assert (done.returncode, done.stdout) == (1, "report: held for 0 min by host-1/4121\n")
        with waiters(one_server, 1):
            done = run(hour, shell, url)
            assert (done.returncode, done.stdout) == (1, "report: 1 waiting\n")
            few = run(hour.replace("limit_waiters=0", "limit_waiters=1"), shell, url)
            assert (few.returncode, few.stdout) == (0, "")
        lease.release()
    down = run(hour, shell, "redis://127.0.0.1:1")
    assert down.returncode == 2 and "cannot reach" in down.stderr


def run_ls(url: str) -> str:
    return run("redlatch ls -o tsv", "sh", url).stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_loss_of_a_command(shell: str, one_server: Server) -> None:
    done = run(LOSS, shell, one_server.url)
    assert (done.returncode, done.stdout) == (0, "exit code 79\n"), done.stderr
