# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: signals reach whom they are meant for, and nobody runs without the lock.

Method: one test for each row of the table of moments and events; children report by their output.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.program import is_alive
from support.servers import Server
from support.wait import wait_until

from .harness import AT_ONCE, LIMIT, POLITE, STUBBORN, Cli, Running

FORWARDED = ["HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "WINCH", "CONT", "TSTP"]

# Says which signals it gets, and ends with its standard input. A handler in Python would run only
# after the call that a signal interrupts: one that comes just before read() would not be reported.
REPORTER = f"""
import os, select, signal
got, wake = os.pipe()
os.set_blocking(wake, False)
signal.set_wakeup_fd(wake)
for name in {FORWARDED}:
    signal.signal(getattr(signal, "SIG" + name), lambda *_: None)
os.write(1, b"ready\\n")
while True:
    readable = select.select([0, got], [], [])[0]
    if got in readable:
        for number in os.read(got, 64):
            os.write(1, b"got %s.\\n" % signal.Signals(number).name.encode())
    elif not os.read(0, 1):
        break
"""
REPORT = [sys.executable, "-c", REPORTER]

# Of the tests in which a child must be dead before the lease ends: SIGKILL is sent a twentieth and
# 1 % of it before.
TTL_S = 6


def blocks(pid: int, number: int) -> bool:
    """Whether a process blocks a signal: that is when ours begins to look after them. While it
    starts a thread it blocks all signals for a moment, also one that it does not look after."""
    found = re.search(r"SigBlk:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    blocked = {one for one in signal.valid_signals() if int(found[1], 16) >> (one - 1) & 1}
    return number in blocked and signal.SIGALRM not in blocked


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


# ---- waiting ----


@pytest.mark.parametrize("signal_name", ["INT", "TERM", "HUP", "QUIT"])
def test_waiting_leaves_the_queue_at_once(cli: Cli, name: str, signal_name: str) -> None:
    number = getattr(signal, "SIG" + signal_name)
    with cli.hold(name), cli.start("run", name, "--", "echo", "ran", waits=name) as waiter:
        waiter.send(number)
        assert waiter.wait(AT_ONCE) == 128 + number
        assert cli.waiting(name) == 0
        assert waiter.out.text == ""


def test_waiting_continues_after_signals_for_the_child(cli: Cli, name: str) -> None:
    with cli.hold(name) as held, cli.start("run", name, "--", "echo", "ran", waits=name) as waiter:
        for signal_name in ("USR1", "USR2", "WINCH", "CONT"):
            waiter.send(getattr(signal, "SIG" + signal_name))
        held.close_stdin()
        waiter.out.wait_for("ran")
        assert waiter.wait() == 0


def test_waiting_survives_a_stop(cli: Cli, name: str) -> None:
    with cli.hold(name) as held, cli.start("run", name, "--", "echo", "ran", waits=name) as waiter:
        waiter.send(signal.SIGSTOP)
        wait_until(lambda: state(waiter.pid) == "T")
        waiter.send(signal.SIGCONT)
        held.close_stdin()
        assert waiter.wait() == 0


def test_signal_ignored_at_the_start_stays_ignored(cli: Cli, name: str) -> None:
    def ignore() -> None:  # As nohup does.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with cli.hold(name), cli.start("run", name, "--", "true", preexec_fn=ignore) as waiter:
        wait_until(lambda: cli.waiting(name) == 1)
        waiter.send(signal.SIGHUP)
        waiter.send(signal.SIGTERM)
        assert waiter.wait(AT_ONCE) == 128 + signal.SIGTERM


def test_waiting_for_a_dead_server_can_be_ended(
    own_cli: Cli, own_server: Server, name: str
) -> None:
    own_server.kill()
    with own_cli.start("run", name, "--", "true") as waiter:
        waiter.err.wait_for("still trying")
        waiter.send(signal.SIGINT)
        assert waiter.wait(AT_ONCE) == 128 + signal.SIGINT


def test_connecting_to_a_silent_server_can_be_ended(
    binary: str, own_server: Server, name: str
) -> None:
    # With the usual time limit of 2 s, which must not be waited for.
    own_server.pause()
    with Cli(binary, own_server.url).start("run", name, "--", "true") as waiter:
        wait_until(lambda: blocks(waiter.pid, signal.SIGINT))
        began = time.monotonic()
        waiter.send(signal.SIGINT)
        assert waiter.wait() == 128 + signal.SIGINT
        assert time.monotonic() - began < AT_ONCE


def test_waiting_rides_out_a_dead_server(own_cli: Cli, own_server: Server, name: str) -> None:
    own_server.kill()
    with own_cli.start("run", name, "--", "echo", "ran") as waiter:
        waiter.err.wait_for(r"cannot reach redis://127\.0\.0\.1:\d+.*still trying")
        own_server.start()
        waiter.out.wait_for("ran")
        assert waiter.wait() == 0


# ---- running ----


def test_running_forwards_signals(cli: Cli, name: str) -> None:
    with cli.hold(name, words=REPORT) as held:
        for signal_name in FORWARDED:
            held.send(getattr(signal, "SIG" + signal_name))
            held.out.wait_for(f"got SIG{signal_name}\\.")
        # The lock is kept until the child is gone, whatever it was told.
        assert cli.is_held(name)
        assert held.finish() == 0
        assert sorted(held.out.text.split()) == sorted(
            ["ready"] + [word for n in FORWARDED for word in ("got", f"SIG{n}.")]
        )
    assert not cli.is_held(name)


def test_running_forwards_to_the_whole_group(cli: Cli, name: str) -> None:
    words = ["sh", "-c", "sleep 1000 & sleep 1000 & echo ready $! $$.; wait"]
    with cli.hold(name, words=words) as held:
        found = held.out.wait_for(r"ready (\d+) (\d+)\.")
        held.send(signal.SIGTERM)
        assert held.wait() == 128 + signal.SIGTERM
        assert os.getpgid(0) != int(found[2])
        wait_until(lambda: not is_alive(int(found[1])))


def test_running_stopped_child_keeps_the_lock(cli: Cli, name: str) -> None:
    words = ["sh", "-c", "echo ready $$.; read line; exit 6"]
    with cli.hold(name, "--ttl", "600ms", words=words) as held:
        pid = int(held.out.wait_for(r"ready (\d+)\.")[1])
        held.send(signal.SIGTSTP)
        wait_until(lambda: state(pid) == "T")
        until = cli.status(name)["holders"][0]["lease_until"]
        wait_until(lambda: cli.status(name)["holders"][0]["lease_until"] > until)
        held.send(signal.SIGCONT)
        wait_until(lambda: state(pid) != "T")
        assert held.finish() == 6


def test_running_stopped_child_can_be_ended(cli: Cli, name: str) -> None:
    with cli.hold(name, words=["sh", "-c", "echo ready $$.; read line"]) as held:
        pid = int(held.out.wait_for(r"ready (\d+)\.")[1])
        held.send(signal.SIGTSTP)
        wait_until(lambda: state(pid) == "T")
        held.send(signal.SIGTERM)
        assert held.wait() == 128 + signal.SIGTERM


def test_running_warns_once_and_continues_when_renewal_fails_for_a_while(
    own_cli: Cli, own_server: Server, name: str
) -> None:
    with own_cli.hold(name, "--ttl", "3s") as held:
        own_server.pause()
        held.err.wait_for(f"cannot renew lock '{name}' .*its lease ends in .*still trying")
        held.send(signal.SIGWINCH)  # Something else happens meanwhile.
        own_server.resume()
        held.err.wait_for(f"lock '{name}' .*is renewed again")
        assert held.finish() == 0
        assert held.err.text.count("cannot renew") == 1


def ends_before_the_lease(server: Server, attempt: Callable[[], bool]) -> bool:
    """Whether `attempt` finds its child dead before the lease has ended. One of three must: SIGKILL
    is sent 0.36 s before its end, and a machine may be busy for that long."""
    for _ in range(3):
        if attempt():
            return True
        if server.is_running:
            server.resume()
        else:
            server.start()
    return False


def dies_before_the_lease(pid: int, fault: Callable[[], None]) -> bool:
    """Whether `pid` is dead while a process that sleeps for the ttl, from just before the fault,
    is alive: the last renewal that the server can have seen was before it. A busy machine delays
    both processes."""
    with subprocess.Popen(["sleep", str(TTL_S)]) as lease:
        fault()
        wait_until(lambda: not is_alive(pid))
        is_first = lease.poll() is None
        lease.kill()
    return is_first


@pytest.mark.parametrize("fault", ["pause", "kill"])
def test_running_stops_the_child_before_the_lease_ends(
    own_cli: Cli, own_server: Server, name: str, fault: str
) -> None:
    # From a silent server nothing is learned: the local deadline alone must do it.
    def attempt() -> bool:
        with own_cli.hold(name, "--ttl", f"{TTL_S}s", "-k", "2s", words=STUBBORN) as held:
            pid = int(held.out.wait_for(r"ready (\d+)\.")[1])
            is_first = dies_before_the_lease(pid, getattr(own_server, fault))
            assert held.wait_output() == 79
            assert re.search(
                rf"lost lock '{name}' \(fence \d+\): .*; sent SIGTERM to process group {pid}",
                held.err.text,
            )
            assert f"process group {pid} did not end in time; sent SIGKILL" in held.err.text
        return is_first

    assert ends_before_the_lease(own_server, attempt)


def nested(cli: Cli, name: str, words: list[str], depth: int, *wrapper: str) -> list[str]:
    """`words` inside so many further runs; `wrapper` stands before each. Their leases are longer
    than the outer one, and over before another attempt gives up to wait for them."""
    for level in range(depth):
        words = [*wrapper, cli.binary, "run", "--ttl", "8s", f"{name}-{level}", "--", *words]
    return words


@pytest.mark.parametrize(
    ("depth", "on_lost"), [(1, "term"), (3, "term"), (3, "kill"), (3, "signal:USR1")]
)
def test_nested_command_ends_before_the_outer_lease(
    own_cli: Cli, own_server: Server, name: str, depth: int, on_lost: str
) -> None:
    # The inner leases are fine: what ends is the outer one, of which no signal but SIGKILL tells.
    words = nested(own_cli, name, STUBBORN, depth)
    options = ["--ttl", f"{TTL_S}s", "-k", "2s", "--on-lost", on_lost]
    if on_lost == "kill":
        del options[2:4]

    def attempt() -> bool:
        with own_cli.hold(name, *options, words=words) as held:
            pid = int(held.out.wait_for(r"ready (\d+)\.")[1])
            assert os.getpgid(pid) == pid
            is_first = dies_before_the_lease(pid, own_server.pause)
            assert held.wait_output() == 79
        return is_first

    assert ends_before_the_lease(own_server, attempt)


@pytest.mark.parametrize(
    "wrapper",
    [["sh", "-c", '"$@"; exit 1', "-"], ["env", "-i"]],
    ids=["in a shell", "without environment"],
)
def test_nested_command_ends_wherever_it_was_started(
    cli: Cli, name: str, wrapper: list[str]
) -> None:
    if wrapper[0] == "env":
        words = nested(cli, name, [*wrapper, *STUBBORN], 1)
    else:
        words = nested(cli, name, STUBBORN, 1, *wrapper)
    with cli.hold(name, "--ttl", "2s", "-k", "200ms", words=words) as held:
        pid = int(held.out.wait_for(r"ready (\d+)\.")[1])
        assert cli.run("force-release", "--yes", name).returncode == 0
        assert held.wait() == 79
        wait_until(lambda: not is_alive(pid), AT_ONCE)


def test_nested_polite_command_gets_its_time(cli: Cli, name: str) -> None:
    with cli.hold(name, "--renew", "300ms", words=nested(cli, name, POLITE, 1)) as held:
        assert cli.run("force-release", "--yes", name).returncode == 0
        assert held.wait_output() == 79
        assert "bye" in held.out.text
        assert "SIGKILL" not in held.err.text
        assert not cli.is_held(f"{name}-0")


def test_nested_command_leaves_no_process_of_its_group(cli: Cli, name: str) -> None:
    words = ["sh", "-c", "(trap '' TERM; sleep 1000) & echo ready $! $$.; exec sleep 1000"]
    words = nested(cli, name, words, 1)
    with cli.hold(name, "--ttl", "2s", "-k", "300ms", words=words) as held:
        found = held.out.wait_for(r"ready (\d+) (\d+)\.")
        assert cli.run("force-release", "--yes", name).returncode == 0
        assert held.wait() == 79
        wait_until(lambda: not is_alive(int(found[1])) and not is_alive(int(found[2])), AT_ONCE)


def test_processes_that_left_the_group_are_not_killed(cli: Cli, name: str) -> None:
    """Method: a daemon, and a job of a shell with job control, beside a command that is killed."""
    script = (
        "set -m; sleep 1000 >&- 2>&- & job=$!; set +m; trap '' TERM; "
        "setsid sleep 1000 >&- 2>&- & "
        "until [ $(ps -o sid= -p $!) = $! ]; do sleep 0.01; done; "
        "echo ready $$ $job $!.; while :; do sleep 0.01; done"
    )
    with cli.hold(name, "--ttl", "2s", "-k", "200ms", words=["bash", "-c", script]) as held:
        found = held.out.wait_for(r"ready (\d+) (\d+) (\d+)\.")
        pid, job, daemon = map(int, found.groups())
        try:
            assert cli.run("force-release", "--yes", name).returncode == 0
            assert held.wait() == 79
            wait_until(lambda: not is_alive(pid), AT_ONCE)
            assert is_alive(job) and is_alive(daemon)
        finally:
            for left in (job, daemon):
                os.kill(left, signal.SIGKILL)


def test_running_stops_the_whole_group_when_forced_out(cli: Cli, name: str) -> None:
    words = ["sh", "-c", "(trap '' TERM; sleep 1000) & echo ready $! $$.; exec sleep 1000"]
    with cli.hold(name, "--ttl", "2s", "-k", "200ms", words=words) as held:
        found = held.out.wait_for(r"ready (\d+) (\d+)\.")
        assert cli.run("force-release", "--yes", name).returncode == 0
        assert held.wait() == 79
        wait_until(lambda: not is_alive(int(found[1])) and not is_alive(int(found[2])), AT_ONCE)
        held.err.wait_for(rf"lost lock '{name}' \(fence \d+\): .*process group {found[2]}")


def test_running_killed_outright_ends_the_child_and_frees_the_lock(cli: Cli, name: str) -> None:
    words = ["sh", "-c", "echo ready $$.; exec sleep 1000"]
    with cli.hold(name, "--ttl", "700ms", words=words) as held:
        pid = int(held.out.wait_for(r"ready (\d+)\.")[1])
        began = time.monotonic()
        held.process.kill()
        wait_until(lambda: not is_alive(pid), AT_ONCE)
        wait_until(lambda: not cli.is_held(name))
        assert time.monotonic() - began < 0.7 + AT_ONCE


def test_running_stopped_for_too_long_counts_as_lost(cli: Cli, name: str) -> None:
    # The child has a third of the ttl for its end.
    with cli.hold(name, "--ttl", "9s", words=POLITE) as held:
        held.send(signal.SIGSTOP)
        wait_until(lambda: not cli.is_held(name))
        held.send(signal.SIGCONT)
        assert held.wait_output() == 79
        assert "bye" in held.out.text


def test_running_lock_moves_on_only_when_the_child_is_gone(cli: Cli, name: str) -> None:
    with cli.hold(name, words=REPORT) as held, cli.start("run", name, "echo", "next") as waiter:
        wait_until(lambda: cli.waiting(name) == 1)
        held.send(signal.SIGTERM)
        held.out.wait_for("got SIGTERM")
        assert cli.is_held(name) and waiter.out.text == ""
        held.close_stdin()
        waiter.out.wait_for("next")
        assert (held.wait(), waiter.wait()) == (0, 0)


# ---- after ----


def test_after_the_child_its_orphans_are_named(cli: Cli, name: str) -> None:
    words = ["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo ready $$.; read line"]
    with cli.hold(name, words=words) as held:
        pid = int(held.out.wait_for(r"ready (\d+)\.")[1])
        assert held.finish() == 1  # Of `read`, at the end of its input.
        assert f"1 process of its group {pid} still runs, without" in held.err.text
        assert not cli.is_held(name)


def test_after_the_child_zombies_do_not_count(cli: Cli, name: str) -> None:
    # A parent outside of the group keeps a dead member of it unreaped.
    script = """
import os, time
group = os.getpgid(0)
if os.fork() == 0:
    os.setpgid(0, 0)
    if os.fork() == 0:
        os.setpgid(0, group)
        os._exit(0)
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    os.write(1, b"ready\\n")
    os.close(1); os.close(2)
    time.sleep(1000)
while os.read(0, 1):
    pass
"""
    with cli.hold(name, words=[sys.executable, "-c", script]) as held:
        assert held.finish() == 0
        assert held.err.text == ""


# ---- in a container ----


def process_1_words() -> list[str]:
    """What makes a command process 1 of a PID namespace; nothing where that is not permitted."""
    for extra in ([], ["--user", "--map-root-user"]):
        words = ["unshare", *extra, "--pid", "--fork", "--mount-proc"]
        try:
            subprocess.run([*words, "true"], capture_output=True, check=True)
            return words
        except (OSError, subprocess.CalledProcessError):
            continue
    return []


def become_subreaper() -> None:
    """Orphans come to us, as to process 1. Kept over exec."""
    pr_set_child_subreaper = 36
    assert ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0) == 0


def run_as_init(cli: Cli, words: list[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*process_1_words(), cli.binary, "run", *words],
        env=cli.env,
        timeout=LIMIT,
        check=False,
        capture_output=True,
        preexec_fn=become_subreaper,
        start_new_session=True,
    )


def test_as_process_1_it_reaps_orphans(cli: Cli, name: str) -> None:
    # Its own children aside: the orphan's parent has ended, so that only the adopter can reap it.
    look = 'ps -eo ppid=,stat= | grep -q "^ *$PPID Z"'
    script = f"(true &); while {look}; do sleep 0.01; done; exit 5"
    assert run_as_init(cli, [name, "--", "sh", "-c", script]).returncode == 5


def test_as_a_subreaper_it_reaps_orphans(cli: Cli, name: str) -> None:
    script = "(echo orphan $(sh -c 'echo $PPID') & ); echo ready $$.; exec cat >/dev/null"
    with cli.start("run", name, "sh", "-c", script, preexec_fn=become_subreaper) as held:
        pid = int(held.out.wait_for(r"orphan (\d+)\n")[1])
        wait_until(lambda: not Path(f"/proc/{pid}").exists())
        assert held.finish() == 0


def test_as_process_1_it_passes_signals_on(cli: Cli, name: str) -> None:
    # The kernel gives process 1 no signal that it does not look after; nothing ends it by default.
    script = "trap 'echo got; exit 3' TERM; kill -TERM $PPID; while :; do sleep 0.01; done"
    done = run_as_init(cli, [name, "--", "sh", "-c", script])
    assert (done.returncode, done.stdout) == (3, b"got\n")


def test_as_process_1_a_signal_ends_the_wait(cli: Cli, name: str) -> None:
    with cli.hold(name):
        words = [*process_1_words(), cli.binary, "run", name, "--", "echo", "ran"]
        waiter = Running(words, cli.env)
        with waiter:
            wait_until(lambda: cli.waiting(name) == 1)
            children = Path(f"/proc/{waiter.pid}/task/{waiter.pid}/children").read_text().split()
            os.kill(int(children[0]) if children else waiter.pid, signal.SIGTERM)
            assert waiter.wait(AT_ONCE) == 128 + signal.SIGTERM
            assert cli.waiting(name) == 0
