// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/node_attempt.h"

#include <cassert>
#include <utility>

namespace redlatch::driver {

NodeAttempt::NodeAttempt(const Settings &settings, const lock::LockService &service, size_t node,
                         PrimaryFollower *follower)
    : login_(settings), follower_(follower), reads_slots_(settings.is_cluster()) {
  assert(!reads_slots_ || follower == nullptr);
  if (reads_slots_) {
    servers_ = service.known_servers();
    return;
  }
  channel_ = service.channel(node);
  needs_identity_ = service.needs_identity();
  if (follower_ != nullptr) known_ = follower_->begin_attempt();
}

// ---- the dialogue ------------------------------------------------------------------------------

Dialogue &NodeAttempt::begin(Nanos now) {
  assert(held_ == nullptr && login_.stage() == LoginAttempt::Stage::kDialling);
  held_ = &make(now);
  return *held_;
}

Dialogue &NodeAttempt::make(Nanos now) {
  const Settings &settings = login_.settings();
  if (reads_slots_) return slots_.emplace(settings, servers_, now);
  if (follower_ != nullptr) {
    if (primary_) known_ = primary_->take_knowledge();
    return primary_.emplace(settings, channel_, known_, now);
  }
  return server_.emplace(settings, channel_, needs_identity_, now);
}

void NodeAttempt::end(Nanos now) {
  assert(held_ != nullptr && held_->is_over());
  const Dialogue &ended = *std::exchange(held_, nullptr);
  login_.on_dialled(ended.outcome(), now);
}

// ---- its end -----------------------------------------------------------------------------------

void NodeAttempt::fail(Outcome &&why) noexcept {
  assert(!why.ok());
  outcome_ = std::move(why);
}

NodeAttempt::Result NodeAttempt::conclude() noexcept {
  assert(!outcome_.ok() || (login_.is_over() && held_ == nullptr));
  if (outcome_.ok()) outcome_ = login_.take_outcome();
  if (primary_) {
    follower_->on_attempt_over(primary_->take_knowledge(), primary_->take_opinion(), outcome_);
  } else if (follower_ != nullptr) {
    follower_->on_attempt_over(std::move(known_), {}, outcome_);
  }
  if (!outcome_.ok()) return Result::kFailed;
  if (reads_slots_) return Result::kSlots;
  return facts().is_found_cluster ? Result::kCluster : Result::kConnected;
}

void NodeAttempt::note_success() const {
  if (follower_ != nullptr) follower_->note_success(facts());
}

const ServerFacts &NodeAttempt::facts() const {
  assert(outcome_.ok());
  if (slots_) return slots_->facts();
  return primary_ ? primary_->facts() : server_->facts();
}

}  // namespace redlatch::driver
