# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a run begins once in a period, unless those before it have failed. Method: one request at a
time; a period is ended by writing an earlier end to its mark."""

from __future__ import annotations

import random

import pytest

from support.resp import RespError

from .harness import NEVER, Client, World, eventually

RUN, DONE, USED, MANY = 1, 2, 3, 4
LENGTH = 60_000
KEPT = 600_000


class Job:
    """A client that holds the lock, after so many local hand-offs."""

    def __init__(self, world: World, handoffs: int = 0, key: str = "") -> None:
        self.world, self.handoffs, self.key = world, handoffs, key
        self.client: Client = world.client()
        self.token = self.client.hold()

    def begin(self, length: int = LENGTH, tries: int = 3, waited: int = 0) -> int:
        lock = self.world.lock
        args = (self.token, self.handoffs, self.key, length, tries, waited)
        result, now, ends = self.world.run("once_begin", [lock.k, lock.o], *args)
        assert len(str(now)) == 13 and (ends > 0) == (result in (RUN, DONE, USED))
        return int(result)

    @property
    def run(self) -> str:
        return f"{self.token}{self.handoffs}"

    def done(self) -> tuple[int, int]:
        world = self.world
        keys = [*world.lock.keys, world.lock.w, world.lock.o]
        args = (self.token, world.prefix, "o", self.key, self.handoffs, *NEVER)
        result, _, flags = world.run("release", keys, *args)
        return int(result), int(flags)

    def fail(self) -> None:
        assert self.client.release(self.token)[0] >= 1


def begin_at(job: Job, now_ms: int, length: int) -> int:
    """With this time in place of the server's clock."""
    text, clock = job.world.texts["once_begin"], "redis.call('TIME')"
    assert text.count(clock) == 1
    text = text.replace(clock, "{ARGV[7], ARGV[8]}")
    seconds, ms = divmod(now_ms, 1000)
    lock, tried = job.world.lock, (job.token, job.handoffs, job.key, length, 3, 0)
    keys = (2, lock.k, lock.o)
    reply = job.world.admin.cmd("EVAL", text, *keys, *tried, seconds, ms * 1000)
    assert reply[1] == now_ms
    return int(reply[0])


def marks(world: World) -> dict[str, str]:
    found = world.inspect()[11]
    return {found[i].decode(): found[i + 1].decode() for i in range(0, len(found), 2)}


def end_period(world: World, key: str = "") -> None:
    state, since, tries, _, run = marks(world)[key].split()
    earlier = int(since) - 1000
    world.admin.cmd("HSET", world.lock.o, key, f"{state} {earlier} {tries} {earlier} {run}")


def test_a_success_is_remembered_until_the_period_ends(world: World) -> None:
    first = Job(world, 7)
    assert first.begin() == RUN and 0 < world.pttl(world.lock.o) <= LENGTH
    assert first.done() == (1, 0)
    assert world.holder() is None and LENGTH < world.pttl(world.lock.o) <= KEPT
    state, since, tries, ends, run = marks(world)[""].split()
    assert (state, tries, run) == ("d", "1", first.run)
    assert int(since) - 5_000 < int(ends) - LENGTH <= int(since)
    second = Job(world, 8)
    assert second.begin() == DONE
    end_period(world)
    assert second.begin() == RUN and marks(world)[""].startswith("r ")


def test_a_failure_leaves_a_try_of_the_same_period(world: World) -> None:
    ends = set()
    for fence in (1, 2, 3):
        job = Job(world, fence)
        assert job.begin() == RUN
        ends.add(marks(world)[""].split()[3])
        job.fail()
    assert len(ends) == 1
    last = Job(world, 4)
    assert last.begin() == USED and last.begin(tries=4) == RUN
    last.fail()
    end_period(world)
    job = Job(world, 5)
    assert job.begin() == RUN and marks(world)[""].split()[2] == "1"


def test_a_repetition_is_the_same_run(world: World) -> None:
    job = Job(world, 7)
    assert [job.begin() for _ in range(3)] == [RUN] * 3
    assert marks(world)[""].split()[2] == "1"
    assert job.done() == (1, 0)
    assert job.done() == (-1, 0), "a late copy"
    assert marks(world)[""].startswith("d ")


def test_only_the_holder_begins_and_succeeds(world: World) -> None:
    first = Job(world, 7)
    assert first.begin() == RUN
    world.expire()
    assert first.begin() == 0
    second = Job(world, 8)
    assert first.begin() == -1 and first.done() == (-1, 0)
    assert second.begin() == RUN and marks(world)[""].split()[4] == second.run
    assert first.done()[0] == -1 and marks(world)[""].startswith("r ")


def test_the_mark_of_another_run_is_not_touched(world: World) -> None:
    """Its own is gone: it was forgotten, and another run has begun since."""
    job = Job(world, 7)
    assert job.begin() == RUN
    mark = marks(world)[""] + "9"
    assert world.run("once_forget", [world.lock.o]) == [1, 0] and marks(world) == {}
    world.admin.cmd("HSET", world.lock.o, "", mark)
    world.admin.cmd("PEXPIRE", world.lock.o, 5000)
    assert job.done() == (1, 4) and marks(world)[""] == mark


