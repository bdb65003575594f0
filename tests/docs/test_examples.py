# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: each example does in every language what it says.

Method: processes of one language, and of all together, run against a server of our own, which
forgets a lock or stops answering where that is what the example is about. tests/capi has the
examples that only C has.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redlatch
from support.build import ROOT, build_folder, built
from support.go import go_build
from support.java import java_program
from support.program import run_to_end
from support.servers import Server, available_kinds
from support.wait import LIMIT, wait_until

EXAMPLES = ROOT / "examples"
PROGRAMS = ("guard", "skip", "nightly", "cache", "leader", "pool", "transfer")


def _go(program: str) -> list[str]:
    output = build_folder() / f"examples/example_{program}_go"
    return [str(go_build(EXAMPLES / "go" / program, output))]


def _java(program: str) -> list[str]:
    main = program.capitalize()
    return java_program(main, EXAMPLES / f"java/{main}.java")


# How the example of a name is started.
LANGUAGES: dict[str, Callable[[str], list[str]]] = {
    "c": lambda program: [str(built(f"examples/example_{program}_c"))],
    "cpp": lambda program: [str(built(f"examples/example_{program}_cpp"))],
    "python": lambda program: [sys.executable, str(EXAMPLES / f"python/{program}.py")],
    "go": _go,
    "java": _java,
}

each_language = pytest.mark.parametrize("language", LANGUAGES)


