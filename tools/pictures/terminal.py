# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The recording of a terminal: a job, a second one that waits, `kill -9`, and the hand-off.

Three shells on terminals of their own stand for two hosts. What they print is recorded with its
time, read by a terminal emulator, and drawn as lines that appear and disappear. The two things that
are replaced afterwards: the name of this host by `web-1`, and the process id of the holder by 4121.
A viewer without animation shows the end of the recording.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import socket
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pyte
import svg
from cli.terminal import Terminal
from support.build import built
from support.servers import Server, available_kinds
from support.wait import LIMIT

LOCK = "nightly"
TTL_S = 5
COMMAND = f"redlatch run --ttl {TTL_S}s {LOCK} -- ./migrate"
WAITING = r"place \d+ of \d+: (held by (\S+)/(\d+) since [\d:]+) until [\d:]+Z"
KILL = "kill -9"
HOST, PID = "web-1", "4121"
KEY_S = 0.04  # from one key to the next
# Output in several pieces, as an erased line that is written again, is one change.
SAME_CHANGE_S = 0.02
ROWS, COLUMNS = 8, 200  # wide enough for any name of a host

# It ends when a file appears, so that the recording decides when.
JOB = """#!/bin/sh
echo "migrate: started"
until [ -e done ]; do sleep 0.1; done
echo "migrate: done"
"""


class Pane(Terminal):
    """A shell, and when it printed what."""

    def __init__(self, title: str, prompt: str, folder: Path, env: dict[str, str]) -> None:
        words = ["env", "-C", str(folder), "dash", "-i"]
        super().__init__(words, env | {"PS1": f"{prompt}$ "})
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.title = title
        self.pieces: list[tuple[float, bytes]] = []

    def fileno(self) -> int:
        return self._fd

    def take(self) -> None:
        data = os.read(self._fd, 1 << 16)
        self._data += data
        self.pieces.append((time.monotonic(), data))


class Stage:
    """Several panes. All are read while one is waited for, so that the times are right."""

    def __init__(self, *panes: Pane) -> None:
        self.panes = panes

    def pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._read(left)

    def until(self, reached: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT
        while not reached():
            assert time.monotonic() < end, [pane.text for pane in self.panes]
            self._read(0.1)

    def until_prompt(self, pane: Pane) -> None:
        self.until(lambda: pane.text.endswith("$ "))

    def type(self, pane: Pane, words: str) -> None:
        self.until_prompt(pane)
        for key in words:
            pane.write(key.encode())
            self.pause(KEY_S)
        pane.write(b"\n")

    def _read(self, limit: float) -> None:
        for pane in select.select(self.panes, [], [], limit)[0]:
            pane.take()


@dataclass
class Line:
    """A line of a terminal. Keys that are typed make it longer, from `typed_from` to `typed_to`."""

    row: int
    text: str
    start: float
    end: float | None = None  # None: it is still there at the end
    prompt: str = ""  # what was there before the first key
    typed_from: float = 0
    typed_to: float = 0


@dataclass
class Recording:
    panes: list[tuple[str, list[Line]]] = field(default_factory=list)
    notes: list[tuple[float, str]] = field(default_factory=list)
    seconds: float = 0


def record() -> Recording:
    """The pauses are for those who watch: what happens does not depend on them."""
    with ExitStack() as stack:
        server = stack.enter_context(Server(available_kinds()[0]))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "migrate").write_text(JOB)
        (folder / "migrate").chmod(0o755)
        env = {"PATH": f"{built('cli')}:/usr/bin:/bin", "REDLATCH_URL": server.unix_url}
        titles = (("web-1", HOST), ("web-2", "web-2"), ("web-1, another terminal", HOST))
        panes = [Pane(*title, folder, env) for title in titles]
        for pane in panes:
            stack.enter_context(pane)
        first, second, other = panes
        stage = Stage(*panes)
        for pane in panes:
            stage.until_prompt(pane)
        begin = time.monotonic()
        stage.pause(0.5)
        stage.type(first, COMMAND)
        stage.until(lambda: "started" in first.text)
        stage.until(lambda: holder_is_named(env))
        stage.pause(0.6)
        stage.type(second, COMMAND)
        stage.until(lambda: bool(re.search(WAITING, second.text)))
        stage.pause(2.2)
        found = re.search(WAITING, second.text)
        assert found
        stage.type(other, f"{KILL} {found[3]}")
        stage.until(lambda: "Killed" in first.text)
        stage.until(lambda: "started" in second.text)
        stage.pause(0.8)
        (folder / "done").touch()
        for pane in panes:
            stage.until_prompt(pane)
        seconds = time.monotonic() - begin
        return recording_of(panes, begin, seconds, found[3])