def test_a_handed_on_lease_is_another_run(world: World) -> None:
    """The caller before it has the same token, and has begun a run."""
    job = Job(world, 0)
    assert job.begin() == RUN
    job.handoffs = 1
    assert job.begin(tries=1) == USED and job.begin(tries=2) == RUN
    assert marks(world)[""].split()[2] == "2" and job.done() == (1, 0)


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_who_has_waited_for_a_long_run_is_skipped(world: World, is_forgotten: bool) -> None:
    """The run has lasted longer than its period, or was forgotten meanwhile."""
    job = Job(world, 7)
    assert job.begin() == RUN
    if is_forgotten:
        world.run("once_forget", [world.lock.o])
    else:
        end_period(world)
    assert job.done() == (1, 0)
    second = Job(world, 8)
    assert second.begin(waited=10_000) == DONE
    second.fail()
    ended = int(marks(world)[""].split()[1])
    eventually(lambda: world.now_us() // 1000 > ended)
    third = Job(world, 9)
    assert third.begin(waited=0) == RUN, "it has started after the end"
    third.fail()
    assert Job(world, 10).begin(waited=60_000) == RUN, "the other one has failed"


def test_each_key_has_a_period(world: World) -> None:
    for key in ("mon", "tue", "r 1 2 3 4"):
        job = Job(world, 7, key)
        assert job.begin() == RUN and job.done() == (1, 0)
        again = Job(world, 8, key)
        assert again.begin() == DONE
        again.fail()
    assert len(marks(world)) == 3
    end_period(world, "mon")
    last = Job(world, 9, "wed")
    assert last.begin() == RUN
    assert set(marks(world)) == {"mon", "tue", "r 1 2 3 4", "wed"}, "who waited still needs it"
    last.fail()
    world.admin.cmd("HSET", world.lock.o, "mon", "d 1 1 2 x")
    assert Job(world, 9, "wed").begin() == RUN
    assert set(marks(world)) == {"tue", "r 1 2 3 4", "wed"}, "what has ended is removed"


def test_too_many_keys_are_refused(world: World) -> None:
    ends = world.now_us() // 1000 + LENGTH
    for i in range(256):
        world.admin.cmd("HSET", world.lock.o, str(i), f"d 1 1 {ends} 3")
    world.admin.cmd("PEXPIRE", world.lock.o, LENGTH)
    job = Job(world, 7, "new")
    assert job.begin() == MANY and len(marks(world)) == 256
    job.key = "0"
    assert job.begin() == DONE
    world.admin.cmd("HSET", world.lock.o, "1", "d 1 1 1 3")
    job.key = "new"
    assert job.begin() == RUN and len(marks(world)) == 256


@pytest.mark.parametrize("mark", ["", "junk", "r 1 2", "d 1 1 99999999999999999999 x"])
def test_a_mark_that_is_none_is_replaced(world: World, mark: str) -> None:
    world.admin.cmd("HSET", world.lock.o, "", mark)
    world.admin.cmd("PEXPIRE", world.lock.o, LENGTH)
    job = Job(world, 7)
    assert job.begin() == RUN and marks(world)[""].startswith("r ")


def test_a_server_without_memory_notes_a_success(world: World) -> None:
    job = Job(world, 7)
    assert job.begin() == RUN
    waiter = world.client()
    token = waiter.wait()
    with world.out_of_memory():
        assert job.done() == (2, 0)
    assert world.holder() == token and marks(world)[""].startswith("d ")


def test_data_of_another_program_is_not_touched(world: World) -> None:
    world.admin.cmd("SET", world.lock.o, "data", "PX", 60_000)
    job = Job(world, 7)
    with pytest.raises(RespError, match="WRONGTYPE"):
        job.begin()
    with pytest.raises(RespError, match="WRONGTYPE"):
        world.run("once_forget", [world.lock.o])
    assert job.done() == (1, 4) and world.admin.cmd("GET", world.lock.o) == b"data"
    assert marks(world) == {}


def test_a_success_hands_the_lock_to_the_next(world: World) -> None:
    job = Job(world, 7)
    assert job.begin() == RUN
    waiter = world.client()
    token = waiter.wait()
    assert job.done() == (2, 0) and world.holder() == token
    assert marks(world)[""].startswith("d ")


# ---- cron ----

PERIODS = 50
JITTER = 300  # ms


@pytest.mark.parametrize(
    ("hosts", "every", "is_named"), [(1, 3000, False), (3, 3000, False), (3, 1000, True)]
)
def test_starts_with_jitter_run_once_in_a_period(
    world: World, hosts: int, every: int, is_named: bool
) -> None:
    """A period may be as short as ten times the jitter, because a success is remembered for 90 % of
    it. With a text that names it the period may be shorter: a success is remembered for all of it.
    """
    choose = random.Random(46)
    begin_ms = world.now_us() // 1000 + 1000  # The marks must not end by the real clock.
    length = every if is_named else every * 9 // 10
    runs, fence = [0] * PERIODS, 0
    for period in range(PERIODS):
        for late in sorted(choose.randint(0, JITTER) for _ in range(hosts)):
            fence += 1
            job = Job(world, fence, str(period) if is_named else "")
            if begin_at(job, begin_ms + period * every + late, length) == RUN:
                runs[period] += 1
                assert job.done() == (1, 0)
            else:
                job.fail()
    assert runs == [1] * PERIODS
