#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Builds the defects of the engine, the quorum and the handshake into a copy of the product's
sources, where one at a time is switched on at run time.

    mutants.py CORE OUTPUT_DIR

copies the FOLDERS of core/ to OUTPUT_DIR and changes there every place of CORE_MUTANTS; the product
itself has no hooks. It also writes core_mutants.inc, the list for mutants.cc, and defect.h, the
switch. Defects of the scripts need no copy: they are in mutants.cc.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mutant import IGNORED, Edit, Mutant
from mutants_cluster import CLUSTER_MUTANTS
from mutants_composite import COMPOSITE_MUTANTS
from mutants_driver import DRIVER_MUTANTS
from mutants_handshake import HANDSHAKE_MUTANTS
from mutants_logins import LOGIN_MUTANTS
from mutants_quorum import QUORUM_MUTANTS
from mutants_sentinel import SENTINEL_MUTANTS

FOLDERS = (
    *("base", "timing", "protocol", "session", "operate"),
    *("lock", "compound", "quorum", "sentinel", "cluster"),
    *("flight", "election", "composite", "driver"),
)

CORE_MUTANTS = (
    Mutant(
        "permits-handed-on",
        "a semaphore is handed to the next caller of its client, whatever it wants",
        5,
        Edit(
            "lock/request.h",
            "protocol::traits(options.format).has_handoff;",
            "(IS_ON || protocol::traits(options.format).has_handoff);",
        ),
        scenario="kPool",
    ),
    Mutant(
        "reply-lease",
        "the lease counts from the reply, not from the request",
        9,
        Edit(
            "lock/acquisition.cc",
            "timing::deadline_of(answer.sent_at, ttl);",
            "timing::deadline_of(IS_ON ? now : answer.sent_at, ttl);",
        ),
        Edit(
            "lock/held_lease.cc",
            "timing::deadline_of(sent_at, ttl)",
            "timing::deadline_of(IS_ON ? now : sent_at, ttl)",
        ),
    ),
    Mutant(
        "no-drift",
        "no margin for clocks of different rates",
        1,
        Edit(
            "timing/lease_clock.h",
            "return lease / 100 + 2 * kMs;",
            "return IS_ON ? 0 : lease / 100 + 2 * kMs;",
        ),
        scenario="kDrift",
    ),
    Mutant(
        "late-grant",
        "a grant that comes by message is believed however late it is",
        12,
        Edit(
            "lock/waiters.cc",
            "const auto granted_at = record.server().clock.local_time(push.server_ms, now);",
            "const auto granted_at = IS_ON ? std::optional<Nanos>(now)\n"
            "                                : record.server().clock.local_time(push.server_ms,\n"
            "                                                                   now);",
        ),
    ),
    Mutant(
        "no-aging",
        "what is known of the server's clock never ages",
        153,
        Edit(
            "timing/clock_offset.cc",
            "return now / 100;",
            "return IS_ON ? 0 : now / 100;",
        ),
        Edit(
            "timing/clock_offset.cc",
            "if (other.second > second - static_cast<int64_t>(kSlots)) best_",
            "if (IS_ON || other.second > second - static_cast<int64_t>(kSlots)) best_",
        ),
        scenario="kStale",
    ),
    Mutant(
        "endless-hold",
        "the longest hold ends nothing",
        6,
        Edit(
            "lock/held_lease.h",
            "return std::min(deadline_, end_at_);",
            "return IS_ON ? deadline_ : std::min(deadline_, end_at_);",
        ),
    ),
    Mutant(
        "endless-handoffs",
        "a lock passes on inside its client without a limit",
        19,
        Edit(
            "timing/waiting.h",
            "return local.count < limit &&",
            "return (IS_ON || local.count < limit) &&",
        ),
    ),
    Mutant(
        "long-wait",
        "a wait lasts five times as long",
        4,
        Edit(
            "lock/waiters.cc",
            "after(now, request->wait_ms * kMs)",
            "after(now, request->wait_ms * kMs * (IS_ON ? 5 : 1))",
        ),
    ),
    Mutant(
        "new-token",
        "a request that is repeated after a lost answer has a new token",
        2,
        Edit(
            "lock/connecting.cc",
            "    case Phase::kQueued:\n"
            "      return waiters_.ask(record, now);\n"
            "    case Phase::kHeld:",
            "    case Phase::kQueued:\n"
            "      if (Acquisition &old = record.acquisition.machine_;\n"
            "          IS_ON && old.late_apply_until() > now && old.is_queueable()) {\n"
            "        Identity &is = record.identity;\n"
            "        is.token = protocol::make_token(record.server().channel.cid(),\n"
            "                                        locks_.take_numbers(1));\n"
            "        is.member.replace(0, is.token.size(), is.token);\n"
            "        old.ticket_.clear();\n"
            "      }\n"
            "      return waiters_.ask(record, now);\n"
            "    case Phase::kHeld:",
        ),
        # Of all machines, for this and other mutants.
        Edit("base/checked.h", " private:\n", " public:\n"),
        Edit(
            "lock/acquisition.h",
            " private:\n",
            " public:\n",
        ),
        scenario="kCut",
    ),
    Mutant(
        "endless-release",
        "a release is repeated when its lease must have ended long ago",
        11,
        Edit(
            "lock/cleanup.cc",
            "if (now < std::max(expires_at_, left_.late_apply_until)) return next(now, is_up);",
            "if (IS_ON || now < std::max(expires_at_, left_.late_apply_until)) {\n"
            "    return next(now, is_up);\n  }",
        ),
    ),
    Mutant(
        "believing-detach",
        "a lease is believed in until the answer to its detach",
        1,
        Edit(
            "lock/requests_attaching.cc",
            "  record.lease->state.store(Lease::kDetached, std::memory_order_release);\n"
            "  requests.timers_.remove(record);",
            "  if (!IS_ON) {\n"
            "    record.lease->state.store(Lease::kDetached, std::memory_order_release);\n  }\n"
            "  requests.timers_.remove(record);",
        ),
        scenario="kHandover",
    ),
    Mutant(
        "releasing-detach",
        "a detach without an answer gives the lock back",
        11,
        Edit(
            "lock/leases.cc",
            "  end_lease(*record, Lease::kDetached, {});\n  locks_.forget(*record);",
            "  end_lease(*record, Lease::kDetached, {});\n"
            "  if (IS_ON) {\n    locks_.set_phase(*record, TokenRecord::Phase::kHeld);\n"
            "    cleanups_.start(*record, 0, true);\n    return;\n  }\n"
            "  locks_.forget(*record);",
        ),
        scenario="kHandover",
    ),
    Mutant(
        "long-provisional",
        "a pushed grant is believed for as long as the message says",
        1,
        Edit(
            "lock/acquisition.cc",
            "= std::min(message.provisional_ms, provisional_ms_) * kMs;",
            "= std::min(message.provisional_ms, IS_ON ? INT64_MAX : provisional_ms_) * kMs;",
        ),
        scenario="kForgery",
    ),
    Mutant(
        "any-fence",
        "a pushed fence is believed whatever it is",
        12,
        Edit(
            "lock/acquisition.cc",
            "&& message.is_plausible &&",
            "&& (IS_ON || message.is_plausible) &&",
        ),
    ),
    Mutant(
        "uncounted",
        "a waiter that polls does not say so, and believes a grant whose receiver is not counted",
        3,
        Edit(
            "session/channel.cc",
            "is_trusted_ && (!is_of_cluster || facts.is_sharded);",
            "is_trusted_ ? !is_of_cluster || facts.is_sharded : IS_ON;",
        ),
        Edit(
            "lock/waiters.cc",
            "!record.server().channel.hears(record.identity.token)",
            "!IS_ON && !record.server().channel.hears(record.identity.token)",
        ),
    ),
    Mutant(
        "left-over",
        "dead waiters beyond what one call looks at are left to the next poll",
        27,
        Edit(
            "lock/acquisition.cc",
            "if (has_more && front.is_there) return",
            "if (!IS_ON && has_more && front.is_there) return",
        ),
        scenario="kDeploy",
    ),
    Mutant(
        "late-renewal",
        "a lease is renewed while its release waits for an answer",
        1,
        Edit(
            "lock/cleanups.cc",
            "void Cleanups::on_due(TokenRecord &record, Nanos now) {",
            "void Cleanups::on_due(TokenRecord &record, Nanos now) {\n"
            "  if (IS_ON && record.cleanup()->left_.may_be_held &&\n"
            "      record.server().session.is_up()) {\n"
            "    protocol::Command late;\n"
            "    const auto eval = protocol::EvalMode::kDigest;\n"
            "    protocol::extend(late, record.server().features, eval, record.lock->keys,\n"
            "                     record.identity.token,\n"
            "                     record.acquisition->ttl() / kMs, false, nullptr);\n"
            f"{IGNORED}"
            "    Call call{&ignored, eval, now, record.acquisition->ttl(),\n"
            "              record.shared_from_this()};\n"
            "    (void)record.server().session.try_send(late, std::move(call));\n"
            "  }\n",
        ),
        Edit(
            "lock/cleanup.h",
            " private:\n",
            " public:\n",
        ),
    ),
    Mutant(
        "head-alone",
        "only the head looks when a holder of another library goes",
        108,
        Edit(
            "lock/key_watch.cc",
            "const bool is_of_others = seen.is_foreign ||",
            "const bool is_of_others = (seen.is_foreign && (watcher.is_head() || !IS_ON)) ||",
        ),
        Edit(
            "lock/key_watch.cc",
            "seen.is_foreign ? is_head || !is_reported",
            "seen.is_foreign ? is_head || !(is_reported || IS_ON)",
        ),
        scenario="kBehind",
    ),
    Mutant(
        "no-poll",
        "a waiter trusts messages alone and never looks by itself",
        4,
        Edit(
            "lock/acquisition.cc",
            "  return {.due = std::min(now + delay, std::exchange",
            "  if (IS_ON && delay != 0 && poll_hint_at_ == kNever) return {};\n"
            "  return {.due = std::min(now + delay, std::exchange",
        ),
    ),
    Mutant(
        "new-member",
        "the queue member is made anew with each request",
        2,
        Edit(
            "lock/waiters.cc",
            "    record.yield_policy = front->options.yield_policy();\n  }\n",
            "    record.yield_policy = front->options.yield_policy();\n"
            "    if (IS_ON && acquisition->is_queueable()) {\n"
            "      const bool is_limited = !record.is_shared && front->wait_ms > 0;\n"
            "      Identity &is = record.identity;\n"
            "      is.member = protocol::make_member(\n"
            "          is.token, is.mode, std::min(ttl / kMs, kProvisionalMs),\n"
            "          is_limited ? std::max<Nanos>(front->due - now, 0) / kMs : -1);\n"
            "    }\n"
            "  }\n",
        ),
    ),
    Mutant(
        "resent-acquire",
        "after NOSCRIPT an ACQUIRE is sent again behind its own RELEASE",
        1,
        Edit(
            "lock/waiters.cc",
            "  if (record.phase != Phase::kHeld) return;\n"
            "  // A poll that crossed a pushed grant.",
            "  if (IS_ON && record.phase == Phase::kCleanup)\n"
            "    return waiters.send_ask(record, now, protocol::EvalMode::kText);\n"
            "  if (record.phase != Phase::kHeld) return;\n"
            "  // A poll that crossed a pushed grant.",
        ),
        scenario="kFlush",
    ),
    Mutant(
        "shared-keys",
        "the auxiliary keys of `a` and `{a}` are the same",
        1,
        Edit(
            "protocol/keys.cc",
            'append(":rl1.");',
            'append(IS_ON ? ":rl1:" : ":rl1.");',
        ),
        Edit(
            "protocol/keys.cc",
            'append("{").append(text_, 0, lock_size)',
            'append("{").append(IS_ON ? std::string(name) : text_.substr(0, lock_size))',
        ),
    ),
    Mutant(
        "forced-again",
        "a lease goes on that was taken by force and granted again (220f2fa)",
        58,
        Edit(
            "lock/waiters.cc",
            "answer.fence != record.held()->granted_fence()) {",
            "answer.fence != record.held()->granted_fence() && !IS_ON) {",
        ),
        scenario="kCut",
    ),
    Mutant(
        "lost-comes-back",
        "a renewal that is confirmed after the lease brings it back",
        21,
        Edit(
            "lock/leases.cc",
            "if (held->is_over(now)) return on_due(record, now);",
            "if (!IS_ON && held->is_over(now)) return on_due(record, now);",
        ),
        Edit(
            "lock/leases.cc",
            "  if (!record.held()->is_over(now)) {\n",
            "  if (IS_ON && record.held()->is_extending()) {\n"
            "    return timers_.set(record, now + 10 * kMs);\n  }\n"
            "  if (!record.held()->is_over(now)) {\n",
        ),
    ),
    Mutant(
        "same-fence",
        "a lock that passes on inside a client keeps its fence",
        5,
        Edit(
            "lock/held_lease.h",
            "return fence_ + handoffs_.count;",
            "return fence_ + (IS_ON ? 0 : handoffs_.count);",
        ),
    ),
    Mutant(
        "no-backoff",
        "a refusal that may pass is met without a pause",
        1,
        Edit(
            "lock/waiters.cc",
            "record.acquisition.give(&Acquisition::on_postponed, now, entropy_.next())",
            "IS_ON ? Acquisition::Step{.due = now}\n"
            "                      : record.acquisition.give(&Acquisition::on_postponed, now,\n"
            "                                                entropy_.next())",
        ),
        scenario="kScarce",
    ),
    Mutant(
        "no-rollback",
        "an upgrade that was granted while it was taken back stays",
        200,
        Edit(
            "lock/upgrade.cc",
            "rollback_ = was_cancel && result == 2 ?",
            "rollback_ = was_cancel && result == 2 && !IS_ON ?",
        ),
        # Or the next renewal would put it right.
        Edit(
            "lock/upgrade.cc",
            "if (is_wanted() || rollback_ == Rollback::kCancel) return {};",
            "if (IS_ON || is_wanted() || rollback_ == Rollback::kCancel) return {};",
        ),
        scenario="kReaders",
    ),
    Mutant(
        "deaf-upgrade",
        "after a reconnect an upgrade does not notice a dead connection for messages",
        243,
        Edit(
            "lock/connecting.cc",
            "if (record.upgrader) server.session",
            "if (!IS_ON && record.upgrader) server.session",
        ),
        scenario="kUpgrades",
    ),
    Mutant(
        "late-upgrade",
        "a message of an earlier upgrade is believed",
        5,
        Edit(
            "lock/leases_upgrading.cc",
            "  carry_out(record, upgrade.give(&Upgrade::on_grant_pushed, now, "
            "readiness_of(record)), now);",
            "  if (IS_ON && record.upgrade && record.upgrade->get().awaits_answer()) {\n"
            "    record.upgrade->machine_ = Upgrade();\n"
            "    const HeldLease &held = record.held().get();\n"
            "    become_writer(record, held.granted_fence() + 32, held.since_ms());\n"
            "    return schedule(record, now);\n  }\n"
            "  carry_out(record, upgrade.give(&Upgrade::on_grant_pushed, now, "
            "readiness_of(record)), now);",
        ),
        scenario="kReaders",
    ),
    Mutant(
        "unforgotten",
        "a name that nothing holds is not forgotten",
        1,
        Edit(
            "lock/locks.cc",
            "  forget_unused(*record.lock);",
            "  if (!IS_ON) forget_unused(*record.lock);",
        ),
    ),
) + QUORUM_MUTANTS + HANDSHAKE_MUTANTS + SENTINEL_MUTANTS + CLUSTER_MUTANTS + DRIVER_MUTANTS + (
    LOGIN_MUTANTS + COMPOSITE_MUTANTS
)


