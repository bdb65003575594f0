# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the pictures of docs/pictures show what the product does today, and are safe to show.

Method: tools/pictures makes them once more from real runs, and their words are compared; figures
and times may differ. The commands of a run have the order that the picture claims. Each check is
tried with a planted defect.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.build import ROOT
from support.servers import available_kinds

sys.path.append(str(ROOT / "tools/pictures"))

import handoff  # noqa: E402
from handoff import Command, Run  # noqa: E402

COMMITTED = ROOT / "docs/pictures"
NAMES = ("handoff", "terminal")
FILES = [f"{name}{suffix}.svg" for name in NAMES for suffix in ("", "-dark")]
LARGEST = 30 * 1024
LIMIT = 120.0

# What a picture may be made of. None of these can load or run anything.
TAGS = {"svg", "title", "style", "rect", "path", "text", "tspan", "g"}
ATTRIBUTES = {"width", "height", "viewBox", "role", "x", "y", "rx", "d", "class", "style"}
ATTRIBUTES |= {"opacity", "textLength", "lengthAdjust"}
NAMESPACE = "{http://www.w3.org/2000/svg}"

WAIT_LINE = r"redlatch: nightly, place N of N: held by web-N/N since N:N:N until N:N:NZ"

needs_a_run = pytest.mark.skipif(
    not (available_kinds() and shutil.which("dash") and find_spec("pyte")),
    reason="needs a server, dash, and tests/requirements-pictures.txt",
)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    words = [sys.executable, str(ROOT / "tools/pictures"), str(folder)]
    subprocess.run(words, check=True, timeout=LIMIT)
    return folder


@pytest.fixture(scope="module")
def run() -> Run:
    return handoff.record()


def texts_of(svg: str) -> list[str]:
    found = ElementTree.fromstring(svg).iter(f"{NAMESPACE}text")
    return ["".join(text.itertext()) for text in found]


def words_of(svg: str) -> set[str]:
    """The lines, without figures. A busy machine may show a waiter that asks once more, or a moment
    at which the holder of a lock is not known."""
    lines = {re.sub(r"\d+(\.\d+)?", "N", text) for text in texts_of(svg)}
    partial = {line for line in lines if line.startswith("redlatch: ")} - {WAIT_LINE}
    return lines - partial - {"asks"}


def faults_of(svg: str) -> list[str]:
    """What a picture must not have."""
    faults = [] if len(svg.encode()) <= LARGEST else ["too large"]
    for element in ElementTree.fromstring(svg).iter():
        tag = element.tag.removeprefix(NAMESPACE)
        faults += [] if tag in TAGS else [f"element {tag}"]
        faults += [f"attribute {name}" for name in sorted(set(element.attrib) - ATTRIBUTES)]
    without_namespace = svg.replace(NAMESPACE[1:-1], "")
    faults += re.findall(r"://|url\(|@import", without_namespace)
    faults += re.findall(r"(?<![\w.<*/])/\w+/\w*", without_namespace)  # a path from the top
    faults += [socket.gethostname()] if f"{socket.gethostname()}/" in svg else []
    return faults


def test_all_pictures_are_known() -> None:
    assert sorted(path.name for path in COMMITTED.iterdir()) == sorted(FILES)


@pytest.mark.parametrize("name", FILES)
def test_committed_picture_is_safe_and_small(name: str) -> None:
    assert faults_of((COMMITTED / name).read_text()) == []


@pytest.mark.parametrize("name", NAMES)
def test_dark_picture_differs_in_colours_only(name: str) -> None:
    light, dark = ((COMMITTED / f"{name}{s}.svg").read_text() for s in ("", "-dark"))
    colour = re.compile(r"#[0-9a-f]{6}")
    assert light != dark and colour.sub("", light) == colour.sub("", dark)


@needs_a_run
@pytest.mark.parametrize("name", FILES)
def test_fresh_run_has_the_words_of_the_committed_picture(name: str, fresh: Path) -> None:
    assert faults_of((fresh / name).read_text()) == []
    expected = words_of((COMMITTED / name).read_text())
    assert words_of((fresh / name).read_text()) == expected and len(expected) > 9


def shows_the_holder(svg: str) -> bool:
    """The waiter's terminal names the holder, that process is killed, and the waiter does the work
    that the holder only began."""
    texts = texts_of(svg)
    lines = "\n".join(texts)
    holders = set(re.findall(r"^redlatch: .* held by (\S+) since", lines, re.MULTILINE))
    killed = {f"web-1/{pid}" for pid in re.findall(r"^web-1\$ kill -9 (\d+)$", lines, re.MULTILINE)}
    order = [text for text in texts if text == "Killed" or text.startswith("migrate: ")]
    work = ["migrate: started", "Killed", "migrate: started", "migrate: done"]
    return len(holders) == 1 and holders == killed and order == work


