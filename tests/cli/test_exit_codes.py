# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: every exit code means one thing. Method: one situation for each."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from support.servers import Server, free_port

from .harness import AT_ONCE, HOLD, Cli

# A loss is seen by the next renewal. With a short lease that would be soon as well, but on a busy
# machine the lease could be over before, or the time that the command has to end.
SEEN_SOON = ("--renew", "100ms")
SEEN_AT_THE_END = ("--ttl", "1h")


@pytest.fixture
def nowhere(binary: str) -> Cli:
    """Against a port where nobody listens."""
    return Cli(binary, f"redis://127.0.0.1:{free_port()}")


@pytest.mark.parametrize("code", [0, 1, 7, 75, 255])
def test_code_of_child_is_passed_on(cli: Cli, name: str, code: int) -> None:
    assert cli.run("run", name, "--", "sh", "-c", f"exit {code}").returncode == code


def test_missing_replicas_are_not_taken_for_busy(cli: Cli, name: str) -> None:
    """A unit that takes 75 for a success would never run, and nobody would know."""
    options = ("--min-replicas", "1", "--sync-timeout", "20ms", "-n", "-E", "1")
    done = cli.run("run", *options, name, "--", "true", code=69)
    assert "replica" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_signal_of_child_is_128_plus_n(cli: Cli, name: str, number: signal.Signals) -> None:
    done = cli.run("run", name, "--", "sh", "-c", f"kill -{int(number)} $$")
    assert done.returncode == 128 + number


def test_code_of_child_is_known_even_if_sigchld_is_ignored(cli: Cli, name: str) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    cli.run("run", name, "--", "sh", "-c", "exit 7", preexec_fn=ignore, code=7)


def test_option_of_child_is_not_ours(cli: Cli, name: str) -> None:
    assert cli.run("run", name, "sh", "-c", "exit 3", "-n", "--nonsense").returncode == 3
    assert cli.run("run", name, "-v", "--", "sh", "-c", "exit 4", "--", "-q").returncode == 4


def test_name_may_look_like_an_option(cli: Cli) -> None:
    cli.run("run", "--", "-n", "sh", "-c", 'test "$REDLATCH_LOCK" = -n', code=0)


