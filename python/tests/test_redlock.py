# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a Redlock is used as a client is, by threads and by asyncio, and says which node is wrong.

Method: three servers, of which tests stop some; what is on each is read by a client of its own.
What a lock on most of them means is tested in tests/conformance and tests/system.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Callable

import pytest
import redlatch
from support.servers import Server, available_kinds
from support.wait import wait_until

from .conftest import Forking, Run

Nodes = list[Server]
OPTIONS: dict[str, Any] = {"restart_guard": False, "node_timeout": 5}
Open = Callable[..., redlatch.Redlock]


@pytest.fixture(scope="module")
def shared_nodes() -> Iterator[Nodes]:
    with Server(available_kinds()[0]) as a, Server(available_kinds()[-1]) as b:
        with Server(available_kinds()[0]) as c:
            yield [a, b, c]


@pytest.fixture
def nodes(shared_nodes: Nodes) -> Iterator[Nodes]:
    """Empty, and running."""
    for node in shared_nodes:
        with node.connect() as connection:
            connection.cmd("FLUSHALL")
    yield shared_nodes
    for node in shared_nodes:
        if node.is_running:
            node.resume()
        else:
            node.start()


def urls_of(nodes: Nodes) -> list[str]:
    """Of both kinds."""
    return [nodes[0].url, *(node.unix_url for node in nodes[1:])]


@pytest.fixture
def opened(nodes: Nodes) -> Iterator[Open]:
    """Opens a Redlock over the nodes, which are younger than any guard.

    Its rounds have time enough that a busy machine leaves no node out.
    """
    made: list[redlatch.Redlock] = []

    def open_it(**options: Any) -> redlatch.Redlock:
        made.append(redlatch.Redlock(urls_of(nodes), **{**OPTIONS, **options}))
        return made[-1]

    yield open_it
    for one in made:
        one.close()


@pytest.fixture
def redlock(opened: Open) -> redlatch.Redlock:
    return opened()


@pytest.fixture
def other(opened: Open) -> redlatch.Redlock:
    return opened()


def holding(nodes: Nodes, name: str) -> int:
    """On how many of them somebody holds the lock."""
    count = 0
    for node in nodes:
        with redlatch.connect(node.url) as client:
            count += not client.inspect(name).is_free
    return count


def vacate(nodes: Nodes, name: str) -> None:
    """Wait until it is free everywhere: the last answers to a release are not waited for."""
    wait_until(lambda: holding(nodes, name) == 0)


# ---- threads -------------------------------------------------------------------------------------


def test_keywords_reach_the_nodes(
    redlock: redlatch.Redlock, other: redlatch.Redlock, nodes: Nodes
) -> None:
    with redlock.lock("words", timeout=5, ttl=20, label="nightly"):
        wait_until(lambda: holding(nodes, "words") == 3)
        assert not other.lock("words").locked()  # here: the nodes are not asked
        for node in nodes:
            with redlatch.connect(node.url) as client:
                [holder] = client.inspect("words").holders
                assert holder.label == "nightly" and holder.remaining is not None
                assert 10 < holder.remaining <= 20
    for keywords in ({"ttl": 0.2, "renew": False}, {"max_hold": 0.2}):
        lease = redlock.acquire("end", timeout=5, **keywords)  # type: ignore[arg-type]
        assert lease is not None and lease.remaining <= 0.2
        assert lease.wait_lost(timeout=20)
        vacate(nodes, "end")


