# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Defects of what a client does in a failover."""

from __future__ import annotations

from mutant import IGNORED, Edit, Mutant

SENTINEL_MUTANTS = (
    Mutant(
        "role-unchecked",
        "a server that sentinels name is used without asking for its role",
        10,
        Edit(
            "protocol/handshake.cc",
            "  if (is_of_quorum || is_for_messages_ || !is_known_replica) return false;",
            "  if (IS_ON || is_of_quorum || is_for_messages_ || !is_known_replica) return false;",
        ),
        Edit(
            "protocol/handshake.cc",
            "  if (settings_.is_of_primary && facts_.role != NodeRole::kPrimary) {",
            "  if (!IS_ON && settings_.is_of_primary && facts_.role != NodeRole::kPrimary) {",
        ),
        scenario="kSentinel",
    ),
    Mutant(
        "old-link",
        "the link to the old primary is kept after +switch-master",
        1,
        Edit(
            "sentinel/primary_watch.cc",
            "  if (known_.primary.host.empty() ||",
            "  if (IS_ON || known_.primary.host.empty() ||",
        ),
        scenario="kSentinel",
    ),
    Mutant(
        "one-watch",
        "only the first sentinel of the URL is watched",
        3,
        Edit(
            "sentinel/primary_watch.cc",
            "  if (wanted.size() > slots_.size()) wanted.resize(slots_.size());",
            "  if (wanted.size() > slots_.size()) wanted.resize(slots_.size());\n"
            "  if (IS_ON) wanted.resize(1);",
        ),
        scenario="kSentinel",
    ),
    Mutant(
        "epoch-back",
        "the answer of a sentinel that is behind counts",
        1,
        Edit(
            "sentinel/primary_watch.cc",
            "  if (!opinion.is_switch) return opinion.epoch > known_.epoch;",
            "  if (!opinion.is_switch) return IS_ON || opinion.epoch > known_.epoch;",
        ),
        Edit(
            "sentinel/primary_watch.cc",
            "  if (opinion.epoch <= known_.epoch) return;",
            "  if (!IS_ON && opinion.epoch <= known_.epoch) return;",
        ),
        scenario="kSentinel",
    ),
    Mutant(
        "remade-lease",
        "a lease that the new primary does not know is made there",
        4,
        Edit(
            "lock/leases.cc",
            "  if (answer.result < 1) return lose(record, loss_by(answer.result), true, now);\n"
            "  note_mode(",
            "  if (answer.result < 1 && !IS_ON)\n"
            "    return lose(record, loss_by(answer.result), true, now);\n"
            "  if (answer.result < 1) {\n"
            f"{IGNORED}"
            "    protocol::Command again;\n"
            "    protocol::acquire(again, record.server().features, protocol::EvalMode::kText,\n"
            "                      record.lock->keys,\n"
            "                      {record.identity.mode, record.proof(), held->ttl() / kMs,\n"
            "                       {}, {}, {}, record.is_unfenced});\n"
            "    (void)record.server().session.try_send(again, Call{&ignored,\n"
            "                                   protocol::EvalMode::kText, now, 0,\n"
            "                                   record.shared_from_this()});\n"
            "  }\n"
            "  note_mode(",
        ),
        scenario="kSentinel",
    ),
    Mutant(
        "kept-unknown",
        "permits that the new primary does not know are kept",
        19,
        Edit(
            "lock/leases.cc",
            "  if (refusal) {\n    record.trouble.text = refusal.message;\n",
            "  if (IS_ON && !refusal && !record.identity.permits.empty()) {\n"
            "    answer.result = std::max<int64_t>(answer.result, 1);\n"
            "  }\n"
            "  if (refusal) {\n    record.trouble.text = refusal.message;\n",
        ),
        scenario="kSentinelPool",
    ),
    Mutant(
        "lost-ticket",
        "a waiter forgets its ticket with the connection",
        3,
        Edit(
            "lock/acquisition.cc",
            "  is_unanswered_ = false;\n  late_apply_until_ = std::max(",
            "  is_unanswered_ = false;\n"
            "  if (IS_ON) ticket_.clear();\n"
            "  late_apply_until_ = std::max(",
        ),
        scenario="kSentinel",
    ),
    Mutant(
        "blind-count",
        "a lease is extended on another connection than that of the WAIT behind it",
        3,
        Edit(
            "lock/confirmations.cc",
            "      side_.send(extend, Call{&extend_, eval, now, ttl, "
            "record.shared_from_this()});\n",
            "      if (IS_ON) {\n"
            f"{IGNORED}"
            "        commands_.send(extend, Call{&ignored, eval, now, 0, {}});\n"
            "        replication_.give(&Replication::on_extended, *entry);\n"
            "      } else {\n"
            "        side_.send(extend, Call{&extend_, eval, now, ttl,\n"
            "                                record.shared_from_this()});\n"
            "      }\n",
        ),
        scenario="kSentinelReplicas",
    ),
    Mutant(
        "wait-in-front",
        "WAIT is sent on the connection of the other commands",
        3,
        Edit(
            "lock/confirmations.cc",
            "    side_.send(wait, Call{&wait_, protocol::EvalMode::kText, now, 0, {}});",
            "    session::Session &to = IS_ON ? commands_ : side_;\n"
            "    to.send(wait, Call{&wait_, protocol::EvalMode::kText, now, 0, {}});",
        ),
        scenario="kSentinelReplicas",
    ),
    Mutant(
        "few-replicas",
        "too few replicas are taken for enough",
        3,
        Edit(
            "lock/replication.cc",
            "count >= entry->replicas_)",
            "count >= entry->replicas_ - (IS_ON ? 1 : 0))",
        ),
        scenario="kSentinelReplicas",
    ),
    Mutant(
        "old-count",
        "what replicas have confirmed counts on the next connection, too",
        16,
        Edit(
            "lock/connecting.cc",
            "    record->replicas.count = 0;\n    // A recall",
            "    if (!IS_ON) record->replicas.count = 0;\n    // A recall",
        ),
        scenario="kSentinelReplicas",
    ),
    Mutant(
        "side-without-pauses",
        "a server that does not answer at the side is dialled there again at once",
        1,
        Edit(
            "lock/confirmations.cc",
            "  side_.on_disconnected(false, now);\n",
            "  side_.on_disconnected(IS_ON, now);\n",
        ),
        scenario="kSentinelReplicas",
    ),
    Mutant(
        "old-side",
        "the connection at the side outlives that of the other commands",
        4,
        Edit(
            "lock/connecting.cc",
            "  server.confirmations.drop();\n",
            "  if (!IS_ON) server.confirmations.drop();\n",
        ),
        scenario="kSentinelReplicas",
    ),
    Mutant(
        "kept-unconfirmed",
        "a lease that too few replicas have confirmed is kept",
        3,
        Edit(
            "lock/leases.cc",
            "  results_.finish(*caller, status, message);\n  give_back(record, nullptr, now);",
            "  results_.finish(*caller, status, message);\n"
            "  if (!IS_ON) give_back(record, nullptr, now);",
        ),
        scenario="kSentinelReplicas",
    ),
    Mutant(
        "lost-place",
        "a lost lease leaves its place in the queue of the new primary",
        599,
        Edit(
            "lock/connecting.cc",
            "  if (server.session.may_change_server()) record.note_new_server();",
            "  if (!IS_ON && server.session.may_change_server()) record.note_new_server();",
        ),
        scenario="kSentinelReplicas",
    ),
    Mutant(
        "watch-no-back-off",
        "a sentinel that is away is dialled after the same pause always",
        2,
        Edit(
            "sentinel/primary_watch.cc",
            "  slot.dial_at = after(now, slot.backoff",
            "  if (IS_ON) slot.backoff.reset();\n  slot.dial_at = after(now, slot.backoff",
        ),
        scenario="kSentinel",
    ),
    Mutant(
        "watch-endless",
        "the pause between dials of a sentinel grows without a limit",
        14,
        Edit(
            "sentinel/primary_watch.h",
            "timing::Backoff backoff{50 * kMs, 5'000 * kMs};",
            "timing::Backoff backoff{50 * kMs, (IS_ON ? 3'600'000 : 5'000) * kMs};",
        ),
        scenario="kSentinel",
    ),
    Mutant(
        "watch-kept-pause",
        "the pause between dials of a sentinel is as long after an answer as before",
        3,
        Edit(
            "sentinel/primary_watch.cc",
            "    slot.backoff.reset();\n    was_deaf_ = false;",
            "    if (!IS_ON) slot.backoff.reset();\n    was_deaf_ = false;",
        ),
        scenario="kSentinel",
    ),
)
