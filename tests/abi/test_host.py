# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the core runs on any host, except for the folders that are for this one. Method: the
objects of the others ask the C library for memory and text only."""

from __future__ import annotations

import re
import subprocess

import pytest
from support.build import ROOT, built

FOLDERS = (
    *("base", "timing", "protocol", "resp", "session", "operate", "lock"),
    *("cluster", "quorum", "sentinel", "config"),
)
# Checked<> reports a defect to stderr. What begins with _ is of the compiler or C++.
PLAIN = re.compile(
    r"_.*|mem(chr|cmp|cpy|move|set)|str(cmp|len|error_r)|explicit_bzero|malloc|free|abort"
    r"|fprintf|fputs?|fwrite|stderr|redisReader\w+"
)
OF_CXX = re.compile(
    r"_ZN\w*?St(6chrono3_V2|6thread|11this_thread|13random_device|10filesystem)"
    r"|_ZN\w*?St\d+basic_\w*fstream"
)


def asked_by(folder: str) -> set[str]:
    sources = sorted((ROOT / "core" / folder).glob("*.cc"))
    objects = [built(f"core/CMakeFiles/redlatch_core.dir/{folder}/{s.name}.o") for s in sources]
    command = ["nm", "--undefined-only", *map(str, objects)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names = re.findall(r"^ +U ([^@\s]+)", done.stdout, re.MULTILINE)
    return {name for name in names if not PLAIN.fullmatch(name) or OF_CXX.match(name)}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_file_socket_clock_or_environment_is_asked_for(folder: str) -> None:
    assert not asked_by(folder)


def test_what_the_host_is_asked_for_is_seen() -> None:
    assert asked_by("host") >= {"clock_gettime", "getenv", "getrandom", "open"}
