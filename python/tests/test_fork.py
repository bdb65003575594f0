# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: gunicorn, celery and multiprocessing may fork a process that has clients and leases.

Method: programs of their own fork, since a fork of the tests' process would take their threads'
locks along; each prints what it saw.
"""

from __future__ import annotations

import re

import redlatch
from support.resp import Connection
from support.servers import Server

from .conftest import PREPARE, Forking, Starter


def test_child_has_a_client_of_its_own(client: redlatch.Client, forking: Forking) -> None:
    forking(
        """
client = redlatch.connect(url)
mine = client.acquire("mine")
lock = client.lock("locked")
lock.acquire()
def child():
    global mine
    for call in (mine.check, mine.release, mine.detach, lambda: mine.extend(9), lock.release):
        assert raises(redlatch.Forked, call).status is redlatch.Status.E_FORKED
    assert mine.lost and not mine.held and mine.remaining == 0.0
    assert "of another process" in repr(mine)
    assert client.acquire("mine", timeout=0) is None
    assert lock.acquire(blocking=False) is False
    assert lock.acquire(timeout=0.02) is False
    assert lock.locked() and client.inspect("mine").holder.token == mine.token
    with client.lock("other") as lease:
        lease.check()
        assert len(list(client.list())) == 3
    # A child of a child.
    in_child(lambda: client.acquire("other", timeout=0).release())
    mine = None
in_child(child)
mine.check()
assert client.inspect("mine").holder.token == mine.token
mine.release()
lock.release()
assert not mine.lost
"""
    )
    assert client.inspect("mine").is_free and client.inspect("locked").is_free


def test_block_of_the_parent_ends_as_forked(forking: Forking) -> None:
    forking(
        """
client = redlatch.connect(url)
def child():
    context.__exit__(None, None, None)
context = client.lock("report")
with context as lease:
    in_child(lambda: raises(redlatch.Forked, child))
    lease.check()
"""
    )


def test_condition_of_a_child_leaves_the_block_of_its_parent(forking: Forking) -> None:
    """Goal: a child that is forked in a block can use the condition of its lock."""
    forking(
        """
client = redlatch.connect(url)
for of in (client.lock, client.rlock):
    lock = of("report", ttl=60)
    condition = threading.Condition(lock)
    with lock:
        pid = os.fork()
        if pid == 0:
            try:
                with condition:
                    assert not condition.wait(0.02)
                os._exit(0)
            finally:
                os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
"""
    )


def test_closed_stays_closed(forking: Forking) -> None:
    forking(
        """
client = redlatch.connect(url)
late = redlatch.connect(url)
client.close()
def child():
    raises(redlatch.Closed, lambda: client.acquire("report"))
    late.close()
    raises(redlatch.Closed, lambda: late.acquire("report"))
in_child(child)
late.acquire("report").release()
"""
    )


def test_closed_while_it_is_opened_stays_closed(forking: Forking) -> None:
    forking(
        """
client = redlatch.connect(url)
opened = []
def open_and_close(self, really=redlatch._base.Base._open):
    opened.append(really(self))
    closing = threading.Thread(target=client.close)
    closing.start()
    closing.join()
    return opened[0]
def child():
    redlatch._base.Base._open = open_and_close
    raises(redlatch.Closed, lambda: client.acquire("report"))
    err = redlatch._errors.new_error()
    redlatch._core.client_check(opened[0], 0, err)
    assert redlatch._core.error_status(err) == redlatch.Status.E_CLOSED
    raises(redlatch.Closed, lambda: client.acquire("report"))
    assert len(opened) == 1
in_child(child)
client.acquire("report").release()
client.close()
"""
    )


def test_fork_while_threads_wait_and_work(forking: Forking, client: redlatch.Client) -> None:
    # A child must not wait for what a thread had locked that it did not inherit.
    forking(
        """
client = redlatch.connect(url)
held = client.acquire("held")
stop = threading.Event()
def work(i):
    while not stop.is_set():
        client.acquire(f"busy-{i}").release()
threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
threads.append(threading.Thread(target=lambda: client.acquire("held").release()))
for thread in threads:
    thread.start()
for i in range(20):
    in_child(lambda: client.acquire(f"child-{i}").release())
stop.set()
held.release()
for thread in threads:
    thread.join()
"""
    )


def test_processes_of_a_pool_exclude_each_other(script: Starter) -> None:
    program = script(
        """
import multiprocessing, pathlib, sys
client = redlatch.connect(url)
path = pathlib.Path(__file__ + ".count")
def work(_):
    for _ in range(25):
        with client.lock("count"):
            path.write_text(str(int(path.read_text()) + 1))
if __name__ == "__main__":
    path.write_text("0")
    client.acquire("count").release()
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.map(work, range(4))
    print(path.read_text())
"""
    )
    assert program.end() == ("100\n", "") and program.process.returncode == 0


def test_client_that_was_never_used_may_be_inherited(forking: Forking) -> None:
    forking(
        """
client = redlatch.connect(url, wait=None)
assert threading.active_count() == 1 and len(os.listdir("/proc/self/task")) == 1
in_child(lambda: client.acquire("report", timeout=0).release())
client.acquire("report", timeout=0).release()
"""
    )


def test_options_are_inherited(server: Server, forking: Forking) -> None:
    forking(
        """
os.environ["REDLATCH_URL"] = url
client = redlatch.from_env(namespace="app:", holder="me")
os.environ["REDLATCH_URL"] = "redis://127.0.0.1:1"
with client.lock("report"):
    pass
def child():
    with client.lock("report"):
        assert client.option("namespace") == "app:" and client.option("holder") == "me"
        with redlatch.connect(url) as other:
            assert other.acquire("app:report", timeout=0) is None
in_child(child)
"""
    )


def connections_of(admin: Connection) -> int:
    found = re.search(rb"total_connections_received:(\d+)", admin.cmd("INFO", "stats"))
    assert found
    return int(found[1])


def test_a_connection_that_ends_while_a_child_has_it_open_is_forgotten(
    server: Server, script: Starter
) -> None:
    """The parent must neither go on watching it, nor take its end for that of the next one."""
    program = script(
        PREPARE
        + """
def sockets():
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink("/proc/self/fd/" + fd))
        except OSError:
            pass  # that of the folder
    return {one for one in found if one.startswith("socket:")}
others = sockets()
client = redlatch.connect(url, command_timeout=0.3)
lease = client.acquire("renewed", ttl=3)
mine = sockets() - others
assert mine
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.close(write)
    os.read(read, 1)
    os._exit(0)
print("forked", flush=True)
while mine & sockets():
    time.sleep(0.01)
print("ended", flush=True)
sys.stdin.readline()
with client.lock("third", timeout=20):
    before = time.process_time()
    time.sleep(1)
    print("busy" if time.process_time() - before > 0.2 else "idle", flush=True)
sys.stdin.readline()
os.close(write)
assert os.waitpid(child, 0)[1] == 0
"""
    )
    assert program.read() == "forked"
    with server.connect() as admin:
        before = connections_of(admin)
        server.pause()
        try:
            assert program.read() == "ended", "a renewal got no answer in time"
        finally:
            server.resume()
        program.write("")
        assert program.read() == "idle"
        assert connections_of(admin) - before <= 8, "few attempts"
    program.write("")
    assert program.end() == ("", "") and program.process.returncode == 0
