// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// NodeRecord: what a client knows of one of its servers without asking it. It logs what changes: an
// outage of an hour is one line.
#pragma once

#include <vector>

#include "base/finding.h"
#include "base/node_status.h"
#include "base/server_facts.h"
#include "base/settings.h"
#include "base/status.h"
#include "driver/log.h"
#include "protocol/health_findings.h"

namespace redlatch::driver {

class NodeRecord {
 public:
  // `settings` and `log` outlive it.
  NodeRecord(const Settings &settings, Log &log) : settings_(settings), log_(log) {}

  // An attempt to connect has succeeded: messages may come, and note_success() follows.
  void on_connected(const ServerFacts &facts) {
    facts_.is_sharded = facts.is_sharded;
    was_connected_ = true;
  }
  // The connection is in use. `is_only`: it is the only server, whose waiters poll if its
  // messages are not trusted.
  void note_success(const ServerFacts &facts, bool is_only);
  void note_failure(const Outcome &why);
  // The answers about its health have come. Without memory they are neither logged nor known:
  // nothing depends on them.
  void note_health(const protocol::HealthFacts &health, const protocol::LockTrial *trial,
                   const protocol::HealthContext &context);

  // Facts of the last connection.
  const ServerFacts &facts() const { return facts_; }
  NodeStatus status(bool is_usable) const;

 private:
  const Settings &settings_;
  Log &log_;
  ServerFacts facts_;
  std::vector<Finding> findings_;  // of the last check of its health
  Outcome failure_;                // why it is not connected; ok: it is, or was not tried
  bool was_connected_ = false;     // at some time
  bool is_away_ = false;           // the last attempt to connect has failed, and was logged
};

}  // namespace redlatch::driver
