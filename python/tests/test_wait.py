# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a wait lets other threads run, and ends when the user says so, whatever the server does.

Method: programs of their own wait, and are sent signals once the server shows them in the queue.
Whoever hangs is found by the limits of the helpers; how long something takes is not measured.
"""

from __future__ import annotations

import signal
import threading
import redlatch
from support.servers import Server
from support.wait import wait_until

from .conftest import Starter

WAIT = """
import sys
client = redlatch.connect(url)
print("connected")
try:
    with client.lock("report") as lease:
        print("acquired", lease.fence)
except KeyboardInterrupt as error:
    kept = error  # Its traceback holds the frames of the wait.
    print("interrupted")
    sys.stdin.read()
"""


def wait_for_queue(client: redlatch.Client, count: int) -> redlatch.LockInfo:
    """What an inspection shows when so many wait, and each has said its name."""

    def are_there() -> bool:
        info = client.inspect("report")
        return info.waiting == count and all(waiter.who for waiter in info.waiters)

    wait_until(are_there)
    return client.inspect("report")


def test_others_run_while_one_waits(client: redlatch.Client, other: redlatch.Client) -> None:
    lease = other.acquire("report")
    assert lease is not None
    got: list[redlatch.Lease | None] = []
    thread = threading.Thread(target=lambda: got.append(client.acquire("report")))
    thread.start()
    wait_for_queue(other, 1)
    assert thread.is_alive()  # .. and this thread ran meanwhile
    lease.release()
    thread.join()
    assert got[0] is not None
    got[0].release()


def test_ctrl_c_ends_a_wait_and_no_other(client: redlatch.Client, script: Starter) -> None:
    lease = client.acquire("report")
    assert lease is not None
    first = script(WAIT)
    assert first.read() == "connected"
    wait_for_queue(client, 1)
    second = script(WAIT)
    assert second.read() == "connected"
    place = wait_for_queue(client, 2).waiters[1]
    first.process.send_signal(signal.SIGINT)
    assert first.read() == "interrupted"
    # While its traceback is still there.
    left = wait_for_queue(client, 1)
    assert left.waiters == (place,)
    lease.release()
    assert second.read().startswith("acquired")
    for one in (first, second):
        assert one.end() == ("", "")
        assert one.process.returncode == 0


def test_signal_that_raises_nothing_keeps_the_place(
    client: redlatch.Client, script: Starter
) -> None:
    lease = client.acquire("report")
    assert lease is not None
    text = 'import signal\nsignal.signal(signal.SIGUSR1, lambda *_: print("handled"))\n'
    waiter = script(text + WAIT)
    assert waiter.read() == "connected"
    before = wait_for_queue(client, 1).waiters
    for _ in range(3):
        waiter.process.send_signal(signal.SIGUSR1)
        assert waiter.read() == "handled"
    assert client.inspect("report").waiters == before
    lease.release()
    assert waiter.read().startswith("acquired")


def test_signal_that_interrupts_nothing_is_seen(
    client: redlatch.Client, script: Starter
) -> None:
    # Caught by a thread that does not wait, as by one just before its wait: no call is interrupted.
    lease = client.acquire("report")
    assert lease is not None
    text = """
import signal, threading
def elsewhere():
    input()
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
threading.Thread(target=elsewhere, daemon=True).start()
"""
    waiter = script(text + WAIT)
    assert waiter.read() == "connected"
    wait_for_queue(client, 1)
    waiter.write("")
    assert waiter.read() == "interrupted"
    lease.release()


def test_ctrl_c_comes_after_a_release(
    server: Server, client: redlatch.Client, script: Starter
) -> None:
    holder = script(
        """
import sys, threading
client = redlatch.connect(url, command_timeout="60s")
lease = client.acquire("report", ttl=60)
main = threading.get_ident()
def watch():
    while sys._current_frames()[main].f_code.co_name != "__call__":  # of _wait.Call
        pass
    print("releasing")
print("acquired")
sys.stdin.readline()
try:
    threading.Thread(target=watch).start()
    lease.release()
except KeyboardInterrupt:
    print("interrupted")
"""
    )
    assert holder.read() == "acquired"
    server.pause()
    holder.write("")
    assert holder.read() == "releasing"
    holder.process.send_signal(signal.SIGINT)
    server.resume()
    assert holder.read() == "interrupted"
    assert holder.end() == ("", "")
    assert client.inspect("report").is_free


def test_end_of_the_interpreter_ends_waits(client: redlatch.Client, script: Starter) -> None:
    lease = client.acquire("report")
    assert lease is not None
    program = script(
        """
import sys, threading
client = redlatch.connect(url)
for i in range(3):
    threading.Thread(target=lambda: client.acquire("report"), daemon=True).start()
held = client.acquire("other")
threading.Thread(target=held.wait_lost, daemon=True).start()
sys.stdin.read()
"""
    )
    wait_for_queue(client, 1)  # The others queue behind it, in their process.
    assert program.end() == ("", "")
    assert program.process.returncode == 0
    lease.release()
    # Who is gone is passed over.
    with client.lock("report", timeout=30):
        pass
