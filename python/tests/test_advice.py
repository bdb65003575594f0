# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what redis-py has, and what a newcomer tries first, is answered with what to write."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import warnings
from typing import Any

import pytest
import redlatch

from .conftest import Run

OF_REDIS_PY = [
    ("blocking_timeout", 5, "the time to wait is `timeout` here, and redis-py's"),
    ("blocking", False, "one try is `timeout=0`"),
    ("sleep", 0.1, "leave it out: a waiter is notified"),
    ("thread_local", False, "leave it out: any thread may release"),
]


@pytest.mark.parametrize(("keyword", "value", "advice"), OF_REDIS_PY)
@pytest.mark.parametrize("call", ["lock", "acquire", "rlock"])
def test_keywords_of_redis_py(call: str, keyword: str, value: Any, advice: str) -> None:
    with redlatch.connect("redis://h", wait=None) as client:
        with pytest.raises(TypeError) as caught:
            getattr(client, call)("report", **{keyword: value})
    said = str(caught.value)
    assert said.startswith(f"{call}() got an unexpected keyword argument '{keyword}': {advice}")


def test_keywords_of_redis_py_in_the_acquire_of_a_lock(run: Run) -> None:
    async def in_asyncio(lock: Any) -> None:
        await lock.acquire(blocking_timeout=5)

    said = re.escape("acquire() got an unexpected keyword argument 'blocking_timeout': the time")
    with redlatch.connect("redis://h", wait=None) as client:
        for lock in (client.lock("report"), client.rlock("report")):
            with pytest.raises(TypeError, match=said):
                lock.acquire(blocking_timeout=5)  # type: ignore[arg-type]
        for other in (client.aio.lock("report"), client.aio.rlock("report")):
            with pytest.raises(TypeError, match=said):
                run(in_asyncio(other))
        with pytest.raises(TypeError, match="'nonsense'$"):
            client.lock("report").acquire(nonsense=5)  # type: ignore[arg-type]


# ---- with client.acquire(..) ---------------------------------------------------------------------


def test_a_busy_acquire_is_not_for_with(
    client: redlatch.Client, other: redlatch.Client
) -> None:
    advice = re.escape(
        "client.acquire('report') returns None when the lock is busy: it is not for `with`; "
        "client.lock('report') is"
    )
    with other.lock("report"):
        with pytest.warns(RuntimeWarning, match=advice) as caught, pytest.raises(TypeError):
            with client.acquire("report", timeout=0) as lease:  # type: ignore[union-attr]
                assert lease
        assert caught[0].filename == __file__


def test_a_busy_acquire_of_each_kind_is_not_for_with(
    client: redlatch.Client, other: redlatch.Client
) -> None:
    lock: Any = client.rwlock("report")
    nested: Any = client.rlock("report", timeout=0)
    with other.lock("report"):
        with pytest.warns(RuntimeWarning, match="; write\\(\\) is"), pytest.raises(TypeError):
            with lock.acquire_write(timeout=0):
                pass
        with pytest.warns(RuntimeWarning, match="; read\\(\\) is"), pytest.raises(TypeError):
            with lock.acquire_read(timeout=0):
                pass
        pool: Any = client.semaphore("report", 2, timeout=0)
        with pytest.warns(RuntimeWarning, match="client.semaphore"), pytest.raises(TypeError):
            with pool.acquire():
                pass
        with pytest.warns(RuntimeWarning, match="client.rlock"), pytest.raises(TypeError):
            with nested.acquire():
                pass


def test_a_busy_acquire_elsewhere_says_nothing(
    client: redlatch.Client, other: redlatch.Client
) -> None:
    with other.lock("report"), warnings.catch_warnings():
        warnings.simplefilter("error")
        lease = client.acquire("report", timeout=0)
        assert lease is None
        with client.acquire("report", timeout=0) or threading.Lock():
            pass
        with client.lock("report 2") as free:
            assert free.held and client.acquire("report", timeout=0) is None


# ---- constructors and connect() ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "by"),
    [
        ("Lock", "client.lock(name), where client = redlatch.connect('redis://localhost:6379')"),
        ("RLock", "client.rlock(name), where client"),
        ("RWLock", "client.rwlock(name), where client"),
        ("Semaphore", "client.semaphore(name, limit), where client"),
        ("AsyncSemaphore", "client.aio.semaphore(name, limit), where client"),
        ("AsyncLock", "client.aio.lock(name), where client"),
        ("AsyncRLock", "client.aio.rlock(name), where client"),
        ("AsyncRWLock", "client.aio.rwlock(name), where client"),
        ("Client", "redlatch.connect('redis://localhost:6379')"),
    ],
)
def test_classes_say_what_makes_them(kind: str, by: str) -> None:
    for arguments in ((), ("report",), (object(), "report", 3, 4, 5, 6)):
        with pytest.raises(TypeError) as caught:
            getattr(redlatch, kind)(*arguments)
        assert str(caught.value).startswith(f"redlatch.{kind} is made by {by}")


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((), {"host": "db1"}, "redlatch.connect('redis://db1:6379') (got host)"),
        ((), {"host": "db1", "port": 7}, "redlatch.connect('redis://db1:7') (got host and port)"),
        ((), {}, "redlatch.connect('redis://localhost:6379') (got 0 positional arguments)"),
        (("db1", 7), {}, "redlatch.connect('redis://localhost:6379') (got 2 positional arguments)"),
        (("redis://h",), {"port": 7}, "redlatch.connect('redis://localhost:7') (got port)"),
    ],
)
def test_connect_says_that_it_takes_a_url(
    arguments: tuple[Any, ...], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(TypeError) as caught:
        redlatch.connect(*arguments, **options)
    assert str(caught.value) == f"connect() takes one URL: {said}"


def test_the_package_is_not_the_command() -> None:
    command = [sys.executable, "-m", "redlatch", "run", "report", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    said = r"redlatch: the command is not run by -m: \S*redlatch --help\n"
    assert re.fullmatch(said, done.stderr), done.stderr
