# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Defects of what a client of a cluster does when slots move."""

from __future__ import annotations

from mutant import IGNORED, Edit, Mutant

CLUSTER_MUTANTS = (
    Mutant(
        "kept-map",
        "MOVED does not change the map",
        1,
        Edit(
            "cluster/router.cc",
            "  map_.set(slot, to);",
            "  if (!IS_ON) map_.set(slot, to);",
        ),
        scenario="kClusterMoves",
    ),
    Mutant(
        "fast-loop",
        "a loop of redirects is followed without a pause",
        5,
        Edit(
            "cluster/router.cc",
            "const Nanos pause = is_loop ?",
            "const Nanos pause = is_loop && !IS_ON ?",
        ),
        scenario="kClusterMoves",
    ),
    Mutant(
        "kept-ask",
        "an ASK is remembered",
        2,
        Edit(
            "lock/redirects.cc",
            "  if (redirect.kind == Kind::kMoved && is_elsewhere) {",
            "  const bool is_kept = IS_ON && redirect.kind == Kind::kAsk;\n"
            "  if ((redirect.kind == Kind::kMoved || is_kept) && is_elsewhere) {",
        ),
        Edit(
            "cluster/cluster_client.cc",
            "  if (redirect.kind != protocol::Redirect::Kind::kMoved) return;",
            "  const bool is_kept = IS_ON && redirect.kind == protocol::Redirect::Kind::kAsk;\n"
            "  if (redirect.kind != protocol::Redirect::Kind::kMoved && !is_kept) return;",
        ),
        scenario="kClusterMoves",
    ),
    Mutant(
        "moved-behind",
        "a waiter moves without its ticket",
        2,
        Edit(
            "lock/acquisition.cc",
            "  assert(waits() && !is_unanswered_ && !may_be_queued_);\n",
            "  if (IS_ON) ticket_.clear();\n",
        ),
        scenario="kClusterMoves",
    ),
    Mutant(
        "old-place",
        "a waiter that moves keeps its old place, too",
        24,
        Edit(
            "lock/cleanups.cc",
            "    start_with(*one.old, left, 0, now);",
            "    start_with(*one.old, IS_ON ? ServerFootprint() : left, 0, now);",
        ),
        scenario="kClusterMoves",
    ),
    Mutant(
        "kept-channel",
        "the channel stays when its slot leaves the node",
        1,
        Edit(
            "cluster/router.cc",
            "nodes_[index].is_redrawn || is_lost;",
            "nodes_[index].is_redrawn || (is_lost && !IS_ON);",
        ),
        scenario="kClusterMoves",
    ),
    Mutant(
        "moved-remade",
        "a lease is made again at its new node",
        2,
        Edit(
            "lock/connecting.cc",
            "      // The server may have restarted without its data: better to know at once.\n",
            "      if (IS_ON) {\n"
            f"{IGNORED}"
            "        protocol::Command again;\n"
            "        protocol::acquire(again, record.server().features,\n"
            "                          protocol::EvalMode::kText,\n"
            "                          record.lock->keys,\n"
            "                          {record.identity.mode, record.proof(),\n"
            "                           record.held()->ttl() / kMs, {}, {}, {},\n"
            "                           record.is_unfenced});\n"
            "        (void)record.server().session.try_send(again, Call{&ignored,\n"
            "                                       protocol::EvalMode::kText, now, 0,\n"
            "                                       record.shared_from_this()});\n"
            "      }\n",
        ),
        scenario="kCluster",
    ),
    Mutant(
        "no-absent-key",
        "scripts of several keys do not name the key that never exists",
        1,
        Edit(
            "protocol/command.cc",
            "  const bool has_absent = features.is_cluster && named.size() > 1;",
            "  const bool has_absent = !IS_ON && features.is_cluster && named.size() > 1;",
        ),
        scenario="kClusterReaders",
    ),
    Mutant(
        "no-hold-back",
        "commands about a slot that moves are sent to its old node meanwhile",
        5,
        Edit(
            "lock/redirects.cc",
            "  if (is_moved && lock != nullptr) hold_back(redirect.slot);\n",
            "  if (!IS_ON && is_moved && lock != nullptr) hold_back(redirect.slot);\n",
        ),
        Edit(
            "cluster/router.cc",
            "  client_.hold_back(slot);\n",
            "  if (!IS_ON) client_.hold_back(slot);\n",
        ),
        scenario="kClusterMoves",
    ),
    Mutant(
        "kept-lease",
        "a lease that moves to a node whose clock is ahead is not shortened",
        142,
        Edit(
            "lock/held_lease.cc",
            "deadline_ = std::max<Nanos>(deadline_ - more, 1);",
            "deadline_ = std::max<Nanos>(deadline_ - (IS_ON ? 0 : more), 1);",
        ),
        scenario="kClusterClocks",
    ),
    Mutant(
        "forgotten-clock",
        "the clock of the node that a lease comes from is forgotten",
        142,
        Edit(
            "lock/moving.cc",
            "&HeldLease::on_moved, from.clock.last());",
            "&HeldLease::on_moved, IS_ON ? std::nullopt : from.clock.last());",
        ),
        scenario="kClusterClocks",
    ),
    Mutant(
        "miscounted",
        "a grant by a plain channel is believed on a cluster",
        3,
        Edit(
            "session/channel.cc",
            "is_trusted_ = facts.is_push_trusted;\n",
            "is_trusted_ = facts.is_push_trusted;\n"
            "  is_of_cluster = is_of_cluster && !IS_ON;\n",
        ),
        scenario="kClusterMoves",
    ),
    Mutant(
        "whole-extension",
        "an extension is not repeated with the lock key alone while the slot moves",
        11,
        Edit(
            "lock/redirects.cc",
            "    if (call.extent == protocol::Extent::kAll) {",
            "    if (IS_ON) return postpone(call, now);\n"
            "    if (call.extent == protocol::Extent::kAll) {",
        ),
        scenario="kClusterClocks",
    ),
)
