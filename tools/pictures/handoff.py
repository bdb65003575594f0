# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The hand-off of a lock: a run of three clients, recorded by MONITOR, and its picture.

A holds the lock and releases it while B waits. B is killed while C waits. The clients are three
`redlatch run` beside a server of our own. All times are the server's, with one exception: that of
the kill is read from the clock of the same machine.
"""

from __future__ import annotations

import hashlib
import math
import shlex
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import svg
from support.build import built
from support.servers import Server, available_kinds
from support.wait import LIMIT

LOCK = "nightly"
TTL_MS = 1500
CLIENTS = ("A", "B", "C")


@dataclass(frozen=True)
class Command:
    ms: float  # the server's clock
    client: str  # the one that sent it
    words: list[str]
    is_nested: bool  # by a script of that client
    script: str  # the name of the script that it runs, or ""

    @property
    def is_renewal(self) -> bool:
        # The first one after a grant also describes the holder.
        return self.script == "extend" and "who" not in self.words


@dataclass
class Run:
    commands: list[Command] = field(default_factory=list)
    killed_ms: float = 0

    def of(self, client: str, script: str) -> list[float]:
        return [c.ms for c in self.commands if c.client == client and c.script == script]

    def renewals(self, client: str) -> list[float]:
        return [c.ms for c in self.commands if c.client == client and c.is_renewal]

    def grants_by_message(self, client: str) -> list[Command]:
        """Messages of the server that grant the lock to this client, by whose script they are."""
        return [m for m in self.messages(client) if m.words[2].startswith("g")]

    def messages(self, client: str) -> list[Command]:
        of_client = [c.words for c in self.commands if c.client == client]
        channels = {words[1] for words in of_client if words[0] in ("SUBSCRIBE", "SSUBSCRIBE")}
        sent = [c for c in self.commands if c.words[0] in ("PUBLISH", "SPUBLISH")]
        return [c for c in sent if c.words[1] in channels]

    def asks(self, client: str) -> list[float]:
        """Questions of a waiter after its first one, and before its grant."""
        return [ms for ms in self.of(client, "acquire")[1:] if ms < self.granted(client) - 20]

    def lease_end(self, client: str) -> float:
        """When the last lease that the server gave to this client ends."""
        leases = [c.ms for c in self.commands if c.client == client and c.script == "extend"]
        return leases[-1] + TTL_MS

    def granted(self, client: str) -> float:
        """When the client is known to have the lock: its next command after the grant says so."""
        described = [
            c.ms
            for c in self.commands
            if c.client == client and c.script == "extend" and "who" in c.words
        ]
        return described[0]

    def polls(self, client: str) -> list[float]:
        """Times at which the client asked for the lock for no reason: neither had a message come,
        nor had the lease ended that the server had named at the last question."""
        heard = [message.ms for message in self.messages(client)]
        asked = self.of(client, "acquire")
        return [
            ms
            for before, ms in zip(asked, asked[1:])
            if ms < self._end_known_at(before) and not any(before < m <= ms for m in heard)
        ]

    def _end_known_at(self, ms: float) -> float:
        """The end of the lease that a question at this time is answered with, less rounding."""
        leases = [
            c.ms
            for c in self.commands
            if c.is_nested and c.ms <= ms and c.words[1:2] == [LOCK] and str(TTL_MS) in c.words
        ]
        return leases[-1] + TTL_MS - 2 if leases else 0.0


class Recorder:
    """Reads MONITOR, and knows the clients by the order in which they are started."""

    def __init__(self, server: Server) -> None:
        self.run = Run()
        self._monitor = server.connect(timeout=LIMIT)
        self._monitor.cmd("MONITOR")
        self._names: dict[str, str] = {}
        self._latest = ""
        scripts = built("core/scripts").glob("*.lua")
        self._scripts = {hashlib.sha1(p.read_bytes()).hexdigest(): p.name for p in scripts}

    def until(self, reached: Callable[[Run], bool], starting: str = "") -> None:
        end = time.monotonic() + LIMIT
        while not reached(self.run):
            assert time.monotonic() < end, "the run did not come so far in time"
            self._take(str(self._monitor.read()), starting)

    def close(self) -> None:
        self._monitor.close()

    def _take(self, line: str, starting: str) -> None:
        head, _, rest = line.partition("] ")
        stamp, _, address = head.partition(" [0 ")
        if '"SCRIPT" "LOAD"' in rest:
            return
        words = shlex.split(rest)
        is_nested = address == "lua"
        if not is_nested:
            self._latest = self._names.setdefault(address, starting)
        script = ""
        if words[0] == "EVALSHA":
            script = self._scripts.get(words[1], "").partition(".")[0]
        self.run.commands.append(
            Command(float(stamp) * 1000, self._latest, words, is_nested, script)
        )


def start(server: Server, client: str, stack: ExitStack) -> subprocess.Popen[bytes]:
    """A client that holds the lock until its standard input ends."""
    url = f"{server.url}?health=no"
    options = ["--holder", client, "--ttl", f"{TTL_MS}ms"]
    process = subprocess.Popen(
        [built("cli/redlatch"), "-u", url, "run", *options, LOCK, "--", "cat"],
        stdin=subprocess.PIPE,
    )
    stack.callback(kill, process)
    return process


def kill(process: subprocess.Popen[bytes]) -> None:
    """The command that it runs is ended by the kernel."""
    process.kill()
    end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin
    process.stdin.close()
    process.wait(LIMIT)


def record() -> Run:
    """The pauses are for the picture's sake: what happens does not depend on them."""
    with Server(available_kinds()[0]) as server, ExitStack() as stack:
        recorder = Recorder(server)
        stack.callback(recorder.close)
        run = recorder.run

        a = start(server, "A", stack)
        recorder.until(lambda run: bool(run.of("A", "extend")), "A")
        time.sleep(0.25)
        b = start(server, "B", stack)
        recorder.until(lambda run: bool(run.of("B", "acquire")), "B")
        asked = run.of("B", "acquire")[0]
        recorder.until(lambda run: any(ms > asked for ms in run.renewals("A")))
        time.sleep(0.25)
        end(a)
        recorder.until(lambda run: bool(run.renewals("B")))
        c = start(server, "C", stack)
        recorder.until(lambda run: bool(run.of("C", "acquire")), "C")
        time.sleep(0.25)
        run.killed_ms = time.time() * 1000
        kill(b)
        recorder.until(lambda run: bool(run.of("C", "extend")))
        time.sleep(0.75)
        end(c)
        recorder.until(lambda run: bool(run.of("C", "release")))
        return run