class Example:
    """A running example, and the lines that it has said so far."""

    def __init__(self, language: str, program: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*LANGUAGES[language](program), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Example:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.end()

    def end(self, text: str = "") -> list[str]:
        """Give it its input, wait for its end, and return what it has said."""
        assert self.process.stdin and self.process.stdout
        if not self.process.stdin.closed:
            with self.process.stdin as stdin:
                stdin.write(text)
        self.process.wait(LIMIT)
        self._reader.join()
        self.process.stdout.close()
        return self.lines

    def await_line(self, beginning: str, after: int = -1) -> int:
        """The number of the first line with this beginning behind the line numbered `after`."""

        def found() -> bool:
            return any(line.startswith(beginning) for line in self.lines[after + 1 :])

        wait_until(found)
        later = range(after + 1, len(self.lines))
        return next(i for i in later if self.lines[i].startswith(beginning))

    def _read(self) -> None:
        assert self.process.stdout
        self.lines.extend(line.rstrip("\n") for line in self.process.stdout)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(available_kinds()[0]) as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[redlatch.Client]:
    server.cmd("FLUSHALL")
    with redlatch.connect(server.url) as ours:
        yield ours


def run(language: str, program: str, *arguments: str) -> list[str]:
    return run_all([language], program, *arguments)[0]


def run_all(languages: list[str], program: str, *arguments: str) -> list[list[str]]:
    """A process for each of `languages`, all at the same time; what each has said."""
    with ExitStack() as stack:
        running = [
            stack.enter_context(Example(language, program, *arguments)) for language in languages
        ]
        said = [one.end() for one in running]
        assert [one.process.returncode for one in running] == [0] * len(running)
    return said


def await_waiter(server: Server, name: str, suffix: str = "q") -> None:
    with server.connect() as connection:
        wait_until(lambda: connection.cmd("EXISTS", f"{{{name}}}:rl1:{suffix}"))


# ---- guard ---------------------------------------------------------------------------------------

TIMES = 50


def count_of(languages: list[str], server: Server, folder: Path) -> int:
    counter = folder / "counter.txt"
    run_all(languages, "guard", server.url, str(counter), str(TIMES))
    return int(counter.read_text())


@each_language
def test_no_addition_is_lost(language: str, server: Server, tmp_path: Path) -> None:
    assert count_of([language] * 4, server, tmp_path) == 4 * TIMES


def test_no_addition_is_lost_between_languages(server: Server, tmp_path: Path) -> None:
    languages = [*LANGUAGES] * 2
    assert count_of(languages, server, tmp_path) == len(languages) * TIMES


# ---- skip ----------------------------------------------------------------------------------------


@each_language
def test_job_that_another_host_runs_is_skipped(language: str, server: Server) -> None:
    with Example(language, "skip", server.url) as first:
        first.await_line("begun")
        for other in LANGUAGES:
            assert run(other, "skip", server.url) == ["skipped: another host does it"]
        assert first.end("one\ntwo\n") == ["begun", "done: 2 lines"]
        assert first.process.returncode == 0
    assert run(language, "skip", server.url) == ["begun", "done: 0 lines"]


# ---- pool ----------------------------------------------------------------------------------------


@each_language
def test_pool_has_three_at_a_time(language: str, server: Server) -> None:
    with ExitStack() as stack:

        def start() -> Example:
            return stack.enter_context(Example(language, "pool", server.url))

        inside = [start() for _ in range(3)]
        for one in inside:
            one.await_line("begun")
        fourth = start()
        await_waiter(server, "pool", "sq")
        assert fourth.lines == []
        assert inside[1].end("one\ntwo\n") == ["begun", "done: 2 lines"]
        fourth.await_line("begun")
        running = [inside[0], inside[2], fourth]
        assert [one.end() for one in running] == [["begun", "done: 0 lines"]] * 3
        assert [one.process.returncode for one in (*running, inside[1])] == [0] * 4


# ---- transfer ------------------------------------------------------------------------------------


def accounts(folder: Path, **balances: int) -> None:
    for name, balance in balances.items():
        (folder / name).write_text(f"{balance}\n")


@each_language
def test_transfer_moves_all_or_nothing(language: str, server: Server, tmp_path: Path) -> None:
    accounts(tmp_path, anna=7, bert=1)
    arguments = [server.url, str(tmp_path), "anna", "bert", "5"]
    assert run(language, "transfer", *arguments) == ["moved 5: anna has 2, bert has 6"]
    assert run(language, "transfer", *arguments) == ["refused: anna has only 2"]
    missing = attempt(language, "transfer", server.url, str(tmp_path), "anna", "carl", "1")
    assert missing.returncode == 1 and missing.stderr.startswith("transfer: ")
    assert ((tmp_path / "anna").read_text(), (tmp_path / "bert").read_text()) == ("2\n", "6\n")


def test_transfers_both_ways_lose_nothing(server: Server, tmp_path: Path) -> None:
    accounts(tmp_path, anna=100, bert=100)
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                Example(language, "transfer", server.url, str(tmp_path), *names, amount)
            )
            for language in LANGUAGES
            for names, amount in ((("anna", "bert"), "3"), (("bert", "anna"), "1"))
        ]
        assert all(one.end()[0].startswith("moved ") for one in running)
    moved = 2 * len(LANGUAGES)
    assert int((tmp_path / "anna").read_text()) == 100 - moved
    assert int((tmp_path / "bert").read_text()) == 100 + moved


# ---- nightly -------------------------------------------------------------------------------------


@each_language
def test_a_report_is_made_once_for_each_day(language: str, server: Server) -> None:
    day = f"2026-01-{len(language):02d}"

    def say(language: str, day: str) -> list[str]:
        return run(language, "nightly", server.url, day)

    assert say(language, day) == [f"done: the report of {day}"]
    for other in LANGUAGES:
        assert say(other, day) == [f"skipped: the report of {day} is done"]
    assert say(language, f"{day}b") == [f"done: the report of {day}b"]


# ---- cache ---------------------------------------------------------------------------------------


def test_one_of_many_computes_the_value(server: Server, client: redlatch.Client) -> None:
    """Of all languages at the same time."""
    many = [language for language in LANGUAGES for _ in range(2)]

    def say(computed: int) -> str:
        said = run_all(many, "cache", server.url)
        assert sum("computed" in lines for lines in said) == computed, said
        values = {line for lines in said for line in lines if line != "computed"}
        assert len(values) == 1, said
        return values.pop()

    first = say(computed=1)
    assert first.startswith("value of process ")
    assert say(computed=0) == first


@each_language
def test_each_language_computes_the_value(language: str, server: Server) -> None:
    server.cmd("DEL", "{cache}:rl1:v")
    said = run(language, "cache", server.url)
    assert said[0] == "computed" and said[1].startswith("value of process ")
    for other in LANGUAGES:
        assert run(other, "cache", server.url) == said[1:]


