# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: each store of docs/fenced-writes.md refuses a lower fence, also when many write at once,
and the page says how the caller knows.

Method: the page's own blocks write fences in and out of order to real servers, to SQLite and to
files, and a simple model says which of them are applied. In PostgreSQL a trigger records the order
of the writes of 16 clients; a file of 16 writers is read all the time. MySQL's text is only read.
"""

from __future__ import annotations

import os
import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.postgres import Postgres
from support.program import run_to_end
from support.resp import RespError
from support.servers import Server, available_kinds
from support.wait import LIMIT, wait_until

from .pages import FENCED_WRITES, all_blocks, blocks, file_of

PAGE = FENCED_WRITES.read_text()
KNOWN = {
    "Redis and Valkey": ["lua", "sh"],
    "PostgreSQL": ["sql", "sql"],
    "SQLite": ["sql", "sql"],
    "MySQL and MariaDB": ["sql", "sql", "sql"],
    "A file": ["python", "sh"],
}
LOWEST = 1795256307113042  # Of the size of real fences, for which 32 bits are too few.
WRITERS = 16
FENCES_OF_A_WRITER = 8
# What a script gives back that was refused.
REFUSED = 75


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def block(title: str, language: str) -> str:
    (found,) = blocks(section(title), language)
    return found


def test_every_block_is_known() -> None:
    titles = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    found = {title: [language for language, _ in all_blocks(section(title))] for title in titles}
    assert found == KNOWN and all_blocks(PAGE.partition("\n## ")[0]) == []


def some_fences(seed: int, count: int) -> list[int]:
    """They rise on the whole; some come late, and some twice."""
    chance = random.Random(seed)
    return [LOWEST + 32 * max(0, at + chance.randint(-20, 5)) for at in range(count)]


def applied_of(fences: list[int]) -> list[bool]:
    """The rule: a fence is applied if none before it was higher."""
    return [fence >= max(fences[: at + 1]) for at, fence in enumerate(fences)]


def highest_of(fences: list[int]) -> list[int]:
    return [max(fences[: at + 1]) for at in range(len(fences))]


def test_the_model_has_both_answers(seed: int) -> None:
    fences = some_fences(seed, 100)
    assert 10 < sum(applied_of(fences)) < 90 and len(set(fences)) < 100


# ---- Redis ---------------------------------------------------------------------------------------


@pytest.fixture(params=available_kinds())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(request.param) as running:
        yield running


def test_redis(server: Server, seed: int) -> None:
    script, fences = block("Redis and Valkey", "lua"), some_fences(seed, 100)
    with server.connect() as connection:
        for fence, is_applied, highest in zip(fences, applied_of(fences), highest_of(fences)):
            text = f"by {fence}"
            assert connection.cmd("EVAL", script, 1, "report", text, fence) == is_applied
            assert connection.cmd("HGET", "report", "value") == f"by {highest}".encode()
        # An unset variable is no fence, and 0 is that of a Redlock without any.
        for key in ("report", "other"):
            with pytest.raises(RespError, match="compare"):
                connection.cmd("EVAL", script, 1, key, "text", "")
            assert connection.cmd("EVAL", script, 1, key, "text", 0) == 0
        assert connection.cmd("EXISTS", "other") == 0


def test_redis_by_its_command(server: Server, tmp_path: Path) -> None:
    (tmp_path / "fenced_set.lua").write_text(block("Redis and Valkey", "lua"))
    assert "`fenced_set.lua`" in section("Redis and Valkey")
    line = block("Redis and Valkey", "sh").replace("localhost:6379", f"127.0.0.1:{server.port}")
    for fence, text, answer in ((65, "two words", "1"), (33, "late", "0")):
        variables = {**os.environ, "REDLATCH_FENCE": str(fence), "text": text}
        done = run_to_end(["sh", "-euc", line], tmp_path, env=variables, joins=True)
        assert (done.returncode, done.stdout) == (0, f"{answer}\n")
    assert server.cmd("HGET", "report", "value") == b"two words"


# ---- SQL -----------------------------------------------------------------------------------------


def test_sqlite(tmp_path: Path, seed: int) -> None:
    table, write = blocks(section("SQLite"), "sql")
    database = sqlite3.connect(tmp_path / "database")
    database.execute(table)
    fences = some_fences(seed, 100)
    for fence, is_applied, highest in zip(fences, applied_of(fences), highest_of(fences)):
        with database:
            count = database.execute(write, ("a", f"by {fence}", fence)).rowcount
            assert count == is_applied
            assert database.execute("SELECT changes()").fetchall() == [(count,)]
        rows = database.execute("SELECT id, body, fence FROM report").fetchall()
        assert rows == [("a", f"by {highest}", highest)]
    # Another row has a fence of its own.
    assert database.execute(write, ("b", "text", 1)).rowcount == 1
    database.close()


@pytest.fixture(scope="module")
def running_postgres() -> Iterator[Postgres]:
    with Postgres() as running:
        yield running


@pytest.fixture
def postgres(running_postgres: Postgres) -> Postgres:
    """With the table of the page, which is empty."""
    running_postgres.run("DROP TABLE IF EXISTS report;" + blocks(section("PostgreSQL"), "sql")[0])
    return running_postgres


def prepared() -> str:
    """The statement of the page, as drivers send it."""
    statement = blocks(section("PostgreSQL"), "sql")[1]
    return f"PREPARE fenced_write (text, text, bigint) AS {statement}\n"


def write_of(fence: int) -> str:
    return f"EXECUTE fenced_write('a', 'by {fence}', {fence});\n"


ALL_ROWS = "SELECT id, body, fence FROM report;\n"


def test_postgresql(postgres: Postgres, seed: int) -> None:
    fences = some_fences(seed, 100)
    steps = [f"\\echo #\n{write_of(fence)}\\echo +\n{ALL_ROWS}" for fence in fences]
    said = postgres.run(prepared() + "".join(steps)).split("#\n")[1:]
    expected = [
        f"{highest}\n+\n{row}" if is_applied else f"+\n{row}"
        for is_applied, highest in zip(applied_of(fences), highest_of(fences))
        for row in [f"a|by {highest}|{highest}\n"]
    ]
    assert said == expected


# The row is locked while the trigger runs, so that the numbers are the order of the writes.
RECORD = """
DROP TABLE IF EXISTS history;
CREATE TABLE history (number bigserial, fence bigint);
CREATE OR REPLACE FUNCTION record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO history (fence) VALUES (NEW.fence); RETURN NULL; END $$;
CREATE TRIGGER record AFTER INSERT OR UPDATE ON report FOR EACH ROW EXECUTE FUNCTION record();
"""


def test_postgresql_with_many_clients(postgres: Postgres, seed: int) -> None:
    postgres.run(RECORD)
    shares = shares_of(seed)
    scripts = [prepared() + "".join(map(write_of, share)) for share in shares]
    with ThreadPoolExecutor(WRITERS) as pool:
        applied = [int(line) for said in pool.map(postgres.run, scripts) for line in said.split()]
    recorded = postgres.run("SELECT fence FROM history ORDER BY number")
    history = [int(line) for line in recorded.split()]
    assert history == sorted(history) == sorted(applied)
    highest = max(map(max, shares))
    assert postgres.run(ALL_ROWS) == f"a|by {highest}|{highest}\n"


WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


def test_postgresql_in_a_transaction(postgres: Postgres) -> None:
    """A write with another fence waits for the end of the transaction that wrote."""
    with postgres.start_psql() as first:
        assert first.stdin and first.stdout
        first.stdin.write(f"{prepared()}BEGIN;\n{write_of(65)}")
        first.stdin.flush()
        assert first.stdout.readline() == "65\n"
        with ThreadPoolExecutor() as pool:
            late = pool.submit(postgres.run, prepared() + write_of(33))
            wait_until(lambda: postgres.run(WAITING) == "1\n")
            assert not late.done()
            first.stdin.write("COMMIT;\n")
            first.stdin.close()
            assert late.result(LIMIT) == ""
        assert first.wait(LIMIT) == 0
    assert postgres.run(ALL_ROWS) == "a|by 65|65\n"


def test_mysql_is_said_not_to_be_run() -> None:
    said = section("MySQL and MariaDB").lstrip()
    assert said.startswith("The tests do not run this text: they have no such server.\n")


# ---- a file --------------------------------------------------------------------------------------


def shares_of(seed: int) -> list[list[int]]:
    """The fences of each writer: those of all rise on the whole."""
    fences = some_fences(seed, WRITERS * FENCES_OF_A_WRITER)
    return [fences[writer::WRITERS] for writer in range(WRITERS)]


WRITER = """
import sys
from redlatch.fenced import write_file

