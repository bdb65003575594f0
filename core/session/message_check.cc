// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "session/message_check.h"

namespace redlatch::session {

void MessageCheck::open(Nanos limit, Nanos now) {
  state_ = State::kIdle;
  limit_ = limit;
  heard_at_ = now;
}

void MessageCheck::on_heard(Nanos now) {
  heard_at_ = now;
  if (state_ == State::kAsked) state_ = State::kWatched;
}

// Whatever has come since shows that the connection lives.
MessageCheck::Command MessageCheck::on_late_grant(Nanos age, Nanos now) {
  const bool is_lost = age >= kLongestWay && now - heard_at_ > age;
  if (state_ == State::kAbsent || !is_lost) return Command::kNone;
  state_ = State::kAbsent;
  return Command::kDrop;
}

MessageCheck::Command MessageCheck::on_time(bool is_waiting, Nanos now) {
  if (now < due()) return Command::kNone;
  if (state_ == State::kAsked) {
    state_ = State::kAbsent;
    return Command::kDrop;
  }
  if (!is_waiting) {
    state_ = State::kIdle;
    return Command::kNone;
  }
  state_ = State::kAsked;
  asked_at_ = now;
  return Command::kAsk;
}

Nanos MessageCheck::due() const {
  if (state_ == State::kWatched) return after(heard_at_, limit_);
  if (state_ == State::kAsked) return after(asked_at_, limit_);
  return kNever;
}

const char *MessageCheck::check() const {
  if (state_ != State::kAbsent && limit_ <= 0) return "an answer may take some time";
  if (state_ == State::kAsked && asked_at_ < heard_at_) return "an answer ends the question";
  return nullptr;
}

}  // namespace redlatch::session