# ---- the picture ---------------------------------------------------------------------------------

SIZE = (860, 352)
LEFT, RIGHT = 56, 824
TOP, ROW, BAR = 50, 62, 26
AXIS = TOP + 3 * ROW - 16
FIRST_NOTE = AXIS + 50


def style_of(palette: svg.Palette) -> list[str]:
    style = [
        f"text{{font:13px {svg.SANS};fill:{palette.text}}}",
        f".back{{fill:{palette.back}}}",
        f".grid{{stroke:{palette.line}}}",
        f".small,.tick{{font-size:12px;fill:{palette.dim}}}",
        ".tick,.mid{text-anchor:middle}",
        f".on{{text-anchor:middle;font-weight:600;fill:{palette.on_bar}}}",
        ".name{font-size:18px;font-weight:700}",
        ".verb{font-weight:700}",
        f".dead{{font-weight:700;fill:{palette.red};text-anchor:middle}}",
        f".cross{{stroke:{palette.red};stroke-width:3;fill:none}}",
        f".way{{stroke:{palette.text};stroke-width:2;fill:none}}",
        f".head{{fill:{palette.text}}}",
        f".mark{{stroke:{palette.text};stroke-width:1.5}}",
    ]
    for client, colour in zip(CLIENTS, palette.clients):
        style += [
            f".has{client}{{fill:{colour}}}",
            f".name{client}{{fill:{colour}}}",
            f".box{client}{{fill:none;stroke:{colour};stroke-width:1.5;stroke-dasharray:4 3}}",
            f".dim{client}{{fill:{colour};fill-opacity:.25}}",
        ]
    return style


