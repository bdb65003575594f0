# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: readers, writers and upgrades, and owners with several holds, do in any order of requests,
copies, deaths and losses what the model says. Method: as test_model.py."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from support.resp import Connection

from .harness import CLOCK_SLACK_MS, FENCE_STEP, NEVER, NO_LIMIT, Client, Grant, World
from .model import Outcome
from .model_shared import Queue, ReadWrite, Reentrant

STEPS = 1200
CLIENTS = 6
LONGEST_QUEUE = 15


@dataclass
class Request:
    """An acquire call of a client; resent at any time, also long after its end."""

    client: Client
    token: str
    mode: str
    member: str  # '' for a try.
    lease_ms: int
    first_ticket: int
    last_ticket: str = ""


class Run:
    """What both formats have in common. Calls go by name: of a script and of the model."""

    def __init__(self, world: World, seed: int, model: Queue, owners: list[str]) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.queue = model
        self.clients = [world.client(owner=owner) for owner in owners]
        model.alive = {client.cid for client in self.clients}
        self.requests: list[Request] = []
        self.fence = 0
        self.fence_was_lost = False
        self.seen: dict[str, int] = {}
        with world.user("~*", "resetchannels", "+@all") as limited:
            self.limited = limited
            for step in range(STEPS):
                choices = self.choices()
                (action,) = self.random.choices(list(choices), list(choices.values()))
                model.may_publish = self.random.random() > 0.05
                before = model.order(), dict(model.holds)
                try:
                    action()
                except AssertionError as error:
                    raise AssertionError(f"step {step}, {action.__name__}: {before}") from error

    def choices(self) -> dict[Any, int]:
        raise NotImplementedError

    def note(self, what: str) -> None:
        self.seen[what] = self.seen.get(what, 0) + 1

    def connection(self, client: Client) -> Connection:
        return client.connection if self.queue.may_publish else self.limited

    def new_request(self, mode: str) -> Request | None:
        if len(self.queue.queue) > LONGEST_QUEUE:
            return None
        client = self.random.choice(self.clients)
        token = client.token()
        kind = self.random.choice(["wait", "wait", "wait", "limited", "overdue", "try"])
        wait_ms = {"limited": 3_600_000, "overdue": 1000}.get(kind, NO_LIMIT)
        ticket = self.world.now_us() - 5_000_000 if kind == "overdue" else 0
        claim_ms = self.random.choice([3000, 9000])
        member = "" if kind == "try" else client.member(token, mode, claim_ms, wait_ms)
        lease_ms = self.random.choice([20_000, 50_000, 90_000])
        self.requests.append(Request(client, token, mode, member, lease_ms, ticket))
        return self.requests[-1]

    def recent(self) -> Request | None:
        last = self.requests[-30:]
        queued = [one for one in last if one.member in self.queue.queue]
        return self.random.choice(queued * 3 + last) if last else None

    def some_token(self) -> str:
        if self.queue.holds and self.random.random() < 0.7:
            return self.random.choice(list(self.queue.holds))
        tokens = [one.token for one in self.requests[-15:]] or [self.clients[0].token()]
        return self.random.choice(tokens)

    def owner_client(self, token: str) -> Client:
        (client,) = [one for one in self.clients if one.cid == token[:22]] or self.clients[:1]
        return client

    def call(self, name: str, client: Client, *args: Any) -> list[Any]:
        world = self.world
        reply: list[Any] = world.run(
            world.lock.script(name), world.lock.keys, *args, connection=self.connection(client)
        )
        return reply

    def given(self, request: Request) -> tuple[str, int]:
        """The ticket to send, and the score of the last in line."""
        ticket = str(request.first_ticket or self.random.choice(["", request.last_ticket]))
        return ticket, max(self.queue.queue.values(), default=0)

    def check_answer(self, request: Request, reply: list[Any], out: Outcome) -> None:
        assert (reply[0] == 1) == out.held
        if out.held:
            self.note("held")
            number = int(self.world.admin.cmd("GET", self.world.lock.f))
            assert int(reply[1]) == number + (FENCE_STEP - 1 if request.mode == "s" else 0)
        else:
            assert reply[4] == out.rank
            request.last_ticket = reply[3].decode() if out.rank >= 0 else ""

    def tell_fence_lost(self) -> None:
        self.world.admin.cmd("DEL", self.world.lock.f)
        self.queue.has_fence, self.fence_was_lost = False, True

    def tell_queue_lost(self) -> None:
        self.world.admin.cmd("DEL", self.world.lock.q)
        self.queue.queue.clear()

    def die_or_revive(self) -> None:
        client = self.random.choice(self.clients)
        if client.subscription is None:
            client.subscribe()
            self.queue.alive.add(client.cid)
        elif self.random.random() < 0.5:
            client.die()
            self.queue.alive.remove(client.cid)

    def end_one(self) -> None:
        """A hold's time ends, and nobody says so."""
        if not self.queue.holds:
            return
        token = self.random.choice(list(self.queue.holds))
        self.world.end_lease(token)
        del self.queue.holds[token]
        self.note("ended")

    def compare(self, out: Outcome) -> None:
        world, model = self.world, self.queue
        holds = {token: end for token, end in world.readers().items() if end > 1}
        assert self.value_agrees()
        if model.holds:
            assert set(holds) == set(model.holds)
            for token, end in model.holds.items():
                assert abs(holds[token] - end) <= CLOCK_SLACK_MS
        queue = world.admin.cmd("ZRANGE", world.lock.q, 0, -1, "WITHSCORES")
        scores = {member.decode(): int(float(t)) for member, t in zip(queue[::2], queue[1::2])}
        assert scores == model.queue and list(scores) == model.order()
        fence = world.admin.cmd("GET", world.lock.f)
        assert (fence is not None) == model.has_fence
        if out.minted:
            assert int(fence) >= self.fence + (0 if self.fence_was_lost else FENCE_STEP)
            self.fence, self.fence_was_lost = int(fence), False
        elif fence is not None:
            assert int(fence) == self.fence
        for client in self.clients:
            self.compare_messages(client, out.messages.get(client.cid, []))

    def compare_messages(self, client: Client, wanted: list[tuple[str, str, int]]) -> None:
        got = client.messages()
        assert len(got) == len(wanted), (got, wanted)
        for message, (kind, rid, ms) in zip(got, wanted):
            assert message.rid == rid
            if isinstance(message, Grant):
                self.note(f"grant {message.mode}")
                assert (kind, message.claim_ms) == ("g", ms)
                more = FENCE_STEP - 1 if message.mode == "s" else 0
                assert int(message.fence) == self.fence + more
            else:
                assert kind == "n" and abs(message.ms - ms) <= CLOCK_SLACK_MS

    def value_agrees(self) -> bool:
        raise NotImplementedError


