# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: whatever a server answers, the caller gets a status in time, and the process keeps its
memory and its life.

Method: a server in Python that is polite until a client connects, or until its first lock, and
then sends what no server should.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterable, Iterator

import pytest
from support.build import build_folder
from support.wait import SLACK_S, wait_until

from .actor import Actor, Spawn
from .hostile import Command, HostileServer, array, bulk, integer, polite, push, queued


LIMIT_S = 0.1
LIMITS = "?command_timeout=100ms&connect_timeout=100ms"
# A reply may take 1 MiB; an allocator keeps some more.
MEMORY_KIB = 8 * 1024

# Whatever was sent was no answer: that is what the caller must hear.
HONEST = {"RL_E_UNAVAILABLE", "RL_E_OUTCOME_UNKNOWN", "RL_E_SERVER", "RL_E_UNSUPPORTED"}


def endless(piece: bytes, *, first: bytes = b"", seconds: float = 30.0) -> Iterator[bytes]:
    """As much as the other side takes."""
    end = time.monotonic() + seconds
    yield first
    while time.monotonic() < end:
        yield piece


def drip(data: bytes) -> Iterator[bytes]:
    """A byte now and then, so that there always is progress."""
    for i in range(len(data)):
        time.sleep(0.02)
        yield data[i : i + 1]


