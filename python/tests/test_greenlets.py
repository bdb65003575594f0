# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: where gevent or eventlet has patched a program, a call that waits holds up its greenlet and
nothing else; an exception that is thrown into a wait leaves nothing held.

Method: programs of their own, with the real packages, which patch after redlatch was imported; the
opposite order is that of gunicorn's worker. Programs stop the server where a call must wait.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from importlib.util import find_spec

import pytest
import redlatch
from support.servers import Server
from support.wait import wait_until

from .conftest import Script, Starter
from .test_wait import wait_for_queue

PATCHES = {
    "gevent": """
from gevent import monkey
monkey.patch_all()
import gevent
from gevent import GreenletExit, Timeout
def start(function, *arguments):
    return gevent.spawn(function, *arguments)
def kill(greenlet, *error):
    greenlet.kill(*error, block=False)
start_native = monkey.get_original("_thread", "start_new_thread")
def in_pool(function):
    return gevent.get_hub().threadpool.spawn(function).get
""",
    "eventlet": """
import warnings
warnings.simplefilter("ignore")  # Eventlet is deprecated.
import eventlet
eventlet.monkey_patch()
from eventlet import Timeout, greenthread, tpool
from greenlet import GreenletExit
def start(function, *arguments):
    return eventlet.spawn(function, *arguments)
def kill(greenlet, *error):
    greenthread.spawn_n(greenthread.kill, greenlet, *error)
start_native = eventlet.patcher.original("_thread").start_new_thread
def in_pool(function):
    return eventlet.spawn(tpool.execute, function).wait
""",
}
TOOLS = """
import os, random, signal, sys, threading, time
from redlatch import Redlock
from redlatch.testing import expire
def join(greenlets):
    for one in greenlets:
        while not one.dead:
            time.sleep(0.002)
def until(condition):
    while not condition():
        time.sleep(0.002)
def free(name="report"):
    info = client.inspect(name)
    return info.is_free and not info.waiting
count = 0
def tick():
    global count
    while True:
        count += 1
        time.sleep(0.002)
start(tick)
client = redlatch.connect(url)
"""

Program = Callable[[str], Script]


@pytest.fixture(params=PATCHES)
def program(request: pytest.FixtureRequest, script: Starter) -> Program:
    """Starts a program that the package of this name has patched."""
    if find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return lambda text: script(PATCHES[request.param] + TOOLS + text)


@pytest.fixture(params=[f"{name} {order}" for name in PATCHES for order in ("first", "last")])
def program_of_any_order(request: pytest.FixtureRequest, script: Starter) -> Program:
    """The same, and one that patches before it imports redlatch."""
    name, _, order = request.param.partition(" ")
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    if order == "last":
        return lambda text: script(PATCHES[name] + TOOLS + text)
    run = "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', sys.argv[0], url])"
    first = f"import sys\nurl = sys.argv[1]\n{PATCHES[name]}import redlatch\n{TOOLS}"
    return lambda text: script(run.replace("sys.argv[0]", repr(first + text)))


def result_of(script: Script) -> str:
    output, errors = script.end()
    assert script.process.returncode == 0 and errors == "", output + errors
    return output


# ---- waits ---------------------------------------------------------------------------------------


def test_64_greenlets_wait_for_one_lock(program: Program) -> None:
    text = """
served = []
def work(i):
    with client.lock("report") as lease:
        time.sleep(0.001)
        lease.extend(20)
        served.append(i)
held = client.acquire("report")
threads = len(os.listdir("/proc/self/task"))
workers = [start(work, i) for i in range(64)]
until(lambda: client.inspect("report").waiting)
assert len(os.listdir("/proc/self/task")) <= threads
held.release()
join(workers)
print(served == list(range(64)), free())
"""
    assert result_of(program(text)) == "True True\n"