def holder_is_named(env: dict[str, str]) -> bool:
    """Whether the server has the holder's name. A client writes it a moment after the grant."""
    words = [str(built("cli/redlatch")), "status", "-o", "json", LOCK]
    done = subprocess.run(words, env=env, capture_output=True, check=True)
    return any("holder" in one for one in json.loads(done.stdout)["holders"])


# ---- from pieces of output to lines --------------------------------------------------------------


def recording_of(panes: list[Pane], begin: float, seconds: float, pid: str) -> Recording:
    recording = Recording(seconds=seconds)
    for pane in panes:
        pieces = [(max(at - begin, 0.0), data) for at, data in pane.pieces]
        lines = lines_of(pieces)
        for line in lines:
            line.text = line.text.replace(f"{socket.gethostname()}/{pid}", f"{HOST}/{PID}")
            line.text = line.text.replace(f"{KILL} {pid}", f"{KILL} {PID}")
        recording.panes.append((pane.title, lines))
    first, second, _ = (lines for _, lines in recording.panes)
    wait = next(line for line in second if re.search(WAITING, line.text))
    shown = re.search(WAITING, wait.text)
    assert shown
    killed, granted = start_of(first, "Killed"), start_of(second, "started")
    recording.notes = [
        (start_of(first, "started"), "web-1 has the lock."),
        (wait.start, f"web-2 waits. Its terminal shows: {shown[1]}"),
        (killed, "The holder is killed. It cannot release the lock."),
        (granted, f"Its lease has ended (ttl {TTL_S} s): web-2 has the lock, "
         f"{granted - killed:.1f} s after the kill."),
    ]
    return recording


def start_of(lines: list[Line], words: str) -> float:
    return next(line.start for line in lines if words in line.text)


def lines_of(pieces: list[tuple[float, bytes]]) -> list[Line]:
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    current: dict[int, Line] = {}
    lines: list[Line] = []
    for place, (at, data) in enumerate(pieces):
        stream.feed(data)
        following = pieces[place + 1 : place + 2]
        if following and following[0][0] - at < SAME_CHANGE_S:
            continue
        for row, text in enumerate(screen.display):
            change(current, lines, Line(row, text.rstrip(), at))
    return lines


def change(current: dict[int, Line], lines: list[Line], new: Line) -> None:
    """A row has this text now."""
    old = current.get(new.row)
    if new.text == (old.text if old else ""):
        return
    if old and old.text and new.text.startswith(old.text):
        if not old.prompt:
            old.prompt, old.typed_from = old.text, new.start
        old.text, old.typed_to = new.text, new.start
        return
    if old:
        old.end = new.start
        del current[new.row]
    if new.text:
        current[new.row] = new
        lines.append(new)


# ---- the picture ---------------------------------------------------------------------------------

WIDTH, MARGIN = 760, 16
CELL, ROW_HEIGHT, TITLE_HEIGHT = 8.4, 20, 26
STILL_S = 5.0  # how long the end is shown
NOTE_HEIGHT = 22


def style_of(palette: svg.Palette, seconds: float) -> list[str]:
    return [
        f"text{{font:14px {svg.MONO};fill:{palette.text}}}",
        f".back{{fill:{palette.back}}}",
        f".panel{{fill:{palette.panel};stroke:{palette.line}}}",
        f".cover{{fill:{palette.panel};transform-box:fill-box;transform-origin:100% 50%}}",
        f".title{{font:600 12px {svg.SANS};fill:{palette.dim}}}",
        f".note{{font:14px {svg.SANS}}}",
        f".at{{font:14px {svg.SANS};fill:{palette.dim};text-anchor:end}}",
        f".prompt{{fill:{palette.clients[2]}}}",
        f".wait{{fill:{palette.amber}}}",
        f".dead{{fill:{palette.red};font-weight:700}}",
        f".a{{animation:{seconds:.1f}s step-end infinite}}",
        "@media (prefers-reduced-motion:reduce){.a{animation:none}}",
    ]


