# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The half of the model for locks that several leases may have: readers, or holds of an owner.

Their order is strict (local_burst is 0), so that who is next is always known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import Answer, Lease, Model

ENDED = {"GONE": "E_LOST", "LOST": "E_LOST", "GIVEN_UP": "E_LOST/E_NOT_HELD"}


class SharedName:
    """One read-write lock, or reentrant lock, on the server."""

    def __init__(self, model: Model, name: str, owners: dict[str, str]) -> None:
        self.model = model
        self.name = name
        self.owners = owners  # lock -> owner; of a read-write lock there are none
        self.holders: list[Lease] = []
        self.queue: list[tuple[str, str]] = []  # lock and mode
        self.bound: set[str] = set()  # fences that were seen: of writers, of readers
        self.is_forced = False  # since the last grant: that raises the fence
        self.client = model.clients[0]

    # ---- what happens by itself ----

    def _can_enter(self, lock: str, mode: str) -> bool:
        if self.owners:
            return not self.holders or self._owns(lock)
        if mode == "UPGRADE":
            return self.holders == [self.model.leases[lock]]
        if mode == "WRITE":
            return not self.holders
        return all(lease.mode == "READ" for lease in self.holders)

    def _owns(self, lock: str) -> bool:
        return bool(self.holders) and self.holders[0].owner == self.owners.get(lock)

    def _fence(self, mode: str) -> str:
        """What its reply has to show: above all writers, and a writer above all readers."""
        own = f"{'read' if mode == 'READ' else 'fence'}_{self.name}"
        below = {f"fence_{self.name}"} if mode == "READ" else self.bound
        shown = "".join(f"fence>${other} " for other in sorted(below & self.bound))
        self.bound.add(own)
        return f"{shown}fence=?{own}"

    def _granted(self, lock: str, mode: str) -> str:
        is_again = bool(self.owners and self.holders) and not self.is_forced
        self.is_forced = False
        shown = f"fence=$fence_{self.name}" if is_again else self._fence(mode)
        lease = self.model.new_lease(lock)
        lease.mode, lease.owner = mode, self.owners.get(lock, "")
        self.holders.append(lease)
        return f"token=?{lease.token} mode={mode} {shown}"

    def _upgraded(self, lock: str) -> str:
        self.model.leases[lock].mode = "WRITE"
        return f"{lock} show -> OK state=HELD mode=WRITE {self._fence('WRITE')}"

    def _serve(self) -> Answer:
        """All at the head of the queue who can have it now have it, and no other."""
        served = False
        while self.queue and self._can_enter(*self.queue[0]):
            lock, mode = self.queue.pop(0)
            served = True
            self.model.requests[lock] = "OK"
            if mode == "UPGRADE":
                yield f"{lock} poll wait_ms=5000 -> OK"
                yield self._upgraded(lock)
            else:
                yield f"{lock} poll wait_ms=5000 -> OK {self._granted(lock, mode)}"
        if served:
            for lock, _ in self.queue:
                yield f"{lock} poll wait_ms=0 -> PENDING"

    def _wait_for_queue(self) -> Answer:
        yield f"until {self.client} inspect name={self.name} -> OK waiting={len(self.queue)}"

    def _lose(self, lost: list[Lease]) -> Answer:
        for lease in lost:
            self.holders.remove(lease)
            if lease.state == "HELD":
                lease.state = "GONE"
        yield from self._serve()

    def _is_upgrading(self) -> bool:
        """Who waits for that and loses its lease learns of it some time later."""
        return bool(self.queue) and self.queue[0][1] == "UPGRADE"

    def would_lose_places(self) -> bool:
        """While somebody reads, each who comes back looks who else is there, and may enter."""
        return bool(self.queue) and bool(self.holders) and self.holders[0].mode == "READ"

    def finish(self) -> Answer:
        """All leases are given back, so that those who wait have their turn."""
        leases = self.model.leases
        while self.queue or any(lease.state == "HELD" for lease in self.holders):
            held = [lock for lock, lease in leases.items() if lease in self.holders]
            held = [lock for lock in held if leases[lock].state == "HELD"]
            if held:
                yield from self.do_release(held[0], 0)
            else:
                yield from self.do_force_release(self.client)
        if self.holders:
            yield from self.do_force_release(self.client)
        yield f"until {self.client} inspect name={self.name} -> OK state=0 waiting=0"

    # ---- to take it ----

    def _may_ask(self, lock: str) -> bool:
        # A lease would be replaced by the one that comes, and given back by that.
        lease = self.model.leases.get(lock)
        is_held = lease is not None and lease.state == "HELD"
        return not is_held and self.model.requests.get(lock) != "PENDING"

    def _enters(self, lock: str, mode: str) -> bool:
        is_first = not self.queue or (bool(self.owners) and self._owns(lock))
        return is_first and self._can_enter(lock, mode)

    def _acquire(self, lock: str, op: str, mode: str) -> Answer:
        if not self._may_ask(lock):
            return
        if self._enters(lock, mode):
            count = len(self.holders) + 1 if self.owners else 1
            shown = self._granted(lock, mode)
            yield f"{lock} {op} wait_ms=0 -> OK {shown} hold_count={count}"
        else:
            yield f"{lock} {op} wait_ms=0 -> BUSY"

    def _start(self, lock: str, op: str, mode: str) -> Answer:
        # One that has another owner before it, and its own before that, may pass it at any time.
        own = [self.owners.get(other) == self.owners.get(lock) for other, _ in self.queue]
        if not self._may_ask(lock) or (self.owners and any(own) and not own[-1]):
            return
        yield f"{lock} {op} wait_ms=-1 -> PENDING/OK"
        if self._enters(lock, mode):
            self.model.requests[lock] = "OK"
            yield f"{lock} poll wait_ms=5000 -> OK {self._granted(lock, mode)}"
            return
        self.model.requests[lock] = "PENDING"
        self.queue.append((lock, mode))
        yield from self._wait_for_queue()

    def do_acquire(self, lock: str, _: int) -> Answer:
        yield from self._acquire(lock, "acquire", "WRITE")

    def do_acquire_read(self, lock: str, _: int) -> Answer:
        if not self.owners:
            yield from self._acquire(lock, "acquire_read", "READ")

    def do_start(self, lock: str, _: int) -> Answer:
        yield from self._start(lock, "start", "WRITE")

    def do_start_read(self, lock: str, _: int) -> Answer:
        if not self.owners:
            yield from self._start(lock, "start_read", "READ")

    def do_cancel(self, lock: str, _: int) -> Answer:
        status = self.model.requests.get(lock)
        if status is None or lock.partition(".")[0] not in self.model.able_to_cancel:
            return
        if status != "PENDING":
            yield f"{lock} cancel -> {status}"
            return
        self.queue = [entry for entry in self.queue if entry[0] != lock]
        self.model.requests[lock] = "CANCELLED"
        yield f"{lock} cancel -> CANCELLED"
        yield from self._serve()
        yield from self._wait_for_queue()

    # ---- to change it ----

    def do_upgrade(self, lock: str, _: int) -> Answer:
        lease = self.model.leases.get(lock)
        if self.owners or lease is None or self.model.requests.get(lock) == "PENDING":
            return
        if lease.state == "GONE" and lease.mode == "WRITE":
            # Who writes already has nothing to ask, and may not know.
            yield f"{lock} upgrade wait_ms=0 -> OK/E_LOST"
        elif lease.state != "HELD":
            yield f"{lock} upgrade wait_ms=0 -> {ENDED.get(lease.state, 'E_NOT_HELD')}"
            lease.state = "LOST" if lease.state == "GONE" else lease.state
        elif lease.mode == "WRITE":
            yield f"{lock} upgrade wait_ms=0 -> OK"
        elif len(self.holders) == 1:
            yield f"{lock} upgrade wait_ms=0 -> OK"
            yield self._upgraded(lock)
        else:
            refused = "E_DEADLOCK" if self._is_upgrading() else "BUSY"
            yield f"{lock} upgrade wait_ms=0 -> {refused}"

    def do_start_upgrade(self, lock: str, _: int) -> Answer:
        lease = self.model.leases.get(lock)
        if self.owners or lease is None or self.model.requests.get(lock) == "PENDING":
            return
        if lease.state != "HELD" or lease.mode != "READ" or lease.is_attached:
            return
        yield f"{lock} start_upgrade wait_ms=-1 -> PENDING/OK/E_DEADLOCK"
        if len(self.holders) == 1:
            self.model.requests[lock] = "OK"
            yield f"{lock} poll wait_ms=5000 -> OK"
            yield self._upgraded(lock)
        elif self._is_upgrading():
            self.model.requests[lock] = "E_DEADLOCK"
            yield f"{lock} poll wait_ms=5000 -> E_DEADLOCK"
        else:
            self.model.requests[lock] = "PENDING"
            self.queue.insert(0, (lock, "UPGRADE"))
            yield from self._wait_for_queue()

    def do_downgrade(self, lock: str, _: int) -> Answer:
        lease = self.model.leases.get(lock)
        if lease is None or (lock, "UPGRADE") in self.queue:
            return
        if lease.state == "GONE":
            return  # Of a reader, who may not know and has nothing to ask, all may be said.
        if lease.state != "HELD":
            yield f"{lock} downgrade -> {ENDED.get(lease.state, 'E_NOT_HELD')}"
        elif self.owners:
            yield f"{lock} downgrade -> E_INVALID"
        else:
            lease.mode = "READ"
            yield f"{lock} downgrade -> OK"
            yield from self._serve()

    def do_release(self, lock: str, choice: int) -> Answer:
        lease = self.model.leases.get(lock)
        if lease is None or lease.state != "HELD":
            yield from self.model.release_of_nothing(lock)
            return
        lease.state = "RELEASED"
        self.holders.remove(lease)
        yield f"{lock} release -> {'STILL_HELD' if self.owners and self.holders else 'OK'}"
        if (lock, "UPGRADE") in self.queue:
            self.queue.remove((lock, "UPGRADE"))
            self.model.requests[lock] = "E_NOT_HELD"
            yield f"{lock} poll wait_ms=5000 -> E_NOT_HELD"
        yield from self._serve()

    def do_check(self, lock: str, choice: int) -> Answer:
        yield from self.model.do_check(lock, choice)

    def do_extend(self, lock: str, choice: int) -> Answer:
        yield from self.model.do_extend(lock, choice)

    def do_show(self, lock: str, _: int) -> Answer:
        lease = self.model.leases.get(lock)
        if lease is not None and lease.state == "HELD":
            yield f"{lock} show -> OK state=HELD mode={lease.mode}"

    def do_detach(self, lock: str, _: int) -> Answer:
        lease = self.model.leases.get(lock)
        if lease is None or (lock, "UPGRADE") in self.queue:
            return
        if lease.state == "HELD":
            lease.state = "DETACHED"
            yield f"{lock} detach -> OK state=DETACHED token=${lease.token}"
        else:
            yield from self.model.detach_of_nothing(lock, lease)

    def do_attach(self, lock: str, choice: int) -> Answer:
        tokens = self.model.tokens
        if self.owners or not tokens or not self._may_ask(lock):
            return
        binding = tokens[choice % len(tokens)][0]
        found = [lease for lease in self.holders if self.model.same(lease.token, binding)]
        if not found:
            yield f"{lock} attach token=${binding} -> E_NOT_HELD"
        elif found[0].state == "DETACHED":
            lease = self.model.attached(lock, found[0])
            self.holders[self.holders.index(found[0])] = lease
            yield f"{lock} attach token=${binding} -> OK fence=0 token=${binding} mode={lease.mode}"
        else:
            yield f"{lock} attach token=${binding} -> E_NOT_HELD"

    # ---- operations of a client, and of the server ----

    def do_inspect(self, client: str) -> Answer:
        count = len(self.holders)
        shown = f"state={int(count > 0)} holding={count} holder_rows={count}"
        yield f"{client} inspect name={self.name} -> OK {shown} waiting={len(self.queue)}"

    def do_force_release(self, client: str) -> Answer:
        if not self._is_upgrading():
            status = "OK" if self.holders else "E_NOT_HELD"
            yield f"{client} force_release name={self.name} -> {status}"
            yield from self._lose(self.holders[:])

    def do_force_release_by_token(self, client: str) -> Answer:
        if not self.model.tokens or self._is_upgrading():
            return
        binding = self.model.tokens[-1][0]
        found = [lease for lease in self.holders if self.model.same(lease.token, binding)]
        status = "OK" if found else "E_NOT_HELD"
        yield f"{client} force_release name={self.name} token=${binding} -> {status}"
        self.is_forced = self.is_forced or bool(found)
        yield from self._lose(found)

    def do_get(self, _: str) -> Answer:
        if not self.holders:
            yield f"@ exists {self.name} -> 0"
        elif self.owners:
            yield f"@ hget {self.name} {self.holders[0].owner} -> {len(self.holders)}"
        elif self.holders[0].mode == "READ":
            yield f"@ get {self.name} -> rl:shared"
        else:
            yield f"@ get {self.name} -> ${self.holders[0].token}"

    def do_evict(self, _: str) -> Answer:
        if self.holders and not self.queue:
            yield f"@ del {self.name} -> 1"
            yield from self._lose(self.holders[:])
