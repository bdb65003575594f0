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
        shape="kRedlock",
    ),
    Mutant(
        "rl-per-reply",
        "votes are counted by replies of all rounds, not by nodes of one",
        1,
        Edit(
            "quorum/matters.h",
            "  Nanos wait_until = kNever;\n",
            "  Nanos wait_until = kNever;\n  size_t reply_count = 0;\n",
        ),
        Edit(
            "quorum/bid.cc",
            "    vote.share->matter = &bid;\n",
            "    vote.share->matter = &bid;\n"
            "    bid.reply_count++;\n",
        ),
        Edit(
            "quorum/bid.cc",
            "const size_t yes = bid.count(State::kYes);\n  if (yes >=",
            "const size_t yes = IS_ON ? bid.reply_count : bid.count(State::kYes);\n"
            "  if (yes >=",
        ),
        Edit(
            "quorum/bid.cc",
            "  return timing::valid_until({deadlines.data(), count}, majority_);",
            "  if (IS_ON && count > 0) {\n"
            "    return timing::valid_until({deadlines.data(), count}, 1);\n"
            "  }\n"
            "  return timing::valid_until({deadlines.data(), count}, majority_);",
        ),
        shape="kRedlock",
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
        shape="kRedlockDrift",
    ),
    Mutant(
        "rl-restart-votes",
        "a node that restarted votes at once",
        5,
        Edit(
            "quorum/quorum.h",
            "node.refusal.ok() && node.votes_at <= now;",
            "node.refusal.ok() && (IS_ON || node.votes_at <= now);",
        ),
        shape="kRedlockRestart",
    ),
    Mutant(
        "rl-reply-lease",
        "a vote counts from the reply, not from the request",
        2,
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
        shape="kRedlock",
    ),
    Mutant(
        "rl-late-reply",
        "a yes to an earlier round counts after it was given back",
        2,
        Edit(
            "quorum/bid.cc",
            "  if (ballot && !ballot->is_finished()) engine.cancel(*ballot, now);",
            "  if (IS_ON && share && share->state.load() == Lease::kHeld) {\n"
            "    const Nanos until = share->deadline.load();\n"
            "    engine.abandon(*share, now);\n"
            "    share->state = Lease::kHeld;\n"
            "    share->deadline = until;\n"
            "    vote.share = share;\n"
            "    vote.state = State::kYes;\n"
            "    return;\n"
            "  }\n"
            "  if (ballot && !ballot->is_finished()) engine.cancel(*ballot, now);",
        ),
        Edit(
            "quorum/bid.cc",
            "    drop_vote(bid, i, now);\n    vote.state = State::kNone;\n",
            "    drop_vote(bid, i, now);\n"
            "    if (IS_ON && vote.state == State::kYes) continue;\n"
            "    vote.state = State::kNone;\n",
        ),
        shape="kRedlock",
    ),
    Mutant(
        "rl-granted-only",
        "only what was granted is given back, not what may still be",
        1,
        Edit(
            "quorum/bid.cc",
            "  if (ballot && !ballot->is_finished()) engine.cancel(*ballot, now);\n"
            "  if (!share) return;\n",
            "  if (!IS_ON && ballot && !ballot->is_finished()) engine.cancel(*ballot, now);\n"
            "  if (!share) return;\n",
        ),
        shape="kRedlock",
    ),
    Mutant(
        "rl-one-token",
        "all rounds of a call have one token",
        16,
        Edit(
            "quorum/bid.cc",
            "  bid.rid = ++last_rid_;\n",
            "  if (!IS_ON || bid.rid == 0) bid.rid = ++last_rid_;\n",
        ),
        shape="kRedlock",
    ),
    Mutant(
        "rl-uptime",
        "the uptime is believed whatever the clock says",
        77,
        Edit(
            "timing/quorum.h",
            "const Nanos doubt = distance + age",
            "const Nanos doubt = (IS_ON ? 0 : distance) + age",
        ),
        shape="kRedlockRestart",
    ),
    Mutant(
        "rl-old-votes",
        "votes of a node that has restarted go on counting",
        1,
        Edit(
            "quorum/nodes.cc",
            "    withdraw_votes(node, failure(Status::kUnavailable,",
            "    if (!IS_ON) withdraw_votes(node, failure(Status::kUnavailable,",
        ),
        shape="kRedlockRestart",
    ),
    Mutant(
        "rl-no-fence",
        "the fence is not written to a majority",
        5,
        Edit(
            "quorum/tenure.cc",
            "  if (settings_.is_fenced) return raise_fence(bid, now);\n",
            "  if (settings_.is_fenced && !IS_ON) return raise_fence(bid, now);\n"
            "  bid.fence = 0;\n"
            "  for (const Vote &vote : bid.votes) {\n"
            "    if (!settings_.is_fenced || vote.state != State::kYes) continue;\n"
            "    bid.fence = std::max(bid.fence, vote.share->fence.load());\n"
            "  }\n",
        ),
        shape="kRedlock",
    ),
    Mutant(
        "rl-early-fence",
        "the lock is entered before its fence is written",
        3277,
        Edit(
            "quorum/tenure.cc",
            "  const size_t written = bid.count(State::kYes);",
            "  if (IS_ON) {\n"
            "    for (Vote &vote : bid.votes) {\n"
            "      if (vote.state == State::kRaising) vote.state = State::kYes;\n"
            "    }\n"
            "  }\n"
            "  const size_t written = bid.count(State::kYes);",
        ),
        shape="kRedlock",
    ),
    Mutant(
        "rl-first-fence",
        "the fence is that of one node, not the highest",
        5,
        Edit(
            "quorum/tenure.cc",
            "if (vote.state == State::kYes) bid.fence = std::max(",
            "if (IS_ON && bid.fence > 0) break;\n"
            "    if (vote.state == State::kYes) bid.fence = std::max(",
        ),
        shape="kRedlock",
    ),
    Mutant(
        "rl-kept-votes",
        "votes that were kept in line are never given back",
        6,
        Edit(
            "quorum/bid.cc",
            "bid.options.is_renewed && now < bid.keep_until;",
            "bid.options.is_renewed && (IS_ON || now < bid.keep_until);",
        ),
        Edit(
            "quorum/bid.cc",
            "  if (now >= bid.keep_until) {\n",
            "  if (now >= bid.keep_until && !IS_ON) {\n",
        ),
        # .. of any node: else the order of nodes resolves it.
        Edit(
            "quorum/bid.cc",
            "may_keep && i < place;",
            "may_keep && (IS_ON || i < place);",
        ),
        shape="kRedlock",
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
        shape="kRedlock",
    ),
    Mutant(
        "rl-quick-release",
        "a release is over when one node has confirmed it",
        1,
        Edit(
            "quorum/errand.cc",
            "  if (done < majority_ && done + open >= majority_) return;\n",
            "  if (done < (IS_ON ? 1 : majority_) && done + open >= majority_) return;\n"
            "  if (IS_ON && done > 0) done = majority_;\n",
        ),
        shape="kRedlock",
    ),
    Mutant(
        "rl-worthless",
        "a lease is granted however little is left of it",
        15,
        Edit(
            "quorum/tenure.cc",
            "  if (left <= settings_.min_validity) {\n",
            "  if (left <= (IS_ON ? 0 : settings_.min_validity)) {\n",
        ),
        Edit(
            "quorum/tenure.cc",
            "  if (valid <= now + settings_.min_validity) return",
            "  if (valid <= now + (IS_ON ? 0 : settings_.min_validity)) return",
        ),
        shape="kRedlock",
    ),
    Mutant(
        "rl-dead-line",
        "who stands in line does not see that its node is silent",
        102,
        Edit(
            "quorum/bid.cc",
            "  if (is_gone) {\n",
            "  if (is_gone && !IS_ON) {\n",
        ),
        shape="kRedlock",
    ),
    Mutant(
        "rl-no-top-up",
        "votes that are missing are never asked for again",
        3,
        Edit(
            "quorum/tenure.cc",
            "    if (!is_missing) continue;\n",
            "    if (IS_ON || !is_missing) continue;\n",
        ),
        shape="kRedlockForget",
    ),
    Mutant(
        "rl-top-up-alone",
        "a missing vote that is asked for is waited for, whatever became of the others",
        1,
        Edit(
            "quorum/tenure.cc",
            "  if (now >= bid.lease->deadline.load()) return false;\n",
            "  if (IS_ON) return true;\n"
            "  if (now >= bid.lease->deadline.load()) return false;\n",
        ),
        Edit(
            "quorum/tenure.cc",
            "  const bool was_valid = now < lease.deadline.load();\n",
            "  const bool was_valid = IS_ON || now < lease.deadline.load();\n",
        ),
        Edit(
            "quorum/tenure.cc",
            '  std::string reason = "the longest hold was over";\n',
            "  if (IS_ON && now < lease.end_at && bid.count(State::kAsked) > 0) {\n"
            "    return timers_.set(bid, now + 20 * kMs);\n"
            "  }\n"
            '  std::string reason = "the longest hold was over";\n',
        ),
        shape="kRedlockForget",
    ),
    Mutant(
        "rl-top-up-revival",
        "a lease without a majority asks for new votes instead of ending",
        1,
        Edit(
            "quorum/tenure.cc",
            "  if (bid.phase == Bid::Phase::kHeld && !is_certain(bid, now)) {\n",
            "  if (bid.phase == Bid::Phase::kHeld && !IS_ON && !is_certain(bid, now)) {\n",
        ),
        Edit(
            "quorum/tenure.cc",
            "  if (was_valid) lease.deadline.store(valid, std::memory_order_release);\n",
            "  if (IS_ON && was_valid && valid == 0) {\n"
            "    top_up(bid, now);\n"
            "    return timers_.set(bid, std::min(lease.deadline.load(), now + 50 * kMs));\n"
            "  }\n"
            "  if (was_valid) lease.deadline.store(valid, std::memory_order_release);\n",
        ),
        shape="kRedlockForget",
    ),
    Mutant(
        "rl-top-up-reply",
        "a vote that was missing counts from its answer, not from its request",
        148,
        Edit(
            "quorum/tenure.cc",
            "  vote.fence.reset();\n  vote.why = {};\n",
            "  if (IS_ON && bid.phase == Bid::Phase::kHeld) {\n"
            "    vote.share->deadline = timing::deadline_of(now, bid.options.lease);\n"
            "    if (vote.share->hold) vote.share->hold->held.believed_ = vote.share->deadline;\n"
            "  }\n"
            "  vote.fence.reset();\n  vote.why = {};\n",
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
            "lock/tenure.cc",
            "  const Nanos end = hold.held.deadline();\n",
            "  hold.held.believed_ = 0;\n  const Nanos end = hold.held.deadline();\n",
        ),
        shape="kRedlockForget",
    ),
    Mutant(
        "rl-top-up-blind",
        "one vote after the other is asked for again that was taken away everywhere",
        14,
        Edit(
            "quorum/tenure.cc",
            "  if (is_gone) doubt(bid, now);\n",
            "  if (is_gone && !IS_ON) doubt(bid, now);\n",
        ),
        shape="kRedlockForget",
    ),
    Mutant(
        "rl-top-up-guard",
        "missing votes are asked of nodes that may not vote",
        1,
        Edit(
            "quorum/tenure.cc",
            "    if (can_vote(node, now)) {\n",
            "    if (can_vote(node, now) || (IS_ON && node.engine.is_up())) {\n",
        ),
        shape="kRedlockRestart",
    ),
    Mutant(
        "rl-top-up-token",
        "a missing vote is asked for by a token of which a RELEASE may come late",
        9,
        Edit(
            "quorum/bid.cc",
            "  ask(bid, node, bid.votes[node].is_spent ? next : bid.rid, now);",
            "  ask(bid, node, !IS_ON && bid.votes[node].is_spent ? next : bid.rid, now);",
        ),
        shape="kRedlock",
    ),
)
