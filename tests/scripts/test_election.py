# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the id and the term of a leader are readable from its grant on, whoever grants; ids of dead
candidates do not pile up, and do not stop an acquire. Method: one request at a time."""

from __future__ import annotations

from .harness import TTL_MS, Busy, Client, Held, World, as_busy, as_held

MOST_IDS, KEPT = 512, 257


def campaign(client: Client, id: str, token: str = "", queues: bool = True) -> Held | Busy:
    """ACQUIRE as a candidate does."""
    world = client.world
    token = token or client.token()
    member = client.member(token) if queues else ""
    reply = world.run(
        "acquire", [*world.lock.keys, world.lock.w, world.lock.e], token, TTL_MS, member, "",
        world.prefix, id, connection=client.connection,
    )  # fmt: skip
    return client._answer(reply)


def ids(world: World) -> list[bytes]:
    """That of the holder, and those of the waiters."""
    found: list[bytes] = world.inspect()[12]
    return found


def test_the_id_is_readable_from_the_grant_on(world: World) -> None:
    held = as_held(campaign(world.client(), "one"))
    reply = world.inspect()
    assert reply[12] == [b"one"] and reply[4] == held.fence.encode()
    assert TTL_MS < world.pttl(world.lock.e) <= 600_000


def test_also_if_another_one_grants(world: World) -> None:
    first, second = world.client(), world.client()
    token = first.token()
    as_held(campaign(first, "one", token))
    as_busy(campaign(second, "two"))
    as_busy(campaign(world.client(), "three"))
    assert ids(world) == [b"one", b"two", b"three"]
    first.release(token)
    assert ids(world) == [b"two", b"three"]


def test_a_try_is_a_candidate_too(world: World) -> None:
    as_held(campaign(world.client(), "one", queues=False))
    assert ids(world) == [b"one"]


def test_a_holder_without_an_id_has_none(world: World) -> None:
    world.client().hold()
    as_busy(campaign(world.client(), "two"))
    assert ids(world) == [b"", b"two"]


def test_without_candidates_nothing_is_listed(world: World) -> None:
    world.client().hold()
    world.client().wait()
    assert ids(world) == [] and world.lock.e not in world.keys()


def test_the_description_has_id_and_term(world: World) -> None:
    client = world.client()
    token = client.token()
    held = as_held(campaign(client, "one", token))
    client.extend(token, TTL_MS, "who", "a", "id", "one", "fence", held.fence.lstrip("0"))
    world.admin.cmd("DEL", world.lock.e, world.lock.f)
    info = world.inspect()[7]
    assert info[-4:] == [b"id", b"one", b"fence", held.fence.lstrip("0").encode()]


def test_a_shorter_lease_does_not_end_the_id_of_a_longer_one(world: World) -> None:
    as_held(campaign(world.client(), "leader"))
    world.admin.cmd("PEXPIRE", world.lock.e, 3_600_000)
    as_busy(campaign(world.client(), "second"))
    assert 3_500_000 < world.pttl(world.lock.e) <= 3_600_000


def test_ids_of_the_dead_are_dropped(world: World) -> None:
    leader, second = world.client(), world.client()
    as_held(campaign(leader, "leader"))
    as_busy(campaign(second, "second"))
    dead = [word for i in range(MOST_IDS) for word in (f"dead{i}", "x")]
    world.put("HSET", world.lock.e, *dead, ms=60_000)
    as_busy(campaign(world.client(), "third"))
    assert ids(world) == [b"leader", b"second", b"third"]
    assert world.admin.cmd("HLEN", world.lock.e) == 3


def test_with_many_waiters_those_in_front_are_kept(world: World) -> None:
    as_held(campaign(world.client(), "leader"))
    client = world.client()
    for i in range(MOST_IDS + 40):
        as_busy(campaign(client, str(i)))
    assert ids(world)[:KEPT] == [b"leader", *(str(i).encode() for i in range(KEPT - 1))]
    assert world.admin.cmd("HLEN", world.lock.e) <= MOST_IDS + 1


def test_a_key_of_another_type_is_left_alone(world: World) -> None:
    world.put("SET", world.lock.e, "mine", ms=60_000)
    as_held(campaign(world.client(), "one"))
    assert world.admin.cmd("GET", world.lock.e) == b"mine" and ids(world) == []


def test_a_user_without_the_right_leads_all_the_same(world: World) -> None:
    with world.user("~*", "&*", "+@all", "-hset") as connection:
        client = world.client()
        client.connection = connection
        as_held(campaign(client, "one"))
    assert ids(world) == []


def test_a_user_that_may_set_no_expiry_leaves_no_id(world: World) -> None:
    with world.user("~*", "&*", "+@all", "-pexpire") as connection:
        client = world.client()
        client.connection = connection
        as_held(campaign(client, "one"))
    assert world.lock.e not in world.keys()
