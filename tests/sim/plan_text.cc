// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Plan: as a line of text, and the names of faults.
#include <algorithm>

#include "plan.h"

namespace redlatch::sim {

namespace {

constexpr std::array<std::string_view, kFaultCount> kFaultNames = {
    "spike",          "stall",        "cut",         "late-copy",      "half-open",
    "duplicate-push", "late-push",    "pause",       "crash",          "host-gone",
    "server-pause",   "server-crash", "server-loss", "server-amnesia", "script-flush",
    "memory",         "no-publish",   "replica",     "clock-back",     "clock-forward",
    "clock-rate",     "poll-only",    "cancel",      "max-hold",       "foreign",
    "force",          "attach",       "forge",       "partition",      "one-way",
    "minority",       "majority",     "forget",      "failover",       "primary-crash",
    "old-primary",    "split",        "replica-lag", "stale-sentinel", "sentinel-down",
    "watch-cut",      "slot-move",    "slot-jump",   "shard-failover", "shard-crash",
    "stale-map",      "cluster-down", "password"};

}  // namespace

std::string_view name_of(Fault fault) { return kFaultNames.at(static_cast<size_t>(fault)); }

size_t fault_number(std::string_view name) {
  return static_cast<size_t>(std::find(kFaultNames.begin(), kFaultNames.end(), name) -
                             kFaultNames.begin());
}

std::string Plan::describe() const {
  std::string text = "scenario " + std::string(name_of(scenario)) + ", " +
                     std::to_string(client_count) + " clients of " + std::to_string(caller_count) +
                     " callers, " + std::to_string(name_count) + " names, delays " +
                     std::to_string(delay_min / 1000) + " to " + std::to_string(delay_max / 1000) +
                     " us, leases " + std::to_string(lease_min / kMs) + " to " +
                     std::to_string(lease_max / kMs) + " ms, a fault each " +
                     std::to_string(fault_interval / kMs) + " ms;";
  if (is_quorum()) {
    static const char *const kGuards[] = {"a guard of ", "durable, without ", "without "};
    text += " " + std::to_string(node_count) + " nodes, " + kGuards[static_cast<size_t>(guard)] +
            std::to_string(restart_guard / kMs) + " ms" + (is_fenced ? ", fenced;" : ";");
  }
  if (is_group()) {
    text += " " + std::to_string(replica_count) + " replicas at most " +
            std::to_string(replication_max / kMs) + " ms behind, clocks " +
            std::to_string(clock_offset_max / kMs) + " ms off;";
  }
  if (is_cluster()) {
    text += " " + std::to_string(shard_count) + " shards" + (names_one_node ? ", one named" : "") +
            ", replicas at most " + std::to_string(replication_max / kMs) + " ms behind, clocks " +
            std::to_string(clock_offset_max / 1000) + " us off;";
  }
  text += " faults:";
  for (size_t i = 0; i < kFaultCount; i++) {
    if (faults.test(i)) text.append(" ").append(name_of(static_cast<Fault>(i)));
  }
  return text;
}

}  // namespace redlatch::sim