class ReadWriteRun(Run):
    def __init__(self, world: World, seed: int) -> None:
        self.model = ReadWrite()
        super().__init__(world, seed, self.model, [""] * CLIENTS)

    def choices(self) -> dict[Any, int]:
        return {
            self.ask_new: 25,
            self.resend: 20,
            self.upgrade: 15,
            self.downgrade: 8,
            self.release: 22,
            self.cancel: 8,
            self.extend: 6,
            self.kick: 3,
            self.force_release: 2,
            self.end_one: 5,
            self.end_writer: 3,
            self.stranger: 1,
            self.tell_fence_lost: 1,
            self.tell_queue_lost: 1,
            self.die_or_revive: 8,
        }

    def value_agrees(self) -> bool:
        model, holder = self.model, self.world.holder()
        if holder is not None and not model.holds:
            assert abs(self.world.pttl() - (model.ends_at - self.world.now_us() // 1000)) <= 100
        return holder == model.value()

    def ask_new(self) -> None:
        request = self.new_request(self.random.choice("sssx"))
        if request:
            self.ask(request)

    def resend(self) -> None:
        request = self.recent()
        if request and request.mode == "u":
            self.ask_upgrade(request)
        elif request:
            self.ask(request)

    def ask(self, request: Request) -> None:
        given, last = self.given(request)
        name = "acquire_read" if request.mode == "s" else "acquire"
        sibling = self.some_token() if request.mode == "s" and self.random.random() < 0.2 else ""
        token, lease_ms, member = request.token, request.lease_ms, request.member
        args = (token, lease_ms, member, given, self.world.prefix, sibling)
        reply = self.call(name, request.client, *args)
        chosen = reply[3] if reply[0] == 0 and reply[3] else max(reply[2] * 1000, last + 1)
        ticket = int(given or chosen)
        out = self.model.acquire(
            request.mode, token, lease_ms, member, ticket, reply[2], sibling, given != ""
        )
        self.check_answer(request, reply, out)
        self.compare(out)

    def upgrade(self) -> None:
        token = self.some_token()
        client = self.owner_client(token)
        wait_ms = self.random.choice([NO_LIMIT, NO_LIMIT, 3_600_000, 1000])
        is_try = self.random.random() < 0.2
        member = "" if is_try else client.member(token, "u", 3000, wait_ms)
        ticket = self.world.now_us() - 5_000_000 if wait_ms == 1000 else 0
        request = Request(client, token, "u", member, 40_000, ticket)
        self.requests.append(request)
        self.ask_upgrade(request)

    def ask_upgrade(self, request: Request) -> None:
        given, _ = self.given(request)
        token, lease_ms, member = request.token, request.lease_ms, request.member
        args = (token, lease_ms, member, given, self.world.prefix)
        reply = self.call("upgrade", request.client, *args)
        if reply[0] < 0:
            out = self.model.upgrade(token, lease_ms, member, 0, reply[1])
            assert out.result == reply[0]
            self.note(f"upgrade {reply[0]}")
        else:
            ticket = int(given or (reply[3] if reply[0] == 0 and reply[3] else 0))
            out = self.model.upgrade(token, lease_ms, member, ticket, reply[2])
            assert out.result == 0
            self.check_answer(request, reply, out)
            self.note("upgraded" if out.held else "upgrade waits")
        self.compare(out)

    def three(self, name: str, what: str, act: Any, *more: Any) -> None:
        args = (what, *more, self.world.prefix, *(NEVER if name == "release" else []))
        result, now, flags = self.call(name, self.random.choice(self.clients), *args)
        out = act(what, *more, now or self.world.now_us() // 1000)
        assert (result, flags) == (out.result, out.flags)
        self.note(f"{name} {result}")
        self.compare(out)

    def some_holder(self) -> str:
        is_writer = self.model.writer is not None and self.random.random() < 0.6
        return str(self.model.writer) if is_writer else self.some_token()

    def release(self) -> None:
        self.three("release", self.some_holder(), self.model.release)

    def downgrade(self) -> None:
        if self.model.writer != "peer":
            lease_ms = self.random.choice([5000, 80_000])
            self.three("downgrade", self.some_holder(), self.model.downgrade, lease_ms)

    def cancel(self) -> None:
        members = [one.member for one in self.requests[-30:] if one.member]
        if members:
            self.three("cancel", self.random.choice(members), self.model.cancel)

    def force_release(self) -> None:
        expected = self.random.choice(["", self.some_holder(), "rl:shared"])
        self.three("force_release", expected, self.model.force_release)

    def kick(self) -> None:
        count, now, flags = self.call("kick", self.clients[0], self.world.prefix)
        out = self.model.kick(now)
        assert (count, flags) == (out.result, out.flags)
        self.compare(out)

    def extend(self) -> None:
        token, lease_ms = self.some_holder(), self.random.choice([5000, 95_000])
        keys = [self.world.lock.k, self.world.lock.r]
        result, now = self.world.run("extend_shared", keys, token, lease_ms)
        out = self.model.extend_shared(token, lease_ms, now)
        assert result == out.result
        self.compare(out)

    def end_writer(self) -> None:
        if self.model.writer:
            self.world.admin.cmd("DEL", self.world.lock.k)
            self.model.writer = None

    def stranger(self) -> None:
        if self.world.admin.cmd("SET", self.world.lock.k, "peer", "NX", "PX", 50_000):
            self.model.writer = "peer"
            self.model.ends_at = self.world.now_us() // 1000 + 50_000


class ReentrantRun(Run):
    def __init__(self, world: World, seed: int) -> None:
        self.model = Reentrant()
        super().__init__(world, seed, self.model, ["o", "o", "p", "p", "q", "owner of one"])

    def choices(self) -> dict[Any, int]:
        return {
            self.ask_new: 25,
            self.resend: 20,
            self.release: 30,
            self.cancel: 8,
            self.extend: 6,
            self.kick: 3,
            self.force_release: 2,
            self.end_one: 5,
            self.stranger: 2,
            self.tell_fence_lost: 1,
            self.tell_queue_lost: 1,
            self.die_or_revive: 8,
        }

    def value_agrees(self) -> bool:
        owners = self.world.owners()
        if not self.model.holds:
            return list(owners) == [self.model.owner] if self.model.owner else owners == {}
        return owners == {self.model.owner: self.model.count}

    def end_one(self) -> None:
        super().end_one()
        if not self.model.holds and self.model.owner not in (None, "theirs"):
            self.model.owner = None

    def ask_new(self) -> None:
        request = self.new_request("x")
        if request:
            self.ask(request)

    def resend(self) -> None:
        request = self.recent()
        if request:
            self.ask(request)

    def ask(self, request: Request) -> None:
        given, last = self.given(request)
        token, lease_ms, member = request.token, request.lease_ms, request.member
        owner = request.client.owner
        args = (token, lease_ms, member, given, self.world.prefix, owner)
        reply = self.call("acquire", request.client, *args)
        chosen = reply[3] if reply[0] == 0 and reply[3] else max(reply[2] * 1000, last + 1)
        ticket = int(given or chosen)
        out = self.model.acquire(
            token, owner, lease_ms, member, ticket, reply[2], given != ""
        )
        self.check_answer(request, reply, out)
        if out.held:
            assert reply[3] == len(self.model.holds)
            self.note(f"count {min(reply[3], 3)}")
        self.compare(out)

    def three(self, name: str, what: str, owner: list[str], act: Any) -> None:
        client = self.random.choice(self.clients)
        args = (what, self.world.prefix, *owner, *(NEVER if name == "release" else []))
        result, now, flags = self.call(name, client, *args)
        out = act(what, *owner, now) if name == "release" else act(what, now)
        assert (result, flags) == (out.result, out.flags), (result, flags)
        self.note(f"{name} {result}")
        self.compare(out)

    def release(self) -> None:
        token = self.some_token()
        owner = self.owner_client(token).owner if self.random.random() < 0.95 else "other"
        self.three("release", token, [owner], self.model.release)

    def cancel(self) -> None:
        members = [one.member for one in self.requests[-30:] if one.member]
        if members:
            member = self.random.choice(members)
            self.three("cancel", member, [member[51:]], self.model.cancel)

    def force_release(self) -> None:
        expected = self.random.choice(["", self.some_token(), "o", "theirs"])
        self.three("force_release", expected, [], self.model.force_release)

    def kick(self) -> None:
        count, now, flags = self.call("kick", self.clients[0], self.world.prefix)
        out = self.model.kick(now)
        assert (count, flags) == (out.result, out.flags)
        self.compare(out)

    def extend(self) -> None:
        token, lease_ms = self.some_token(), self.random.choice([5000, 95_000])
        client = self.owner_client(token)
        keys = [self.world.lock.k, self.world.lock.r]
        args = (token, lease_ms, client.owner)
        result, now = self.world.run("extend_shared.hash", keys, *args)
        out = self.model.extend_shared(token, client.owner, lease_ms, now)
        assert result == out.result
        self.compare(out)

    def stranger(self) -> None:
        world, model = self.world, self.model
        if model.owner == "theirs":
            world.admin.cmd("DEL", world.lock.k)
            model.owner = None
        elif world.admin.cmd("HSETNX", world.lock.k, "theirs", 1) and not model.owner:
            world.admin.cmd("PEXPIRE", world.lock.k, 50_000)
            model.owner, model.ends_at = "theirs", world.now_us() // 1000 + 50_000
        else:
            world.admin.cmd("HDEL", world.lock.k, "theirs")


def test_readers_and_writers_agree_with_the_model(world: World, seed: int) -> None:
    print(f"--seed {seed}")
    run = ReadWriteRun(world, seed)
    # A run that did not do anything proves nothing.
    wanted = ["held", "ended", "grant s", "grant x", "grant u", "upgraded", "upgrade waits"]
    wanted += ["upgrade -1", "upgrade -2", "downgrade 1", "downgrade 0", "release -1", "cancel 2"]
    assert not [what for what in wanted if what not in run.seen], run.seen


def test_owners_and_holds_agree_with_the_model(hashed: World, seed: int) -> None:
    print(f"--seed {seed}")
    run = ReentrantRun(hashed, seed)
    wanted = ["held", "ended", "grant x", "count 1", "count 2", "count 3"]
    wanted += ["release 0", "release 1", "release 2", "release -1", "cancel 2"]
    assert not [what for what in wanted if what not in run.seen], run.seen
