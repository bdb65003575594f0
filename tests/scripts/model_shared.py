# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""What the scripts must do for readers and writers, and for an owner with several holds: plain
Python, written from the protocol's sentences and not from the Lua. See model.py."""

from __future__ import annotations

from .harness import NO_LIMIT, REFUSED, SHARED, rid_of
from .model import OVERDUE_ENTRIES, Outcome

UPGRADE_TICKET = 4 * 10**15


class Queue:
    """The line in front of a lock, and how it is served. `holds` are those that share it."""

    def __init__(self) -> None:
        self.holds: dict[str, int] = {}  # Token to expiry, server milliseconds.
        self.queue: dict[str, int] = {}  # Member to score.
        self.alive: set[str] = set()
        self.has_fence = False
        self.may_publish = True
        self.count = 0  # Hash format: what K says.

    def order(self) -> list[str]:
        return sorted(self.queue, key=lambda member: (self.queue[member], member))

    def is_overdue(self, member: str, now: int) -> bool:
        wait_ms = int(member[38:51])
        ticket = self.queue[member] % UPGRADE_TICKET
        return wait_ms != NO_LIMIT and ticket / 1000 + wait_ms < now

    def line_up(self, member: str, ticket: int) -> None:
        if member:
            self.queue[member] = min(self.queue.get(member, ticket), ticket)

    def grant(self, out: Outcome, now: int, me: str = "", lease_ms: int = 0) -> int:
        granted = 0
        for member in self.order():
            if member != me and self.is_overdue(member, now):
                del self.queue[member]
                continue
            fits = self.can_have(member)
            if fits is None:
                del self.queue[member]
            elif fits:
                self.mint(out, member)
                if member != me and not self.may_publish:
                    out.flags = REFUSED
                    break
                del self.queue[member]
                is_alive = member[:22] in self.alive
                if member == me or is_alive:
                    claim_ms = int(member[33:38])
                    self.give(member, now, lease_ms if member == me else claim_ms)
                    granted += 1
                    out.held = out.held or member == me
                if member != me and is_alive:
                    out.messages[member[:22]].append(("g", rid_of(member[:32]), claim_ms))
            elif member == me or self.told(out, member, min(self.left(member, now), 99_999)):
                break
        self.settle()
        return granted

    def told(self, out: Outcome, member: str, ms: int) -> bool:
        """Whether the head stays; the dead are dropped."""
        if not self.may_publish:
            out.flags = REFUSED
            return True
        if member[:22] in self.alive:
            out.messages[member[:22]].append(("n", rid_of(member[:32]), ms))
            return True
        del self.queue[member]
        return False

    def drop_overdue(self, out: Outcome, now: int, me: str) -> None:
        for dropped, member in enumerate(self.order()):
            if member == me or not self.is_overdue(member, now):
                if dropped:
                    self.grant(out, now, me)
                return
            if dropped == OVERDUE_ENTRIES:
                return
            del self.queue[member]

    def finish(self, out: Outcome, member: str = "") -> Outcome:
        self.has_fence = self.has_fence or out.minted
        if member in self.queue:
            out.rank = self.order().index(member)
        return out

    def can_have(self, member: str) -> bool | None:
        raise NotImplementedError

    def mint(self, out: Outcome, member: str) -> None:
        raise NotImplementedError

    def give(self, member: str, now: int, ms: int) -> None:
        raise NotImplementedError

    def left(self, member: str, now: int) -> int:
        raise NotImplementedError

    def is_theirs(self) -> bool:
        """Another library holds the lock."""
        raise NotImplementedError

    def settle(self) -> None:
        """After holds came or went."""