def test_others_run_during_every_call(program: Program, server: Server) -> None:
    """The server is stopped until others have run."""
    text = f"""
client = redlatch.connect(url, command_timeout=20)
lock, redlock = client.rwlock("report"), Redlock([url], restart_guard=False)
redlock.connect()
a, b, c, d = [client.acquire(name) for name in "abcd"]
reader, writer = lock.acquire_read(), client.rwlock("w").acquire_write()
pool, pair = client.semaphore("pool", 3), client.lock_all(["m", "n"]).acquire()
token, permit = b.detach(), pool.acquire().detach()
calls = [
    lambda: client.acquire("e").release(),
    lambda: client.lock("a").acquire(timeout=0),
    lambda: redlock.acquire("quorum").release(),
    lambda: client.rlock("r").acquire().release(),
    lambda: pool.acquire(2).release(),
    lambda: pool.stats(),
    lambda: pool.attach(permit, 1).release(),
    lambda: client.lock_all(["y", ("x", "read")]).acquire().release(),
    lambda: client.lock_path("p/q").acquire().release(),
    lambda: pair.extend(20),
    lambda: pair.release(),
    lambda: reader.upgrade(),
    lambda: writer.downgrade(),
    lambda: a.extend(20),
    lambda: a.release(),
    lambda: client.attach("b", token).release(),
    lambda: c.detach(),
    lambda: client.inspect("a"),
    lambda: client.lock("a").locked(),
    lambda: list(client.list()),
    lambda: client.force_release("d"),
    lambda: client.force_release("c", any=True),
    lambda: client.check(),
    lambda: redlatch.connect(url, command_timeout=20, connect_timeout=20).close(),
    lambda: client.close(),
]
for call in calls:
    results = []
    os.kill({server.pid}, signal.SIGSTOP)
    try:
        greenlet = start(lambda: results.append(call()))
        before = count
        until(lambda: count > before + 2)
        assert not results
    finally:
        os.kill({server.pid}, signal.SIGCONT)
    join([greenlet])
    assert len(results) == 1
print(len(calls))
"""
    assert result_of(program(text)) == "25\n"


WAITERS = """
waits = {"pool": client.semaphore("pool", 3).acquire, "b": client.lock_all(["b", "a"]).acquire}
held = [waits["pool"](2), client.acquire("b")]
served = []
def work(acquire, *permits):
    with acquire(*permits) as lease:
        served.append(lease.name)
def waiting():
    return [client.inspect(name).waiting for name in waits]
def all_free():
    return all(free(name) for name in ("pool", "a", "b"))
waiters = [start(work, waits["pool"], 2), start(work, waits["b"])]
until(lambda: waiting() == [1, 1])
"""


def test_others_run_while_one_waits_for_permits_or_names(program: Program) -> None:
    text = """
before = count
until(lambda: count > before + 2)
assert not served and not free("a")
for lease in held:
    lease.release()
join(waiters)
print(sorted(served), all_free())
"""
    assert result_of(program(WAITERS + text)) == "['b', 'pool'] True\n"


def test_others_run_while_one_campaigns_or_observes(program: Program) -> None:
    text = """
seen, led = [], []
def observe():
    for leader in client.observe("report"):
        seen.append(leader and leader.id)
        if seen[-1] == "b":
            return
def campaign(id):
    with client.election("report", id).term() as term:
        led.append(id)
        until(lambda: seen[-1:] == [id])
observers = [start(observe)]
until(lambda: seen == [None])
with client.election("report", "a").term() as term:
    until(lambda: seen == [None, "a"])
    candidates = [start(campaign, id) for id in "cb"]
    until(lambda: client.election("report").participants() == ["a", "c", "b"])
    kill(candidates[0])
    until(lambda: client.election("report").participants() == ["a", "b"])
    before = count
    until(lambda: count > before + 2)
    assert term.is_leader() and led == []
join(candidates + observers)
print(led, [id for id in seen if id], free())
"""
    assert result_of(program(text)) == "['b'] ['a', 'b'] True\n"


def test_greenlets_hear_recalls_and_send_them(program: Program) -> None:
    text = """
hub_thread, heard = threading.get_native_id(), []
def hear(lease):
    time.sleep(0.001)  # others may run: this is a greenlet
    heard.append((lease.recall_reason, threading.get_native_id() == hub_thread))
    lease.release()
leases = [client.acquire(name) for name in "abc"]
for lease in leases:
    lease.on_recall(lambda lease=lease: hear(lease))
with redlatch.connect(url) as other:
    assert [other.recall(name, name) for name in "abcd"] == [1, 1, 1, 0]
    until(lambda: len(heard) == 3)
    until(lambda: all(free(name) for name in "abc"))
assert heard == [(name, True) for name in "abc"]
lease, stop = client.acquire("report"), threading.Event()
lease.on_recall(stop.set)
assert client.recall("report") == 1 and stop.wait(1000)
heard.clear()
lease.on_recall(lambda: heard.append("at once"))
until(lambda: heard)
lease.release()
lease = client.acquire("end")
lease.on_recall(print)  # which does not keep the program from ending
print("well")
lease.release()
"""
    assert result_of(program(text)) == "well\n"


def test_a_thread_without_a_hub_hears_recalls(program: Program) -> None:
    text = """
heard = []
def hear():
    lease = client.acquire("report")
    lease.on_recall(lambda: heard.append(lease.recall_reason))
    client.recall("report", "x")
    end = time.monotonic() + 1000
    while not heard and time.monotonic() < end:
        lease.held
    lease.release()
start_native(hear, ())
until(lambda: heard)
until(free)
print(heard)
"""
    assert result_of(program(text)) == "['x']\n"


