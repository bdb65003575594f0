# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: with TLS, what a lock promises is promised, and who cannot prove who it is gets nothing.

Method: a real server with certificates of all kinds; the network and the host in its way.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redlatch
from support.build import built
from support.servers import Server
from support.tls import Authority, Certificate
from support.wait import LIMIT, wait_until

from .actor import HELD, Actor, Spawn
from .conftest import kill_connections
from .proxy import FaultProxy


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> Certificate:
    return authority.certificate("DNS:localhost", "IP:127.0.0.1")


@pytest.fixture
def tls_server(certificate: Certificate) -> Iterator[Server]:
    with Server("redis", tls=certificate) as running:
        yield running


def through(proxy: FaultProxy, server: Server) -> str:
    assert server.tls
    return f"{proxy.url.replace('redis:', 'rediss:')}?tls_ca={server.tls.ca}"


def check_refused(spawn: Spawn, url: str, status: str, *words: str) -> None:
    """One try and a wait both say so, the latter without using up its time."""
    actor = spawn(url)
    for wait in (0, 10_000):
        reply = actor.call("acquire", name="refused", wait=wait)
        assert reply.status == status, reply
        for word in words:
            assert word in reply.message, (word, reply.message)
        assert reply.seconds < 5.0


# ---- who is whom ----


def test_the_host_may_be_a_name_or_an_address(tls_server: Server, spawn: Spawn, name: str) -> None:
    for host in ("127.0.0.1", "localhost"):
        actor = spawn(tls_server.trusting_url.replace("127.0.0.1", host))
        actor.ok("acquire", name=name, wait=0)
        actor.ok("release")


def test_an_unknown_authority(tls_server: Server, spawn: Spawn, tmp_path: Path) -> None:
    """Method: none named, so those of the system; then another one."""
    url = tls_server.tls_url
    other = Authority(tmp_path, "other")
    check_refused(spawn, url, "RL_E_DENIED", url, "self-signed", "tls_ca")
    check_refused(spawn, f"{url}?tls_ca={other.ca}", "RL_E_DENIED", url, "self-signed", "tls_ca")


def test_authorities_of_the_system(tls_server: Server, name: str) -> None:
    """Method: a system that has ours in its list; OpenSSL itself reads where that is."""
    assert tls_server.tls
    with Actor(wrapper=["env", f"SSL_CERT_FILE={tls_server.tls.ca}"]) as actor:
        actor.ok("open", url=tls_server.tls_url)
        actor.ok("acquire", name=name, wait=0)
        actor.ok("release")


def test_authorities_may_be_a_folder(tls_server: Server, spawn: Spawn, tmp_path: Path) -> None:
    """Method: with names made of their hashes, as openssl-rehash(1) makes them."""
    assert tls_server.tls
    words = ["openssl", "x509", "-hash", "-noout", "-in", str(tls_server.tls.ca)]
    digest = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    url = tls_server.tls_url + f"?tls_ca={tmp_path}"
    check_refused(spawn, url, "RL_E_DENIED", "tls_ca")
    shutil.copy(tls_server.tls.ca, tmp_path / f"{digest}.0")
    spawn(url).ok("connect")


def test_a_certificate_for_another(authority: Authority, spawn: Spawn) -> None:
    with Server("redis", tls=authority.certificate("DNS:elsewhere", "IP:127.0.0.2")) as server:
        check_refused(spawn, server.trusting_url, "RL_E_DENIED", "not for '127.0.0.1'")
        by_name = server.trusting_url.replace("127.0.0.1", "localhost")
        check_refused(spawn, by_name, "RL_E_DENIED", "not for 'localhost'")
        spawn(server.trusting_url + "&tls_verify=ca").ok("connect")
        spawn(server.trusting_url + "&tls_sni=elsewhere").ok("connect")