@needs_a_run
def test_waiter_is_shown_the_holder_that_is_killed(fresh: Path) -> None:
    assert shows_the_holder((fresh / "terminal.svg").read_text())


# ---- the commands of a run -----------------------------------------------------------------------


def is_passed_by_release(run: Run) -> bool:
    """The message that grants B the lock is sent by the script of A's release, and is the only
    one; B has the lock after it."""
    grants = run.grants_by_message("B")
    if len(grants) != 1 or not grants[0].is_nested:
        return False
    before = [c for c in run.commands[: run.commands.index(grants[0])] if not c.is_nested]
    caller = before[-1]
    is_release = (caller.client, caller.script) == ("A", "release")
    return is_release and caller.ms <= grants[0].ms <= run.granted("B")


def is_passed_by_end_of_lease(run: Run) -> bool:
    """C has the lock when B's lease has ended, without a message or a release of B. The server and
    a client round to 1 ms."""
    return (
        not run.of("B", "release")
        and not run.grants_by_message("C")
        and run.granted("C") >= run.lease_end("B") - 2
        and run.granted("C") > run.killed_ms
    )


def is_renewed_in_time(run: Run) -> bool:
    """Each renewal comes before the lease ends, and the first one not before a quarter of it."""
    times = [run.granted("A"), *run.renewals("A")]
    steps = [later - earlier for earlier, later in zip(times, times[1:])]
    return bool(steps) and max(steps) < handoff.TTL_MS and steps[0] > handoff.TTL_MS / 4


def without_polls(run: Run) -> bool:
    return not any(run.polls(client) for client in handoff.CLIENTS)


CLAIMS = (is_passed_by_release, is_passed_by_end_of_lease, is_renewed_in_time, without_polls)


@needs_a_run
@pytest.mark.parametrize("claim", CLAIMS)
def test_run_has_what_the_picture_claims(claim: Callable[[Run], bool], run: Run) -> None:
    assert claim(run), run


# ---- the checks can fail -------------------------------------------------------------------------


def changed(run: Run, changes: Callable[[Command], bool], **more: object) -> Run:
    commands = [replace(c, **more) if changes(c) else c for c in run.commands]
    return Run(sorted(commands, key=lambda c: c.ms), run.killed_ms)


def polling(run: Run) -> Run:
    """B asks once more while it waits."""
    first = next(c for c in run.commands if c.client == "B" and c.script == "acquire")
    return Run(sorted([*run.commands, replace(first, ms=first.ms + 50)], key=lambda c: c.ms))


@needs_a_run
def test_a_run_without_what_the_picture_claims_is_found(run: Run) -> None:
    (grant,) = run.grants_by_message("B")
    assert not without_polls(polling(run))
    early = changed(run, lambda c: c is grant, ms=run.of("A", "release")[0] - 1)
    late = changed(run, lambda c: c is grant, ms=run.granted("B") + 1)
    other = changed(run, lambda c: c is grant, is_nested=False)
    assert not any(map(is_passed_by_release, (early, late, other)))
    end = run.lease_end("B")
    soon = changed(run, lambda c: c.client == "C" and c.ms > end - 9, ms=end - 9)
    assert not is_passed_by_end_of_lease(soon)
    released = changed(run, lambda c: c.script == "release", client="B")
    assert not is_passed_by_end_of_lease(released)
    assert not is_renewed_in_time(changed(run, lambda c: c.is_renewal, client="B"))


GOOD = '<svg xmlns="http://www.w3.org/2000/svg"><text x="1">held by web-1/4121</text></svg>'


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("<text", "<script>1</script><text", "element script"),
        ("<text", '<image href="data:x"/><text', "attribute href"),
        ("<text", '<text onload="x()"', "attribute onload"),
        ("<text", "<style>@import 'x'</style><text", "@import"),
        ("<text", "<style>a{fill:url(#x)}</style><text", "url("),
        ("held", "https://example.org", "://"),
        ("held", "/srv/checkout/x", "/srv/checkout"),
        ("web-1", socket.gethostname(), socket.gethostname()),
        ("held", "held" * LARGEST, "too large"),
    ],
)
def test_a_fault_of_a_picture_is_found(old: str, new: str, fault: str) -> None:
    assert faults_of(GOOD) == []
    assert fault in faults_of(GOOD.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("web-1/4121", "another client"),
        ("kill -9 4121", "kill -9 17"),
        (">Killed<", ">Done<"),
        ("migrate: done", "migrate: failed"),
    ],
)
def test_a_terminal_that_does_not_show_the_holder_is_found(old: str, new: str) -> None:
    terminal = (COMMITTED / "terminal.svg").read_text()
    assert shows_the_holder(terminal) and old in terminal
    assert not shows_the_holder(terminal.replace(old, new))


def test_other_words_are_found() -> None:
    assert words_of(GOOD) == words_of(GOOD.replace("4121", "17"))
    assert words_of(GOOD) != words_of(GOOD.replace("held", "kept"))
