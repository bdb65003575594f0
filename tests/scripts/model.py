# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""What the scripts must do, as plain Python: one lock, its queue, and who is alive.

It is written from the protocol's sentences and not from the Lua, and kept naive on purpose. The
bound of 256 entries for one call has tests of its own: a model's queue stays below it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from .harness import REFUSED, rid_of

OVERDUE_ENTRIES = 4
PEER = "peer"  # A holder that is none of ours.


@dataclass
class Outcome:
    """What one call must have done."""

    held: bool = False
    result: int = 0
    flags: int = 0
    rank: int = -1
    minted: bool = False
    messages: dict[str, list[tuple[str, str, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )


class Model:
    def __init__(self) -> None:
        self.holder: str | None = None
        self.ends_at = 0  # Server milliseconds.
        self.queue: dict[str, int] = {}  # Member to ticket.
        self.alive: set[str] = set()
        self.has_fence = False
        self.may_publish = True

    def order(self) -> list[str]:
        return sorted(self.queue, key=lambda member: (self.queue[member], member))

    def is_overdue(self, member: str, now: int) -> bool:
        return self.queue[member] / 1000 + int(member[38:]) < now

    def acquire(
        self, token: str, lease_ms: int, member: str, ticket: int, now: int, is_back: bool = False
    ) -> Outcome:
        """`ticket`: the one that the caller gave (it is back), or that the server chose."""
        out = Outcome()
        if self.holder == token:
            self.queue.pop(member, None)
            self.ends_at = max(self.ends_at, now + lease_ms)
            out.held, out.minted = True, not self.has_fence
        elif self.holder is None and not self.queue:
            self._own(out, token, now + lease_ms)
            out.held = True
        else:
            if member:
                self.queue[member] = min(self.queue.get(member, ticket), ticket)
            if self.holder is None:
                self._grant(out, now, member, lease_ms)
                if self.holder is None and not member and not out.flags:
                    self._own(out, token, now + lease_ms)
                out.held = self.holder == token
            elif self.holder == PEER and is_back and member:
                self._tell(out, now, member)
            else:
                self._drop_overdue(out, now, member)
        self.has_fence = self.has_fence or out.minted
        if not out.held and member:
            out.rank = self.order().index(member)
        return out

    def release(self, token: str, now: int) -> Outcome:
        out = Outcome(result=-1)
        if self.holder in (token, None):
            is_owner = self.holder == token
            self._grant(out, now)
            if is_owner:
                out.result = 1 if self.holder is None else 2
        self.has_fence = self.has_fence or out.minted
        return out

    def cancel(self, member: str, now: int) -> Outcome:
        out = Outcome()
        was_head = self.order()[:1] == [member]
        if self.queue.pop(member, None) is not None:
            out.result = 1
        if self.holder is None:
            self._grant(out, now)
        else:
            if self.holder == member[:32]:
                out.result = 2
            if was_head:
                self._tell(out, now)
        self.has_fence = self.has_fence or out.minted
        return out

    def kick(self, now: int) -> Outcome:
        out = Outcome()
        if self.holder is None:
            self._grant(out, now)
            out.result = 0 if self.holder is None else 1
        else:
            self._tell(out, now)
        self.has_fence = self.has_fence or out.minted
        return out

    def force_release(self, expected: str, now: int) -> Outcome:
        out = Outcome()
        if self.holder is not None and expected not in ("", self.holder):
            out.result = -1
            return out
        if self.holder is not None:
            out.result, out.minted, self.holder = 1, True, None
        self._grant(out, now)
        self.has_fence = self.has_fence or out.minted
        return out

    def extend(self, token: str, lease_ms: int, now: int) -> Outcome:
        if self.holder != token:
            return Outcome(result=0)
        self.ends_at = max(self.ends_at, now + lease_ms)
        return Outcome(result=1)

    def _own(self, out: Outcome, token: str, ends_at: int) -> None:
        self.holder, self.ends_at = token, ends_at
        out.minted = True

    def _grant(self, out: Outcome, now: int, me: str = "", lease_ms: int = 0) -> None:
        self.holder = None
        for member in self.order():
            if member != me and self.is_overdue(member, now):
                del self.queue[member]
                continue
            out.minted = True
            if member != me and not self.may_publish:
                out.flags = REFUSED
                return
            del self.queue[member]
            token = member[:32]
            if member == me:
                self._own(out, token, now + lease_ms)
            elif token[:22] in self.alive:
                claim_ms = int(member[33:38])
                self._own(out, token, now + claim_ms)
                out.messages[token[:22]].append(("g", rid_of(token), claim_ms))
            if self.holder is not None:
                self._tell(out, now, me)
                return

    def _tell(self, out: Outcome, now: int, me: str = "") -> None:
        for member in self.order():
            if member == me:
                return
            if not self.is_overdue(member, now):
                if not self.may_publish:
                    out.flags = REFUSED
                    return
                token = member[:32]
                if token[:22] in self.alive:
                    left = 0 if self.holder == PEER else min(self.ends_at - now, 99_999)
                    out.messages[token[:22]].append(("n", rid_of(token), left))
                    return
            del self.queue[member]

    def _drop_overdue(self, out: Outcome, now: int, me: str) -> None:
        dropped = 0
        for member in self.order():
            if member == me or not self.is_overdue(member, now):
                if dropped:
                    self._tell(out, now, me)
                return
            if dropped == OVERDUE_ENTRIES:
                return
            del self.queue[member]
            dropped += 1