THREE = [f"--url=redis://{host}" for host in "abc"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "a command is missing"),
        (["rnu", "x", "true"], "unknown command 'rnu', did you mean 'run'?"),
        (["--tll", "5s", "run", "x", "true"], "unknown option '--tll', did you mean '--ttl'?"),
        (["--ttl", "5s", "run", "x", "true"], "option '--ttl' must be behind 'run'"),
        (["run", "x", "--nonblok", "true"], "did you mean '--nonblock'?"),
        (["--pasword-file", "x", "status", "y"], "did you mean '--password-file'?"),
        (["run", "-z", "x", "true"], "unknown option '-z'"),
        (["run"], "the NAME of the lock is missing"),
        (["run", "x"], "the command to run under lock 'x' is missing"),
        (["run", "x", "--"], "the command to run under lock 'x' is missing"),
        (["run", "x", "-w"], "-w needs a value"),
        (["run", "-w", "soon", "x", "true"], "--wait must be a number with ms, s, m, h or d"),
        (["run", "-w", "-5", "x", "true"], "2m (got '-5')"),
        (["run", "-w", "3w", "x", "true"], "2m (got '3w')"),
        (["run", "--ttl", "1.s", "x", "true"], "--ttl must be 10 ms to 7 days, such as 500ms"),
        (["run", "-k", "2s", "--ttl", "3s", "x", "true"], "--kill-after must be at most a th"),
        (["run", "-E", "300", "x", "true"], "--conflict-exit-code: Value 300 not in range"),
        (["run", "--yield-every", "-1", "x", "true"], "--yield-every must be 0 to 1000000"),
        (["run", "--yield-for", "0ms", "x", "true"], "--yield-for must be 1 ms to 1 minute"),
        (["status"], "the NAME of a lock is missing"),
        (["status", "-o", "josn", "x"], "table, json, jsonl or tsv (got 'josn'; did you mean"),
        (["--color", "alwys", "ls"], "--color must be auto, always or never (got 'alwys'; did"),
        (["ls", "a*", "b*"], "unexpected 'b*'"),
        (["run", "--if-busy", "skp", "x", "true"], "must be fail, skip or wait (got 'skp'; did y"),
        (["run", "--if-busy", "skip", "-E", "3", "x", "true"], "its exit code is 0"),
        (["run", "--if-busy", "wait", "-n", "x", "true"], "--if-busy wait excludes --nonblock"),
        (["run", "--on-lost", "die", "x", "true"], "must be term, kill, ignore or signal:NAME"),
        (["run", "--on-lost", "signal:SIGFOO", "x", "true"], "(got 'signal:SIGFOO')"),
        (["run", "--on-lost", "signal:", "x", "true"], "such as signal:USR1 (got 'signal:')"),
        (["run", "--renew", "10001ms", "x", "true"], "must be 10ms to a third of the 30 s"),
        (["run", "--renew", "1s", "--no-renew", "x", "true"], "--no-renew excludes --renew"),
        (["run", "--min-hold", "2s", "--max-hold", "1s", "x", "true"], "at most the 1 s of --max-"),
        (["run", "--min-hold", "31s", "--no-renew", "x", "true"], "at most the 30 s of --ttl"),
        (["run", "--min-hold", "8d", "x", "true"], "--min-hold must be at most 7d (got '8d')"),
        (["run", "--max-hold", "8d", "x", "true"], "--max-hold must be 0 or 1 ms to 7 days"),
        (["run", "-k", "2s", "--max-hold", "3s", "x", "true"], "a third of the 3 s of --max-hold"),
        (["run", "--start-jitter", "much", "x", "true"], "--start-jitter must be a number with"),
        (["run", "--label", "novalue", "x", "true"], "--label must be KEY=VALUE"),
        (["run", "--label", "9=x", "x", "true"], "(got '9=x')"),
        (["run", "--label", "a=" + "b" * 255, "x", "true"], "256 bytes in all (got 257 bytes)"),
        (["run", "--holder", "b" * 257, "x", "true"], "--holder must be at most 256 bytes"),
        (["run", "--status-fd", "77", "x", "true"], "--status-fd must be an open descriptor"),
        (["run", "-c", "true", "x", "true"], "--command excludes COMMAND"),
        (["run", "-s", "-x", "x", "true"], "--shared excludes --exclusive: a lock is held to re"),
        (["run", "-es", "x", "true"], "--shared excludes --exclusive: a lock is held to read or"),
        (["run", "--permits", "3", "-s", "x", "true"], "--permits excludes --shared: a semaphore"),
        (["run", "-s", "--owner", "o", "x", "true"], "--owner excludes --shared: a reentrant lock"),
        (["run", "--owner", "o" * 257, "x", "true"], "--owner must be 1 to 256 bytes"),
        (["run", "-F", "x", "true"], "--no-fork: redlatch stays beside the command"),
        (["--askpass", "ls"], "--askpass needs a terminal"),
        (["--askpass", "--password-file", "f", "ls"], "--password-file excludes --askpass"),
        (["force-release"], "the NAME of a lock is missing"),
        (["force-release", "--yes", "--if-owner", "t", "x", "y"], "--if-owner goes with one NAME"),
        (["force-release", "--yes", "--if-owner", "", "x"], "--if-owner must be a token"),
        (["force-release", "x"], "force-release asks on a terminal only; elsewhere say --yes"),
        (["version", "x"], "unexpected 'x'"),
        (["help", "satus"], "unknown command 'satus', did you mean 'status'?"),
        (["run", "--wait", "100000d", "x", "true"], "at most 36500d (got '100000d')"),
        (["run", "--ttl", "100000d", "x", "true"], "--ttl must be 10 ms to 7 days (got '10"),
        (["--command-timeout", "4000", "ls"], "--command-timeout must be 1 ms to 1 hour (got '4"),
        ([*THREE, "--restart-guard=0", "status", "x"], "must be off or 1 s to 1 hour (got '0')"),
        (["run", "--max-hold", "0.00000000001", "--kill-after", "1s", "x", "true"], "(got '1s')"),
        (["run", "--max-hold", "9" * 40 + "h", "x", "true"], "must be 0 or 1 ms to 7 days"),
        (["run", "--min-hold", "100000d", "x", "true"], "(got '100000d')"),
        (["run", "--wait", "1y", "x", "true"], "(got '1y')"),
        (["ls", "--tsv"], "did you mean '-o tsv'?"),
        (["--url", "http://h", "ls"], "(got 'http://')"),
        (["doctor", "--url", "rediss//x"], "rediss"),
        (["doctor", "--wait", "soon"], "--wait must be"),
        (["doctor", "--min-replicas", "65"], "--min-replicas must be 0 to 64 (got '65')"),
        (["doctor", "--min-replicas", "1x"], "--min-replicas must be 0 to 64 (got '1x')"),
        (["doctor", *THREE, "--min-replicas=1"], "several"),
        (["doctor", "name"], "unexpected 'name'"),
        (["doctor", "--wiat", "1s"], "did you mean '--wait'"),
    ],
)
def test_64_wrong_call(cli: Cli, args: list[str], words: str) -> None:
    done = cli.run(*args, code=64)
    assert words in done.stderr
    assert done.stderr.startswith("redlatch: ")
    assert done.stdout == ""
    assert "http" not in words or "did you mean" not in done.stderr


