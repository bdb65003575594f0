# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: in any order of requests, copies, deaths and losses the scripts do what the model says.
Method: random steps from a seed (printed on failure; `--seed N` plays it again). After each step
the reply, all messages, the holder, its time, the queue and the fence are compared."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from support.resp import Connection

from .harness import FENCE_STEP, NEVER, NO_LIMIT, Client, Grant, World, member_of
from .model import Model, Outcome

STEPS = 1500
CLIENTS = 5
LONGEST_QUEUE = 20
CLOCK_SLACK_MS = 20  # TIME and the clock of expiry are read at different moments of one call.

# One call, so that both numbers belong to the same moment.
_TIME_LEFT = "local t = redis.call('TIME') return {redis.call('PTTL', KEYS[1]), t[1], t[2]}"


@dataclass
class Request:
    """An acquire call of a client; resent at any time, also long after its end."""

    client: Client
    token: str
    member: str  # '' for a try.
    lease_ms: int
    first_ticket: int
    last_ticket: str = ""


class Run:
    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.model = Model()
        self.clients = [world.client() for _ in range(CLIENTS)]
        self.model.alive = {client.cid for client in self.clients}
        self.requests: list[Request] = []
        self.fence = 0
        self.fence_was_lost = False
        self.held = 0
        self.handed = 0
        with world.user("~*", "resetchannels", "+@all") as limited:
            self.limited = limited
            for self.step in range(STEPS):
                self._step()

    def _step(self) -> None:
        choices = {
            self._acquire_new: 25,
            self._resend: 25,
            self._release: 25,
            self._cancel: 8,
            self._extend: 8,
            self._kick: 4,
            self._force_release: 2,
            self._expire: 5,
            self._stranger: 2,
            self._lose: 2,
            self._die_or_revive: 8,
        }
        (action,) = self.random.choices(list(choices), list(choices.values()))
        self.model.may_publish = self.random.random() > 0.05
        before = self.model.order(), self.model.holder
        try:
            action()
        except AssertionError as error:
            raise AssertionError(f"step {self.step}, {action.__name__}, from {before}") from error

    def _connection(self, client: Client) -> Connection:
        return client.connection if self.model.may_publish else self.limited

    def _acquire_new(self) -> None:
        if len(self.model.queue) > LONGEST_QUEUE:
            return
        client = self.random.choice(self.clients)
        token = client.token()
        kind = self.random.choice(["wait", "wait", "wait", "limited", "overdue", "try"])
        claim_ms = self.random.choice([3000, 9000])
        wait_ms = {"limited": 3_600_000, "overdue": 1000}.get(kind, NO_LIMIT)
        ticket = self.world.now_us() - 5_000_000 if kind == "overdue" else 0
        member = "" if kind == "try" else member_of(token, claim_ms, wait_ms)
        lease_ms = self.random.choice([20_000, 200_000])
        self.requests.append(Request(client, token, member, lease_ms, ticket))
        self._acquire(self.requests[-1])

    def _resend(self) -> None:
        if self.requests:
            recent = self.requests[-30:]
            # Waiters poll far more often than copies of finished calls arrive.
            queued = [one for one in recent if one.member in self.model.queue]
            self._acquire(self.random.choice(queued * 3 + recent))

    def _acquire(self, request: Request) -> None:
        world, model = self.world, self.model
        given = str(request.first_ticket or self.random.choice(["", request.last_ticket]))
        last = max(model.queue.values(), default=0)
        was_queued = request.member in model.queue
        reply = world.run(
            "acquire",
            world.lock.keys,
            request.token,
            request.lease_ms,
            request.member,
            given,
            world.prefix,
            connection=self._connection(request.client),
        )
        now = reply[2]
        chosen = reply[3] if reply[0] == 0 and reply[3] else max(now * 1000, last + 1)
        ticket = int(given or chosen)
        is_back = given != ""
        expected = model.acquire(
            request.token, request.lease_ms, request.member, ticket, now, is_back
        )
        assert (reply[0] == 1) == expected.held
        if expected.held:
            self.held += 1
            assert int(reply[1]) == int(world.admin.cmd("GET", world.lock.f))
        else:
            assert (reply[4], reply[7]) == (expected.rank, b"string" if model.holder else b"none")
            assert reply[6].decode() == (model.holder or "")
            if request.member:
                request.last_ticket = reply[3].decode()
                assert int(request.last_ticket) == model.queue[request.member]
                if not given and not was_queued:
                    assert last + 1 <= ticket and (
                        ticket == last + 1 or now * 1000 <= ticket <= now * 1000 + 999
                    )
        self._compare(expected, now)

    def _some_token(self) -> str:
        owners = [self.model.holder] if self.model.holder and self.random.random() < 0.7 else []
        tokens = owners or [one.token for one in self.requests[-30:]] or [self.clients[0].token()]
        return self.random.choice(tokens)

    def _release(self) -> None:
        client, token = self.random.choice(self.clients), self._some_token()
        self._three("release", client, token, self.model.release)

    def _cancel(self) -> None:
        members = [one.member for one in self.requests[-30:] if one.member]
        if members:
            client = self.random.choice(self.clients)
            self._three("cancel", client, self.random.choice(members), self.model.cancel)

    def _force_release(self) -> None:
        client = self.random.choice(self.clients)
        expected = self.random.choice(["", self._some_token()])
        self._three("force_release", client, expected, self.model.force_release)

    def _three(self, name: str, client: Client, what: str, act: Any) -> None:
        world = self.world
        args = [what, world.prefix, *(NEVER if name == "release" else [])]
        result, now, flags = world.run(
            name, world.lock.keys, *args, connection=self._connection(client)
        )
        expected = act(what, now)
        assert (result, flags) == (expected.result, expected.flags)
        self._compare(expected, now)

    def _kick(self) -> None:
        world = self.world
        count, now, flags = world.run(
            "kick", world.lock.keys, world.prefix, connection=self._connection(self.clients[0])
        )
        expected = self.model.kick(now)
        assert (count, flags) == (expected.result, expected.flags)
        self._compare(expected, now)

    def _extend(self) -> None:
        token, lease_ms = self._some_token(), self.random.choice([5000, 50_000, 300_000])
        keys = [self.world.lock.k, self.world.lock.i]
        fields = self.random.choice([(), ("host", "a")])
        result, now = self.world.run("extend", keys, token, lease_ms, *fields)
        expected = self.model.extend(token, lease_ms, now)
        assert result == expected.result
        self._compare(expected, now)

    def _expire(self) -> None:
        self.world.admin.cmd("DEL", self.world.lock.k)
        self.model.holder = None

    def _stranger(self) -> None:
        if self.world.admin.cmd("SET", self.world.lock.k, "peer", "NX", "PX", 5000):
            self.model.holder = "peer"
            self.model.ends_at = self.world.now_us() // 1000 + 5000

    def _lose(self) -> None:
        if self.random.random() < 0.5:
            self.world.admin.cmd("DEL", self.world.lock.f)
            self.model.has_fence, self.fence_was_lost = False, True
        else:
            self.world.admin.cmd("DEL", self.world.lock.q)
            self.model.queue.clear()

    def _die_or_revive(self) -> None:
        client = self.random.choice(self.clients)
        if client.subscription is None:
            client.subscribe()
            self.model.alive.add(client.cid)
        elif self.random.random() < 0.5:
            client.die()
            self.model.alive.remove(client.cid)

    def _compare(self, expected: Outcome, now: int) -> None:
        world, model = self.world, self.model
        assert world.holder() == model.holder
        queue = world.admin.cmd("ZRANGE", world.lock.q, 0, -1, "WITHSCORES")
        tickets = {member.decode(): int(float(t)) for member, t in zip(queue[::2], queue[1::2])}
        assert tickets == model.queue and list(tickets) == model.order()
        if model.holder:
            left, seconds, micros = world.admin.cmd("EVAL", _TIME_LEFT, 1, world.lock.k)
            ends_at = int(seconds) * 1000 + int(micros) // 1000 + left
            assert abs(ends_at - model.ends_at) <= CLOCK_SLACK_MS
        self._compare_fence(expected)
        for client in self.clients:
            self._compare_messages(client, expected)

    def _compare_fence(self, expected: Outcome) -> None:
        fence = self.world.admin.cmd("GET", self.world.lock.f)
        assert (fence is not None) == self.model.has_fence
        if expected.minted:
            # Without the key only the clock makes it rise, by at least the time of one command.
            assert int(fence) > self.fence
            assert int(fence) >= self.fence + FENCE_STEP or self.fence_was_lost
            self.fence, self.fence_was_lost = int(fence), False
        elif fence is not None:
            assert int(fence) == self.fence

    def _compare_messages(self, client: Client, expected: Outcome) -> None:
        got = client.messages()
        wanted = expected.messages.get(client.cid, [])
        assert len(got) == len(wanted)
        for message, (kind, rid, ms) in zip(got, wanted):
            assert message.rid == rid
            if isinstance(message, Grant):
                self.handed += 1
                assert (kind, message.claim_ms) == ("g", ms) and int(message.fence) == self.fence
            else:
                assert kind == "n" and abs(message.ms - ms) <= CLOCK_SLACK_MS


def test_random_steps_agree_with_the_model(world: World, seed: int) -> None:
    print(f"--seed {seed}")
    run = Run(world, seed)
    # A run that did not do anything proves nothing.
    assert run.held > STEPS / 50 and run.handed > STEPS / 50