# ---- wrong arguments -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("urls", "kind", "words"),
    [
        ("redis://a", TypeError, r"urls must be a list of URLs \(got str\)"),
        (b"redis://a", TypeError, r"\(got bytes\)"),
        ([1], TypeError, r"url must be str or bytes \(got int\)"),
        (None, TypeError, "not iterable"),
        ([], ValueError, r"urls must be an odd number of URLs \(got none\)"),
        (["redis://a", "", "redis://b"], ValueError, r"urls\[1\] must be one URL"),
        (["redis://a redis://b"], ValueError, r"urls\[0\]"),
        (["redis://a", "redis://b"], ValueError, "odd number"),
    ],
)
def test_wrong_urls_are_refused(urls: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        redlatch.Redlock(urls)


@pytest.mark.parametrize(
    "options",
    [
        {"restart_guard": 0.5},
        {"restart_guard": True},
        {"restart_guard": "never"},
        {"durable": "perhaps"},
        {"fenced": 2},
        {"node_timeout": -1},
        {"node_timeout": "soon"},
        {"min_validity": -1.0},
        {"restart_gard": 60},
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises((redlatch.Invalid, TypeError), match=next(iter(options))):
        redlatch.Redlock(["redis://a", "redis://b", "redis://c"], **options)


def test_password_is_not_shown() -> None:
    with pytest.raises(redlatch.Invalid) as caught:
        redlatch.Redlock(["redis://:hidden@a redis://b"])
    assert "hidden" not in str(caught.value)
    with redlatch.Redlock(["redis://:hidden@a"], restart_guard=60) as redlock:
        assert "hidden" not in repr(redlock) and "redis://" in repr(redlock)
        assert repr(redlock).startswith("<Redlock ")
    assert "closed" in repr(redlock)


def test_options_can_be_read(opened: Open) -> None:
    names = ("restart_guard", "node_timeout", "min_validity", "namespace")
    redlock = opened(restart_guard=1.5, node_timeout=0.25, min_validity=1, namespace="app:")
    assert [redlock.option(name) for name in names] == ["1500ms", "250ms", "1000ms", "app:"]
    redlock = opened(restart_guard=False, node_timeout=False, min_validity=False)
    assert [redlock.option(name) for name in names] == ["off", "auto", "0", ""]
    with pytest.raises(TypeError, match="connect_timeout must be a number of seconds"):
        opened(connect_timeout=False)
    with pytest.raises(redlatch.Invalid, match=r"off or 1 s to 1 hour \(got 0\)"):
        opened(restart_guard=0)


def test_options_of_a_mutex_alone_are_refused(redlock: redlatch.Redlock) -> None:
    for keyword in ("confirm", "format", "max_local_handoffs", "yield_every", "owner"):
        with pytest.raises(TypeError, match=keyword):
            redlock.lock("words", **{keyword: 1})  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=keyword):
            redlock.aio.lock("words", **{keyword: 1})  # type: ignore[arg-type]
    with pytest.raises(redlatch.Invalid, match="options? .*Redlock|fenced"):
        redlatch.connect("redis://a", wait=None, fenced=True)  # type: ignore[call-arg]


# ---- life ----------------------------------------------------------------------------------------


def test_environment_names_the_nodes(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDLATCH_URL", " ".join(urls_of(nodes)))
    monkeypatch.setenv("REDLATCH_NAMESPACE", "env:")
    with redlatch.Redlock.from_env(**OPTIONS) as redlock:
        assert isinstance(redlock, redlatch.Redlock)
        assert redlock.option("namespace") == "env:"
        assert len(redlock.option("url").splitlines()) == 3
        with redlock.lock("name", timeout=5):
            wait_until(lambda: holding(nodes, "env:name") == 3)


def test_child_has_connections_of_its_own(nodes: Nodes, forking: Forking) -> None:
    forking(
        f"""
redlock = redlatch.Redlock({urls_of(nodes)!r}, restart_guard=False)
lease = redlock.acquire("fork", timeout=5)
def child():
    raises(redlatch.Forked, lease.release)
    assert redlock.acquire("fork", timeout=0) is None
    with redlock.lock("child", timeout=5):
        pass
in_child(child)
assert lease.held and lease.release()
"""
    )


# ---- asyncio -------------------------------------------------------------------------------------


def test_loss_cancels_the_block(run: Run, redlock: redlatch.Redlock, nodes: Nodes) -> None:
    async def main() -> None:
        with pytest.raises(redlatch.LockLost):
            async with redlock.aio.lock("loss", timeout=5, ttl=1, on_lost="cancel"):
                await asyncio.to_thread(wait_until, lambda: holding(nodes, "loss") == 3)
                for node in nodes[:2]:
                    with redlatch.connect(node.url) as client:
                        client.force_release("loss")
                await asyncio.sleep(60)

    run(main())