PAGE = b"x" * 4096
ATTACKS: dict[str, Callable[[], Iterable[bytes]]] = {
    "bulk of 2^62": lambda: endless(PAGE, first=b"$4611686018427387904\r\n"),
    "bulk of 2^63": lambda: [b"$9223372036854775808\r\n"],
    "negative bulk": lambda: [b"$-2\r\n"],
    "bulk of a gigabyte": lambda: endless(PAGE, first=b"$1000000000\r\n"),
    "announced, never sent": lambda: [b"$1000\r\nabc"],
    "array of 2^31": lambda: endless(b":1\r\n" * 1000, first=b"*2147483648\r\n"),
    "array of a million": lambda: endless(b"*0\r\n" * 1000, first=b"*1000000\r\n"),
    "map of 2^31": lambda: [b"%2147483648\r\n"],
    "nested 100 times": lambda: [b"*1\r\n" * 100 + b":1\r\n"],
    "nested for ever": lambda: endless(b"*1\r\n" * 1000),
    "big arrays in arrays": lambda: endless((b"*4096\r\n") + b"*4096\r\n" * 4096),
    "endless line": lambda: endless(PAGE, first=b"+"),
    "endless error": lambda: endless(PAGE, first=b"-ERR "),
    "endless pushes": lambda: endless(push(bulk("smessage"), bulk("c"), bulk("g" * 60)) * 20),
    "endless attributes": lambda: endless(b"|1\r\n+a\r\n:1\r\n" * 100),
    "slow drip": lambda: drip(bulk("y" * 10_000)),
    "slow drip of pushes": lambda: drip(push(bulk("smessage"), bulk("c"), bulk("d")) * 1000),
    "nothing at all": lambda: [],
    "garbage": lambda: [random.Random(7).randbytes(5000)],
    "line feeds": lambda: [b"\n" * 1000],
    "zero bytes": lambda: [b"\0" * 5000],
    "http": lambda: [b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"],
    "number too big": lambda: [b":99999999999999999999\r\n"],
    "number with letters": lambda: [b":12ab\r\n"],
}

# Well-formed answers that make no sense to an ACQUIRE, nor to the other scripts.
WRONG_TYPES: dict[str, bytes] = {
    "number": integer(1),
    "nothing": b"_\r\n",
    "null bulk": b"$-1\r\n",
    "null array": b"*-1\r\n",
    "text": bulk("OK"),
    "empty array": array(),
    "truth": b"#t\r\n",
    "double": b",1.5\r\n",
    "big number": b"(12345678901234567890\r\n",
    "map": b"%1\r\n+a\r\n:1\r\n",
    "set": b"~1\r\n:1\r\n",
    "array of nothing": array(*[b"_\r\n"] * 8),
    "array of errors": array(*[b"-ERR x\r\n"] * 8),
    "array of arrays": array(*[array()] * 8),
    "grant without time": array(integer(1), bulk("1790000000000000")),
    "grant at no time": array(integer(1), bulk("1790000000000000"), integer(0)),
    "grant before time": array(integer(1), bulk("1790000000000000"), integer(-5)),
    "fence of words": array(integer(1), bulk("fence"), integer(1)),
    "fence too big": array(integer(1), bulk("9" * 30), integer(1)),
    "queued, all wrong": array(integer(0), *[bulk("x")] * 7),
    "queued, too short": array(integer(0)),
    "error": b"-ERR something else\r\n",
    "long error": b"-ERR " + b"z" * 100_000 + b"\r\n",
    "error with control bytes": b"-ERR \x1b[31m\x00\x07 red\r\n",
    "noscript for ever": b"-NOSCRIPT No matching script.\r\n",
    "moved": b"-MOVED 1 10.0.0.1:6379\r\n",
}


# Of a connection's life: the first command, one with pushes, and the scripts.
STAGES = [b"HELLO", b"SSUBSCRIBE", b"EVALSHA"]


def at_stage(stage: bytes, attack: Callable[[], Iterable[bytes]]):  # type: ignore[no-untyped-def]
    """Answers politely but for commands of this name. EVAL is a script after the first time."""

    def answer(command: Command) -> Iterable[bytes] | None:
        word = command[0].upper()
        is_script = word == b"EVALSHA" or (word == b"EVAL" and b"rl1:" not in command[3])
        return attack() if (word == stage or (is_script and stage == b"EVALSHA")) else None

    return answer


def check(actor: Actor, statuses: set[str], name: str) -> None:
    """Each kind of call: an honest status in time, and a process that lives on."""
    before = actor.memory_kib
    running = [
        (actor.begin("acquire", thread=1, lease=1, name=name, wait=250), 0.25),
        (actor.begin("acquire", thread=2, lease=2, name=name + "2", wait=0), 2 * LIMIT_S),
        (actor.begin("inspect", thread=3, name=name), 2 * LIMIT_S),
        (actor.begin("force", thread=4, name=name), 2 * LIMIT_S),
        (actor.begin("connect", thread=5, wait=0), 2 * LIMIT_S),
    ]
    for pending, limit in running:
        reply = pending.get()
        allowed = statuses | ({"RL_OK"} if " connect " in pending.line else set())
        assert reply.status in allowed, (pending.line, reply)
        assert reply.seconds < limit + SLACK_S, (pending.line, reply)
        assert reply.message.isprintable() and len(reply.message) < 1024
    assert actor.memory_kib - before < MEMORY_KIB
    actor.ok("close")
    assert actor.is_alive


@pytest.mark.parametrize(
    ("attack", "stage"),
    # Silence in place of a subscription is noticed by the probe behind it, which is polite here.
    [pair for pair in itertools.product(ATTACKS, STAGES) if pair != ("nothing at all", STAGES[1])],
)
def test_attacks(spawn: Spawn, name: str, attack: str, stage: bytes) -> None:
    """Goal: malformed, endless and enormous answers end the connection and nothing else.
    Method: one attack at one stage of a connection's life; all calls at once."""
    with HostileServer(at_stage(stage, ATTACKS[attack])) as server:
        statuses = HONEST | {"RL_TIMEOUT"} if stage == b"EVALSHA" else HONEST
        check(spawn(server.url + LIMITS), statuses, name)
    with HostileServer(lambda command: None) as server:
        spawn(server.url).ok("acquire", name=name, wait=0)


@pytest.mark.parametrize("answer", WRONG_TYPES)
def test_answers_of_a_wrong_type(spawn: Spawn, name: str, answer: str) -> None:
    """Goal: an answer that a script cannot have given is a refusal, never a grant.
    Method: the same wrong answer to every script; all calls at once."""
    with HostileServer(at_stage(b"EVALSHA", lambda: [WRONG_TYPES[answer]])) as server:
        check(spawn(server.url + LIMITS), HONEST | {"RL_TIMEOUT"}, name)


def test_unasked_answers(spawn: Spawn, name: str) -> None:
    """Goal: replies that nobody asked for end the connection: they would be taken for answers to
    later commands.
    Method: three answers to each script; many operations; each of them is right or refused."""
    extra = [integer(7), b"+OK\r\n", array()]

    def answer(command: Command) -> Iterable[bytes] | None:
        return [polite(command), *extra] if command[0] == b"EVALSHA" else None

    with HostileServer(answer) as server:
        actor = spawn(server.url + LIMITS)
        for number in range(20):
            before = server.connection_count
            reply = actor.call("acquire", lease=number, name=f"{name}-{number}", wait=0)
            assert reply.status == "RL_OK" or reply.status in HONEST, reply
            # Before the next command is sent, which they would be taken for answers to.
            if reply.status == "RL_OK":
                wait_until(lambda before=before: server.connection_count > before)
        assert server.connection_count > 5


def forged_messages() -> list[bytes]:
    """Messages of all sorts on a client's channel, none of them a grant of its lock."""
    chosen = random.Random(11)
    good = b"g0000000001x030001790000000000000" + b"%013d" % int(time.time() * 1000) + b"deadbeef"
    messages = [b"", b"g", b"n", b"p", good[:-1], good + b"x", b"n0000000001-0001", b"n" * 99]
    for _ in range(300):
        data = bytearray(good)
        for _ in range(chosen.randrange(1, 4)):
            data[chosen.randrange(1, len(data))] = chosen.randrange(256)
        messages.append(bytes(data))
    kinds = [b"smessage", b"message", b"pmessage", b"invalidate", b"sunsubscribe", b""]
    frames = [push(bulk(chosen.choice(kinds[:2])), bulk("c"), bulk(m)) for m in messages]
    frames += [push(bulk(kind), bulk("c")) for kind in kinds]
    frames += [push(), push(integer(1)), push(bulk("smessage"), b"_\r\n", array())]
    return frames


def test_forged_messages(spawn: Spawn, name: str) -> None:
    """Goal: a message that is no grant for this lock gives no lock and stops no wait.
    Method: a queued waiter gets hundreds of mutated grants (all with the check of another key);
    it looks again where a message says so, and times out."""
    frames = forged_messages()

    def answer(command: Command) -> Iterable[bytes] | None:
        if command[0] != b"EVALSHA":
            return None
        # CANCEL is shorter, and RELEASE ends with a number: done.
        if len(command) != 13 or not command[-1].endswith(b"rl1:"):
            return [array(integer(1), integer(int(time.time() * 1000)), integer(0))]
        return [queued(), *frames]

    with HostileServer(answer) as server:
        actor = spawn(server.url)
        reply = actor.call("acquire", name=name, wait=500)
        assert reply.status == "RL_TIMEOUT", reply
        assert 0.5 <= reply.seconds < 0.5 + SLACK_S
        assert actor.is_alive


# Redis would answer with none of them, because none has the namespace in front of a name.
KEYS_OF_NO_LOCK = [b"", b"a", b"app", b"app:", b"other:lock", b"x" * 5000]


@pytest.mark.parametrize("reader", ["caller", "background thread"])
def test_keys_without_the_namespace(spawn: Spawn, name: str, reader: str) -> None:
    """Goal: keys that are shorter than the namespace, or have another one, are no locks.
    Method: a SCAN that answers with them, and a token at each; the step is read by its caller, or
    by the library's own thread."""

    def answer(command: Command) -> Iterable[bytes] | None:
        if command[0] == b"GETRANGE":
            return [bulk("9c-ukBfOodGU86__eDNerg0000000001")]
        if command[0] != b"SCAN":
            return None
        return [array(bulk("0"), array(*(bulk(key) for key in KEYS_OF_NO_LOCK)))]

    with HostileServer(answer) as server:
        actor = spawn(server.url + "?namespace=app:")
        actor.ok("connect", wait=5000)
        if reader == "caller":
            reply = actor.call("list")
            assert (reply.status, reply.number("count")) == ("RL_END", 0), reply
        else:
            actor.ok("list_start")
            wait_until(lambda: actor.call("poll").status == "RL_END")
        actor.ok("acquire", name=name, wait=5000)
        assert server.connection_count == 1


THROWING = build_folder() / "tests/system/system_throwing.so"


@pytest.mark.skipif(not THROWING.exists(), reason="not built with a sanitizer")
@pytest.mark.parametrize("reader", ["caller", "background thread"])
def test_an_exception_in_a_handler(name: str, reader: str) -> None:
    """Goal: an exception of any type ends the connection that it came by, and nothing else.
    Method: an error of 300 kB, whose text an allocation shim throws std::out_of_range for. The
    caller that read it leaves the role of leader: the next calls of other threads are answered."""
    is_hostile = True

    def answer(command: Command) -> Iterable[bytes] | None:
        if command[0] != b"SCAN" or not is_hostile:
            return [array(bulk("0"), array())] if command[0] == b"SCAN" else None
        return [b"-ERR " + b"z" * 300_000 + b"\r\n"]

    with (
        HostileServer(answer) as server,
        Actor(server.url, ["env", f"LD_PRELOAD={THROWING}"]) as actor,
    ):
        actor.ok("connect", wait=5000)
        if reader == "caller":
            reply = actor.call("list")
            assert reply.status in HONEST, reply
        else:
            actor.ok("list_start")
            wait_until(lambda: server.connection_count > 1)
        is_hostile = False
        for thread in range(3):
            actor.ok("acquire", thread=thread, lease=thread, name=f"{name}-{thread}", wait=5000)
        assert actor.call("list").status == "RL_END"
        lines = iter(lambda: actor.call("log_line")["line"], "")
        assert any("an exception: thrown by a test" in line for line in lines)
        assert actor.is_alive
