// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The leader as an `elect` knows it: its own term, and the leader that the server has reported.
// All calls are safe from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "leader_observer.h"
#include "lease_limits.h"
#include "run_options.h"

namespace redlatch::cli {

class LeaderState {
 public:
  explicit LeaderState(const RunOptions& options);

  // From here on this process leads, until end_term(). `lease` must exist until then.
  void begin_term(rl_lease* lease);
  void end_term();
  void set_seen(const Leader& leader);

  // Empty = no leader is known.
  [[nodiscard]] std::string id() const;
  // False for a leader that has not renewed its lease in time, or has lost it.
  [[nodiscard]] bool is_healthy() const;

 private:
  [[nodiscard]] bool leads() const;

  const std::string own_id_;
  const LeaseLimits limits_;
  mutable std::mutex mutex_;  // Guards what follows.
  rl_lease* lease_ = nullptr;
  std::int64_t begin_us_ = 0;
  std::int64_t own_term_ = 0;  // The last one.
  Leader seen_;
};

}  // namespace redlatch::cli