def test_answers_and_errors_are_those_of_threads(program: Program) -> None:
    text = """
def raises(kind, call):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"not raised: {kind}")
lease = client.acquire("report")
assert client.acquire("report", timeout=0) is None
assert "report" in raises(redlatch.NotAcquired, client.lock("report", timeout=0).__enter__)
assert lease.wait_lost(0.01) is False
client.force_release("report")
raises(redlatch.LockLost, lease.release)
raises(redlatch.NotHeld, lease.release)
assert lease.lost_reason is redlatch.LostReason.GONE
raises(redlatch.NotHeld, lambda: client.force_release("report"))
raises(redlatch.NotHeld, lambda: client.attach("report", lease.token))
a, b = [client.rwlock("rw").acquire_read() for _ in "ab"]
assert a.upgrade(timeout=0) is False
b.release()
assert a.upgrade() is True and a.mode == "write"
c, d = [client.rlock("again", owner="job 7").acquire() for _ in "cd"]
assert d.hold_count == 2 and d.release() is False and c.release() is True
waiter = start(lambda: raises(redlatch.Closed, lambda: client.acquire("rw")))
until(lambda: client.inspect("rw").waiting)
client.close()
join([waiter])
raises(redlatch.Closed, lambda: client.acquire("report"))
print("well")
"""
    assert result_of(program(text)) == "well\n"


def test_native_threads_of_the_pool_wait_beside_the_hub(program: Program) -> None:
    """As many as gevent's pool has: a release must not need one more."""
    text = """
held = client.acquire("report")
waits = [in_pool(lambda: client.acquire("report").release()) for _ in range(10)]
until(lambda: client.inspect("report").waiting)
held.release()
print([wait() for wait in waits] == [True] * 10, free())
"""
    assert result_of(program(text)) == "True True\n"


def test_native_threads_without_a_hub_leave_nothing(
    program_of_any_order: Program,
) -> None:
    """Each is an owner of its own, and ends while it holds the lock."""
    text = """
lock, counts, numbers = client.rlock("report"), [], []
def work():
    numbers.append(threading.get_native_id())
    counts.append(lock.acquire().hold_count)
def has_ended(i):
    return len(counts) > i and not os.path.exists(f"/proc/self/task/{numbers[i]}")
def descriptors():
    return len(os.listdir("/proc/self/fd"))
before = descriptors()
for i in range(50):
    start_native(work, ())
    until(lambda: has_ended(i))
print(counts == [1] * 50, descriptors() - before)
"""
    assert result_of(program_of_any_order(text)) == "True 0\n"


def test_ctrl_c_ends_a_wait(program: Program, client: redlatch.Client) -> None:
    lease = client.acquire("report")
    assert lease is not None
    waiting = program(
        """
try:
    client.acquire("report")
except KeyboardInterrupt:
    print("interrupted")
sys.stdin.readline()
"""
    )
    wait_for_queue(client, 1)
    waiting.process.send_signal(signal.SIGINT)
    assert waiting.read() == "interrupted"
    wait_until(lambda: client.inspect("report").waiting == 0)
    waiting.write("")
    waiting.end()  # gevent's hub writes of the signal.
    assert waiting.process.returncode == 0
    lease.release()


# ---- exceptions that are thrown into a wait ------------------------------------------------------


def test_a_wait_that_is_killed_or_timed_out_leaves_nothing(program: Program) -> None:
    text = """
begun, ends = [], []
def work(i):
    begun.append(1)
    try:
        with client.lock("report"):
            ends.append("acquired")
    except (GreenletExit, KeyError) as error:
        ends.append(type(error).__name__)
        raise GreenletExit
def time_out():
    try:
        with Timeout(0.01):
            client.lock("report").acquire()
    except Timeout:
        ends.append("Timeout")
held = client.acquire("report")
workers = [start(work, i) for i in range(3)]
until(lambda: len(begun) == 3)
late = start(time_out)
join([late])
kill(workers[0])
kill(workers[1], KeyError)
join(workers[:2])
held.release()
join(workers)
print(ends)
until(free)
"""
    expected = ["Timeout", "GreenletExit", "KeyError", "acquired"]
    assert result_of(program(text)) == f"{expected}\n"


def test_a_killed_wait_for_permits_or_names_leaves_nothing(program: Program) -> None:
    text = """
for waiter in waiters:
    kill(waiter)
join(waiters)
until(lambda: waiting() == [0, 0] and free("a"))
assert not served and all(lease.held for lease in held)
for lease in held:
    lease.release()
print(all_free())
"""
    assert result_of(program(WAITERS + text)) == "True\n"


