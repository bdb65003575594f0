// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/node_record.h"

#include <algorithm>
#include <new>
#include <utility>

namespace redlatch::driver {

void NodeRecord::note_failure(const Outcome &why) {
  if (!is_away_) log_.add(LogLevel::kWarning, why.message);
  is_away_ = true;
  failure_ = why;
}

void NodeRecord::note_success(const ServerFacts &facts, bool is_only) {
  if (is_away_) log_.add(LogLevel::kInfo, "connected to " + settings_.address() + " again");
  is_away_ = false;
  const bool is_news = facts_.is_push_trusted || facts.why_not_trusted != facts_.why_not_trusted;
  if (is_only && !facts.is_push_trusted && is_news) {
    log_.add(LogLevel::kWarning, "waiting by polling, which is slower: " + facts.why_not_trusted);
  }
  failure_ = {};
  facts_ = facts;
}

// A finding is logged when it was not there at the last check.
void NodeRecord::note_health(const protocol::HealthFacts &health, const protocol::LockTrial *trial,
                             const protocol::HealthContext &context) {
  try {
    auto found = protocol::findings_of(health, trial, context);
    for (const Finding &finding : found) {
      const bool is_old = std::any_of(findings_.begin(), findings_.end(), [&](const Finding &old) {
        return old.id == finding.id && old.level == finding.level;
      });
      // That of pushes was logged when the connection was made.
      if (!finding.is_bad() || is_old || finding.id == "pushes") continue;
      log_.add(LogLevel::kWarning, "health of " + settings_.address() + ": " + finding.id + ": " +
                                       finding.seen + "; " + finding.advice);
    }
    findings_ = std::move(found);
  } catch (const std::bad_alloc &) {
    return;
  }
}

NodeStatus NodeRecord::status(bool is_usable) const {
  NodeStatus status;
  status.address = settings_.address();
  status.role = facts_.role;
  status.version = facts_.version;
  if (facts_.age.round_trip > 0) status.clock_difference = facts_.age.clock;
  if (is_usable) {
    status.state = facts_.is_push_trusted ? NodeState::kUp : NodeState::kPolled;
    status.reason = facts_.is_push_trusted ? "" : facts_.why_not_trusted;
  } else if (!failure_.ok()) {
    status.state = NodeState::kAway;
    status.reason = failure_.message;
  } else if (was_connected_) {
    status.state = NodeState::kAway;
    status.reason = "the connection has ended";
  }
  if (status.state != NodeState::kAway) status.findings = findings_;
  return status;
}

}  // namespace redlatch::driver
