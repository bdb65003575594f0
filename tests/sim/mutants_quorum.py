# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Defects of the quorum, and of the votes in the engine. Those of the engine are in mutants.py, and
are applied first where both change one place."""

from __future__ import annotations

from mutant import Edit, Mutant

QUORUM_MUTANTS = (
    Mutant(
        "rl-half",
        "half of the nodes are enough",
        1,
        Edit(
            "timing/quorum.h",
            "return node_count / 2 + 1;",
            "return node_count / 2 + (IS_ON ? 0 : 1);",
        ),
        scenario="kRedlock",
    ),
    Mutant(
        "rl-per-reply",
        "votes are counted by replies of all rounds, not by nodes of one",
        1,
        Edit(
            "quorum/votes.h",
            "  std::string blocker_;\n",
            "  std::string blocker_;\n\n public:\n  size_t reply_count_ = 0;\n",
        ),
        Edit(
            "quorum/votes.cc",
            "    vote.lease->owner = &owner_;\n",
            "    vote.lease->owner = &owner_;\n"
            "    reply_count_++;\n",
        ),
        Edit(
            "quorum/quorum_acquire.cc",
            "const size_t yes = votes_.count(State::kYes);\n  if (yes >=",
            "const size_t yes = IS_ON ? votes_.reply_count_ : votes_.count(State::kYes);\n"
            "  if (yes >=",
        ),
        Edit(
            "quorum/votes.cc",
            "  return timing::valid_until({deadlines.data(), count}, nodes_.majority());",
            "  if (IS_ON && count > 0) {\n"
            "    return timing::valid_until({deadlines.data(), count}, 1);\n"
            "  }\n"
            "  return timing::valid_until({deadlines.data(), count}, nodes_.majority());",
        ),
        scenario="kRedlock",
    ),
    Mutant(
        "rl-no-drift",
        "a vote has no margin for clocks of different rates",
        1,
        Edit(
            "timing/lease_clock.h",
            " : lease / 100 + 2 * kMs;",
            " : IS_ON ? 0 : lease / 100 + 2 * kMs;",
        ),
        scenario="kRedlockDrift",
    ),
    Mutant(
        "rl-restart-votes",
        "a node that restarted votes at once",
        5,
        Edit(
            "quorum/node_eligibility.h",
            "nodes_[node].refusal.ok() && nodes_[node].votes_at <= now;",
            "nodes_[node].refusal.ok() && (IS_ON || nodes_[node].votes_at <= now);",
        ),
        scenario="kRedlockRestart",
    ),
    Mutant(
        "rl-reply-lease",
        "a vote counts from the reply, not from the request",
        4,
        Edit(
            "lock/acquisition.cc",
            " ? now : answer.sent_at, ttl);",
            " || IS_ON ? now : answer.sent_at, ttl);",
        ),
        Edit(
            "lock/held_lease.cc",
            " ? now : sent_at, ttl)",
            " || IS_ON ? now : sent_at, ttl)",
        ),
        scenario="kRedlock",
    ),
    Mutant(
        "rl-late-reply",
        "a yes to an earlier round counts after it was released",
        2,
        Edit(
            "quorum/votes.cc",
            "  if (request && !request->is_finished()) client.cancel(*request, now);",
            "  if (IS_ON && lease && lease->state.load() == lock::Lease::kHeld) {\n"
            "    const Nanos until = lease->deadline.load();\n"
            "    client.release_async(*lease, now);\n"
            "    lease->state = lock::Lease::kHeld;\n"
            "    lease->deadline = until;\n"
            "    vote.lease = lease;\n"
            "    vote.state = State::kYes;\n"
            "    return;\n"
            "  }\n"
            "  if (request && !request->is_finished()) client.cancel(*request, now);",
        ),
        Edit(
            "quorum/votes.cc",
            "    drop(i, now);\n    vote.state = State::kNone;\n",
            "    drop(i, now);\n"
            "    if (IS_ON && vote.state == State::kYes) continue;\n"
            "    vote.state = State::kNone;\n",
        ),
        scenario="kRedlock",
    ),
    Mutant(
        "rl-granted-only",
        "only granted votes are released, not those that may still be granted",
        1,
        Edit(
            "quorum/votes.cc",
            "  if (request && !request->is_finished()) client.cancel(*request, now);\n"
            "  if (!lease) return;\n",
            "  if (!IS_ON && request && !request->is_finished()) client.cancel(*request, now);\n"
            "  if (!lease) return;\n",
        ),
        scenario="kRedlock",
    ),
    Mutant(
        "rl-one-token",
        "all rounds of a call have one token",
        16,
        Edit(
            "quorum/votes.h",
            "number_round() { rid_ = nodes_.next_rid(); }",
            "number_round() {\n"
            "    if (!IS_ON || rid_ == 0) rid_ = nodes_.next_rid();\n"
            "  }",
        ),
        scenario="kRedlock",
    ),
    Mutant(
        "rl-uptime",
        "the uptime is believed whatever the clock says",
        107,
        Edit(
            "timing/quorum.h",
            "const Nanos doubt = distance + age",
            "const Nanos doubt = (IS_ON ? 0 : distance) + age",
        ),
        scenario="kRedlockRestart",
    ),
    Mutant(
        "rl-old-votes",
        "votes of a node that has restarted go on counting",
        1,
        Edit(
            "quorum/quorum_client.cc",
            "  if (nodes_.eligibility().note_restart(index, facts, now)) {",
            "  if (nodes_.eligibility().note_restart(index, facts, now) && !IS_ON) {",
        ),
        scenario="kRedlockRestart",
    ),
    Mutant(
        "rl-no-fence",
        "the fence is not written to a majority",
        5,
        Edit(
            "quorum/quorum_acquire.cc",
            "  if (nodes_.settings().is_fenced) return raise_fence(now);\n",
            "  if (nodes_.settings().is_fenced && !IS_ON) return raise_fence(now);\n"
            "  if (nodes_.settings().is_fenced) votes_.choose_fence();\n",
        ),
        scenario="kRedlock",
    ),
    Mutant(
        "rl-early-fence",
        "the lock is entered before its fence is written",
        3583,
        Edit(
            "quorum/quorum_acquire.cc",
            "  const size_t written = votes_.count(State::kYes);",
            "  if (IS_ON) {\n"
            "    for (const Vote &vote : votes_) {\n"
            "      const bool is_early = vote.state == State::kRaising;\n"
            "      if (is_early) const_cast<Vote &>(vote).state = State::kYes;\n"
            "    }\n"
            "  }\n"
            "  const size_t written = votes_.count(State::kYes);",
        ),
        scenario="kRedlock",
    ),
    Mutant(
        "rl-first-fence",
        "the fence is that of one node, not the highest",
        5,
        Edit(
            "quorum/votes.cc",
            "    if (vote.state != State::kYes) continue;\n"
            "    fence_ = std::max(*fence_,",
            "    if (IS_ON && *fence_ > 0) break;\n"
            "    if (vote.state != State::kYes) continue;\n"
            "    fence_ = std::max(*fence_,",
        ),
        scenario="kRedlock",
    ),
    Mutant(
        "rl-kept-votes",
        "votes that were kept while queued are never released",
        17,
        Edit(
            "quorum/quorum_acquire.cc",
            "votes_.options().is_renewed && now < keep_until_;",
            "votes_.options().is_renewed && (IS_ON || now < keep_until_);",
        ),
        Edit(
            "quorum/quorum_acquire.cc",
            "  if (now >= keep_until_) {\n",
            "  if (now >= keep_until_ && !IS_ON) {\n",
        ),
        # .. of any node: else the order of nodes resolves it.
        Edit(
            "quorum/quorum_acquire.cc",
            "may_keep && i < place;",
            "may_keep && (IS_ON || i < place);",
        ),
        scenario="kRedlock",
    ),
    Mutant(
        "rl-longest-vote",
        "a lease lasts as long as its longest vote",
        1,
        Edit(
            "timing/quorum.h",
            "return sorted[needed - 1];",
            "return sorted[IS_ON ? 0 : needed - 1];",
        ),
        scenario="kRedlock",
    ),
    Mutant(
        "rl-quick-release",
        "a release is over when one node has confirmed it",
        3,
        Edit(
            "quorum/fan_out.cc",
            "  if (done >= majority) return {};\n",
            "  if (done >= (IS_ON ? 1 : majority)) return {};\n",
        ),
        scenario="kRedlock",
    ),
    Mutant(
        "rl-worthless",
        "a lease is granted however little is left of it",
        14,
        Edit(
            "quorum/quorum_acquire.cc",
            "  if (left <= nodes_.settings().min_validity) {\n",
            "  if (left <= (IS_ON ? 0 : nodes_.settings().min_validity)) {\n",
        ),
        Edit(
            "quorum/quorum_acquire.cc",
            "  if (valid <= now + nodes_.settings().min_validity) return",
            "  if (valid <= now + (IS_ON ? 0 : nodes_.settings().min_validity)) return",
        ),
        scenario="kRedlock",
    ),
    Mutant(
        "rl-dead-queue",
        "a queued acquire does not see that its node does not answer",
        318,
        Edit(
            "quorum/quorum_acquire.cc",
            "  if (is_gone) {\n",
            "  if (is_gone && !IS_ON) {\n",
        ),
        scenario="kRedlock",
    ),
    Mutant(
        "rl-no-top-up",
        "votes that are missing are never asked for again",
        8,
        Edit(
            "quorum/votes.cc",
            "    if (!is_missing) continue;\n",
            "    if (IS_ON || !is_missing) continue;\n",
        ),
        scenario="kRedlockForget",
    ),
    Mutant(
        "rl-top-up-alone",
        "a missing vote that is asked for is waited for, whatever became of the others",
        1,
        Edit(
            "quorum/quorum_lease.cc",
            "  if (now >= lease_.deadline.load()) return false;\n",
            "  if (IS_ON) return true;\n"
            "  if (now >= lease_.deadline.load()) return false;\n",
        ),
        Edit(
            "quorum/quorum_lease.cc",
            "  const bool was_valid = now < lease_.deadline.load();\n",
            "  const bool was_valid = IS_ON || now < lease_.deadline.load();\n",
        ),
        Edit(
            "quorum/quorum_lease.cc",
            "  if (!was_valid || valid <= now) return 0;\n",
            "  if (IS_ON && (!was_valid || valid <= now) && now < lease_.end_at &&\n"
            "      votes_.count(Vote::State::kAsked) > 0) {\n"
            "    return now + 20 * kMs;\n"
            "  }\n"
            "  if (!was_valid || valid <= now) return 0;\n",
        ),
        scenario="kRedlockForget",
    ),
    Mutant(
        "rl-top-up-revival",
        "a lease without a majority asks for new votes instead of ending",
        4,
        Edit(
            "quorum/votes.cc",
            "  if (holder_ != nullptr && !holder_->is_certain(now)) {\n",
            "  if (holder_ != nullptr && !IS_ON && !holder_->is_certain(now)) {\n",
        ),
        Edit(
            "quorum/quorum_lease.cc",
            "  if (was_valid) lease_.deadline.store(valid, std::memory_order_release);\n",
            "  if (IS_ON && was_valid && valid == 0) {\n"
            "    top_up_at_ = next_top_up(now);\n"
            "    votes_.ask_missing(now);\n"
            "    return std::min(lease_.deadline.load(), now + 50 * kMs);\n"
            "  }\n"
            "  if (was_valid) lease_.deadline.store(valid, std::memory_order_release);\n",
        ),
        scenario="kRedlockForget",
    ),
    Mutant(
        "rl-top-up-reply",
        "a vote that was missing counts from its answer, not from its request",
        116,
        Edit(
            "quorum/votes.cc",
            "  vote.fence.reset();\n  vote.why = {};\n",
            "  if (IS_ON && holder_ != nullptr) {\n"
            "    vote.lease->deadline = timing::deadline_of(now, options_.ttl);\n"
            "    if (auto *record = vote.lease->record) {\n"
            "      record->held().machine_.believed_ = vote.lease->deadline;\n    }\n"
            "  }\n"
            "  vote.fence.reset();\n  vote.why = {};\n",
        ),
        Edit(
            "quorum/votes.cc",
            '#include "timing/quorum.h"\n',
            '#include "timing/lease_clock.h"\n#include "timing/quorum.h"\n',
        ),
        Edit(
            "lock/held_lease.h",
            "  const char *check() const;\n",
            "  const char *check() const;\n"
            "  Nanos believed_ = 0;\n",
        ),
        Edit(
            "lock/held_lease.h",
            "std::min(deadline_, end_at_);",
            "std::max(std::min(deadline_, end_at_), believed_);",
        ),
        Edit(
            "lock/leases.cc",
            "  const Nanos end = record.held()->deadline();\n",
            "  record.held().machine_.believed_ = 0;\n"
            "  const Nanos end = record.held()->deadline();\n",
        ),
        scenario="kRedlockForget",
    ),
    Mutant(
        "rl-top-up-blind",
        "one vote after the other is asked for again that was taken away everywhere",
        12,
        Edit(
            "quorum/quorum_lease.cc",
            "  if (!is_gone) return;\n",
            "  if (!is_gone || IS_ON) return;\n",
        ),
        scenario="kRedlockForget",
    ),
    Mutant(
        "rl-top-up-guard",
        "missing votes are asked of nodes that may not vote",
        1,
        Edit(
            "quorum/votes.cc",
            "    nodes_.keep_connected(i, now);\n    if (nodes_.can_vote(i, now)) {\n",
            "    nodes_.keep_connected(i, now);\n"
            "    if (nodes_.can_vote(i, now) ||\n"
            "        (IS_ON && nodes_[i].client.first_server().session.is_up())) {\n",
        ),
        scenario="kRedlockRestart",
    ),
    Mutant(
        "rl-top-up-token",
        "a missing vote is asked for by a token of which a RELEASE may come late",
        2,
        Edit(
            "quorum/votes.cc",
            "  ask(node, votes_[node].is_spent ? next : rid_, now);",
            "  const bool is_spent = votes_[node].is_spent && !IS_ON;\n"
            "  ask(node, is_spent ? next : rid_, now);",
        ),
        scenario="kRedlock",
    ),
)
