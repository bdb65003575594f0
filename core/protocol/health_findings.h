// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The findings about a server: what its health, and a trial of a lock there, mean for locks.
#pragma once

#include <vector>

#include "base/clock.h"
#include "base/finding.h"
#include "base/server_facts.h"
#include "protocol/health.h"
#include "protocol/lock_trial.h"

namespace redlatch::protocol {

// Further facts on which the judgement depends.
struct HealthContext {
  const ServerFacts &server;
  Nanos wall = 0;          // the wall clock of this host minus the clock of `now`
  bool is_node = false;    // of a Redlock
  bool is_guarded = true;  // .. with a restart guard
};

// Always the same ids in the same order; with a trial some more.
std::vector<Finding> findings_of(const HealthFacts &facts, const LockTrial *trial,
                                 const HealthContext &context);

}  // namespace redlatch::protocol
