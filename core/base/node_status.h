// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// NodeStatus: the state of a server of a client, as last known. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/finding.h"

namespace redlatch {

// The numbers are those of redlatch.h.
enum class NodeState : int32_t {
  kUnknown,  // no attempt to connect has ended yet
  kUp,       // connected; in a quorum: it may vote
  kPolled,   // connected, but waiters poll
  kNoVote,   // in a quorum: connected, but without a vote now
  kAway,     // not connected
};

enum class NodeRole : int32_t { kUnknown, kPrimary, kReplica, kClusterMember };

struct NodeStatus {
  std::string address;
  NodeState state = NodeState::kUnknown;
  std::string reason;  // of kPolled, kNoVote, kAway
  NodeRole role = NodeRole::kUnknown;
  std::string version;                    // "Valkey 8.0.1"; empty: not known
  std::optional<Nanos> clock_difference;  // its wall clock minus that of this host
  std::vector<Finding> findings;          // of the last check of its health
};

}  // namespace redlatch
