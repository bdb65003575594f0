# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""What locks must do, as a dict of names and queues: it says what each operation may answer.

The model knows no time: leases are long, and the programs that it judges are short. Where the
library is free to choose (who of several is next), the model says among whom, and is told.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace

from .model_shared import SharedName

# An operation of a random program: what, with which lock or client, and a number to choose by.
Operation = tuple[str, str, int]
# What the model yields: a line of a case, or the locks of which one must be granted now.
Answer = Generator[str | list[str], str | None, None]

LOCK_OPERATIONS = {
    "acquire": 6,
    "start": 8,
    "cancel": 2,
    "release": 10,
    "check": 2,
    "extend": 2,
    "show": 1,
    "detach": 1,
    "attach": 2,
}
# Of readers. With a mutex they are nothing.
SHARED_OPERATIONS = {
    "acquire_read": 6,
    "start_read": 8,
    "upgrade": 2,
    "start_upgrade": 4,
    "downgrade": 3,
}
CLIENT_OPERATIONS = {"inspect": 3, "force_release": 1, "force_release_by_token": 1}
SERVER_OPERATIONS = {"get": 3, "evict": 1, "script_flush": 1, "drop_connections": 1}
OF_ALL_NAMES = {"script_flush", "drop_connections"}


@dataclass
class Lease:
    token: str  # The name of a binding, not the token itself.
    # GONE: the server has no such lock any more, and the client may not know. GIVEN_UP: a release
    # has found out, after which the lease counts as lost or as released.
    state: str = "HELD"
    mode: str = "WRITE"
    owner: str = ""
    is_attached: bool = False


@dataclass
class Name:
    """One lock on the server."""

    owner: Lease | None = None
    queue: list[str] = field(default_factory=list)
    has_fence: bool = False
    # A cancelled waiter may still be there for a moment, and be granted for a moment.
    is_unsettled: bool = False