class Drawing:
    def __init__(self, run: Run) -> None:
        self.run = run
        self.zero = run.of("A", "acquire")[0]
        self.last = run.of("C", "release")[0]
        self.span = math.ceil((self.last - self.zero + 50) / 100) * 100
        self.parts = [svg.rect(0, 0, *SIZE, "back")]

    def x(self, ms: float) -> float:
        return LEFT + (ms - self.zero) / self.span * (RIGHT - LEFT)

    @staticmethod
    def y(client: str) -> int:
        return TOP + ROW * CLIENTS.index(client)

    def axis(self) -> None:
        for ms in range(0, self.span + 1, 500):
            x = svg.number(self.x(self.zero + ms))
            self.parts.append(svg.path(f"M{x} {TOP - 24}V{AXIS}", "grid"))
            self.parts.append(
                svg.text(float(x), AXIS + 16, "tick", f"{ms} ms" if ms else "0")
            )

    def bar(self, client: str, first: float, last: float, style: str, words: str) -> None:
        x, y = self.x(first), self.y(client)
        more = ' rx="4"'
        self.parts.append(svg.rect(x, y, self.x(last) - x, BAR, style + client, more))
        centre = (x + self.x(last)) / 2
        self.parts.append(
            svg.text(centre, y + 18, "on" if style == "has" else "mid", words)
        )

    def sent(self, client: str, ms: float, word: str) -> None:
        """A command of the client: a mark above its bar."""
        x, y = self.x(ms), self.y(client)
        self.parts.append(svg.path(f"M{svg.number(x)} {y - 5}v8", "mark"))
        self.parts.append(svg.text(x, y - 9, "tick", word))

    def passes(self, giver: str, taker: str, ms: float) -> None:
        x, top, bottom = self.x(ms), self.y(giver) + BAR + 1, self.y(taker)
        at = svg.number(x)
        self.parts.append(svg.path(f"M{at} {top}V{bottom - 8}", "way"))
        self.parts.append(svg.path(f"M{at} {bottom - 1}l-5 -9h10z", "head"))

    def cross(self, client: str, ms: float) -> None:
        x, y = svg.number(self.x(ms)), self.y(client) + BAR / 2
        self.parts.append(svg.path(f"M{x} {y}m-7 -7l14 14m0 -14l-14 14", "cross"))
        self.parts.append(svg.text(float(x), y - BAR / 2 - 9, "dead", "kill -9"))

    def notes(self, lines: list[tuple[str, str]]) -> None:
        for place, (verb, words) in enumerate(lines):
            y = FIRST_NOTE + 22 * place
            self.parts.append(svg.text(LEFT, y, "verb", verb))
            self.parts.append(svg.text(LEFT + 66, y, "", words))


def draw(run: Run) -> list[tuple[str, str]]:
    """The two files: what their names end in, and their text."""
    a, b, c = CLIENTS
    drawing = Drawing(run)
    drawing.axis()
    released, end_of_b = run.of(a, "release")[0], run.lease_end(b)
    by_message, by_end = run.granted(b), run.granted(c)
    for client in CLIENTS:
        y = drawing.y(client) + 20
        drawing.parts.append(svg.text(20, y, f"name name{client}", client))

    drawing.bar(a, run.of(a, "acquire")[0], released, "has", "has the lock")
    drawing.bar(b, run.of(b, "acquire")[0], by_message, "box", "waits")
    drawing.bar(b, by_message, run.killed_ms, "has", "has the lock")
    drawing.bar(b, run.killed_ms, end_of_b, "dim", "its lease runs out")
    drawing.bar(c, run.of(c, "acquire")[0], by_end, "box", "waits")
    drawing.bar(c, by_end, drawing.last, "has", "has the lock")
    for client in CLIENTS:
        drawing.sent(client, run.of(client, "acquire")[0], "acquire")
        for ms in run.asks(client):
            drawing.sent(client, ms, "asks")
        for ms in run.renewals(client):
            drawing.sent(client, ms, "renew")
        for ms in run.of(client, "release"):
            drawing.sent(client, ms, "release")
    drawing.cross(b, run.killed_ms)
    drawing.passes(a, b, by_message)
    drawing.passes(b, c, by_end)
    drawing.notes(
        [
            ("acquire", "If the lock is free, the client has it. If not, it waits for a message: "
             "it does not poll."),
            ("renew", f"A lease lasts for its ttl, here {TTL_MS} ms. It is renewed at each third "
             "of it."),
            ("release", "The same step on the server gives the lock to the next waiter: B had it "
             f"{by_message - released:.1f} ms later."),
            ("kill -9", "Nothing is released. When the lease of B ends, C asks once and has the "
             f"lock: {by_end - run.killed_ms:.0f} ms later."),
        ]
    )
    title = "Three clients hand a lock on: by a release, and after a kill"
    return [
        (palette.suffix, svg.document(SIZE, title, style_of(palette), drawing.parts))
        for palette in svg.PALETTES
    ]
