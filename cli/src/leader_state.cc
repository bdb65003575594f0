// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "leader_state.h"

#include "duration.h"

namespace redlatch::cli {

LeaderState::LeaderState(const RunOptions& options)
    : own_id_(options.elect->id), limits_(options) {}

void LeaderState::begin_term(rl_lease* lease) {
  const std::lock_guard lock(mutex_);
  lease_ = lease;
  begin_us_ = now_us();
  own_term_ = rl_lease_fence(lease);
}

void LeaderState::end_term() {
  const std::lock_guard lock(mutex_);
  lease_ = nullptr;
}

void LeaderState::set_seen(const Leader& leader) {
  const std::lock_guard lock(mutex_);
  seen_ = leader;
}

bool LeaderState::leads() const {
  return lease_ != nullptr && rl_lease_state(lease_) == RL_LEASE_HELD;
}

std::string LeaderState::id() const {
  const std::lock_guard lock(mutex_);
  if (leads()) return own_id_;
  // The own term is over, also if the server has not reported that yet.
  return seen_.term > own_term_ ? seen_.id : "";
}

bool LeaderState::is_healthy() const {
  const std::lock_guard lock(mutex_);
  if (lease_ == nullptr) return true;
  const std::int64_t remaining_ms = rl_lease_remaining_ms(lease_);
  const std::int64_t held_ms = (now_us() - begin_us_) / 1000;
  return leads() &&
         (remaining_ms > limits_.warn_below_ms || limits_.ends_by_plan(remaining_ms, held_ms));
}

}  // namespace redlatch::cli