class Model:
    """The state after the operations so far. `strict`: local_burst is 0 everywhere."""

    def __init__(
        self,
        locks: dict[str, str],
        clients: dict[str, bool],
        strict: bool,
        same: Callable[[str, str], bool],
        owners: dict[str, dict[str, str]] | None = None,
    ) -> None:
        self.locks = locks  # lock -> name
        self.clients = list(clients)
        self.able_to_cancel = {client for client, can_cancel in clients.items() if can_cancel}
        self.strict = strict
        # Whether two bindings are one token: a lock that is passed on inside a client keeps it.
        self.same = same
        # name -> lock -> owner, of the names that several may have.
        owners = owners or {}
        self.shared = {name: SharedName(self, name, owners[name]) for name in owners}
        self.names = {name: Name() for name in locks.values() if name not in owners}
        self.leases: dict[str, Lease] = {}  # the last one of each lock
        self.requests: dict[str, str] = {}  # the status of the last one of each lock
        self.tokens: list[tuple[str, str]] = []  # binding and name of each lease so far

    def apply(self, operation: Operation) -> Answer:
        """Yield the lines that `operation` means now, and change the state."""
        kind, target, choice = operation
        if kind in SERVER_OPERATIONS or kind in CLIENT_OPERATIONS:
            names = sorted({*self.names, *self.shared})
            name = names[choice % len(names)]
            if name in self.shared and kind not in OF_ALL_NAMES:
                yield from getattr(self.shared[name], f"do_{kind}")(target)
            else:
                yield from getattr(self, f"do_{kind}")(target, name)
        elif shared := self.shared.get(self.locks[target]):
            yield from getattr(shared, f"do_{kind}")(target, choice)
        elif kind not in SHARED_OPERATIONS:
            yield from getattr(self, f"do_{kind}")(target, choice)

    def finish(self) -> Answer:
        """Everything is given back; then nothing may be held."""
        for lock, status in self.requests.items():
            if status == "PENDING":
                yield from (self.shared.get(self.locks[lock]) or self).do_cancel(lock, 0)
        for shared in self.shared.values():
            yield from shared.finish()
        for name in self.names:
            while self.names[name].queue:  # Of those who cannot cancel: each has its turn.
                yield from self._end_turn(name)
        for lock in self.leases:
            if self.locks[lock] in self.names:
                yield from self.do_release(lock, 0)
        for name, state in self.names.items():
            if state.owner is not None:  # Detached.
                yield from self.do_force_release(self.clients[0], name)
            yield f"until {self.clients[0]} inspect name={name} -> OK state=0 waiting=0"

    def _end_turn(self, name: str) -> Answer:
        owner = self.names[name].owner
        for lock, lease in self.leases.items():
            if lease is owner and lease.state == "HELD":
                yield from self.do_release(lock, 0)
                return
        yield from self.do_force_release(self.clients[0], name)

    # ---- what happens by itself ----

    def new_lease(self, lock: str) -> Lease:
        binding = f"t{len(self.tokens)}"
        self.tokens.append((binding, self.locks[lock]))
        self.leases[lock] = Lease(binding)
        return self.leases[lock]

    def attached(self, lock: str, detached: Lease) -> Lease:
        self.leases[lock] = replace(detached, state="HELD", is_attached=True)
        return self.leases[lock]

    def _granted(self, lock: str, name: Name) -> str:
        """Record that `lock` has it. @return what its reply has to show."""
        name.owner = self.new_lease(lock)
        binding = name.owner.token
        fence = f"fence_{self.locks[lock]}"
        shown = f"token=?{binding} fence>${fence}" if name.has_fence else f"token=?{binding}"
        name.has_fence = True
        return f"{shown} fence=?{fence}"

    def _candidates(self, name: Name) -> list[str]:
        if self.strict:
            return name.queue[:1]
        first_of_client: dict[str, str] = {}
        for lock in name.queue:
            first_of_client.setdefault(lock.partition(".")[0], lock)
        return list(first_of_client.values())

    def _hand_on(self, name: Name) -> Answer:
        """The lock is free: one of the waiters has it, and no other."""
        name.owner = None
        if not name.queue:
            return
        chosen = yield self._candidates(name)
        assert chosen is not None
        name.queue.remove(chosen)
        self.requests[chosen] = "OK"
        yield f"{chosen} poll wait_ms=5000 -> OK {self._granted(chosen, name)}"
        for lock in name.queue:
            yield f"{lock} poll wait_ms=0 -> PENDING"

    def _settle(self, name: str) -> Answer:
        state = self.names[name]
        if state.is_unsettled and state.owner is None:
            yield f"until {self.clients[0]} inspect name={name} -> OK state=0 waiting=0"
            state.is_unsettled = False

    # ---- operations of a lock ----

    def do_acquire(self, lock: str, _: int) -> Answer:
        if self.requests.get(lock) == "PENDING":
            return  # Its lease would be replaced by the one that comes.
        name = self.names[self.locks[lock]]
        yield from self._settle(self.locks[lock])
        if name.owner is None:
            yield f"{lock} acquire wait_ms=0 -> OK {self._granted(lock, name)}"
        else:
            yield f"{lock} acquire wait_ms=0 -> BUSY"

    def do_start(self, lock: str, _: int) -> Answer:
        if self.requests.get(lock) == "PENDING":
            return
        name = self.names[self.locks[lock]]
        yield from self._settle(self.locks[lock])
        yield f"{lock} start wait_ms=-1 -> PENDING/OK"
        if name.owner is None:
            self.requests[lock] = "OK"
            yield f"{lock} poll wait_ms=5000 -> OK {self._granted(lock, name)}"
            return
        self.requests[lock] = "PENDING"
        name.queue.append(lock)
        if self.strict:
            # From here on its place is certain.
            count = len(name.queue)
            yield f"until {lock.partition('.')[0]} inspect name={self.locks[lock]} -> OK " + (
                f"waiting={count}"
            )

    def do_cancel(self, lock: str, _: int) -> Answer:
        status = self.requests.get(lock)
        if status is None or lock.partition(".")[0] not in self.able_to_cancel:
            return
        name = self.names[self.locks[lock]]
        if status == "PENDING":
            name.queue.remove(lock)
            name.is_unsettled = True
            status = self.requests[lock] = "CANCELLED"
            if self.strict:
                yield f"{lock} cancel -> CANCELLED"
                yield f"until {self.clients[0]} inspect name={self.locks[lock]} -> OK " + (
                    f"waiting={len(name.queue)}"
                )
                return
        yield f"{lock} cancel -> {status}"

    def do_release(self, lock: str, _: int) -> Answer:
        lease = self.leases.get(lock)
        if lease is None or lease.state != "HELD":
            yield from self.release_of_nothing(lock)
        else:
            lease.state = "RELEASED"
            yield f"{lock} release -> OK"
            yield from self._hand_on(self.names[self.locks[lock]])

    def release_of_nothing(self, lock: str) -> Answer:
        lease = self.leases.get(lock)
        if lease is None or lease.state in ("RELEASED", "DETACHED"):
            yield f"{lock} release -> E_NOT_HELD"
        elif lease.state in ("GONE", "LOST"):
            lease.state = "GIVEN_UP"
            yield f"{lock} release -> E_LOST"
        else:
            yield f"{lock} release -> E_LOST/E_NOT_HELD"

    def do_check(self, lock: str, _: int) -> Answer:
        lease = self.leases.get(lock)
        if lease is not None:
            answers = {"HELD": "OK", "GONE": "OK/E_LOST", "LOST": "E_LOST"}
            answers["GIVEN_UP"] = "E_LOST/E_NOT_HELD"
            yield f"{lock} check -> {answers.get(lease.state, 'E_NOT_HELD')}"

    def do_extend(self, lock: str, choice: int) -> Answer:
        lease = self.leases.get(lock)
        if lease is not None:
            answers = {"HELD": "OK", "GONE": "E_LOST", "LOST": "E_LOST"}
            answers["GIVEN_UP"] = "E_LOST/E_NOT_HELD"
            status = answers.get(lease.state, "E_NOT_HELD")
            if lease.state == "GONE":
                lease.state = "LOST"
            yield f"{lock} extend lease_ms={30000 + choice % 30000} -> {status}"

    def do_show(self, lock: str, _: int) -> Answer:
        lease = self.leases.get(lock)
        if lease is not None and lease.state not in ("GONE", "GIVEN_UP"):
            yield f"{lock} show -> OK state={lease.state}"

    def do_detach(self, lock: str, _: int) -> Answer:
        lease = self.leases.get(lock)
        if lease is not None and lease.state == "HELD":
            lease.state = "DETACHED"
            yield f"{lock} detach -> OK state=DETACHED token=${lease.token}"
        elif lease is not None:
            yield from self.detach_of_nothing(lock, lease)

    def detach_of_nothing(self, lock: str, lease: Lease) -> Answer:
        answers = {"GONE": "E_LOST", "LOST": "E_LOST", "GIVEN_UP": "E_LOST/E_NOT_HELD"}
        status = answers.get(lease.state, "E_NOT_HELD")
        if lease.state == "GONE":
            lease.state = "LOST"
        yield f"{lock} detach -> {status}"

    def do_attach(self, lock: str, choice: int) -> Answer:
        if not self.tokens or self.requests.get(lock) == "PENDING":
            return
        binding, _ = self.tokens[choice % len(self.tokens)]
        name = self.names[self.locks[lock]]
        owner = name.owner
        if owner is None or not self.same(owner.token, binding):
            yield f"{lock} attach token=${binding} -> E_NOT_HELD"
        elif owner.state == "DETACHED":
            name.owner = self.attached(lock, replace(owner, token=binding))
            yield f"{lock} attach token=${binding} -> OK fence=0 token=${binding}"
        else:  # Its holder has not detached it, or it was attached before.
            yield f"{lock} attach token=${binding} -> E_NOT_HELD"

    # ---- operations of a client ----

    def do_inspect(self, client: str, name: str) -> Answer:
        state = self.names[name]
        if state.owner is None:
            yield from self._settle(name)
            yield f"{client} inspect name={name} -> OK state=0 holder_rows=0"
            return
        waiting = f" waiting={len(state.queue)}" if self.strict else ""
        yield f"{client} inspect name={name} -> OK state=1 holder_token=${state.owner.token}" + (
            waiting
        )

    def _may_lose(self, state: Name) -> bool:
        # A holder that does not know of its loss may still pass the lock on inside its client.
        return self.strict or state.owner is None or state.owner.state == "DETACHED"

    def do_force_release(self, client: str, name: str) -> Answer:
        state = self.names[name]
        if not self._may_lose(state):
            return
        yield from self._settle(name)
        yield f"{client} force_release name={name} -> {'OK' if state.owner else 'E_NOT_HELD'}"
        yield from self._lose(state)

    def do_force_release_by_token(self, client: str, name: str) -> Answer:
        """With the latest token there was, which may be the holder's, or of another name."""
        state = self.names[name]
        if not self.tokens or not self._may_lose(state):
            return
        binding = self.tokens[-1][0]
        is_holder = state.owner is not None and self.same(state.owner.token, binding)
        status = "OK" if is_holder else "E_NOT_HELD"
        yield f"{client} force_release name={name} token=${binding} -> {status}"
        if is_holder:
            yield from self._lose(state)

    def _lose(self, state: Name) -> Answer:
        if state.owner is not None:
            if state.owner.state == "HELD":
                state.owner.state = "GONE"
            yield from self._hand_on(state)

    # ---- operations of the server ----

    def do_get(self, _: str, name: str) -> Answer:
        owner = self.names[name].owner
        yield from self._settle(name)
        yield f"@ get {name} -> {'$' + owner.token if owner else 'nil'}"

    def do_evict(self, _: str, name: str) -> Answer:
        state = self.names[name]
        # Those who wait would only find out when they look again, some time later.
        if state.owner is None or state.queue or not self._may_lose(state):
            return
        yield f"@ del {name} -> 1"
        yield from self._lose(state)

    def do_script_flush(self, _: str, __: str) -> Answer:
        yield "@ script flush -> OK"

    def do_drop_connections(self, _: str, __: str) -> Answer:
        if any(shared.would_lose_places() for shared in self.shared.values()):
            return
        yield "@ drop_connections"
        # A client learns of it with its next command; whoever waits must be back before the lock
        # moves on, or it has lost its place by right.
        for client in self.clients:
            yield f"until {client} inspect name={min(self.names)} -> OK"
