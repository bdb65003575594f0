// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Scene: what all parts of a run share.
#pragma once

#include "beliefs.h"
#include "network.h"
#include "plan.h"
#include "schedule.h"
#include "server.h"
#include "tally.h"
#include "trace.h"
#include "verdict.h"

namespace redlatch::sim {

class Rules;

struct Scene {
  const Plan &plan;
  Schedule &schedule;
  Network &network;
  Server &server;
  Tally &tally;
  Trace &trace;
  Verdict &verdict;
  Beliefs &beliefs;
  Rules &rules;
  Nanos jumped_at = -kNever;  // the server's clock, forward
};

}  // namespace redlatch::sim