class Film:
    """The parts of the picture, and the animations that they have."""

    def __init__(self, recording: Recording) -> None:
        self.seconds = recording.seconds + STILL_S
        self.rules: list[str] = []
        self.parts: list[str] = []

    def share(self, at: float) -> str:
        return f"{100 * at / self.seconds:.2f}".rstrip("0").rstrip(".") + "%"

    def animated(self, rule: str) -> str:
        """The attributes of what follows this rule."""
        name = f"k{len(self.rules)}"
        self.rules.append(f"@keyframes {name}{{{rule}}}")
        return f' class="a" style="animation-name:{name}"'

    def appearing(self, start: float, end: float | None, what: str) -> str:
        """`what` from start to end, which the still picture shows if it has no end."""
        if start == 0 and end is None:
            return what
        rule = f"0%{{opacity:0}}{self.share(start)}{{opacity:1}}"
        if end is None:
            return f"<g{self.animated(rule)}>{what}</g>"
        rule += f"{self.share(end)}{{opacity:0}}"
        return f'<g opacity="0"{self.animated(rule)}>{what}</g>'

    def line(self, line: Line, x: float, y: float) -> None:
        text = line.text
        prompt = re.match(r"\S+\$", text)
        parts = svg.shown(text)
        style = "wait" if re.search(WAITING, text) else "dead" if text == "Killed" else "out"
        if prompt:
            rest = svg.shown(text[prompt.end() :])
            parts = f'<tspan class="prompt">{svg.shown(prompt[0])}</tspan>{rest}'
        length = svg.number(len(text) * CELL)
        what = (
            f'<text x="{svg.number(x)}" y="{svg.number(y)}" class="{style}" textLength="{length}"'
            f' lengthAdjust="spacingAndGlyphs">{parts}</text>'
        )
        if line.prompt:
            what += self.cover(line, x, y)
        self.parts.append(self.appearing(line.start, line.end, what))

    def cover(self, line: Line, x: float, y: float) -> str:
        """What hides the keys that have not been typed yet."""
        count = len(line.text) - len(line.prompt)
        rule = (
            "0%{opacity:1;transform:none}"
            f"{self.share(line.typed_from)}{{opacity:1;transform:none;"
            f"animation-timing-function:steps({count},start)}}"
            f"{self.share(line.typed_to)},to{{opacity:1;transform:scaleX(0)}}"
        )
        left = x + len(line.prompt) * CELL
        shape = svg.rect(left, y - 15, count * CELL + 2, ROW_HEIGHT, "cover a", ' opacity="0"')
        name = self.animated(rule).partition(' class="a"')[2]
        return shape.replace("/>", f"{name}/>")


def draw(recording: Recording) -> list[tuple[str, str]]:
    """The two files: what their names end in, and their text."""
    film = Film(recording)
    y = 8
    for title, lines in recording.panes:
        rows = max(line.row for line in lines) + 1
        height = TITLE_HEIGHT + rows * ROW_HEIGHT + 8
        film.parts.append(svg.rect(8, y, WIDTH - 16, height, "panel", ' rx="6"'))
        film.parts.append(svg.text(MARGIN + 4, y + 18, "title", title))
        for line in lines:
            baseline = y + TITLE_HEIGHT + (line.row + 1) * ROW_HEIGHT - 5
            film.line(line, MARGIN + 4, baseline)
        y += height + 8
    for at, words in recording.notes:
        y += NOTE_HEIGHT
        what = svg.text(MARGIN + 44, y - 4, "at", f"{at:.1f} s")
        what += svg.text(MARGIN + 56, y - 4, "note", words)
        film.parts.append(film.appearing(at, None, what))
    size = (WIDTH, y + 12)
    title = "A second job waits for the lock of the first, and gets it after a kill"
    back = svg.rect(0, 0, *size, "back")
    files = []
    for palette in svg.PALETTES:
        style = style_of(palette, film.seconds) + film.rules
        files.append((palette.suffix, svg.document(size, title, style, [back, *film.parts])))
    return files