def test_a_certificate_that_has_expired(authority: Authority, spawn: Spawn) -> None:
    expired = authority.certificate("IP:127.0.0.1", is_expired=True)
    with Server("redis", tls=expired) as server:
        check_refused(spawn, server.trusting_url, "RL_E_DENIED", "expired")
        check_refused(spawn, server.trusting_url + "&tls_verify=ca", "RL_E_DENIED", "expired")
        spawn(server.tls_url + "?tls_verify=none").ok("connect")


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_server_that_asks_who_we_are(
    authority: Authority, certificate: Certificate, spawn: Spawn, tmp_path: Path, version: str
) -> None:
    args = ["--tls-auth-clients", "yes", "--tls-protocols", version]
    ours, theirs = authority.certificate("DNS:us"), Authority(tmp_path, "x").certificate("DNS:us")
    with Server("redis", args, tls=certificate) as server:
        url = server.trusting_url
        check_refused(spawn, url, "RL_E_DENIED", "refused", "alert")
        spawn(f"{url}&tls_cert={ours.cert}&tls_key={ours.key}").ok("connect")
        shown = f"{url}&tls_cert={theirs.cert}&tls_key={theirs.key}"
        check_refused(spawn, shown, "RL_E_DENIED", "unknown ca")
        mixed = f"{url}&tls_cert={ours.cert}&tls_key={theirs.key}"
        check_refused(spawn, mixed, "RL_E_INVALID", "'tls_key'", "mismatch")
        bad = f"{url}&tls_cert={ours.key}&tls_key={ours.key}"
        check_refused(spawn, bad, "RL_E_INVALID", "'tls_cert'", str(ours.key))


def test_a_key_with_a_passphrase(tls_server: Server, authority: Authority) -> None:
    """Goal: nobody is asked for it. Method: a process with a terminal, on which OpenSSL would."""
    ours = authority.certificate("DNS:us")
    locked = ours.key.with_suffix(".locked")
    words = ["openssl", "pkey", "-in", str(ours.key), "-aes128", "-passout", "pass:secret"]
    subprocess.run([*words, "-out", str(locked)], check=True)
    url = f"{tls_server.trusting_url}&tls_cert={ours.cert}&tls_key={locked}"
    child, terminal = pty.fork()
    if child == 0:
        command = str(built("cli/redlatch"))
        os.execv(command, [command, "--url", url, "run", "-n", "x", "true"])
    said = b""
    with contextlib.suppress(OSError):  # its end, on a terminal
        while select.select([terminal], [], [], LIMIT)[0]:
            said += os.read(terminal, 1024)
    os.close(terminal)
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 64, said
    assert b"tls_key" in said and b"phrase" not in said


def test_pipe_as_a_certificate_file_is_not_read(
    certificate: Certificate, spawn: Spawn, name: str, tmp_path: Path
) -> None:
    """Goal: limits are kept.
    Method: a pipe that nobody writes to, at first and in a file's place; then nothing."""
    pipe, moved = tmp_path / "pipe", tmp_path / "ca.pem"
    os.mkfifo(pipe)
    shutil.copy(certificate.ca, moved)
    with Server("redis", tls=certificate) as server:
        with Actor() as actor:
            reply = actor.call("open", url=f"{server.tls_url}?tls_ca={pipe}")
            assert reply.status == "RL_E_INVALID" and str(pipe) in reply.message
        actor = spawn(f"{server.tls_url}?tls_ca={moved}")
        actor.ok("acquire", name=name, wait=0)
        pipe.rename(moved)
        kill_connections(server)
        reply = actor.call("acquire", lease=1, name=name + "2", wait=2000)
        assert reply.status == "RL_E_INVALID" and str(moved) in reply.message, reply
        moved.unlink()
        reply = actor.call("acquire", lease=1, name=name + "2", wait=2000)
        assert reply.status == "RL_E_INVALID" and "No such file" in reply.message, reply


def test_an_old_version(certificate: Certificate, spawn: Spawn) -> None:
    with Server("redis", ["--tls-protocols", "TLSv1.1"], tls=certificate) as server:
        check_refused(spawn, server.trusting_url, "RL_E_UNSUPPORTED", "version")


def test_a_server_without(tls_server: Server, spawn: Spawn, name: str) -> None:
    """Method: each scheme at the other's port. A port may change: a wait goes on."""
    limits = "connect_timeout=200ms"
    plain, sealed = tls_server.url, tls_server.tls_url
    for url in (plain.replace("redis:", "rediss:"), sealed.replace("rediss:", "redis:")):
        reply = spawn(f"{url}?{limits}").call("acquire", name=name, wait=600)
        assert reply.status == "RL_E_UNAVAILABLE", reply
        assert url in reply.message
        assert 0.6 <= reply.seconds < 5.0


