# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: processes in all languages share locks, and no two believe at once that they hold one,
whoever is killed in the middle; everybody who waits is served.

Method: four processes each in C, C++, Python, Go and Java take ten locks over and over, whose names
have a NUL in them. Those in C and C++ do so by themselves; the others are runners of
tests/conformance, told so by a thread each. SIGKILL ends some of them, and others take their
places. One history of all, judged by both checkers; with a defect in the processes of one language
both must find it.
"""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from conformance.recorded import RecordedRunner
from conformance.runners import PREPARE, RunnerFailed
from support.build import built
from support.history import History
from support.record import note_gone
from support.servers import Server
from support.wait import LIMIT, wait_until

from .actor import Actor

SECONDS = 60 if os.environ.get("REDLATCH_TEST_LONG") else 10
OF_EACH_LANGUAGE = 4
KILLS_PER_S = 3
# Of those who were killed last, the leases end in this time; and then everybody is served.
QUIET_S = 3
LEASE_S = 1
SERVE_MS = 1500
KEYS = 10
LONGEST_HOLD_S = 0.005
ONE_TRY_IN = 8


class Program:
    """A process that takes locks by itself."""

    is_opening = False

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command)
        self.pid = self._process.pid

    def kill(self) -> None:
        assert self._process.poll() is None, f"{self._process.args!r} has ended"
        self._process.kill()
        self._process.wait(LIMIT)
        note_gone(self.pid)

    def finish(self) -> None:
        assert self._process.wait(LIMIT) == 0

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()


class Driven:
    """A runner, and a thread that has it take locks until the end."""

    def __init__(
        self, runner: RecordedRunner, url: str, end: Callable[[], float], seed: int
    ) -> None:
        self._runner, self._end = runner, end
        self._choose = random.Random(seed)
        self._failure = ""
        self._is_open = False
        self.pid = runner.pid
        self._thread = threading.Thread(target=self._run, args=[url])
        self._thread.start()

    def _run(self, url: str) -> None:
        try:
            self._runner.call(f"- open url={url}")
            for key in range(KEYS):
                made = f"- lock id=k{key} kind=mutex name=fleet%00{key} ttl_ms={LEASE_S * 1000}"
                self._runner.call(made)
            self._is_open = True
            while time.monotonic() < self._end():
                self._hold_once()
            self._runner.end()
        except (RunnerFailed, OSError, ValueError) as error:
            self._failure = str(error)

    def _hold_once(self) -> None:
        lock = f"k{self._choose.randrange(KEYS)}"
        wait_ms = 0 if self._choose.randrange(ONE_TRY_IN) == 0 else 20_000
        if self._runner.call(f"{lock} acquire wait_ms={wait_ms}").startswith("OK "):
            time.sleep(self._choose.random() * LONGEST_HOLD_S)
            self._runner.call(f"{lock} release")

    def kill(self) -> None:
        assert self._thread.is_alive(), f"has ended: {self._failure}"
        with suppress(ProcessLookupError):  # Its time may be over just now.
            os.kill(self.pid, signal.SIGKILL)
        self._thread.join()
        self._runner.kill()
        note_gone(self.pid)

    @property
    def is_opening(self) -> bool:
        return self._thread.is_alive() and not self._is_open

    def finish(self) -> None:
        self._thread.join()
        assert not self._failure, self._failure

    def close(self) -> None:
        if self._thread.is_alive():
            self.kill()
        self._runner.kill()


class InC(Actor):
    """The actor, told to do what the programs do."""

    is_opening = False

    def __init__(self, url: str, name: str, ms: int, seed: int) -> None:
        super().__init__(url)
        self._running = self.begin(
            "loop",
            name=f"{name}\0",
            keys=KEYS,
            wait=20_000,
            hold_us=5000,
            ttl_ms=LEASE_S * 1000,
            ms=ms,
            seed=seed,
            patient=1,
        )

    def finish(self) -> None:
        assert self._running.get().status == "RL_OK"


class Fleet:
    """As many processes of each language, until the end."""

    def __init__(
        self, url: str, folder: Path, commands: dict[str, list[str]], defective: str
    ) -> None:
        self._url, self._folder, self._commands = url, folder, commands
        self._defective = defective
        self._end = math.inf
        self._seed = 0
        self.languages: dict[int, str] = {}  # of a process
        self._running: list[Program | Driven | InC] = []

    def start(self, seconds: float) -> None:
        """The time counts once the slowest has a client: a machine of Java may need seconds."""
        for language in [*self._commands] * OF_EACH_LANGUAGE:
            self._running.append(self._start(language))
        wait_until(lambda: not any(one.is_opening for one in self._running), 4 * LIMIT)
        self._end = time.monotonic() + seconds
        for language in ["C", "C++"] * OF_EACH_LANGUAGE:
            self._running.append(self._start(language))

    def _start(self, language: str) -> Program | Driven | InC:
        self._seed += 1
        started: Program | Driven | InC
        if language == "C":
            started = InC(self._url, "fleet", self._left_ms(), self._seed)
        elif language == "C++":
            program = str(built("tests/system/system_member"))
            started = Program([program, self._url, "fleet", str(self._left_ms()), str(self._seed)])
        else:
            defect = "cut_at_nul" if language == self._defective else ""
            runner = RecordedRunner(self._commands[language], defect, self._folder)
            started = Driven(runner, self._url, lambda: self._end, self._seed)
        self.languages[started.pid] = language
        return started

    def left_s(self) -> float:
        return max(self._end - time.monotonic(), 0)

    def _left_ms(self) -> int:
        return round(self.left_s() * 1000)

    def kill_one(self, choose: random.Random) -> None:
        """Another of its language takes its place."""
        number = choose.randrange(len(self._running))
        self._running[number].kill()
        self._running[number] = self._start(self.languages[self._running[number].pid])

    def finish(self) -> None:
        for process in self._running:
            process.finish()

    def close(self) -> None:
        for process in self._running:
            process.close()

    def grants(self, history: History) -> Counter[str]:
        """How many the processes of each language were granted, by their records."""
        found: Counter[str] = Counter()
        for pid, language in self.languages.items():
            path = history.folder / f"{pid}.log"
            # Who was killed at once has none.
            found[language] += path.read_text().count(" holds=") if path.exists() else 0
        return found


@pytest.fixture
def start(one_server: Server, history: History, tmp_path: Path) -> Iterator[Callable[..., Fleet]]:
    fleets: list[Fleet] = []
    commands = {name: PREPARE[name.lower()](tmp_path) for name in ("Python", "Go", "Java")}

    def start_one(seconds: float, defective: str = "") -> Fleet:
        fleets.append(Fleet(one_server.url, history.folder, commands, defective))
        fleets[-1].start(seconds)
        return fleets[-1]

    yield start_one
    for fleet in fleets:
        fleet.close()


def test_all_languages_share_locks(
    start: Callable[..., Fleet], history: History, figure: Callable[[str], None], seed: int
) -> None:
    figure(f"seed {seed}")
    choose = random.Random(seed)
    fleet = start(SECONDS)
    kills = 0
    while fleet.left_s() > QUIET_S:
        fleet.kill_one(choose)
        kills += 1
        time.sleep(choose.random() * 2 / KILLS_PER_S)
    calm_ns = time.monotonic_ns() + (LEASE_S + 1) * 1_000_000_000
    fleet.finish()
    grants = fleet.grants(history)
    shares = ", ".join(f"{language} {count}" for language, count in grants.items())
    figure(f"all languages: {grants.total()} grants in {SECONDS} s ({shares}), {kills} killed")
    began = time.monotonic()
    history.judge(calm_ns=calm_ns, serve_ms=SERVE_MS)
    figure(f"all languages: judged in {time.monotonic() - began:.1f} s, nothing found")
    assert len(grants) == 5 and min(grants.values()) > 0, f"seed {seed}"


@pytest.mark.parametrize("language", ["Go", "Java", "Python"])
def test_a_defect_of_one_language_is_found(
    language: str, start: Callable[..., Fleet], history: History
) -> None:
    """Goal: both checkers turn red if the names of one language end at a NUL, and hold for each of
    its processes alone. Method: two seconds without kills, until its processes have met those of
    other languages often enough for both; a busy machine needs more of them."""
    history.is_judged = True
    for _ in range(20):
        start(2, defective=language).finish()
        status, report = history.findings()
        if "service: " in report and "belief: " in report:
            break
    assert status == 1, report
    assert "service: " in report and "belief: " in report
