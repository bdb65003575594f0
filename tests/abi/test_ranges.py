# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: no limit, range or default of core/config/options.def is typed a second time.

Method: each of them, however it may be written, is searched for in each line of code that names the
option or the limit; and in each sentence of the documentation that names it, where words such as
"at most" show that the number is a bound. Numbers that mean something else are listed with the
reason. The search is tried on lines that type a number again.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache, cached_property

import pytest
from support.build import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from option_table import Table  # noqa: E402

PLACES = ("core", "capi", "cli/src", "bindings", "python/src", "go", "java", "docs", "README.md")
SUFFIXES = (".cc", ".h", ".hpp", ".py", ".go", ".java", ".md", ".i")
# Generated files, tests, adapters; decisions and measurements are about the numbers of their time.
LEFT_OUT = re.compile(
    r"_gen\.go|/rlc/|LockOptions|_option_table|docs/options\.md|/test/|_test\.go"
    r"|java/redlatch-|gocronlock|docs/design/|docs/benchmarks|docs/testing"
)
GENERATED = re.compile(r"---- ([\w ]+): made of options\.def.*?---- end of \1 ----", re.DOTALL)

# Path, a part of the text, and what the number is there.
OTHERS = (
    ("cli/src/quorum_report.cc", '"node_timeout", "1m"', "the value of an option"),
    ("capi/include/redlatch/redlatch.h", "RL_FORMAT_HASH_RW = 3", "the number of the format"),
    ("core/runtime/password_files.cc", "password_file, 256", "how much of a path is shown"),
    ("docs/wire.md", "for at most 100 ms", "what a waiter gets that no message reaches"),
    ("cli/src/exit_code.h", "kExitUsage = 64", "an exit code"),
    ("core/protocol/token.h", "member = token (32)", "the format on the server"),
    ("core/protocol/handshake.", "protocol", "RESP2 and RESP3 are these numbers"),
)

UNITS = (
    (86_400_000, "days?|d"),
    (3_600_000, "hours?|h"),
    (60_000, "minutes?|min|m"),
    (1000, "seconds?|s"),
)
BOUND_BEFORE = r"(?:at most|up to|\bdefault\w*[^.]{0,15}|\blimit[^.]{0,15}|\d (?:ms )?to|longest)"
BOUND_BEHIND = r"[^.,;]{0,15}(?:by default|at most|or less|or shorter)"


@dataclass(frozen=True)
class Number:
    name: str
    value: int
    is_duration: bool

    @cached_property
    def named(self) -> re.Pattern[str]:
        words = re.sub(r"^(max|min|default)_|_(ms|bytes)$", "", self.name.lower()).split("_")
        pattern = ".?".join(word.rstrip("s") for word in words)
        return re.compile(pattern.replace("handoff", "hand-?off"), re.IGNORECASE)

    @cached_property
    def forms(self) -> str:
        grouped = f"{self.value:,}".replace(",", "[,_']")
        plain = f"(?:{self.value}|{grouped})"
        forms = [plain] if not self.is_duration or self.value >= 1000 else []
        if self.is_duration:
            forms.append(f"{plain} ?ms")
            forms += [
                f"{self.value // size} ?(?:{unit})"
                for size, unit in UNITS
                if self.value % size == 0
            ]
        return rf"(?<![\w.,-])(?:{'|'.join(forms)})(?![\w]|\.\d|,\d)"

    @cached_property
    def in_code(self) -> re.Pattern[str]:
        return re.compile(self.forms)

    @cached_property
    def in_prose(self) -> re.Pattern[str]:
        return re.compile(rf"{BOUND_BEFORE}\s+{self.forms}|{self.forms}{BOUND_BEHIND}")

    def is_typed_in(self, text: str, is_prose: bool) -> bool:
        pattern = self.in_prose if is_prose else self.in_code
        return bool(self.named.search(text)) and bool(pattern.search(text))


@cache
def numbers() -> tuple[Number, ...]:
    table = Table(ROOT)
    found = [Number(one.name, one.value, one.name.endswith("_MS")) for one in table.limits]
    for option in table.options:
        bounds = {option.least, option.most}
        if option.kind in ("DURATION", "COUNT"):
            bounds.add(int(option.initial))
        found += [Number(option.name, one, option.kind == "DURATION") for one in bounds if one > 1]
    return tuple(found)


def parts_of(text: str, is_prose: bool) -> list[str]:
    """Lines of code; or sentences, each with the one in front of it, which may name the option."""
    if not is_prose:
        return text.splitlines()
    units = re.split(r"(?<=[.:;])\s+(?=[A-Z`*(])|\n\n|\n[|-]", text)
    flat = [" ".join(unit.split()) for unit in units]
    return [f"{before} {unit}" for before, unit in zip(["", *flat], flat)]


def typed_again(path: str, text: str) -> list[str]:
    is_prose = path.endswith(".md")
    text = GENERATED.sub("", text)
    return [
        f"{path}: {number.name} {number.value}: {part.strip()}"
        for part in parts_of(text, is_prose)
        if re.search(r"\d", part)  # the others would take most of the time
        for number in numbers()
        if number.is_typed_in(part, is_prose)
        and not any(path.startswith(start) and what in part for start, what, _ in OTHERS)
    ]


def test_no_range_or_default_is_typed_a_second_time() -> None:
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", *PLACES]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [
        name
        for name in listed.splitlines()
        if name.endswith(SUFFIXES) and not LEFT_OUT.search(name) and (ROOT / name).exists()
    ]
    assert len(names) > 300
    found = [one for name in names for one in typed_again(name, (ROOT / name).read_text())]
    assert found == [], "\n".join(found)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("core/x.cc", "constexpr int64_t kMaxTtlMs = 604'800'000;"),
        ("python/src/x.py", "MAX_TTL_MS = 604_800_000"),
        ("java/X.java", "if (label.length() > 256) {"),
        ("go/x.go", "// Close waits for at most command_timeout (2 s)."),
        ("capi/x.h", "/** yield_for: 150 ms if it is not set. */"),
        ("docs/x.md", "The option `max_local_handoffs` counts: 16 by default, 31 at most."),
        ("docs/x.md", "A ttl is needed. It is 10 ms to 7 days."),
        ("docs/x.md", "The hosts are 1 to 15 sentinels."),
    ],
)
def test_a_number_that_is_typed_again_is_found(path: str, text: str) -> None:
    assert typed_again(path, text) != []


def test_the_scripts_have_the_same_numbers() -> None:
    """CMake composes the scripts, and does not read the table."""
    text = (ROOT / "core/protocol/embed_scripts.cmake").read_text()
    limits = {one.name: one.value for one in Table(ROOT).limits}
    set_to = {name: int(value) for name, value in re.findall(r"^set\((\w+) (\d+)\)", text, re.M)}
    assert set_to["TOKEN_SIZE"] == limits["TOKEN_BYTES"]
    assert set_to["FENCE_STEP"] == limits["MAX_LOCAL_HANDOFFS"] + 1
    assert set_to["MAX_TTL_MS"] == limits["MAX_TTL_MS"]
    assert set_to["MAX_EVERY_MS"] == limits["MAX_EVERY_DAYS"] * UNITS[0][0]
    assert set_to["MAX_MARKS"] == limits["MAX_MARKS"]
