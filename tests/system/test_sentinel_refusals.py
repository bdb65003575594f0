# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: sentinels and servers that cannot be used are refused by a message that says what to do,
within the limit of connecting, and nothing is left behind; a replica that a sentinel names is not
believed.

Method: a real group; addresses, names and passwords that do not fit; a sentinel of the test's own
that names what it is told to.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from support.sentinel import NAME, NEVER_MS, Access, Sentinel, SentinelGroup
from support.servers import Server, available_kinds, has_tls
from support.tls import Authority
from support.wait import SLACK_S, wait_until

from .actor import Actor, Reply, Spawn
from .hostile import Command, HostileServer, array, bulk, sentinel_hello


IS_TLS = has_tls(available_kinds()[0])
LIMIT_S = 1.0
LIMITS = {"connect_timeout": "1s", "command_timeout": "1s"}
SECRETS = ("server-secret", "sentinel-secret", "wrong-secret")


@pytest.fixture(scope="module")
def group() -> Iterator[SentinelGroup]:
    """It stays as it is."""
    with SentinelGroup(down_after_ms=NEVER_MS) as running:
        yield running


@pytest.fixture(scope="module")
def closed_group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SentinelGroup]:
    """Its servers and its sentinels have different users and passwords, and speak TLS, too, where
    they can."""
    authority = Authority(tmp_path_factory.mktemp("tls"))
    with SentinelGroup(
        down_after_ms=NEVER_MS,
        access=Access("server-secret"),
        sentinel_access=Access("sentinel-secret", "ops"),
        tls=authority.certificate("IP:127.0.0.1") if IS_TLS else None,
    ) as running:
        yield running


def attempts(actor: Actor, url: str) -> Iterator[Reply]:
    """Opening, if that is refused; else connecting, a try, a wait and another try."""
    opened = actor.call("open", client=1, url=url)
    if opened.status != "RL_OK":
        yield opened
        return
    yield actor.call("connect", client=1, wait=0)
    for wait in (0, 300, 0):
        yield actor.call("acquire", client=1, name="refused", wait=wait, ttl_ms=1000)


def close(actor: Actor) -> None:
    actor.call("shutdown", client=1)
    actor.call("close", client=1)


def check_refused(
    spawn: Spawn, url: str, status: str, *words: str, limit_s: float = LIMIT_S
) -> None:
    """Each says so, and says these words; closing takes everything back."""
    actor = spawn("")
    list(attempts(actor, "redis://127.0.0.1:1"))  # its record is open now
    close(actor)
    before = (actor.descriptor_count, actor.thread_count)
    for reply in attempts(actor, url):
        assert reply.status == status, reply
        for word in words:
            assert word in reply.message, (word, reply.message)
        assert not any(secret in reply.message for secret in SECRETS), reply.message
        assert reply.seconds < limit_s + SLACK_S, reply
    close(actor)
    wait_until(lambda: (actor.descriptor_count, actor.thread_count) == before)


def check_usable(spawn: Spawn, url: str, name: str) -> None:
    actor = spawn(url)
    actor.ok("acquire", name=name, wait=10_000, ttl_ms=1000)
    actor.ok("release")


# ---- what cannot be used ----


def test_a_name_that_no_sentinel_knows(group: SentinelGroup, spawn: Spawn) -> None:
    addresses = [one.address for one in group.sentinels]
    url = group.url("nowhere", **LIMITS)
    check_refused(spawn, url, "RL_E_INVALID", "'nowhere'", *addresses)
    assert group.cmd(group.primary, "DBSIZE") == 0


def test_the_port_of_a_sentinel_as_a_server(group: SentinelGroup, spawn: Spawn) -> None:
    url = f"redis://{group.sentinels[0].address}?connect_timeout=1s"
    check_refused(spawn, url, "RL_E_INVALID", "sentinel", "redis-sentinel://")


def test_a_server_as_a_sentinel(group: SentinelGroup, spawn: Spawn) -> None:
    address = group.primary.url.removeprefix("redis://")
    url = f"redis-sentinel://{address}/{NAME}/0?connect_timeout=1s"
    check_refused(spawn, url, "RL_E_INVALID", address, "redis://")


def test_sentinels_that_nothing_reaches(spawn: Spawn) -> None:
    url = f"redis-sentinel://127.0.0.1:1,127.0.0.1:2/{NAME}/0?connect_timeout=1s"
    check_refused(spawn, url, "RL_E_UNAVAILABLE", "127.0.0.1:1", "127.0.0.1:2", NAME)


def test_sentinels_that_hang(group: SentinelGroup, spawn: Spawn, name: str) -> None:
    """Goal: each has a share of the limit, so that the one that answers is reached, and all that
    hang do not take longer. Method: SIGSTOP of the first two, then of all."""
    try:
        for one in group.sentinels[:2]:
            one.pause()
        actor = spawn(group.url(connect_timeout="2s"))
        assert actor.ok("connect", wait=0).seconds < 2.0 + SLACK_S
        group.sentinels[2].pause()
        check_refused(spawn, group.url(**LIMITS), "RL_E_UNAVAILABLE", group.sentinels[1].address)
    finally:
        for one in group.sentinels:
            one.resume()
    actor.ok("acquire", name=name, wait=0, ttl_ms=1000)
    actor.ok("release")


