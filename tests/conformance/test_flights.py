# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a value that 200 callers want at the same time is computed once, in whatever language.

Method: eight processes, of runners in three languages, start 25 flights each, while another process
holds the lock. It is released once each of the eight has its place in the queue. Each caller would
compute a value of its own. That the count can be another one is shown by callers of two namespaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from support.servers import Server, available_kinds
from support.wait import LIMIT, wait_until

from .runners import Runner

RUNNERS = ("c", "go", "python", "python-aio") * 2
FLIGHTS = range(1, 26)
CALLERS = len(RUNNERS) * len(FLIGHTS)


def opened(stack: ExitStack, command: list[str], server: Server, namespace: str) -> Runner:
    runner = Runner(command)
    stack.callback(runner.kill)
    assert runner.call(f"- open url={server.unix_url} namespace={namespace}") == "OK"
    assert runner.call("- lock id=m kind=mutex name=price") == "OK"
    return runner


def fly_all(commands: dict[str, list[str]], namespaces: Sequence[str]) -> dict[str, str]:
    """The value that each caller would compute, and its reply. The callers of each process are in
    one of `namespaces`."""
    with Server(available_kinds()[0]) as server, ExitStack() as stack:
        holders = {one: opened(stack, commands["c"], server, one) for one in namespaces}
        for holder in holders.values():
            assert holder.call("m acquire wait_ms=0").startswith("OK")
        runners = [
            opened(stack, commands[language], server, namespace)
            for language, namespace in zip(RUNNERS, namespaces)
        ]
        flights = {f"{i}x{n}": (runner, n) for i, runner in enumerate(runners) for n in FLIGHTS}
        for value, (runner, n) in flights.items():
            assert runner.call(f"m flight ttl_ms=600000 value={value} &{n}") == "STARTED"
        with server.connect() as connection:
            for one in holders:
                places = namespaces.count(one)
                queue = f"{one}{{{one}price}}:rl1:q"
                wait_until(lambda: connection.cmd("ZCARD", queue) == places)
        for holder in holders.values():
            assert holder.call("m release") == "OK"
        replies = {
            value: runner.call(f"m wait &{n}", LIMIT) for value, (runner, n) in flights.items()
        }
        for runner in (*runners, *holders.values()):
            runner.end()
    return replies


def computed_in(replies: dict[str, str]) -> list[str]:
    return [own for own, reply in replies.items() if reply == f"OK value={own} computed=1"]


def test_200_callers_compute_a_value_once(commands: dict[str, list[str]]) -> None:
    replies = fly_all(commands, ["app:"] * len(RUNNERS))
    assert len(replies) == CALLERS == 200
    computed = computed_in(replies)
    assert len(computed) == 1
    others = {reply for own, reply in replies.items() if own not in computed}
    assert others == {f"OK value={computed[0]} computed=0"}


def test_callers_of_two_namespaces_compute_it_twice(commands: dict[str, list[str]]) -> None:
    replies = fly_all(commands, ["app:", "other:"] * (len(RUNNERS) // 2))
    assert len(computed_in(replies)) == 2