def write(path: Path, text: str) -> None:
    """Write a file only if it differs, so that it is not compiled again otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def patched(file: str, text: str) -> str:
    for number, mutant in enumerate(CORE_MUTANTS):
        for edit in mutant.edits:
            if edit.file != file:
                continue
            count = text.count(edit.old)
            if count != 1:
                sys.exit(
                    f"mutants.py: {mutant.name}: this stands {count} times in core/{file}, not "
                    f"once; bring the mutant up to date:\n{edit.old}"
                )
            is_on = f"(redlatch::sim::defect == {number})"
            text = text.replace(edit.old, re.sub(r"\bIS_ON\b", is_on, edit.new))
    # A value that depends on the switch cannot be constexpr.
    text = re.sub(r"^constexpr (Nanos|bool|size_t) ", r"inline \1 ", text, flags=re.MULTILINE)
    return f'#include "defect.h"\n{text}'


def table() -> str:
    lines = ["// Written by mutants.py. Do not edit."]
    for mutant in CORE_MUTANTS:
        scenario = mutant.scenario or "kGeneral"
        follows_seed = "false" if mutant.scenario else "true"
        lines.append(
            f'{{"{mutant.name}", "{mutant.what}", Scenario::{scenario}, {follows_seed}, '
            f'{mutant.seed}, "", ""}},'
        )
    return "\n".join(lines) + "\n"


SWITCH = """// Written by mutants.py. Do not edit.
#pragma once

namespace redlatch::sim {

inline int defect = -1;  // which of the engine's is on
struct Endless {};       // thrown where a defect would loop without end

}  // namespace redlatch::sim
"""


def main(core: Path, output: Path) -> None:
    known = {f"{folder}/{path.name}" for folder in FOLDERS for path in (core / folder).iterdir()}
    for mutant in CORE_MUTANTS:
        for edit in mutant.edits:
            if edit.file not in known:
                sys.exit(f"mutants.py: {mutant.name}: there is no core/{edit.file}")
    for folder in FOLDERS:
        for path in sorted((core / folder).glob("*.h")) + sorted((core / folder).glob("*.cc")):
            file = f"{folder}/{path.name}"
            write(output / file, patched(file, path.read_text()))
    write(output / "core_mutants.inc", table())
    write(output / "defect.h", SWITCH)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
