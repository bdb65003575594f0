// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Context: references to the parts of a run, and the state that they share.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "beliefs.h"
#include "checker.h"
#include "network.h"
#include "plan.h"
#include "schedule.h"
#include "server.h"
#include "stats.h"
#include "trace.h"
#include "verdict.h"

namespace redlatch::sim {

class Cluster;
class Group;
class Passwords;
struct Slot;

struct Context {
  const Plan &plan;
  Schedule &schedule;
  Network &network;
  const std::vector<std::unique_ptr<Server>> &servers;  // the nodes
  Stats &stats;
  Trace &trace;
  Verdict &verdict;
  Beliefs &beliefs;
  Checker &checker;
  const std::vector<Slot> &slots;  // processes

  Group *group = nullptr;  // of one server with replicas
  Cluster *cluster = nullptr;
  Passwords *passwords = nullptr;  // that change
  bool is_working = true;          // callers begin new work
  bool is_calm = false;            // no new faults
  Nanos calm_from = 0;             // the last fault
  Nanos calm_since = 0;
  Nanos crowd_killed_at = 0;
  Nanos stepped_back = 0;         // sum of the steps back of all servers' clocks
  std::vector<size_t> stepped{};  // nodes whose clock may be stepped
  // A client begins to open its connections to a node.
  std::function<void(int client, size_t node)> on_opening{};
};

}  // namespace redlatch::sim
