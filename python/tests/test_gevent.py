# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a client fits into gevent's hub: an idle one lets it end, and forks, threads and queues of
a hub leave nothing behind.

Method: programs of their own, as in test_greenlets.py, with gevent only.
"""

from __future__ import annotations

import pytest

from .conftest import Starter
from .test_greenlets import Program, result_of

GEVENT = """
from gevent import monkey
monkey.patch_all()
import gevent, os
client = redlatch.connect(url)
"""


@pytest.fixture
def of_gevent(script: Starter) -> Program:
    pytest.importorskip("gevent")
    return lambda text: script(GEVENT + text)


def test_an_idle_client_lets_the_hub_end(of_gevent: Program) -> None:
    text = """
def fetch():
    return redlatch.Credentials("default", "")
app = redlatch.connect(url, wait=None, credentials=fetch)
lease = client.acquire("report")
watcher = gevent.spawn(lease.wait_lost)
gevent.sleep(0)
watcher.kill()
print(gevent.get_hub().join(timeout=20))
"""
    assert result_of(of_gevent(text)) == "True\n"


def test_one_thread_waits_for_the_loss_of_a_lease(of_gevent: Program) -> None:
    text = """
lease = client.acquire("report")
watcher = gevent.spawn(lease.wait_lost)
gevent.sleep(0)
def elsewhere():
    gevent.sleep(0)  # Now this thread has a hub.
    try:
        lease.wait_lost()
    except redlatch.Invalid as error:
        return str(error)
print(gevent.get_hub().threadpool.spawn(elsewhere).get())
lease.release()
print(watcher.get())
"""
    said = "wait_lost() of a lease must be in one thread at a time (got a second)"
    assert result_of(of_gevent(text)) == f"{said}\nFalse\n"


def test_a_forked_child_has_its_own_connection(of_gevent: Program) -> None:
    text = """
held = client.acquire("report")
waiter = gevent.spawn(client.acquire, "report")
gevent.sleep(0)
pid = os.fork()
if pid == 0:
    with client.lock("of child") as lease:
        lease.extend(20)
    child = client.acquire("report", timeout=0) is None
    os._exit(0 if child and held.lost else 1)
print(os.waitpid(pid, 0)[1])
held.release()
waiter.get().release()
"""
    assert result_of(of_gevent(text)) == "0\n"


def test_a_forked_child_ends_the_calls_of_its_parent(of_gevent: Program) -> None:
    text = """
def wait():
    try:
        return client.acquire("report")
    except redlatch.Forked:
        return "forked"
held = client.acquire("report")
waiter = gevent.spawn(wait)
gevent.sleep(0)
pid = os.fork()
if pid == 0:
    os._exit(0 if waiter.get(timeout=60) == "forked" else 1)
print(os.waitpid(pid, 0)[1])
held.release()
waiter.get().release()
"""
    assert result_of(of_gevent(text)) == "0\n"


def test_the_queue_of_a_hub_ends_with_its_thread(of_gevent: Program) -> None:
    """gevent keeps the hubs of threads that have ended."""
    text = """
import gevent.threadpool
def work():
    with client.lock("report", timeout=60):
        gevent.sleep(0.001)
def count():
    return len(os.listdir("/proc/self/fd"))
def use_threads(number):
    for _ in range(number):
        pool = gevent.threadpool.ThreadPool(1)
        pool.apply(work)
        pool.kill()
use_threads(3)
before = count()
use_threads(30)
with gevent.Timeout(60):
    while count() > before + 10:
        gevent.sleep(0.01)
print("flat")
"""
    assert result_of(of_gevent(text)) == "flat\n"


@pytest.mark.usefixtures("user_app")
def test_credentials_are_fetched_also_if_the_patch_comes_later(script: Starter) -> None:
    pytest.importorskip("gevent")
    text = """
calls = []
def fetch():
    calls.append(1)
    return redlatch.Credentials("app", "S3cret", 1)
client = redlatch.connect(url, credentials=fetch)
from gevent import monkey
monkey.patch_all()
import gevent
with gevent.Timeout(60):
    while len(calls) < 4:
        gevent.sleep(0.01)
print("well")
"""
    assert result_of(script(text)) == "well\n"
