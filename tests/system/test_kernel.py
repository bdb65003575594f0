# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what the kernel refuses, or does while the machine is suspended, ends in an honest status
in time, and with a word about why.

Method: an actor with a shim between it and the kernel (kernel_shim.c), and a server in Python.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from support.build import build_folder
from support.wait import wait_until

from .actor import HELD, LOST, Actor, Pending, Reply
from .hostile import Command, HostileServer, queued

SHIM = build_folder() / "tests/system/system_kernel.so"

# The clock of the actor jumps, and it notes no times of its own that a judge could compare.
pytestmark = [
    pytest.mark.not_judged,
    pytest.mark.skipif(not SHIM.exists(), reason="not built with a sanitizer"),
]

# Far below what is left to be waited for by a clock that does not count suspended time.
SOON_S = 20


class Kernel:
    """What the shim does, at once."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(4096))
        self.path = path
        self._ahead_s = 0
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 4096)

    def _set(self, form: str, offset: int, value: int) -> None:
        struct.pack_into(form, self._memory, offset, value)

    def suspend(self, seconds: int) -> None:
        self._ahead_s += seconds
        self._set("q", 0, self._ahead_s * 1_000_000_000)

    def suspend_until(self, seconds: int, pending: Pending) -> Reply:
        """Once a second, because the call may not have begun to wait at the first time."""
        for _ in range(SOON_S):
            self.suspend(seconds)
            with contextlib.suppress(AssertionError):
                wait_until(lambda: pending.is_done, limit=1)
                return pending.get()
        raise AssertionError(f"not noticed: {pending.line}")

    def refuse_clock(self, error: int) -> None:
        self._set("i", 8, error)

    def refuse_epoll(self, error: int) -> None:
        self._set("i", 12, error)

    def refuse_timer(self, error: int) -> None:
        self._set("i", 16, error)


Start = Callable[..., Actor]


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path / "kernel")


@pytest.fixture
def under(kernel: Kernel) -> Iterator[Start]:
    """Start an actor on this kernel, with a client if a URL is named."""
    actors: list[Actor] = []

    def start(url: str = "") -> Actor:
        words = ["env", f"LD_PRELOAD={SHIM}", f"REDLATCH_KERNEL={kernel.path}"]
        actors.append(Actor(None, words))
        if url:
            actors[-1].ok("open", url=url)
        return actors[-1]

    yield start
    for actor in actors:
        actor.close()


def lines_of(actor: Actor) -> list[str]:
    return list(iter(lambda: actor.call("log_line")["line"], ""))


# ---- suspend -------------------------------------------------------------------------------------


def test_a_loss_is_noticed_at_the_resume(kernel: Kernel, under: Start, name: str) -> None:
    """Goal: who waits for the end of a lease learns of it when the machine resumes.
    Method: a lease of a day that nothing renews; the clock jumps by minutes, and then by a day."""
    with HostileServer(lambda command: None) as server:
        actor = under(server.url)
        actor.ok("acquire", name=name, wait=5000, ttl_ms=86_400_000, renew=0)
        waiting = actor.begin("wait_lost", thread=1, wait=-1)
        limited = actor.begin("wait_lost", thread=2, wait=60_000)
        assert kernel.suspend_until(120, limited).number("state") == HELD
        assert not waiting.is_done
        assert kernel.suspend_until(90_000, waiting).number("state") == LOST


@pytest.mark.parametrize("call", ["acquire", "wait"])
def test_a_wait_ends_at_the_resume(
    kernel: Kernel, under: Start, name: str, call: str
) -> None:
    """Goal: a wait of ten minutes has passed when the machine resumes after eleven.
    Method: a server that queues every ACQUIRE."""

    def answer(command: Command) -> Iterable[bytes] | None:
        return [queued()] if command[0] == b"EVALSHA" else None

    with HostileServer(answer) as server:
        actor = under(server.url)
        actor.ok("connect", wait=5000)
        if call == "acquire":
            waiting = actor.begin("acquire", thread=1, name=name, wait=600_000)
        else:
            actor.ok("start", name=name, wait=-1)
            waiting = actor.begin("wait", thread=1, wait=600_000)
        reply = kernel.suspend_until(660, waiting)
        # An answer that was in flight came too late: the server is away then, or has not answered.
        late = {"RL_TIMEOUT", "RL_E_UNAVAILABLE", "RL_E_OUTCOME_UNKNOWN"}
        ends = late if call == "acquire" else {"RL_PENDING"}
        assert reply.status in ends, reply


@pytest.mark.parametrize("error", [errno.EINVAL, errno.EMFILE])
def test_no_timer_of_the_clock(
    kernel: Kernel, under: Start, name: str, error: int
) -> None:
    """Goal: without descriptors a client is not opened; a kernel without the timer is served.
    Method: timerfd_create() is refused."""
    kernel.refuse_timer(error)
    with HostileServer(lambda command: None) as server:
        actor = under()
        reply = actor.call("open", url=server.url)
        if error == errno.EMFILE:
            assert reply.status == "RL_E_NO_MEMORY" and "Too many open files" in reply.message
            return
        assert reply.status == "RL_OK", reply
        assert any("CLOCK_BOOTTIME" in line for line in lines_of(actor))
        actor.ok("acquire", name=name, wait=5000)


# ---- what is refused -----------------------------------------------------------------------------


def test_without_the_clock_nothing_is_opened(kernel: Kernel, under: Start) -> None:
    """Goal: a client is not opened without the clock that its leases are measured by.
    Method: the kernel refuses CLOCK_BOOTTIME, as one that does not have it."""
    kernel.refuse_clock(errno.EINVAL)
    reply = under().call("open", url="redis://127.0.0.1:1")
    assert reply.status == "RL_E_UNSUPPORTED", reply
    assert "CLOCK_BOOTTIME" in reply.message and "Invalid argument" in reply.message


def test_without_the_clock_no_lease_is_believed(kernel: Kernel, under: Start, name: str) -> None:
    """Goal: a lease is lost when nothing measures it any more.
    Method: the clock is refused once the lease is held, as by a sandbox that begins late."""
    with HostileServer(lambda command: None) as server:
        actor = under(server.url)
        actor.ok("acquire", name=name, wait=5000, ttl_ms=600_000)
        kernel.refuse_clock(errno.EPERM)
        look = actor.call("look")
        assert (look.number("state"), look.status) == (LOST, "RL_E_LOST"), look


def test_a_descriptor_that_is_not_polled_at_opening(kernel: Kernel, under: Start) -> None:
    """Goal: opening fails if the library's own events are not polled.
    Method: epoll_ctl() gives ENOSPC."""
    kernel.refuse_epoll(errno.ENOSPC)
    reply = under().call("open", url="redis://127.0.0.1:1")
    assert reply.status == "RL_E_NO_MEMORY", reply
    assert "No space left on device" in reply.message


def test_a_connection_that_is_not_polled(kernel: Kernel, under: Start, name: str) -> None:
    """Goal: a connection that the kernel does not poll is closed, with a line about why; the client
    continues when the kernel does it again.
    Method: epoll_ctl() gives ENOSPC while the client connects."""
    with HostileServer(lambda command: None) as server:
        actor = under(server.url)
        kernel.refuse_epoll(errno.ENOSPC)
        reply = actor.call("connect", wait=500)
        assert reply.status != "RL_OK", reply
        assert "No space left on device" in reply.message
        kernel.refuse_epoll(0)
        actor.ok("acquire", name=name, wait=10_000)
        lines = lines_of(actor)
        assert any("cannot poll" in line and "No space left" in line for line in lines), lines
        assert any("connected to" in line for line in lines), lines


def test_a_connection_that_is_polled_no_longer(kernel: Kernel, under: Start, name: str) -> None:
    """Goal: the same for a connection that is there: no lease ends beside a healthy server.
    Method: epoll_ctl() fails for a while while locks are acquired; afterwards all of them are
    held, and the log says what happened."""
    with HostileServer(lambda command: None) as server:
        actor = under(server.url)
        actor.ok("acquire", name=name, wait=5000, ttl_ms=30_000)
        before = server.connection_count
        kernel.refuse_epoll(errno.ENOMEM)
        requests = range(1, 4)
        for request in requests:
            actor.ok("start", request=request, name=f"{name}-{request}", wait=10_000)
        wait_until(lambda: any("cannot poll" in line for line in lines_of(actor)))
        kernel.refuse_epoll(0)
        for request in requests:
            assert actor.call("wait", request=request, wait=20_000).status == "RL_OK"
        wait_until(lambda: server.connection_count > before)
        assert actor.call("look").number("state") == HELD
