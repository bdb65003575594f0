# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: every language and the command find the primary by the URL alone, hold a lock through a
failover, and refuse a wrong name by the same message.

Method: runners of tests/conformance and the command against one group; SENTINEL FAILOVER while they
hold.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance.runners import PREPARE, Runner
from support.build import built
from support.sentinel import NEVER_MS, SentinelGroup
from support.wait import wait_until

TTL_MS = 8000


@pytest.fixture(scope="module")
def group() -> Iterator[SentinelGroup]:
    with SentinelGroup(down_after_ms=NEVER_MS) as running:
        yield running


def held_by(group: SentinelGroup, name: str) -> bool:
    return group.cmd(group.primary, "EXISTS", name) == 1


def fail_over(group: SentinelGroup) -> None:
    group.await_same()
    old = group.primary
    group.failover()
    group.await_left(old)


def check_renewed(group: SentinelGroup, name: str) -> None:
    """After a failover, by EXTEND at once."""
    wait_until(lambda: int(str(group.cmd(group.primary, "PTTL", name))) > TTL_MS - 500)


@pytest.mark.not_judged  # these runners write no records
def test_every_language_by_its_url(group: SentinelGroup, tmp_path: Path) -> None:
    languages = ("python", "python-aio", "go", "java", "c-queue")
    runners = {}
    try:
        for language in languages:
            runners[language] = runner = Runner(PREPARE[language](tmp_path))
            assert runner.call(f"- open url={group.url()}").startswith("OK")
            made = f"- lock id=k kind=mutex name={language} ttl_ms={TTL_MS}"
            assert runner.call(made).startswith("OK")
            assert runner.call("k acquire wait_ms=0").startswith("OK"), language
            assert held_by(group, language)
        fail_over(group)
        for language, runner in runners.items():
            check_renewed(group, language)
            assert runner.call("k release").startswith("OK"), language
            assert not held_by(group, language)
            assert runner.call("k acquire wait_ms=5000").startswith("OK"), language
            assert runner.call("k release").startswith("OK"), language
            runner.end()
    finally:
        for runner in runners.values():
            runner.kill()


@pytest.mark.not_judged
def test_the_command_by_its_url(group: SentinelGroup, name: str) -> None:
    group.await_ready(1)
    redlatch = str(built("cli/redlatch"))
    url = ["--url", group.url()]
    run = [redlatch, "run", *url, "--ttl", f"{TTL_MS}ms", name, "--", "sh", "-c", "echo; cat"]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin and running.stdout
        try:
            running.stdout.readline()
            assert held_by(group, name)
            fail_over(group)
            check_renewed(group, name)
            running.stdin.close()
            assert running.wait(30) == 0
        finally:
            running.kill()
    assert not held_by(group, name)
    wrong = [redlatch, "status", "--url", group.url("nowhere"), name]
    done = subprocess.run(wrong, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode != 0 and "nowhere" in done.stderr, done