def test_64_wrong_call_is_said_even_when_quiet(cli: Cli) -> None:
    done = cli.run("-q", "run", "--wiat", "3", "x", "true", code=64)
    assert "--wait" in done.stderr
    done = cli.run("-q", "run", "x", "--", "no-such-command")
    assert (done.returncode, "no-such-command" in done.stderr) == (127, True)
    done = cli.run("-qq", "run", "x", "--", "no-such-command")
    assert (done.returncode, done.stderr) == (127, "")


def test_64_no_server_named(binary: str) -> None:
    done = Cli(binary, None).run("run", "x", "true", code=64)
    for way in ("--url", "REDLATCH_URL", "--local"):
        assert way in done.stderr


def test_64_unknown_url_parameter_names_the_nearest(cli: Cli) -> None:
    done = cli.run("-u", "redis://127.0.0.1?comand_timeout=5", "status", "x", code=64)
    assert "comand_timeout" in done.stderr and "'command_timeout'" in done.stderr


@pytest.mark.parametrize("bad", ["", "x" * 1025])
def test_64_impossible_name(cli: Cli, bad: str) -> None:
    assert cli.run("run", "-n", bad, "true").returncode == 64
    assert cli.run("status", bad).returncode == 64


def test_64_impossible_namespace(cli: Cli) -> None:
    assert cli.run("--namespace", "a{b", "status", "x").returncode == 64


def test_69_no_server_listens(nowhere: Cli, name: str) -> None:
    began = time.monotonic()
    nowhere.run("run", "-n", name, "--", "true", code=69)
    assert time.monotonic() - began < AT_ONCE
    assert nowhere.run("status", name).returncode == 69
    assert nowhere.run("force-release", "--yes", name).returncode == 69
    assert nowhere.run("ls").returncode == 69


def test_69_server_does_not_answer(own_cli: Cli, own_server: Server, name: str) -> None:
    own_server.pause()
    assert own_cli.run("run", "-n", name, "--", "true").returncode == 69
    assert own_cli.run("run", "-w", "200ms", name, "--", "true").returncode == 69
    assert own_cli.run("status", name).returncode == 69


def test_69_comes_in_time_from_a_silent_server(
    binary: str, own_server: Server, name: str
) -> None:
    # The wait ends by its own limit, and not by the usual 2 s that a command may take.
    own_server.pause()
    began = time.monotonic()
    Cli(binary, own_server.url).run("run", "-w", "200ms", name, "--", "true", code=69)
    assert time.monotonic() - began < 0.2 + AT_ONCE


def test_70_answer_cannot_be_written(cli: Cli, name: str) -> None:
    with open("/dev/full", "w") as full:
        done = cli.run("status", name, capture_output=False, stdout=full)
    assert done.returncode == 70


def test_75_busy(cli: Cli, name: str) -> None:
    with cli.hold(name):
        began = time.monotonic()
        assert cli.run("run", "-n", name, "--", "true").returncode == 75
        assert cli.run("run", "-w", "0", name, "--", "true").returncode == 75
        assert time.monotonic() - began < 2 * AT_ONCE


def test_75_is_changed_by_E(cli: Cli, name: str) -> None:
    with cli.hold(name):
        assert cli.run("run", "-n", "-E", "3", name, "--", "true").returncode == 3
        assert cli.run("run", "-n", "-E0", name, "--", "true").returncode == 0
        assert cli.run("run", "-w200ms", "-E", "4", name, "--", "true").returncode == 4


def test_77_access_refused(own_cli: Cli, own_server: Server, name: str) -> None:
    own_server.cmd("CONFIG", "SET", "requirepass", "right")
    done = own_cli.run("run", "-n", name, "--", "true", env={"REDISCLI_AUTH": "wrong"}, code=77)
    assert "--password-file" in done.stderr
    assert own_cli.run("run", "-n", name, "--", "true").returncode == 77
    assert own_cli.run("run", name, "--", "true").returncode == 77
    assert own_cli.run("status", name).returncode == 77


def test_77_command_not_permitted(own_cli: Cli, own_server: Server, name: str) -> None:
    with own_server.connect() as connection:
        rights = ("~*", "&*", "+@all", "-eval", "-evalsha", "-scan")
        connection.cmd("ACL", "SETUSER", "u", "on", ">p", *rights)
    url = own_server.url.replace("redis://", "redis://u:p@")
    done = own_cli.run("-u", url, "run", "-n", name, "--", "true", code=77)
    assert "NOPERM" in done.stderr
    assert own_cli.run("-u", url, "ls").returncode == 77