@pytest.mark.not_judged
def test_a_host_without_openssl(tls_server: Server, name: str) -> None:
    """Goal: TLS is refused by a message that names what is missing; all else works.
    Method: a mount namespace in which the library is an empty file."""
    ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin:" + os.environ["PATH"])
    assert ldconfig
    listed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"libssl\.so\.3 .* => (\S+)", listed)
    assert found
    hide = f'mount --bind /dev/null {Path(found[1]).resolve()} && exec "$@"'
    space = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*space, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("a host without OpenSSL: needs user and mount namespaces")
    wrapper = [*space, "sh", "-c", hide, "sh"]
    with Actor(wrapper=wrapper) as actor:
        actor.ok("open", url=tls_server.trusting_url)
        reply = actor.call("acquire", name=name, wait=10_000)
        assert reply.status == "RL_E_UNSUPPORTED"
        assert "OpenSSL 3" in reply.message and "libssl.so.3" in reply.message
        actor.ok("open", client=1, url=tls_server.url)
        actor.ok("acquire", client=1, name=name, wait=0)


# ---- what happens on the way ----


def test_certificates_are_renewed_while_we_run(
    certificate: Certificate, spawn: Spawn, name: str, tmp_path: Path
) -> None:
    """Goal: files are read anew at each connecting.
    Method: the server and its authority change while a lock is held, then our file does."""
    new = Authority(tmp_path, "new").certificate("IP:127.0.0.1")
    ours = tmp_path / "ca.pem"
    shutil.copy(certificate.ca, ours)
    with Server("redis", tls=certificate) as server:
        actor = spawn(f"{server.tls_url}?tls_ca={ours}&connect_timeout=1s")
        actor.ok("acquire", name=name, wait=0, ttl_ms=20_000)
        with server.connect() as connection:
            names = ("tls-cert-file", "tls-key-file", "tls-ca-cert-file")
            pairs = zip(names, (new.cert, new.key, new.ca))
            connection.cmd("CONFIG", "SET", *(str(word) for pair in pairs for word in pair))
        kill_connections(server)
        assert actor.call("acquire", lease=1, name=name + "2", wait=2000).status == "RL_E_DENIED"
        assert actor.ok("look").number("state") == HELD
        shutil.copy(new.ca, ours)
        wait_until(lambda: actor.call("connect").status == "RL_OK")
        actor.ok("extend", ttl_ms=20_000)
        actor.ok("release")


def test_the_system_may_ask_for_more(
    certificate: Certificate, name: str, tmp_path: Path
) -> None:
    """Goal: the oldest version is that of the system's policy, where that is newer than ours.
    Method: a policy of 1.3 for a server of 1.2."""
    policy = tmp_path / "openssl.cnf"
    sections = "openssl_conf=a\n[a]\nssl_conf=b\n[b]\nsystem_default=c\n[c]\n"
    policy.write_text(f"{sections}MinProtocol=TLSv1.3\n")
    with Server("redis", ["--tls-protocols", "TLSv1.2"], tls=certificate) as server:
        with Actor(wrapper=["env", f"OPENSSL_CONF={policy}"]) as actor:
            actor.ok("open", url=server.trusting_url)
            assert actor.call("acquire", name=name, wait=0).status == "RL_E_UNSUPPORTED"
        with Actor(server.trusting_url) as actor:
            actor.ok("acquire", name=name, wait=0)


def test_a_wait_outlasts_a_bad_network(tls_server: Server, spawn: Spawn, name: str) -> None:
    """Goal: what may pass ends no wait, also in the middle of a handshake.
    Method: bytes changed from the first one on, until some attempts were made."""
    with FaultProxy(tls_server.tls_port) as proxy:
        proxy.garbles = True
        actor = spawn(through(proxy, tls_server))
        reply = actor.call("acquire", name=name, wait=100)
        assert reply.status == "RL_E_UNAVAILABLE" and "over TLS" in reply.message, reply
        waiting = actor.begin("acquire", name=name, wait=-1)
        seen = proxy.link_count
        wait_until(lambda: proxy.link_count > seen + 1)
        proxy.garbles = False
        assert waiting.get().status == "RL_OK"
        actor.ok("release")