def test_a_grant_that_crosses_a_kill_is_released(program: Program) -> None:
    text = """
rng = random.Random(7)
outcomes = {"granted": 0, "killed": 0}
def wait(key, begun, got):
    begun.append(1)
    try:
        got.append(client.acquire(key))
    except GreenletExit:
        outcomes["killed"] += 1
def race(i, key):
    begun, got = [], []
    held = other.acquire(key)
    waiter = start(wait, key, begun, got)
    until(lambda: begun)
    time.sleep(rng.random() / 200)
    if i % 4 == 0:
        kill(waiter)
        join([waiter])
    release = start(held.release)
    if i % 4 == 1:
        until(lambda: got)
    elif i % 4 == 2:
        join([release])
    else:
        time.sleep(rng.random() / 200)
    kill(waiter)
    join([waiter, release])
    for lease in got:
        outcomes["granted"] += 1
        lease.release()
def races(key):
    for i in range(20):
        race(i, key)
other = redlatch.connect(url)
join([start(races, f"race-{i}") for i in range(30)])
until(lambda: all(free(f"race-{i}") for i in range(30)))
print(min(outcomes.values()) >= 150, sum(outcomes.values()))
"""
    assert result_of(program(text)) == "True 600\n"


def test_a_release_that_is_killed_continues(program: Program, server: Server) -> None:
    text = f"""
stopped = []
def work():
    with client.lock("report"):
        os.kill({server.pid}, signal.SIGSTOP)
        stopped.append(count)
worker = start(work)
until(lambda: stopped and count > stopped[0] + 5)
assert not worker.dead
kill(worker)
join([worker])
os.kill({server.pid}, signal.SIGCONT)
until(free)
print("free")
"""
    assert result_of(program(text)) == "free\n"


# ---- owners --------------------------------------------------------------------------------------


def test_a_greenlet_is_an_owner(program_of_any_order: Program) -> None:
    text = """
lock, again = client.rlock("report"), client.rlock("report")
simple = client.lock("simple")
tries = []
def other():
    tries.append((lock.acquire(timeout=0), lock.lease, simple.acquire(timeout=0), simple.lease))
with lock, again as inner, simple:
    assert inner.hold_count == 2 and lock.lease is not None
    join([start(other)])
    try:
        simple.acquire()
    except redlatch.AlreadyHeld:
        tries.append("already held")
def end_without_release():
    lock.acquire()
ended = start(end_without_release)  # This name keeps the object of the greenlet.
join([ended])
assert not lock.lease
with lock as lease:  # releases what the greenlet has left
    tries.append(lease.hold_count)
condition, jobs = threading.Condition(client.rlock("jobs")), []
def add():
    with condition:
        jobs.append(1)
        condition.notify()
with condition:
    adder = threading.Thread(target=add)
    adder.start()
    condition.wait_for(lambda: jobs)
adder.join()
print(tries)
"""
    expected = [(None, None, False, None), "already held", 1]
    assert result_of(program_of_any_order(text)) == f"{expected}\n"


# ---- what else waits -----------------------------------------------------------------------------


def test_greenlets_wait_for_a_loss(program: Program) -> None:
    text = """
lease, kept = client.acquire("report"), client.acquire("kept")
begun, ends = [], []
def watch(lease, timeout):
    begun.append(1)
    ends.append((lease.name, lease.wait_lost(timeout)))
watchers = [start(watch, lease, timeout) for timeout in (-1, 20, 0)]
watchers += [start(watch, kept, timeout) for timeout in (0.01, -1)]
join(watchers[2:4])
killed = start(watch, lease, -1)
until(lambda: len(begun) == 6)
kill(killed)
join([killed])
expire(client, "report")
join(watchers[:2])
kept.release()
join(watchers)
print(ends)
"""
    lost, kept = ("report", True), ("kept", False)
    script = program(text)
    assert script.read() == str([("report", False), kept, lost, lost, kept])
    output, errors = script.end()
    assert output == "" and errors.count("\n") == 1 and "lock 'report' was lost" in errors


@pytest.mark.usefixtures("user_app")
def test_credentials_are_fetched_in_a_greenlet(program: Program) -> None:
    text = """
calls = []
def fetch():
    time.sleep(0.001)
    calls.append(1)
    return redlatch.Credentials("app", "S3cret", 1)
with redlatch.connect(url, credentials=fetch) as app:
    with app.lock("report"):
        until(lambda: len(calls) > 2)
print("well")
"""
    assert result_of(program(text)) == "well\n"