class ReadWrite(Queue):
    """String format."""

    def __init__(self) -> None:
        super().__init__()
        self.writer: str | None = None
        self.ends_at = 0

    def value(self) -> str | None:
        return SHARED if self.holds else self.writer

    def is_mine(self, token: str) -> bool:
        return token == self.writer or token in self.holds

    def can_have(self, member: str) -> bool | None:
        if member[32] == "u":
            return len(self.holds) == 1 if member[:32] in self.holds else None
        return self.writer is None and (member[32] == "s" or not self.holds)

    def mint(self, out: Outcome, member: str) -> None:
        if member[32] != "s" or not self.has_fence:
            out.minted = self.has_fence = True

    def give(self, member: str, now: int, ms: int) -> None:
        token = member[:32]
        if member[32] == "s":
            self.holds[token] = max(self.holds.get(token, 0), now + ms)
            return
        self.ends_at = max(now + ms, self.holds.pop(token, 0))
        self.writer = token

    def left(self, member: str, now: int) -> int:
        if self.is_theirs():
            return 0
        mine = member[:32] if member[32] == "u" else ""
        others = [end for token, end in self.holds.items() if token != mine]
        return (max(others) if others else self.ends_at) - now

    def is_theirs(self) -> bool:
        return self.writer == "peer"

    def keep(self, out: Outcome, token: str, lease_ms: int, now: int) -> None:
        out.held, out.minted = True, not self.has_fence
        self.prolong(token, now + lease_ms)

    def prolong(self, token: str, end: int) -> None:
        if token in self.holds:
            self.holds[token] = max(self.holds[token], end)
        else:
            self.ends_at = max(self.ends_at, end)

    def take(self, out: Outcome, token: str, mode: str, lease_ms: int, now: int) -> None:
        self.mint(out, token + mode)
        self.give(token + mode, now, lease_ms)
        out.held = True

    def acquire(
        self,
        mode: str,
        token: str,
        lease_ms: int,
        member: str,
        ticket: int,
        now: int,
        sibling: str = "",
        is_back: bool = False,
    ) -> Outcome:
        out = Outcome()
        fits = self.can_have(token + mode) is True
        if self.is_mine(token):
            self.queue.pop(member, None)
            self.keep(out, token, lease_ms, now)
        elif (fits and not self.queue) or (mode == "s" and sibling in self.holds):
            self.queue.pop(member, None)
            self.take(out, token, mode, lease_ms, now)
        else:
            self.line_up(member, ticket)
            if self.writer is None:
                self.grant(out, now, member, lease_ms)
                fits = self.can_have(token + mode) is True
                if not member and fits and not self.queue and not out.flags:
                    self.take(out, token, mode, lease_ms, now)
            elif self.is_theirs() and is_back and member:
                self.grant(out, now, member, lease_ms)
            else:
                self.drop_overdue(out, now, member)
        return self.finish(out, member)

    def upgrade(self, token: str, lease_ms: int, member: str, ticket: int, now: int) -> Outcome:
        out = Outcome()
        if not self.is_mine(token):
            out.result = -1
        elif token == self.writer:
            self.queue.pop(member, None)
            self.keep(out, token, lease_ms, now)
        elif len(self.holds) == 1:
            self.queue.pop(member, None)
            self.take(out, token, "u", lease_ms, now)
        else:
            for first in self.order():
                if first == member or first[32] != "u":
                    break
                if not self.is_overdue(first, now) and first[:32] in self.holds:
                    if self.told(out, first, 99_999):
                        out.result, out.flags = -2, 0
                        return out
                else:
                    del self.queue[first]
            if member:
                self.queue.setdefault(member, ticket - UPGRADE_TICKET)
        return self.finish(out, member)

    def downgrade(self, token: str, lease_ms: int, now: int) -> Outcome:
        out = Outcome()
        if self.is_mine(token):
            out.result = 1
            if token == self.writer:
                self.holds = {token: max(now + lease_ms, self.ends_at)}
                self.writer = None
            else:
                self.prolong(token, now + lease_ms)
            self.grant(out, now)
        return self.finish(out)

    def release(self, token: str, now: int) -> Outcome:
        out, is_mine = Outcome(result=-1), self.is_mine(token)
        if is_mine or self.writer is None:
            self.drop(token)
            granted = self.grant(out, now)
            out.result = 1 + granted if is_mine else -1
        return self.finish(out)

    def drop(self, token: str) -> None:
        self.holds.pop(token, None)
        self.writer = None if self.writer == token else self.writer

    def cancel(self, member: str, now: int) -> Outcome:
        out, was_head = Outcome(), self.order()[:1] == [member]
        out.result = 1 if self.queue.pop(member, None) is not None else 0
        if self.is_mine(member[:32]) and (member[32] != "u" or self.writer == member[:32]):
            out.result = 2
        if was_head or self.writer is None:
            self.grant(out, now)
        return self.finish(out)

    def kick(self, now: int) -> Outcome:
        out = Outcome()
        out.result = self.grant(out, now)
        return self.finish(out)

    def force_release(self, expected: str, now: int) -> Outcome:
        out, value = Outcome(), self.value()
        if value is not None:
            if expected not in ("", value) and not self.is_mine(expected):
                out.result = -1
                return out
            out.result, out.minted, self.has_fence = 1, True, True
            if expected in ("", value):
                self.writer, self.holds = None, {}
            self.drop(expected)
        self.grant(out, now)
        return self.finish(out)

    def extend_shared(self, token: str, lease_ms: int, now: int) -> Outcome:
        if not self.is_mine(token):
            return Outcome(result=0)
        self.prolong(token, now + lease_ms)
        return Outcome(result=2 if self.holds else 1)