# ---- leader --------------------------------------------------------------------------------------


def fence_in(line: str) -> int:
    return int(line.rpartition(" ")[2])


def assert_works_only_while_it_leads(example: Example) -> None:
    leads = 0
    for line in example.lines:
        if line.startswith("leads, fence "):
            assert leads == 0 < fence_in(line), example.lines
            leads = fence_in(line)
        elif line.startswith("stopped: "):
            assert leads > 0, example.lines
            leads = 0
        else:
            assert line == f"works, fence {leads}" and leads > 0, example.lines


@each_language
def test_a_leader_stops_when_the_lead_is_taken_from_it(
    language: str, server: Server, client: redlatch.Client
) -> None:
    with Example(language, "leader", server.url, "one") as first:
        led = first.await_line("leads, fence ")
        first.await_line("works, fence ")
        leader = client.leader("leader")
        assert leader and (leader.id, leader.term) == ("one", fence_in(first.lines[led]))
        with Example(language, "leader", server.url, "two") as second:
            await_waiter(server, "leader")
            assert client.election("leader").participants() == ["one", "two"]
            client.force_release("leader")
            later = second.await_line("leads, fence ")
            stopped = first.await_line("stopped: ")
            second.await_line("works, fence ")
            assert fence_in(second.lines[later]) > fence_in(first.lines[led])
            # Stands by again, and leads next.
            await_waiter(server, "leader")
            second.process.kill()
            led_again = first.await_line("leads, fence ", stopped)
            assert led_again == stopped + 1
            assert fence_in(first.lines[led_again]) > fence_in(second.lines[later])
            assert_works_only_while_it_leads(second)
        assert_works_only_while_it_leads(first)


@each_language
def test_a_leader_has_stopped_before_another_can_lead(
    language: str, server: Server, client: redlatch.Client
) -> None:
    with Example(language, "leader", server.url) as first:
        led = first.await_line("leads, fence ")
        with Example(language, "leader", server.url) as second:
            await_waiter(server, "leader")
            server.pause()
            try:
                # From its own clock: nobody can tell it.
                stopped = first.await_line("stopped: ")
                assert second.lines == [] and len(first.lines) == stopped + 1
            finally:
                server.resume()
            both = (first, second)
            wait_until(lambda: second.lines or first.lines[stopped + 1 :])
            lines = second.lines or first.lines[stopped + 1 :]
            assert fence_in(lines[0]) > fence_in(first.lines[led])
        for one in both:
            assert_works_only_while_it_leads(one)


# ---- all of them ---------------------------------------------------------------------------------


# Behind the URL.
ARGUMENTS = {
    "guard": ["/nonexistent/file"],
    "nightly": ["2026-11-30"],
    "transfer": ["/nonexistent", "anna", "bert", "5"],
}


def attempt(language: str, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_to_end([*LANGUAGES[language](program), *arguments])


@each_language
@pytest.mark.parametrize("program", PROGRAMS)
def test_example_says_when_it_fails(language: str, program: str) -> None:
    arguments = ["redis://127.0.0.1:1?nonsense=1"]
    arguments += ARGUMENTS.get(program, [])
    failed = attempt(language, program, *arguments)
    assert failed.returncode == 1
    assert failed.stderr.startswith(f"{program}: ") and "nonsense" in failed.stderr
    misused = attempt(language, program)
    assert misused.returncode == 64 and misused.stderr.startswith("usage: ")


def test_every_language_has_the_same() -> None:
    found = {path.stem for path in (EXAMPLES / "python").glob("*.py")}
    assert found == set(PROGRAMS)
    assert {path.name for path in (EXAMPLES / "go").iterdir() if path.is_dir()} == found
    assert {path.stem.lower() for path in (EXAMPLES / "java").iterdir()} == found
    assert {path.stem for path in (EXAMPLES / "cpp").iterdir()} == found
    assert {path.stem for path in (EXAMPLES / "c").iterdir()} > found
