# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The text of a case, taken apart. SPEC.md describes the format."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

CASES = Path(__file__).parent / "cases"
DEFAULT_UNTIL_MS = 10_000
# Bound from the beginning, as $all.
ALL_BYTES = "".join(f"%{byte:02x}" for byte in range(256))

# What the driver does itself; every other line with @ is a command of the server.
FAULTS = {"kill", "start", "restart", "pause", "resume", "drop_connections", "sleep"}
FAULTS |= {"kill_client", "pause_client", "resume_client", "lose_reply", "lose_request"}
KINDS = {"mutex", "rw", "reentrant", "semaphore", "all"}
CAMPAIGNS = {"campaign", "start_campaign"}
# The sentence that the copies of cases in other formats show.
OF_FORMATS = "S156"

_COMPARISON = re.compile(r"^([a-z_]+)(!=|=|<|>)(.*)$")
_RANGE = re.compile(r"^(-?\d+)\.\.(-?\d+)$")
_REPEAT = re.compile(r"\{([^{}*]+)\*(\d+)\}")
_VARIABLE = re.compile(r"\$\{(\w+)\}|^\$(\w+)$")
_NUMBER = re.compile(r"^S\d+$")


class BadCase(Exception):
    """The text is not a case: a mistake of who wrote it, never of a runner."""


def encode(data: bytes) -> str:
    return quote_from_bytes(data, safe="!\"$&'()*+,-./:;<>?@[]^_`{|}~")