for fence in map(int, sys.stdin.read().split()):
    line = b"%d\\n" % fence
    if write_file("report", line * (1 + fence // 32 % 2000), fence):
        print(fence)
"""
SHELL_WRITER = f"""
set -eu
while read -r fence; do
  code=0
  yes $fence | head -n $((1 + fence / 32 % 2000)) | sh fenced_write.sh report $fence || code=$?
  case $code in 0) echo $fence ;; {REFUSED}) ;; *) exit $code ;; esac
done
"""
BY_PYTHON = [sys.executable, "-c", WRITER]
BY_SHELL = ["sh", "-c", SHELL_WRITER]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    script = block("A file", "sh")
    assert file_of(script) == "fenced_write.sh" and f"Exit code {REFUSED}:" in script
    (tmp_path / "fenced_write.sh").write_text(script)
    return tmp_path


def start_writer(command: list[str], fences: list[int], folder: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    running = subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, text=True)
    assert running.stdin
    running.stdin.write("".join(f"{fence}\n" for fence in fences))
    running.stdin.close()
    return running


def fence_in(content: bytes) -> int:
    """Of one write; a content of two writes, or of a part of one, fails."""
    line = content[: content.index(b"\n") + 1]
    fence = int(line)
    assert content == line * (1 + fence // 32 % 2000)
    return fence


@pytest.mark.parametrize(
    "commands",
    [[BY_PYTHON], [BY_SHELL], [BY_PYTHON, BY_SHELL]],
    ids=["python", "shell", "mixed"],
)
def test_a_file_with_many_writers(commands: list[list[str]], folder: Path, seed: int) -> None:
    shares, path, seen = shares_of(seed), folder / "report", [0]
    writers = [
        start_writer(commands[number % len(commands)], share, folder)
        for number, share in enumerate(shares)
    ]
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            seen.append(fence_in(path.read_bytes()))
    applied = []
    for writer in writers:
        assert writer.stdout and writer.wait(LIMIT) == 0
        applied += [int(line) for line in writer.stdout]
        writer.stdout.close()
    highest = max(map(max, shares))
    assert seen == sorted(seen)
    assert fence_in(path.read_bytes()) == highest == max(applied)
    assert set(seen) - {0} <= set(applied)
    assert (folder / "report.fence").read_text() == f"{highest}\n"
    assert not (folder / "report.fence.new").exists()


def write_by_shell(folder: Path, fence: str, text: str = "text\n") -> int:
    command = ["sh", "fenced_write.sh", "report", fence]
    return subprocess.run(command, cwd=folder, input=text, text=True, check=False).returncode


def test_the_script_follows_the_rule(folder: Path, seed: int) -> None:
    fences = some_fences(seed, 30)
    for fence, is_applied, highest in zip(fences, applied_of(fences), highest_of(fences)):
        code = write_by_shell(folder, str(fence), f"by {fence}\n")
        assert code == (0 if is_applied else REFUSED)
        assert (folder / "report").read_text() == f"by {highest}\n"


@pytest.mark.parametrize("fence", ["", "0", "no"])
def test_the_script_refuses_what_is_no_fence(folder: Path, fence: str) -> None:
    assert write_by_shell(folder, fence) == REFUSED
    assert not (folder / "report").exists()
    assert write_by_shell(folder, "33") == 0
    assert write_by_shell(folder, fence) == REFUSED
    assert (folder / "report.fence").read_text() == f"{33:016}\n"


@pytest.mark.parametrize("step", ["cat", "mv"])
def test_the_script_fails_in_the_middle(folder: Path, step: str) -> None:
    """A full disk leaves no part of the data, and lets no earlier holder in."""
    assert write_by_shell(folder, "33", "old\n") == 0
    script = folder / "fenced_write.sh"
    whole = script.read_text()
    assert whole.count(f"\n{step} ") == 1
    script.write_text(whole.replace(f"\n{step} ", "\nfalse "))
    assert write_by_shell(folder, "65", "new\n") not in (0, REFUSED)
    script.write_text(whole)
    assert write_by_shell(folder, "33", "late\n") == REFUSED
    assert (folder / "report").read_text() == "old\n"
    assert write_by_shell(folder, "65", "new\n") == 0
    assert (folder / "report").read_text() == "new\n"


def test_the_block_in_python(server: Server, folder: Path) -> None:
    code = block("A file", "python").replace("localhost:6379", f"127.0.0.1:{server.port}")
    (folder / "first.py").write_text(code)
    command = [sys.executable, "first.py"]
    for _ in range(2):
        done = run_to_end(command, folder, joins=True)
        assert (done.returncode, done.stdout) == (0, "")
    assert (folder / "report.txt").read_text() == "the new text\n"
    (folder / "report.txt.fence").write_text(f"{2**53 - 1}\n")
    done = run_to_end(command, folder, joins=True)
    assert (done.returncode, done.stdout) == (1, "a later holder has written\n")
