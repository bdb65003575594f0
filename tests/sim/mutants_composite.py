# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Defects of leases of several names, of flights, of elections, and of retained locks."""

from __future__ import annotations

from mutant import IGNORED, Edit, Mutant

COMPOSITE_MUTANTS = (
    Mutant(
        "unordered-names",
        "names are acquired in the order of the caller",
        10,
        Edit(
            "composite/composite.cc",
            "[](const Part &a, const Part &b) { return a.what.name < b.what.name; });",
            "[](const Part &a, const Part &b) {\n"
            "              return IS_ON ? a.place < b.place : a.what.name < b.what.name;\n"
            "            });",
        ),
        scenario="kNames",
    ),
    Mutant(
        "kept-behind",
        "what is behind the name that is waited for stays held",
        62,
        Edit(
            "composite/composite.cc",
            "  drop_from(std::max<size_t>(missing, 1), now);\n",
            "  if (!IS_ON) drop_from(std::max<size_t>(missing, 1), now);\n",
        ),
        Edit(
            "composite/composite.cc",
            "  drop_from(missing + 1, now);\n",
            "  if (!IS_ON) drop_from(missing + 1, now);\n",
        ),
        scenario="kNames",
    ),
    Mutant(
        "lasting-whole",
        "a lease outlives a part that was lost",
        2,
        Edit(
            "composite/composite.cc",
            "    if (!part.is_ours(now)) return lose(&part, now);\n",
            "    if (!part.is_ours(now) && !IS_ON) return lose(&part, now);\n"
            "    if (IS_ON && !part.is_ours(now)) continue;\n",
        ),
        scenario="kNames",
    ),
    Mutant(
        "half-grant",
        "the last name is not waited for",
        10,
        Edit(
            "composite/composite.cc",
            "  if (missing == parts_.size()) return grant(now);\n"
            "  const auto permanent",
            "  if (missing == parts_.size()) return grant(now);\n"
            "  if (IS_ON && missing + 1 == parts_.size() && parts_.back().request) {\n"
            "    return grant(now);\n"
            "  }\n"
            "  const auto permanent",
        ),
        # Without its assert, and kept: so that a rule finds it.
        Edit(
            "composite/composite.cc",
            "!is_held() && first_missing(now) == parts_.size());",
            "!is_held() && (IS_ON || first_missing(now) == parts_.size()));",
        ),
        Edit(
            "composite/composite.cc",
            "  Nanos deadline = lease_->end_at;\n  for (const Part &part : parts_) {\n",
            "  Nanos deadline = lease_->end_at;\n  for (const Part &part : parts_) {\n"
            "    if (IS_ON && part.is_open()) continue;\n",
        ),
        scenario="kNames",
    ),
    Mutant(
        "sorted-fences",
        "the fences of several names are in the order of the keys",
        1,
        Edit(
            "composite/composite.cc",
            "    lease_->part_fences[part.place] = part.lease->fence.load();\n",
            "    const auto at = static_cast<size_t>(&part - parts_.data());\n"
            "    lease_->part_fences[IS_ON ? at : part.place] = part.lease->fence.load();\n",
        ),
        scenario="kNames",
    ),
    Mutant(
        "kept-parts",
        "an acquire that fails keeps the names that it has",
        2,
        Edit(
            "composite/composite.cc",
            "  const auto keep = shared_from_this();\n"
            "  drop_from(0, now);\n"
            "  end(status, message);\n",
            "  const auto keep = shared_from_this();\n"
            "  if (!IS_ON) drop_from(0, now);\n"
            "  end(status, message);\n",
        ),
        scenario="kNames",
    ),
    Mutant(
        "unread-grant",
        "the lock of a flight is granted, and the value not read again",
        1,
        Edit(
            "flight/flight.cc",
            "  if (!is_read) return check(now);\n",
            "  if (!is_read) return IS_ON && !is_told ? serve(nullptr, now) : check(now);\n",
        ),
        scenario="kJobs",
    ),
    Mutant(
        "remembered-failure",
        "a failure is told to those that come later",
        1,
        Edit(
            "flight/flight.h",
            "value && (!value->is_failure || ",
            "value && (!value->is_failure || IS_ON || ",
        ),
        scenario="kJobs",
    ),
    Mutant(
        "no-news",
        "an observer is told of the leader that it knows",
        1,
        Edit(
            "election/observer.cc",
            "  if (answer.is_news()) {",
            "  if (IS_ON || answer.is_news()) {",
        ),
        scenario="kElections",
    ),
    Mutant(
        "past-leader",
        "the term of a leader counts from the last one that was seen",
        1,
        Edit(
            "operate/election.cc",
            "position_of(is_led ? info.fence : last, is_led);",
            "position_of(is_led && !IS_ON ? info.fence : last, is_led);",
        ),
        scenario="kElections",
    ),
    Mutant(
        "deaf",
        "a lock that is retained is kept when it is recalled",
        1,
        Edit(
            "lock/waiters_retaining.cc",
            "  if (record.phase == Phase::kRetained) {\n    pauses_",
            "  if (!IS_ON && record.phase == Phase::kRetained) {\n    pauses_",
        ),
        scenario="kRetained",
    ),
    Mutant(
        "long-kept",
        "the time for which a lock is retained counts from its release",
        1,
        Edit(
            "lock/retention.h",
            "until_ = after(granted_at_, retain_);",
            "until_ = after(IS_ON ? now : granted_at_, retain_);",
        ),
        scenario="kRetained",
    ),
    Mutant(
        "torn-away",
        "a lock in use is released when it is recalled",
        1,
        Edit(
            "lock/waiters_retaining.cc",
            "  if (push.is_by_user && record.phase == Phase::kHeld)",
            "  if (IS_ON && record.phase == Phase::kHeld) {\n"
            f"    {IGNORED}"
            "    protocol::Command command;\n"
            "    protocol::release(command, record.server().features, protocol::EvalMode::kText,\n"
            "                      record.lock->keys, record.proof(), {}, 1);\n"
            "    (void)record.server().session.try_send(\n"
            "        command, Call{&ignored, protocol::EvalMode::kText, now, 0, record.lock});\n"
            "  }\n"
            "  if (push.is_by_user && record.phase == Phase::kHeld)",
        ),
        scenario="kRetained",
    ),
)
