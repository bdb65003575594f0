# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: ACQUIRE takes a free lock, queues once, and never harms what it finds.
Method: one request at a time; lost replies and late copies are played by sending again."""

from __future__ import annotations

import pytest
from support.resp import Argument

from .harness import (
    FENCE_TTL_MS,
    TTL_MS,
    QUEUE_TTL_MS,
    TURN,
    Busy,
    Client,
    Grant,
    Held,
    World,
    check_of,
    error_of,
    member_of,
    rid_of,
    as_held,
    as_busy,
)


def test_free_lock_is_taken_with_the_full_lease(world: World) -> None:
    client = world.client()
    token = client.token()
    before = world.now_us()
    reply = as_held(client.acquire(token, ttl_ms=20_000))
    assert world.holder() == token
    assert 19_000 < world.pttl() <= 20_000
    assert before <= reply.now * 1000 + 999 and reply.now * 1000 <= world.now_us()
    assert world.keys() == {world.lock.k, world.lock.f}
    assert world.admin.cmd("GET", world.lock.f).decode() == reply.fence
    assert FENCE_TTL_MS - 5000 < world.pttl(world.lock.f) <= FENCE_TTL_MS


def calls_since(world: World) -> dict[str, int]:
    """How often each command was called since the counts were reset."""
    calls = {}
    for line in world.admin.cmd("INFO", "commandstats").decode().splitlines():
        if line.startswith("cmdstat_"):
            name, fields = line.removeprefix("cmdstat_").split(":", 1)
            calls[name] = int(fields.split(",")[0].removeprefix("calls="))
    return {name: n for name, n in calls.items() if not name.startswith(("config", "info"))}


def test_uncontended_cycle_uses_no_more_commands_than_planned(world: World) -> None:
    # The speed of the uncontended path is the number of its commands.
    client = world.client()
    world.admin.cmd("CONFIG", "RESETSTAT")
    token = client.token()
    args: list[Argument] = [5, *world.lock.keys, world.lock.w, token]
    client.connection.cmd("EVALSHA", world.sha["acquire"], *args, 1000, "", "", world.prefix)
    client.connection.cmd("EVALSHA", world.sha["release"], *args, world.prefix, *TURN)
    calls = calls_since(world)
    assert calls == {"evalsha": 2, "get": 1, "time": 1, "exists": 2, "set": 2, "del": 1}


def test_hand_off_uses_no_more_commands_than_planned(world: World) -> None:
    # Other libraries, and their turns, cost nothing where none was seen.
    holder, held = world.new_holder()
    world.client().wait()
    world.client().wait()
    args: list[Argument] = [5, *world.lock.keys, world.lock.w, held]
    world.admin.cmd("CONFIG", "RESETSTAT")
    holder.connection.cmd("EVALSHA", world.sha["release"], *args, world.prefix, *TURN)
    calls = calls_since(world)
    publish = "spublish" if world.sharded else "publish"
    wanted = {"evalsha": 1, "get": 1, "exists": 1, "time": 1, "zrange": 2, "zrem": 1}
    assert calls == {**wanted, "set": 2, publish: 2, "pttl": 1}


def test_other_token_is_busy_and_queued(world: World) -> None:
    holder, waiter = world.client(), world.client()
    held = holder.hold()
    before = world.now_us()
    reply = as_busy(waiter.acquire(waiter.token()))
    after = world.now_us()
    assert (reply.rank, reply.holder, reply.kind) == (0, held.encode(), "string")
    assert TTL_MS - 1000 < reply.pttl <= TTL_MS
    assert before <= int(reply.ticket) <= after
    assert QUEUE_TTL_MS - 5000 < world.pttl(world.lock.q) <= QUEUE_TTL_MS
    assert world.holder() == held


def test_ranks_follow_arrival(world: World) -> None:
    clients = [world.client() for _ in range(4)]
    clients[0].hold()
    replies = [client.acquire(client.token()) for client in clients[1:]]
    assert [reply.rank for reply in replies if isinstance(reply, Busy)] == [0, 1, 2]


def test_refresh_when_the_fence_key_is_gone_mints_a_higher_one(world: World) -> None:
    client = world.client()
    token = client.token()
    first = as_held(client.acquire(token))
    world.expire(world.lock.f)
    again = as_held(client.acquire(token))
    assert again.fence > first.fence
    assert world.admin.cmd("GET", world.lock.f).decode() == again.fence


def test_refresh_drops_the_own_queue_entry(world: World) -> None:
    # The entry of a holder would be granted once more after its release.
    world.client().hold()
    client, token = world.new_waiter()
    world.admin.cmd("SET", world.lock.k, token, "PX", 5000)
    assert isinstance(client.acquire(token), Held)
    assert world.queue() == []


def test_later_ticket_does_not_move_who_is_queued(world: World) -> None:
    clients = [world.client() for _ in range(3)]
    clients[0].hold()
    token = clients[1].token()
    first = as_busy(clients[1].acquire(token))
    clients[2].wait()
    again = as_busy(clients[1].acquire(token, ticket=int(first.ticket) + 1_000_000))
    assert (again.ticket, again.rank) == (first.ticket, 0)


def test_late_copy_of_the_first_request_does_not_cost_the_place(world: World) -> None:
    holder, first, second, third = [world.client() for _ in range(4)]
    held = holder.hold()
    token = first.token()
    reply = as_busy(first.acquire(token))
    other = second.wait()
    holder.release(held)  # The claim ends before the first has read of it.
    world.expire()
    assert isinstance(second.acquire(other), Held)
    third.wait()
    late = first.acquire(token)
    assert isinstance(late, Busy) and late.rank == 1
    poll = as_busy(first.acquire(token, ticket=reply.ticket))
    assert (poll.ticket, poll.rank) == (reply.ticket, 0)


def test_tickets_keep_the_order_when_the_queue_was_lost(world: World) -> None:
    clients = [world.client() for _ in range(4)]
    held = clients[0].hold()
    waiting = []
    for client in clients[1:]:
        token = client.token()
        reply = client.acquire(token)
        assert isinstance(reply, Busy)
        waiting.append((client, token, reply.ticket))
    world.admin.cmd("DEL", world.lock.q)
    for client, token, ticket in reversed(waiting):
        reply = client.acquire(token, ticket=ticket)
        assert isinstance(reply, Busy) and reply.ticket == ticket
    assert world.queue() == [member_of(token) for _, token, _ in waiting]
    clients[0].release(held)
    assert world.holder() == waiting[0][1]


def test_newcomers_queue_behind_tickets_of_the_future(world: World) -> None:
    # As after a step back of the server's clock.
    clients = [world.client() for _ in range(4)]
    clients[0].hold()
    future = world.now_us() + 60_000_000
    tokens = [client.token() for client in clients[1:]]
    clients[1].acquire(tokens[0], ticket=future)
    replies = [clients[2].acquire(tokens[1]), clients[3].acquire(tokens[2])]
    assert [reply.rank for reply in replies if isinstance(reply, Busy)] == [1, 2]
    assert [reply.ticket for reply in replies if isinstance(reply, Busy)] == [
        str(future + 1),
        str(future + 2),
    ]


def test_round_tickets_come_back_with_all_digits(world: World) -> None:
    # How a server writes such a score is its own business: 1.9e+15 is the same number.
    clients = [world.client() for _ in range(3)]
    clients[0].hold()
    token = clients[1].token()
    for _ in range(2):
        reply = clients[1].acquire(token, ticket="1900000000000000")
        assert isinstance(reply, Busy) and reply.ticket == "1900000000000000"
    reply = clients[2].acquire(clients[2].token())
    assert isinstance(reply, Busy) and reply.ticket == "1900000000000001"


def test_try_never_queues(world: World) -> None:
    holder, other = world.client(), world.client()
    held = holder.hold()
    reply = as_busy(other.try_acquire(other.token()))
    assert (reply.rank, reply.ticket, reply.holder) == (-1, "", held.encode())
    assert world.keys() == {world.lock.k, world.lock.f}


def test_try_does_not_overtake_a_live_queue(world: World) -> None:
    clients = [world.client() for _ in range(3)]
    clients[0].hold()
    waiting = clients[1].wait()
    world.expire()
    reply = clients[2].try_acquire(clients[2].token())
    assert isinstance(reply, Busy) and reply.holder == waiting.encode()
    assert world.holder() == waiting
    (grant,) = clients[1].messages()
    assert isinstance(grant, Grant) and grant.rid == rid_of(waiting)


def test_try_takes_the_lock_when_all_queued_are_overdue(world: World) -> None:
    holder, late, other = world.client(), world.client(), world.client()
    holder.hold()
    tickets = [late.token() for _ in range(6)]
    for token in tickets:
        world.admin.cmd("ZADD", world.lock.q, world.now_us() - 5_000_000, member_of(token, 100, 1))
    world.admin.cmd("PEXPIRE", world.lock.q, 5000)
    world.expire()
    assert isinstance(other.try_acquire(other.token()), Held)
    assert late.messages() == [] and world.queue() == []


def test_poll_by_the_head_of_a_free_lock_takes_it_by_reply(world: World) -> None:
    world.client().hold()
    waiter, token = world.new_waiter(provisional_ms=500)
    world.expire()
    reply = as_held(waiter.acquire(token, provisional_ms=500, ttl_ms=20_000))
    assert 19_000 < world.pttl() <= 20_000, "the caller is alive: full lease, not a claim"
    assert waiter.messages() == [], "no message to myself"
    assert world.keys() == {world.lock.k, world.lock.f}


def test_poll_by_the_second_grants_the_head(world: World) -> None:
    world.client().hold()
    head, first = world.new_waiter(provisional_ms=1234)
    second, token = world.new_waiter()
    world.expire()
    reply = as_busy(second.acquire(token))
    assert (reply.rank, reply.holder, reply.kind) == (0, first.encode(), "string")
    assert 1000 < reply.pttl <= 1234
    (grant,) = head.messages()
    assert isinstance(grant, Grant) and grant.provisional_ms == 1234 and grant.now == reply.now
    assert world.holder() == first
    assert second.messages() == [], "the reply says already that it is the head, and for how long"


def test_poll_of_a_free_lock_skips_dead_and_overdue_heads(world: World) -> None:
    holder, dead, late, waiter = (world.client() for _ in range(4))
    holder.hold()
    dead.wait()
    late.wait_overdue()
    token = waiter.wait()
    dead.die()
    world.expire()
    assert isinstance(waiter.acquire(token), Held)
    assert late.messages() == [] and world.queue() == []


def test_newcomer_finding_a_free_lock_with_a_queue_lets_the_head_go_first(world: World) -> None:
    holder, head, newcomer = world.client(), world.client(), world.client()
    holder.hold()
    first = head.wait()
    world.expire()
    reply = newcomer.acquire(newcomer.token())
    assert isinstance(reply, Busy) and reply.rank == 0
    assert world.holder() == first


def test_overdue_caller_is_alive_and_gets_a_free_lock(world: World) -> None:
    holder, waiter, second = world.client(), world.client(), world.client()
    holder.hold()
    token = waiter.wait_overdue()
    second.wait()
    world.expire()
    reply = as_held(waiter.acquire(token, wait_ms=1000, ticket=world.now_us() - 10_000_000))


def test_busy_poll_drops_at_most_four_overdue_heads(world: World) -> None:
    holder, late, waiter = world.client(), world.client(), world.client()
    holder.hold()
    past = world.now_us() - 60_000_000
    for i in range(6):
        member = member_of(late.token(), 100, 1000)
        world.admin.cmd("ZADD", world.lock.q, past + i, member)
    reply = waiter.acquire(waiter.token())
    assert isinstance(reply, Busy) and reply.rank == 2
    reply = waiter.acquire(waiter.token())
    assert isinstance(reply, Busy) and reply.rank == 1


def test_busy_poll_does_not_drop_who_may_still_wait(world: World) -> None:
    holder, waiter, other = world.client(), world.client(), world.client()
    holder.hold()
    token = waiter.token()
    waiter.acquire(token, wait_ms=60_000, ticket=world.now_us() - 30_000_000)
    other.wait()
    assert world.queue()[0] == member_of(token, wait_ms=60_000)


def test_new_head_after_a_dropped_overdue_one_is_notified_when_to_poll(world: World) -> None:
    # Otherwise the short claim that only the old head was told of would pass unnoticed.
    holder, late, second, other = (world.client() for _ in range(4))
    held = holder.hold()
    granted = late.wait(provisional_ms=700)
    overdue = late.token()
    ticket = world.now_us() - 10_000_000
    token = second.wait()
    holder.release(held)
    assert world.holder() == granted
    world.admin.cmd("ZADD", world.lock.q, ticket, member_of(overdue, wait_ms=1000))
    second.messages()
    assert isinstance(other.try_acquire(other.token()), Busy)
    assert second.was_told(token, 700, 400)


@pytest.mark.parametrize(("ttl_ms", "told_ms"), [(2000, 2000), (7 * 24 * 3600 * 1000, 99_999)])
def test_own_grant_tells_the_new_head(world: World, ttl_ms: int, told_ms: int) -> None:
    """A message has five digits for the time."""
    world.client().hold()
    waiter, token = world.new_waiter()
    second, behind = world.new_waiter()
    world.expire()
    assert isinstance(waiter.acquire(token, ttl_ms=ttl_ms), Held)
    assert second.was_told(behind, told_ms)


def test_peer_that_sets_the_key_excludes_us_and_we_exclude_it(world: World) -> None:
    client = world.client()
    world.admin.cmd("SET", world.lock.k, "peer", "NX", "PX", 5000)
    reply = client.acquire(token := client.token())
    assert isinstance(reply, Busy) and reply.holder == b"peer" and 4000 < reply.pttl <= 5000
    world.admin.cmd("DEL", world.lock.k)
    assert isinstance(client.acquire(token), Held)
    assert world.admin.cmd("SET", world.lock.k, "peer", "NX", "PX", 5000) is None
    assert world.holder() == token


def test_key_without_expiry_stays_busy(world: World) -> None:
    client = world.client()
    world.may_be_immortal.add(world.lock.k)
    world.admin.cmd("SET", world.lock.k, "peer")
    reply = client.acquire(client.token())
    assert isinstance(reply, Busy) and (reply.pttl, reply.rank) == (-1, 0)
    assert world.holder() == "peer" and world.pttl() == -1


@pytest.mark.parametrize("queueing", [True, False])
def test_shared_mark_without_a_live_reader_is_free(world: World, queueing: bool) -> None:
    client, reader = world.client(), world.client()
    over = reader.share()
    world.admin.cmd("ZADD", world.lock.r, world.now_us() // 1000 - 1, over)
    token = client.token()
    send = client.acquire if queueing else client.try_acquire
    assert isinstance(send(token, ttl_ms=20_000), Held)
    assert world.holder() == token and 19_000 < world.pttl() <= 20_000
    assert reader.extend_shared(over) == -1 and reader.release(over) == (-1, 0)
    assert world.holder() == token


@pytest.mark.parametrize("value", [b"", b"\x00\xff" * 100])
def test_any_value_is_a_holder_and_is_cut_to_64_bytes(world: World, value: bytes) -> None:
    client = world.client()
    world.admin.cmd("SET", world.lock.k, value, "PX", 5000)
    reply = client.acquire(client.token())
    assert isinstance(reply, Busy) and (reply.holder, reply.kind) == (value[:64], "string")


def test_poll_pushes_the_expiry_of_the_queue_forward(world: World) -> None:
    # Waiters that wait longer than the queue lives would lose it otherwise.
    world.client().hold()
    waiter, token = world.new_waiter()
    world.admin.cmd("PEXPIRE", world.lock.q, QUEUE_TTL_MS // 2 + 60_000)
    waiter.acquire(token)
    assert world.pttl(world.lock.q) <= QUEUE_TTL_MS // 2 + 60_000, "not yet below half"
    world.admin.cmd("PEXPIRE", world.lock.q, QUEUE_TTL_MS // 2 - 1000)
    waiter.acquire(token)
    assert world.pttl(world.lock.q) > QUEUE_TTL_MS - 5000


def test_check_and_names_hold_for_any_bytes(world: World) -> None:
    client = world.client()
    key = b"app:\x00\r\n\xff{}*"
    keys = [key, *(b"app:{" + key + b"}:rl1:" + suffix for suffix in (b"q", b"f", b"r"))]
    token, other = client.token(), client.token()
    assert world.run("acquire", keys, token, 5000, "", "", world.prefix)[0] == 1
    assert world.admin.cmd("GET", key).decode() == token
    reply = world.run("acquire", keys, other, 5000, "", "", world.prefix)
    assert reply[5].decode() == check_of(key)
    assert world.run("release", keys, token, world.prefix)[0] == 1


@pytest.mark.parametrize("lease", ["0", "-5", "1.5", "abc", "9223372036854775807", ""])
def test_bad_lease_takes_nothing(world: World, lease: str) -> None:
    client = world.client()
    args = (client.token(), lease, "", "", world.prefix)
    assert error_of(lambda: world.run("acquire", world.lock.keys, *args)) == "ERR"
    assert world.holder() is None


def test_script_may_push_to_its_own_connection(world: World) -> None:
    # The message may stand before the reply or behind it; both must arrive.
    client: Client = world.client()
    token, behind = client.hold(), client.wait()
    assert client.subscription is not None
    assert client.release(token, connection=client.subscription) == (2, 0)
    (grant,) = client.messages()
    assert isinstance(grant, Grant) and grant.rid == rid_of(behind)