def test_78_server_without_cluster_mode(binary: str, own_server: Server) -> None:
    done = Cli(binary, f"redis+cluster://127.0.0.1:{own_server.port}").run("status", "x", code=78)
    assert "its URL must be redis://" in done.stderr


def test_78_password_file_unreadable(cli: Cli, tmp_path: Path) -> None:
    done = cli.run("--password-file", str(tmp_path / "none"), "status", "x", code=78)
    assert "No such file" in done.stderr
    (tmp_path / "empty").touch()
    cli.run("--password-file", str(tmp_path / "empty"), "status", "x", code=78)
    done = cli.run("status", "x", env={"REDLATCH_PASSWORD_FILE": str(tmp_path / "none")}, code=78)
    assert "No such file" in done.stderr and "REDLATCH_PASSWORD_FILE" in done.stderr


def test_79_lost_even_if_the_command_exits_0(cli: Cli, name: str) -> None:
    words = ["sh", "-c", "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done"]
    with cli.hold(name, *SEEN_SOON, words=words) as held:
        assert cli.run("force-release", "--yes", name).returncode == 0
        assert held.wait() == 79


def test_79_lost_and_seen_only_at_the_end(cli: Cli, name: str) -> None:
    with cli.hold(name, *SEEN_AT_THE_END) as held:
        assert cli.run("force-release", "--yes", name).returncode == 0
        assert held.finish() == 79
        held.err.wait_for(f"lost lock '{name}'")


@pytest.mark.parametrize("how", ["paused", "killed"])
@pytest.mark.parametrize("reaction", ["term", "ignore"])
def test_79_comes_soon_after_the_command_if_the_server_is_away(
    binary: str, own_server: Server, name: str, reaction: str, how: str
) -> None:
    """An answer to the release would be waited for twice, for the 15 s that a command may take."""
    cli = Cli(binary, f"{own_server.url}?command_timeout=15s&connect_timeout=15s")
    words = ["sh", "-c", "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done"]
    words = words if reaction == "term" else HOLD
    with cli.hold(name, "--ttl", "2s", "--on-lost", reaction, words=words) as held:
        own_server.pause() if how == "paused" else own_server.kill()
        held.err.wait_for(f"lost lock '{name}'")
        held.close_stdin()
        began = time.monotonic()
        assert held.wait() == 79
        assert time.monotonic() - began < AT_ONCE


def test_child_code_after_a_loss_if_asked(cli: Cli, name: str) -> None:
    words = ["sh", "-c", "trap 'exit 6' TERM; echo ready; while :; do sleep 0.01; done"]
    with cli.hold(name, *SEEN_SOON, "--preserve-status", words=words) as held:
        assert cli.run("force-release", "--yes", name).returncode == 0
        assert held.wait() == 6
    with cli.hold(name, *SEEN_AT_THE_END, "--preserve-status") as held:
        assert cli.run("force-release", "--yes", name).returncode == 0
        assert held.finish() == 0


def test_126_and_127(cli: Cli, name: str, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program\n")
    done = cli.run("run", name, "--", str(plain), code=126)
    assert f"cannot run '{plain}'" in done.stderr
    done = cli.run("run", name, "--", "no-such-command", code=127)
    assert "cannot run 'no-such-command'" in done.stderr
    done = cli.run("run", name, "redis://:hidden@h", code=127)
    assert "cannot run" in done.stderr and "hidden" not in done.stderr
    # The lock is back at once, and not only when its lease ends.
    assert not cli.is_held(name)


def test_status_0_held_1_free(cli: Cli, name: str) -> None:
    assert cli.run("status", name).returncode == 1
    with cli.hold(name):
        assert cli.run("status", name).returncode == 0
        assert cli.run("status", name, "another").returncode == 1


def test_ls_0_found_1_none_if_asked(cli: Cli, name: str) -> None:
    assert cli.run("ls", name).returncode == 0
    assert cli.run("ls", "--exit-code", name).returncode == 1
    with cli.hold(name):
        assert cli.run("ls", "--exit-code", name).returncode == 0


def test_help_and_version_are_0(cli: Cli) -> None:
    for args in (["help"], ["help", "run"], ["--help"], ["run", "-h"], ["version"], ["--version"]):
        done = cli.run(*args)
        assert (done.returncode, done.stderr) == (0, ""), args
        assert done.stdout
