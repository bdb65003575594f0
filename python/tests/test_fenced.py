# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: write_file() never lets a lower fence follow a higher one, and a failure in the middle
leaves whole files.

Method: fences in and out of order, on files, links and leftovers; each step fails once, or ends the
process. Many processes at once: tests/docs/test_fenced_writes.py.
"""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import redlatch
from redlatch.fenced import write_file
from support.servers import Server

HIGHEST = 2**53 - 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "report"


def names_beside(path: Path) -> list[str]:
    return sorted(found.name for found in path.parent.iterdir())


def test_a_lower_fence_changes_nothing(path: Path) -> None:
    assert write_file(path, b"first", 65)
    before = path.stat()
    assert not write_file(path, b"late", 64)
    assert path.read_bytes() == b"first" and path.stat() == before
    # The same holder writes again, and a later one after it.
    assert write_file(str(path), b"second", 65) and path.read_bytes() == b"second"
    assert write_file(path, b"", HIGHEST) and path.read_bytes() == b""
    assert not write_file(path, b"late", HIGHEST - 1)
    assert names_beside(path) == ["report", "report.fence"]
    assert (path.parent / "report.fence").read_text() == f"{HIGHEST}\n"


def test_the_first_fence_is_accepted_also_of_a_file_without_one(path: Path) -> None:
    path.write_bytes(b"older than redlatch")
    assert write_file(path, b"one", 1) and path.read_bytes() == b"one"
    path.unlink()
    # The fence outlives the file.
    assert write_file(path, b"two", 2) and not write_file(path, b"one", 1)


def test_fences_of_leases(path: Path, server: Server) -> None:
    with redlatch.connect(server.url) as client:
        with client.lock("report") as lease:
            early = lease.fence
            assert write_file(path, b"early", early)
        with client.lock("report") as lease:
            assert write_file(path, b"later", lease.fence)
            assert not write_file(path, b"early", early)


def test_a_link_and_its_file_have_one_fence(path: Path) -> None:
    link = path.parent / "link"
    link.symlink_to(path.name)
    assert write_file(link, b"by the link", 2) and link.is_symlink()
    assert not write_file(path, b"late", 1)
    assert path.read_bytes() == b"by the link"


def test_a_name_without_a_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    assert write_file(path.name, b"here", 1) and path.read_bytes() == b"here"


def test_a_reader_has_one_content(path: Path) -> None:
    path.write_bytes(b"old")
    with open(path, "rb") as reader:
        assert write_file(path, b"new", 1)
        assert reader.read() == b"old" and path.read_bytes() == b"new"


def test_a_copy_of_the_descriptor_keeps_no_writer_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a child that another thread forks meanwhile."""
    copies, real = [], os.pread

    def copied(file: int, count: int, offset: int) -> bytes:
        copies.append(os.dup(file))
        return real(file, count, offset)

    monkeypatch.setattr(os, "pread", copied)
    assert write_file(path, b"text", 1)
    with open(path.parent / "report.fence", "rb") as record:
        fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for copy in copies:
        os.close(copy)


def test_permissions_stay(path: Path) -> None:
    path.touch()
    path.chmod(0o640)
    assert write_file(path, b"text", 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("fence", [0, -1, HIGHEST + 1, 10**5000], ids=["0", "-1", "high", "huge"])
def test_a_number_that_is_no_fence(path: Path, fence: int) -> None:
    with pytest.raises(redlatch.Invalid, match=rf"fence must be 1 to {HIGHEST} \(got "):
        write_file(path, b"text", fence)
    assert names_beside(path) == []


@pytest.mark.parametrize(
    ("data", "fence", "message"),
    [
        ("text", 1, r"data must be bytes \(got str\)"),
        (b"text", "1", r"fence must be int \(got str\)"),
        (b"text", True, r"fence must be int \(got bool\)"),
    ],
)
def test_wrong_types(path: Path, data: Any, fence: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        write_file(path, data, fence)
    assert names_beside(path) == []


@pytest.mark.parametrize("content", ["65\n", "no fence at all\n", "0" * 17 + "\n", "0" * 16])
def test_a_record_that_is_no_fence_is_refused(path: Path, content: str) -> None:
    path.write_bytes(b"kept")
    (path.parent / "report.fence").write_text(content)
    with pytest.raises(redlatch.Invalid, match="report.fence must be one line of 16 digits"):
        write_file(path, b"text", HIGHEST)
    assert path.read_bytes() == b"kept"


def fail(*_: object, **__: object) -> None:
    raise OSError("no space left")


@pytest.mark.parametrize("step", ["replace", "fchmod"])
def test_an_error_in_the_middle(path: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert write_file(path, b"old", 33)
    with monkeypatch.context() as broken:
        broken.setattr(os, step, fail)
        with pytest.raises(OSError, match="no space left"):
            write_file(path, b"new", 65)
    assert path.read_bytes() == b"old" and names_beside(path) == ["report", "report.fence"]
    # The fence was raised first.
    assert not write_file(path, b"late", 33)
    assert write_file(path, b"new", 65) and path.read_bytes() == b"new"


# The steps that reach the disk, in their order, of a file that has no fence yet.
STEPS = ("fsync", "fsync", "fsync", "replace", "fsync")
DYING = """
import os, sys
from redlatch.fenced import write_file

count = 0

def counted(step):
    def run(*arguments):
        global count
        count += 1
        if count == int(sys.argv[2]):
            os._exit(9)
        return step(*arguments)
    return run

os.fsync, os.replace = counted(os.fsync), counted(os.replace)
write_file(sys.argv[1], b"new", 65)
sys.exit(count)
"""


def write_and_die(path: Path, step: int) -> int:
    command = [sys.executable, "-c", DYING, str(path), str(step)]
    return subprocess.run(command, check=False).returncode


@pytest.mark.parametrize("step", range(1, len(STEPS) + 1))
def test_a_process_that_dies_in_the_middle(path: Path, step: int) -> None:
    path.write_bytes(b"old")
    assert write_and_die(path, step) == 9
    replaced = step > STEPS.index("replace") + 1
    assert path.read_bytes() == (b"new" if replaced else b"old")
    assert not write_file(path, b"late", 64)
    assert write_file(path, b"again", 65) and path.read_bytes() == b"again"
    assert names_beside(path) == ["report", "report.fence"]


def test_each_step_is_known(path: Path) -> None:
    assert write_and_die(path, 0) == len(STEPS)
    # With a fence, its file need not be made.
    assert write_and_die(path, 0) == len(STEPS) - 1
