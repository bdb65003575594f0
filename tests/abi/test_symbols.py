# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""What the library shows to a linker is the header, and nothing else."""

from __future__ import annotations

import re

import pytest

from .library import (
    ROOT,
    SYMBOLS,
    archive,
    declared_functions,
    header_code,
    is_sanitized,
    output_of,
    shared_library,
)

VERSION_NODE = "REDLATCH_0.1"
# What a program needs anyway. hiredis is inside, and TLS is not there yet.
ALLOWED_NEEDS = re.compile(r"^(libstdc\+\+|libgcc_s|libm|libc|libpthread|ld-linux.*)\.so\.\d+$")
SANITIZER_NEEDS = re.compile(r"^lib(asan|ubsan|tsan)\.so\.\d+$")


def committed_list() -> list[str]:
    lines = SYMBOLS.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def exported() -> dict[str, str]:
    """Name -> version of what the shared library exports."""
    found = {}
    for line in output_of("nm", "-D", "--defined-only", shared_library()).splitlines():
        kind, symbol = line.split()[-2:]
        name, _, version = symbol.partition("@@")
        if kind != "A":  # The version node itself.
            found[name] = version
    return found


def dynamic_section(tag: str) -> list[str]:
    text = output_of("readelf", "-d", shared_library())
    return re.findall(rf"\({tag}\).*\[(.*)\]", text)


def test_committed_list_is_the_header() -> None:
    assert committed_list() == declared_functions()


def test_header_declares_nothing_that_the_list_would_miss() -> None:
    # Each declaration begins with RL_API; one that does not is not exported.
    prototypes = re.findall(r"\b(rl_\w+)\([^)]*\);", header_code())
    assert sorted(prototypes) == declared_functions()


def test_shared_library_exports_the_list() -> None:
    assert sorted(exported()) == committed_list()


def test_every_symbol_has_the_version() -> None:
    assert set(exported().values()) == {VERSION_NODE}


def test_archive_shows_the_list() -> None:
    if is_sanitized():
        pytest.skip("the archive: needs a build without sanitizer")
    lines = output_of("nm", "-g", "--defined-only", archive()).splitlines()
    assert sorted(line.split()[2] for line in lines if len(line.split()) == 3) == committed_list()


def test_archive_has_its_hiredis_inside() -> None:
    if is_sanitized():
        pytest.skip("the archive: needs a build without sanitizer")
    undefined = output_of("nm", "-g", "--undefined-only", archive())
    assert re.findall(r"\bU (redis\w+|sds\w+|hi_\w+)", undefined) == []


def test_soname() -> None:
    assert dynamic_section("SONAME") == ["libredlatch.so.0"]


def test_needs_only_what_every_program_needs() -> None:
    needed = [name for name in dynamic_section("NEEDED") if not ALLOWED_NEEDS.match(name)]
    if is_sanitized():
        needed = [name for name in needed if not SANITIZER_NEEDS.match(name)]
    assert needed == []


def test_every_function_is_tried_with_nonsense() -> None:
    names = ("arguments", "jobs", "election", "recall")
    files = (ROOT / f"tests/capi/{name}_test.c" for name in names)
    text = "".join(path.read_text() for path in files)
    assert [name for name in declared_functions() if not re.search(rf"\b{name}\(", text)] == []
