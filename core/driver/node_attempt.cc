// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/node_attempt.h"

#include <cassert>

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
  assert(!is_held_ && login_.stage() == LoginAttempt::Stage::kDialling);
  make(now);
  is_held_ = true;
  return *dialogue_;
}

void NodeAttempt::make(Nanos now) {
  const auto keep = [this](auto made) {
    auto *const kind = made.get();
    dialogue_ = std::move(made);
    return kind;
  };
  const Settings &settings = login_.settings();
  if (reads_slots_) {
    slots_ = keep(std::make_unique<SlotReading>(settings, servers_, now));
  } else if (follower_ != nullptr) {
    primary_ = keep(std::make_unique<PrimaryAttempt>(settings, channel_, known_, now));
  } else {
    server_ = keep(std::make_unique<ServerAttempt>(settings, channel_, needs_identity_, now));
  }
}

void NodeAttempt::end(Nanos now) {
  assert(is_held_ && dialogue_->is_over());
  is_held_ = false;
  if (primary_ != nullptr) {
    known_ = primary_->knowledge();
    opinion_ = primary_->opinion();
  }
  login_.on_dialled(dialogue_->outcome(), now);
}

// ---- its end -----------------------------------------------------------------------------------

void NodeAttempt::fail(Outcome &&why) noexcept {
  assert(!why.ok());
  has_failed_ = true;
  outcome_ = std::move(why);
}

NodeAttempt::Result NodeAttempt::conclude() noexcept {
  assert(has_failed_ || (login_.is_over() && !is_held_));
  if (!has_failed_) outcome_ = login_.take_outcome();
  if (follower_ != nullptr) {
    follower_->on_attempt_over(std::move(known_), std::move(opinion_), outcome_);
  }
  if (!outcome_.ok()) return Result::kFailed;
  if (reads_slots_) return Result::kSlots;
  return facts().is_found_cluster ? Result::kCluster : Result::kConnected;
}

const ServerFacts &NodeAttempt::facts() const {
  assert(outcome_.ok() && dialogue_ != nullptr);
  if (reads_slots_) return slots_->facts();
  return follower_ != nullptr ? primary_->facts() : server_->facts();
}

}  // namespace redlatch::driver