def test_closing_waits_for_no_sentinel(group: SentinelGroup, spawn: Spawn, name: str) -> None:
    """Goal: a client that still looks for its primary is closed at once. Method: all sentinels are
    stopped, one call connects and one waits for a lock."""
    actor = spawn(group.url(connect_timeout="10s"))
    try:
        for one in group.sentinels:
            one.pause()
        pending = [
            actor.begin("connect", thread=1, wait=-1),
            actor.begin("acquire", thread=2, name=name, wait=-1),
        ]
        wait_until(lambda: actor.thread_count > 4)  # main, three for calls, and those of the client
        assert actor.ok("shutdown").seconds < SLACK_S
        assert {one.get().status for one in pending} == {"RL_E_CLOSED"}
        actor.ok("close")
    finally:
        for one in group.sentinels:
            one.resume()


# ---- passwords and TLS ----

# Six handshakes on a busy machine; a sentinel that has no time for its own is unavailable.
TLS_LIMIT_S = 6.0


def with_password(group: SentinelGroup, **options: str) -> str:
    said = {**LIMITS, "connect_timeout": f"{TLS_LIMIT_S:.0f}s"}
    if group.tls:
        ca = str(group.tls.ca)
        said |= {"tls_ca": ca, "sentinel_tls": "yes", "sentinel_tls_ca": ca}
    return group.url(user=":server-secret", **said, **options)


RIGHT = {"sentinel_user": "ops", "sentinel_password": "sentinel-secret"}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="missing"),
        pytest.param({**RIGHT, "sentinel_password": "wrong-secret"}, id="wrong"),
        # The password of the servers is not the sentinels' own.
        pytest.param({**RIGHT, "sentinel_password": "server-secret"}, id="of the servers"),
    ],
)
def test_a_sentinel_asks_for_a_password(
    closed_group: SentinelGroup, spawn: Spawn, options: dict[str, str]
) -> None:
    url = with_password(closed_group, **options)
    words = [closed_group.sentinels[0].address] + ([] if options else ["sentinel_password"])
    check_refused(spawn, url, "RL_E_DENIED", *words, limit_s=TLS_LIMIT_S)


def test_passwords_and_tls(closed_group: SentinelGroup, spawn: Spawn, name: str) -> None:
    """Goal: sentinels and servers each get what is theirs, also after a failover."""
    url = with_password(closed_group, **RIGHT)
    check_usable(spawn, url, name)
    actor = spawn(url)
    actor.ok("acquire", name=name, wait=0, ttl_ms=8000)
    closed_group.await_same()
    old = closed_group.primary
    closed_group.failover()
    closed_group.await_left(old)
    actor.ok("release")
    check_usable(spawn, url, name)
    wrong = url.replace(":server-secret@", ":wrong-secret@")
    check_refused(spawn, wrong, "RL_E_DENIED", limit_s=TLS_LIMIT_S)


@pytest.mark.needs(IS_TLS)
def test_sentinels_whose_certificate_is_not_trusted(
    closed_group: SentinelGroup, spawn: Spawn
) -> None:
    """Goal: the authorities of the servers are not those of the sentinels."""
    url = with_password(closed_group, **RIGHT)
    ours = f"&sentinel_tls_ca={closed_group.tls.ca if closed_group.tls else ''}"
    assert ours in url
    words = ["certificate", "sentinel_tls_ca"]
    check_refused(spawn, url.replace(ours, ""), "RL_E_DENIED", *words, limit_s=TLS_LIMIT_S)


# ---- a sentinel that is wrong ----


class Naming:
    """A sentinel of the test's own."""

    def __init__(self, server: Server, epoch: int, others: list[Sentinel]) -> None:
        self.server, self.epoch = server, epoch
        self._others = others
        self.asked = threading.Event()
        self._hostile = HostileServer(self._answer)

    @property
    def address(self) -> str:
        return self._hostile.url.removeprefix("redis://")

    def _answer(self, command: Command) -> list[bytes] | None:
        words = [word.decode().upper() for word in command]
        if words[0] == "HELLO":
            return [sentinel_hello()]
        if words[0] != "SENTINEL":
            return None
        self.asked.set()
        host, port = self.server.host, str(self.server.port)
        if words[1].startswith("GET-"):
            return [array(bulk(host), bulk(port))]
        if words[1] == "SENTINELS":
            others = [["ip", one.host, "port", str(one.port)] for one in self._others]
            return [array(*(array(*map(bulk, one)) for one in others))]
        facts = ["name", NAME, "ip", host, "port", port, "flags", "master"]
        return [array(*map(bulk, [*facts, "config-epoch", str(self.epoch)]))]

    def close(self) -> None:
        self._hostile.close()

    def __enter__(self) -> Naming:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def test_a_sentinel_that_names_a_replica_is_not_believed(
    group: SentinelGroup, spawn: Spawn, name: str
) -> None:
    """Goal: a server that says that it is no primary gets no command of ours; if others know
    better they are believed. Method: one that names a replica, alone and before the others."""
    replica = group.replicas[0]
    with Naming(replica, 1 << 30, []) as wrong:
        alone = f"redis-sentinel://{wrong.address}/{NAME}/0?connect_timeout=1s"
        address = replica.url.removeprefix("redis://")
        check_refused(spawn, alone, "RL_E_SERVER", address, "replica", wrong.address)
    with Naming(replica, 0, group.sentinels) as wrong:
        url = group.url(**LIMITS).replace("://", f"://{wrong.address},")
        check_usable(spawn, url, name)
        assert wrong.asked.is_set()
    assert replica.script_count() == 0