class Reentrant(Queue):
    """Hash format. An owner without holds is a stranger."""

    def __init__(self) -> None:
        super().__init__()
        self.owner: str | None = None
        self.ends_at = 0  # Of a stranger.

    def can_have(self, member: str) -> bool | None:
        return self.owner is None or (bool(self.holds) and self.owner == member[51:])

    def mint(self, out: Outcome, member: str) -> None:
        if self.owner is None or not self.has_fence:
            out.minted = self.has_fence = True

    def give(self, member: str, now: int, ms: int) -> None:
        self.owner = member[51:]
        self.holds[member[:32]] = now + ms

    def left(self, member: str, now: int) -> int:
        return 0 if self.is_theirs() else max(self.holds.values(), default=self.ends_at) - now

    def is_theirs(self) -> bool:
        return self.owner == "theirs"

    def settle(self) -> None:
        self.count = len(self.holds) or self.count

    def is_mine(self, token: str, owner: str) -> bool:
        return owner == self.owner and token in self.holds

    def acquire(
        self,
        token: str,
        owner: str,
        lease_ms: int,
        member: str,
        ticket: int,
        now: int,
        is_back: bool = False,
    ) -> Outcome:
        out = Outcome()
        asking = token + "x" * 19 + owner
        if self.is_mine(token, owner):
            self.queue.pop(member, None)
            self.holds[token] = max(self.holds[token], now + lease_ms)
            out.held, out.minted = True, not self.has_fence
        elif (self.holds and owner == self.owner) or (self.owner is None and not self.queue):
            self.queue.pop(member, None)
            self.take(out, asking, lease_ms, now)
        else:
            self.line_up(member, ticket)
            if self.owner is None:
                self.grant(out, now, member, lease_ms)
                if self.owner is None and not member and not out.flags:
                    self.take(out, asking, lease_ms, now)
            elif self.is_theirs() and is_back and member:
                self.grant(out, now, member, lease_ms)
            else:
                self.drop_overdue(out, now, member)
        return self.finish(out, member)

    def take(self, out: Outcome, asking: str, lease_ms: int, now: int) -> None:
        self.mint(out, asking)
        self.give(asking, now, lease_ms)
        self.settle()
        out.held = True

    def drop(self, token: str) -> None:
        self.holds.pop(token, None)
        self.owner = self.owner if self.holds else None

    def release(self, token: str, owner: str, now: int) -> Outcome:
        out, is_mine = Outcome(result=-1), self.is_mine(token, owner)
        if is_mine or self.owner is None:
            if is_mine:
                self.drop(token)
            is_still_held = self.owner is not None
            granted = self.grant(out, now)
            if is_mine:
                out.result = 0 if is_still_held else 1 + granted
        return self.finish(out)

    def cancel(self, member: str, now: int) -> Outcome:
        out, was_head = Outcome(), self.order()[:1] == [member]
        out.result = 1 if self.queue.pop(member, None) is not None else 0
        if self.is_mine(member[:32], member[51:]):
            out.result = 2
        if was_head or self.owner is None:
            self.grant(out, now)
        return self.finish(out)

    def kick(self, now: int) -> Outcome:
        out = Outcome()
        out.result = self.grant(out, now)
        return self.finish(out)

    def force_release(self, expected: str, now: int) -> Outcome:
        out = Outcome()
        if self.owner is not None:
            if expected not in ("", self.owner) and expected not in self.holds:
                out.result = -1
                return out
            out.result, out.minted, self.has_fence = 1, True, True
            if expected in ("", self.owner):
                self.owner, self.holds = None, {}
            else:
                self.drop(expected)
        self.grant(out, now)
        return self.finish(out)

    def extend_shared(self, token: str, owner: str, lease_ms: int, now: int) -> Outcome:
        if not self.is_mine(token, owner):
            return Outcome(result=0)
        self.holds[token] = max(self.holds[token], now + lease_ms)
        return Outcome(result=1)