def substitute(text: str, bindings: dict[str, str]) -> str:
    """Put what is bound in the place of `$name` (a whole value) and `${name}` (a part of one)."""

    def bound(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in bindings:
            raise BadCase(f"${name} is not bound")
        return bindings[name]

    return _VARIABLE.sub(bound, text)


@dataclass
class Comparison:
    """One expectation on a value."""

    key: str
    operator: str
    pattern: str

    def holds(self, actual: str | None, bindings: dict[str, str]) -> bool:
        """Compare; a pattern `?name` binds. `actual` is percent-encoded, None = not there."""
        if actual is None:
            return False
        if self.pattern.startswith("?") and self.operator == "=":
            bindings[self.pattern[1:]] = actual
            return True
        pattern = substitute(self.pattern, bindings)
        if self.operator in "<>":
            if not actual.isdigit():
                return False
            return (int(actual) > int(pattern)) == (self.operator == ">") and actual != pattern
        return _matches(pattern, actual) == (self.operator == "=")

    def __str__(self) -> str:
        return f"{self.key}{self.operator}{self.pattern}"


def _matches(pattern: str, actual: str) -> bool:
    if pattern == "*":
        return actual not in ("", "nil")
    if limits := _RANGE.match(pattern):
        low, high = int(limits[1]), int(limits[2])
        return re.fullmatch(r"-?\d+", actual) is not None and low <= int(actual) <= high
    return unquote_to_bytes(pattern) == unquote_to_bytes(actual)


@dataclass
class Expectation:
    """What stands after `->`: statuses of a runner, or the value that the server answers."""

    statuses: list[str]
    values: list[Comparison] = field(default_factory=list)
    at_least_ms: int = 0
    within_ms: int | None = None

    def __str__(self) -> str:
        return " ".join(["/".join(self.statuses), *map(str, self.values)])


@dataclass
class Step:
    """One line that does something."""

    line: int
    text: str
    target: str  # "@", "a" or "a.m"
    words: list[str]  # the operation and its arguments
    node: int = 1  # of a quorum, with @
    job: int = 0
    is_until: bool = False
    expected: Expectation | None = None

    @property
    def client(self) -> str:
        return self.target.partition(".")[0]

    @property
    def op(self) -> str:
        return self.words[0]


@dataclass
class Case:
    name: str
    line: int
    sentences: list[str]
    file: str = ""
    every_server: bool = False
    also: str = ""  # the format of all locks of its copy
    is_copy: bool = False
    node_count: int = 1
    clients: dict[str, list[str]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    @property
    def needs(self) -> set[str]:
        """The capabilities without which a runner cannot run this."""
        needed = set()
        for step in self.steps:
            if step.job:
                needed.add("threads")
            if step.op.startswith("start") and step.target != "@" or step.op == "poll":
                needed.add("requests")
            if step.op == "cancel":
                needed.add("cancels")
            if "kind=semaphore" in step.words:
                needed.add("permits")
            if step.op in ("once", "once_forget", "flight"):
                needed.add("jobs")
            if step.op in CAMPAIGNS or step.op in ("leader", "participants", "observe"):
                needed.add("election")
            if step.op in ("recall", "resign", "recalled"):
                needed.add("recalls")
            if step.op == "lead":
                needed.add("lead")
            if "kind=all" in step.words:
                needed.add("names")
        return needed


def _expand(text: str) -> str:
    return _REPEAT.sub(lambda match: match[1] * int(match[2]), text)


def _parse_expectation(text: str, is_server: bool) -> Expectation:
    words = text.split()
    if not words:
        raise BadCase("nothing stands after ->")
    first = Comparison("", "=", words[0]) if is_server else None
    expectation = Expectation([] if is_server else words[0].split("/"), [first] if first else [])
    for word in words[1:]:
        parsed = _COMPARISON.match(word)
        if parsed is None:
            raise BadCase(f"'{word}' is no expectation")
        if parsed[1] in ("within_ms", "at_least_ms"):
            setattr(expectation, parsed[1], int(parsed[3]))
        else:
            expectation.values.append(Comparison(*parsed.groups()))
    return expectation


def _parse_step(number: int, text: str, case: Case) -> Step:
    action, arrow, expected = text.partition("->")
    words = _expand(action).split()
    is_until = words[0] == "until"
    target, *words = words[is_until:]
    job, node = 0, 1
    if re.fullmatch(r"@\d+", target):
        target, node = "@", int(target[1:])
        if not 1 <= node <= case.node_count:
            raise BadCase(f"there is no server {node}")
    if words and words[-1].startswith("&"):
        job = int(words.pop()[1:])
    if target != "@" and target.partition(".")[0] not in case.clients:
        raise BadCase(f"no client is called '{target}'")
    if not words:
        raise BadCase("nothing to do")
    step = Step(number, text, target, words, node, job, is_until)
    if arrow:
        step.expected = _parse_expectation(_expand(expected), target == "@")
    needs_none = step.job or (target == "@" and words[0] in FAULTS)
    if step.expected is None and (is_until or not needs_none):
        raise BadCase("nothing is expected of it")
    return step


def _parse_lock(number: int, text: str, case: Case) -> Step:
    # A lock is made by the runner, so that its options are tested like everything else.
    action, arrow, expected = text.partition("->")
    words = action.split()
    client, _, lock = words[1].partition(".")
    if words[2] not in KINDS:
        raise BadCase(f"there is no lock of the kind '{words[2]}'")
    made = f"lock id={lock} kind={words[2]} {' '.join(words[3:])}"
    line = f"{client} {made} -> {expected if arrow else 'OK'}"
    return _parse_step(number, line, case)


def _parse_header(words: list[str], case: Case) -> bool:
    if words[0] == "server":
        case.every_server = words[1] == "every"
    elif words[0] == "also":
        case.also = words[1]
    elif words[0] == "quorum":
        case.node_count = int(words[1])
    elif words[0] == "client":
        names = [word for word in words[1:] if "=" not in word]
        options = [word for word in words[1:] if "=" in word]
        case.clients.update({name: options for name in names})
    else:
        return False
    return True


def parse(text: str, file: str = "") -> list[Case]:
    """The cases of one file."""
    cases: list[Case] = []
    sentences: list[str] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*", "", raw).strip()
        try:
            if raw.startswith("#") and ":" in raw:
                numbers = raw[1:].partition(":")[0].split()
                if numbers and all(map(_NUMBER.match, numbers)):
                    sentences = numbers
            elif line.startswith("case "):
                cases.append(Case(line.split()[1], number, sentences, file))
                sentences = []
            elif line and not cases:
                raise BadCase("a case begins with `case NAME`")
            elif line.startswith("lock "):
                cases[-1].steps.append(_parse_lock(number, line, cases[-1]))
            elif line and not _parse_header(line.split(), cases[-1]):
                cases[-1].steps.append(_parse_step(number, line, cases[-1]))
        except (BadCase, IndexError, ValueError) as error:
            raise BadCase(f"{file}:{number}: {error}: {raw}") from None
    return cases


def load(folder: Path = CASES) -> list[Case]:
    """All cases, in the order of their files, and behind them the copies in other formats."""
    cases = []
    for path in sorted(folder.glob("*.case")):
        cases += parse(path.read_text(), f"cases/{path.name}")
    return cases + [in_format(case, case.also) for case in cases if case.also]


def in_format(case: Case, name: str) -> Case:
    """The case with all its locks in this format."""
    steps = [
        replace(step, text=f"{step.text} format={name}", words=[*step.words, f"format={name}"])
        if step.op == "lock"
        else step
        for step in case.steps
    ]
    sentences = [*case.sentences, OF_FORMATS]
    copy = replace(case, name=f"{case.name}-{name}", steps=steps, sentences=sentences)
    return replace(copy, also="", is_copy=True)
