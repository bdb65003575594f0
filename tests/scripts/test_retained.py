# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a holder whose token can be recalled gets fences for local acquisitions when nobody else
wants the lock, and hears of the first one who does. Method: one request at a time."""

from __future__ import annotations

import pytest

from .harness import (
    FENCE_STEP,
    TTL_MS,
    Busy,
    Client,
    Grant,
    Held,
    Recalled,
    World,
    as_busy,
    as_held,
    rid_of,
)

BLOCK = 1024
HEARD = 8


def retain(client: Client) -> tuple[str, Held]:
    """Take the free lock with a token that can be recalled."""
    token = client.token(is_recallable=True)
    return token, as_held(client.acquire(token))


def highest(world: World) -> int:
    return int(world.admin.cmd("GET", world.lock.f))


def is_heard(reply: Held | Busy | int) -> bool:
    return bool(as_busy(reply).flags & HEARD)


# ---- fences --------------------------------------------------------------------------------------


def test_a_free_lock_comes_with_a_block_of_fences(world: World) -> None:
    token, held = retain(world.client())
    assert held.count == BLOCK
    assert highest(world) == int(held.fence) + BLOCK - FENCE_STEP
    assert world.holder() == token


def test_the_next_fence_is_above_the_block(world: World) -> None:
    first, second = world.client(), world.client()
    token, held = retain(first)
    first.release(token)
    after = as_held(second.acquire(second.token()))
    assert int(after.fence) >= int(held.fence) + BLOCK


def test_a_reader_is_above_the_block(world: World) -> None:
    first, second = world.client(), world.client()
    token, held = retain(first)
    first.release(token)
    after = as_held(second.read(second.token()))
    assert int(after.fence) >= int(held.fence) + BLOCK - 1


def test_blocks_do_not_run_ahead_of_the_clock(world: World) -> None:
    client = world.client()
    counts = set()
    for _ in range(200):
        token, held = retain(client)
        counts.add(held.count)
        assert highest(world) <= world.now_us() + 3_000
        client.release(token)
    assert counts <= {BLOCK, FENCE_STEP} and BLOCK in counts


def test_a_plain_token_gets_no_block(world: World) -> None:
    client = world.client()
    held = as_held(client.acquire(client.token()))
    assert held.count == 1 and highest(world) == int(held.fence)


@pytest.mark.parametrize("what", ["waiters", "mark", "repetition", "grant"])
def test_no_block_without_evidence(world: World, what: str) -> None:
    """Others may wait for the lock, or use it, who do not recall."""
    client = world.client()
    token = client.token(is_recallable=True)
    if what == "waiters":
        world.enqueue_dead(1)
    elif what == "mark":
        world.put("SET", world.lock.w, "0 0 0 0", ms=60_000)
    elif what == "repetition":
        as_held(client.acquire(token))
    else:
        holder, held = world.new_holder()
        client.acquire(token)
        holder.release(held)
    assert len(client._ask("acquire", token, "x")) == 3


def test_a_search_that_found_no_other_library_is_no_evidence(world: World) -> None:
    client = world.client()
    world.put("SET", world.lock.w, "p 0 0 150", ms=60_000)
    token, held = retain(client)
    assert held.count == BLOCK
    client.release(token)
    assert as_held(client.read(client.token(is_recallable=True))).count == 1


def test_a_window_is_left_to_other_libraries(world: World) -> None:
    client = world.client()
    world.put("SET", world.lock.w, f"p 0 {world.now_us() // 1000} 60000", ms=60_000)
    as_busy(client.acquire(client.token(is_recallable=True)))


def test_downgrade_by_the_fence_of_the_server(world: World) -> None:
    client = world.client()
    token, held = retain(client)
    late = f"{int(held.fence):016d}"
    assert client.downgrade(token, fence=late) == (0, 0), "F is above it"
    assert client.downgrade(token, fence=f"{highest(world):016d}") == (1, 0)


# ---- recalls -------------------------------------------------------------------------------------


def test_the_head_recalls(world: World) -> None:
    holder, waiter = world.client(), world.client()
    token, _ = retain(holder)
    waiting = waiter.token()
    assert is_heard(waiter.acquire(waiting))
    assert holder.messages() == [Recalled(rid_of(token))]
    assert holder.release(token) == (2, 0)
    assert isinstance(waiter.messages()[0], Grant)


def test_it_does_so_with_each_poll(world: World) -> None:
    holder, waiter = world.client(), world.client()
    token, _ = retain(holder)
    waiting = waiter.token()
    for _ in range(3):
        assert is_heard(waiter.acquire(waiting))
    assert holder.messages() == [Recalled(rid_of(token))] * 3


def test_those_behind_the_head_do_not(world: World) -> None:
    holder = world.client()
    token, _ = retain(holder)
    world.client().wait()
    for _ in range(3):
        client = world.client()
        assert not is_heard(client.acquire(client.token()))
    assert holder.messages() == [Recalled(rid_of(token))]


@pytest.mark.parametrize("has_queue", [False, True])
def test_a_try_recalls_if_nobody_waits(world: World, has_queue: bool) -> None:
    holder, other = world.client(), world.client()
    retain(holder)
    if has_queue:
        world.client().wait()
        holder.messages()
    assert is_heard(other.try_acquire(other.token())) == (not has_queue)
    assert len(holder.messages()) == (0 if has_queue else 1)


def test_a_reader_recalls(world: World) -> None:
    holder, reader = world.client(), world.client()
    token, _ = retain(holder)
    assert is_heard(reader.read(reader.token()))
    assert holder.messages() == [Recalled(rid_of(token))]


def test_a_client_does_not_recall_itself(world: World) -> None:
    holder = world.client()
    retain(holder)
    assert not is_heard(holder.acquire(holder.token()))
    assert holder.messages() == []


def test_a_plain_holder_hears_nothing(world: World) -> None:
    holder, _ = world.new_holder()
    waiter = world.client()
    assert not is_heard(waiter.acquire(waiter.token()))
    assert holder.messages() == []


def test_a_dead_holder_is_not_heard(world: World) -> None:
    holder, waiter = world.client(), world.client()
    retain(holder)
    holder.die()
    assert not is_heard(waiter.acquire(waiter.token()))
    assert not is_heard(waiter.try_acquire(waiter.token()))


def test_a_holder_of_another_library_is_not_recalled(world: World) -> None:
    world.put("SET", world.lock.k, "f" * 32, ms=TTL_MS)
    waiter = world.client()
    assert not is_heard(waiter.try_acquire(waiter.token()))


def test_a_user_that_may_not_publish_waits_all_the_same(world: World) -> None:
    holder, waiter = world.client(), world.client()
    retain(holder)
    with world.user("~*", "&none", "+@all") as limited:
        reply = as_busy(waiter.acquire(waiter.token(), connection=limited))
    assert reply.rank == 0 and not reply.flags & HEARD


def test_a_forced_release_says_so(world: World) -> None:
    holder = world.client()
    token, _ = retain(holder)
    assert world.force_release() == (1, 0)
    assert holder.messages() == [Recalled(rid_of(token))]
    assert world.holder() is None

# ---- readers -------------------------------------------------------------------------------------


def read(client: Client) -> tuple[str, Held]:
    """Read with a token that can be recalled."""
    token = client.token(is_recallable=True)
    return token, as_held(client.read(token))


def test_readers_may_retain_and_share_the_fence(world: World) -> None:
    _, first = read(world.client())
    fence = highest(world)
    _, second = read(world.client())
    assert first.count == second.count == 1
    assert first.fence == second.fence
    assert highest(world) == fence


def test_a_plain_reader_may_not_retain(world: World) -> None:
    client = world.client()
    assert len(client._ask("acquire_read", client.token(), "s", more=[""])) == 3


def test_a_reader_may_not_retain_past_a_waiter(world: World) -> None:
    client, writer = world.client(), world.client()
    token, _ = read(client)
    assert as_busy(writer.acquire(writer.token())).rank == 0
    reply = client._ask("acquire_read", client.token(is_recallable=True), "s", more=[token])
    assert len(reply) == 3, "it passes the waiter"


def test_a_reader_may_not_retain_beside_other_libraries(world: World) -> None:
    client = world.client()
    world.put("SET", world.lock.w, "0 0 0 0", ms=TTL_MS)
    token = client.token(is_recallable=True)
    assert len(client._ask("acquire_read", token, "s", more=[""])) == 3


def test_the_head_recalls_each_reader(world: World) -> None:
    clients = [world.client() for _ in range(3)]
    tokens = {client: [read(client)[0], read(client)[0]] for client in clients}
    plain = world.client()
    as_held(plain.read(plain.token()))
    writer = world.client()
    assert is_heard(writer.acquire(writer.token()))
    for client in clients:
        assert sorted(client.messages(), key=str) == sorted(
            (Recalled(rid_of(token)) for token in tokens[client]), key=str
        )
    assert plain.messages() == []


def test_a_bounded_number_of_readers_is_recalled(world: World) -> None:
    client, writer = world.client(), world.client()
    last = client.token(is_recallable=True)
    as_held(client.read(last, ttl_ms=2 * TTL_MS))
    for _ in range(300):
        read(client)
    assert is_heard(writer.acquire(writer.token()))
    messages = client.messages()
    assert len(messages) == 256
    assert Recalled(rid_of(last)) not in messages, "its lease ends last"


def test_a_reader_that_waits_behind_a_writer_recalls_no_reader(world: World) -> None:
    holder, writer, reader = world.client(), world.client(), world.client()
    read(holder)
    as_busy(writer.acquire(writer.token()))
    holder.messages()
    assert not is_heard(reader.read(reader.token()))
    assert holder.messages() == []


@pytest.mark.parametrize("queues", [False, True])
def test_an_upgrade_recalls_the_others(world: World, queues: bool) -> None:
    holder, upgrader = world.client(), world.client()
    token, _ = read(holder)
    mine, _ = read(upgrader)
    reply = upgrader.upgrade(mine, queues=queues)
    assert is_heard(reply)
    assert holder.messages() == [Recalled(rid_of(token))]
    assert upgrader.messages() == []


def test_a_client_is_asked_for_its_own_readers_and_not_counted(world: World) -> None:
    client = world.client()
    token, _ = read(client)
    assert not is_heard(client.acquire(client.token()))
    assert client.messages() == [Recalled(rid_of(token))]


def test_a_forced_release_says_so_to_all_readers(world: World) -> None:
    first, second = world.client(), world.client()
    tokens = [read(first)[0], read(second)[0]]
    assert world.force_release() == (1, 0)
    assert first.messages() == [Recalled(rid_of(tokens[0]))]
    assert second.messages() == [Recalled(rid_of(tokens[1]))]
