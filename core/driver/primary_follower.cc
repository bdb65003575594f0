// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/primary_follower.h"

#include <new>

#include "timing/clock_offset.h"

namespace redlatch::driver {

std::string PrimaryFollower::described() const {
  return primary().address() + " (named by sentinel " + watch_.opinion().sentinel.text() + ")";
}

void PrimaryFollower::on_attempt_over(sentinel::Knowledge &&known, sentinel::Opinion &&opinion,
                                      Outcome &outcome) noexcept {
  if (!outcome.ok()) return watch_.on_not_found(std::move(known));
  is_hurried_ = !watch_.on_found(std::move(known), opinion);
  if (!is_hurried_) return;
  outcome.status = Status::kUnavailable;
  try {
    outcome.message =
        "the primary of " + settings_.address() + " has moved during the attempt to connect";
  } catch (const std::bad_alloc &) {
    return;
  }
}

void PrimaryFollower::note_success(const ServerFacts &facts) {
  const ServerAge before = age_;
  if (facts.age.round_trip > 0) age_ = facts.age;
  const sentinel::Opinion &named = watch_.opinion();
  if (logged_ == named.primary) return;
  logged_ = named.primary;
  const std::string address = primary().address();
  log_.add(LogLevel::kInfo, "connected to " + address + ", the primary of " + settings_.address() +
                                " as sentinel " + named.sentinel.text() + " says");
  const bool is_measured = before.round_trip > 0 && facts.age.round_trip > 0;
  const Nanos behind = before.clock - facts.age.clock;
  if (!is_measured || behind <= timing::kClockLimit) return;
  log_.add(LogLevel::kWarning, "the clock of " + address + " is " + std::to_string(behind / kMs) +
                                   " ms behind that of the primary before: fences may fall");
}

bool PrimaryFollower::on_reply(size_t number, const Reply &reply, const sentinel::Send &send,
                               Nanos now) {
  const std::string from = watch_.known().primary.text();
  const auto news = watch_.on_reply(number, reply, send, now);
  if (!news) return false;
  is_hurried_ = true;
  log_.add(LogLevel::kInfo, "the primary of " + settings_.address() + " has moved from " + from +
                                " to " + news->primary.text() + ", says sentinel " +
                                news->sentinel.text());
  return true;
}

void PrimaryFollower::on_ended(size_t number, const Outcome &why, uint64_t entropy, bool is_closing,
                               Nanos now) noexcept {
  const bool is_deaf = watch_.on_ended(number, now, entropy);
  if (!is_deaf || is_closing) return;
  try {
    log_.add(LogLevel::kWarning,
             "no sentinel of " + settings_.address() +
                 " can be watched, so that a failover is noticed late: " + why.message);
  } catch (const std::bad_alloc &) {
    return;
  }
}

}  // namespace redlatch::driver
