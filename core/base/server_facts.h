// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ServerFacts: the results of a handshake. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/node_status.h"
#include "base/settings.h"
#include "base/status.h"

namespace redlatch {

// The age of a server by its own clock, and when it was reported.
struct ServerAge {
  int64_t uptime_s = 0;  // by its wall clock
  Nanos clock = 0;       // its wall clock minus our clock, at half of the round trip
  Nanos round_trip = 0;
  Nanos asked_at = 0;

  // The reading of its wall clock.
  Nanos time() const { return clock + asked_at + round_trip / 2; }
};

struct ServerFacts {
  bool is_sharded = false;      // SPUBLISH exists
  bool can_track = false;       // notifies of changed keys
  bool is_push_trusted = true;  // subscribed, and receivers are counted rightly
  std::string why_not_trusted;
  // The probe counted a further receiver on the client's channel, such as an earlier connection
  // whose end the server has not noticed.
  bool is_channel_taken = false;
  // In a cluster: the node that has the slot of the channel, if the subscription was redirected.
  std::optional<HostPort> channel_owner;

  bool has_messages = false;  // messages come on a connection of their own

  std::string version;  // "Valkey 8.0.1"; empty: not known
  NodeRole role = NodeRole::kUnknown;
  // A node of a cluster that the URL names as if it were alone: nothing else was asked.
  bool is_found_cluster = false;

  // Its identity. Asked for only by a service that needs_identity().
  std::string run_id;  // empty: the user has no right to ask
  ServerAge age;
  bool is_replica = false;
  bool is_cluster_member = false;
  Outcome why_unknown;  // without a run id
};

}  // namespace redlatch