def check_exclusion(mine: Any, other: Any, is_waiting: Callable[[], bool]) -> redlatch.Lease:
    """A try is refused, and a wait gets what was held; that is given back too."""
    held = mine.acquire(timeout=0)
    assert held is not None and other.acquire(timeout=0) is None
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(other.acquire, timeout=LIMIT)
        wait_until(is_waiting)
        assert held.release()
        lease: redlatch.Lease = waiting.result()
    assert lease.held and lease.fence > held.fence and lease.release()
    return lease


def test_several_names_and_permits(tls_server: Server, name: str) -> None:
    """Method: 64 names of about 1 KiB, as a record of TLS has 16 KiB at most."""
    names, pool = [f"{name}-{i:02}" + "x" * 900 for i in range(64)], f"{name}-pool"
    url = tls_server.trusting_url
    with redlatch.connect(url) as one, redlatch.connect(url) as two:

        def has_waiter(name: str) -> bool:
            return one.inspect(name).waiting == 1

        first = min(names)
        mine, other = one.lock_all(names), two.lock_all(names[::-1])
        lease = check_exclusion(mine, other, lambda: has_waiter(first))
        assert list(lease.fences) == names[::-1] and min(lease.fences.values()) > 0
        semaphores = one.semaphore(pool, 1), two.semaphore(pool, 1)
        check_exclusion(*semaphores, lambda: has_waiter(pool))
        wait_until(lambda: all(one.inspect(each).is_free for each in (*names, pool)))


_MANY = """
import asyncio, sys, redlatch

async def main():
    with redlatch.connect(sys.argv[1]) as client:
        print("connected", flush=True)
        sys.stdin.readline()
        names = [f"{i:04}" + "x" * 1000 for i in range(4000)]
        tasks = [asyncio.ensure_future(client.aio.acquire(name)) for name in names]
        await asyncio.sleep(0)
        print("started", flush=True)
        leases = await asyncio.gather(*tasks)
        assert len({lease.token for lease in leases}) == 4000
        assert all(await asyncio.gather(*(lease.release() for lease in leases)))

asyncio.run(main())
"""


def is_full(port: int) -> bool:
    """Whether somebody has more to send to this port than goes."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(
        row[2].endswith(f":{port:04X}") and int(row[4].partition(":")[0], 16) > 0 for row in rows
    )


@pytest.mark.not_judged
@pytest.mark.parametrize("way", ["plain", "tls"])
def test_a_socket_that_takes_no_more(tls_server: Server, way: str) -> None:
    """Goal: nothing is lost or sent twice when the socket is full in the middle of a record.
    Method: the server stands still while more is asked than all buffers hold."""
    url = tls_server.trusting_url + "&" if way == "tls" else tls_server.url + "?"
    with tls_server.connect() as connection:
        connection.cmd("CONFIG", "SET", "client-query-buffer-limit", "1gb")
    words = [sys.executable, "-c", _MANY, url + "command_timeout=60s&connect_timeout=60s"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as many:
        assert many.stdin and many.stdout and many.stdout.readline() == b"connected\n"
        tls_server.pause()
        try:
            many.stdin.write(b"go\n")
            many.stdin.flush()
            assert many.stdout.readline() == b"started\n"
            port = tls_server.tls_port if way == "tls" else tls_server.port
            wait_until(lambda: is_full(port))
        finally:
            tls_server.resume()
        assert many.wait(120) == 0
    with tls_server.connect() as connection:
        assert connection.cmd("KEYS", "*xxx") == []


def test_killed_by_the_server_over_and_over(tls_server: Server, spawn: Spawn, name: str) -> None:
    """Goal: memory and descriptors stay. Method: 300 handshakes; the process's own counts."""
    actor = spawn(tls_server.trusting_url)

    def reconnect() -> None:
        assert kill_connections(tls_server)
        assert actor.call("acquire", name=name, wait=5000).status == "RL_OK"
        actor.ok("release")

    actor.ok("connect")
    for _ in range(50):
        reconnect()
    before = actor.memory_kib, actor.descriptor_count
    for _ in range(300):
        reconnect()
    assert actor.descriptor_count == before[1]
    if not actor.is_sanitized:
        assert actor.memory_kib < before[0] + 1500
