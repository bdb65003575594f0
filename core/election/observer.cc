// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "election/observer.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "base/message.h"

namespace redlatch::election {

using compound::PartRequest;
using lock::Request;

namespace {

constexpr Nanos kPoll = 1'000 * kMs;
// A server that has said that it reports may not: a proxy, or a slot that moves.
constexpr Nanos kTrackedPoll = 5'000 * kMs;
// The server ends a lease within this time of its expiry.
constexpr Nanos kMoment = 2 * kMs;
// Between two reads of a lock that changes all the time.
constexpr Nanos kPause = 20 * kMs;

// The observer waits for the end of an outage.
bool is_outage(const Request &part) {
  const Status status = part.status.load();
  return status == Status::kUnavailable || status == Status::kOutcomeUnknown;
}

}  // namespace

Observer::Observer(const Inner &inner, compound::Table &table, size_t &count,
                   const std::shared_ptr<Request> &request, Nanos now)
    : Compound(table, request, nullptr),
      inner_(inner),
      count_(count),
      wait_until_(request->wait_ms > 0 ? after(now, request->wait_ms * kMs) : kNever) {
  assert(request->wait_ms != 0);
  count_++;
}

Observer::~Observer() {
  if (part_) part_->owner = nullptr;
  count_--;
}

void Observer::start(Nanos now) noexcept {
  rest(now);
  mark();
}

void Observer::ask(Phase phase, Nanos now) {
  assert(!part_ && phase != Phase::kResting);
  const bool is_read = phase == Phase::kReading;
  const auto part = std::make_shared<PartRequest>(
      is_read ? Request::What::ask<operate::Leader>() : Request::What::ask<operate::TrackKey>());
  part->several.is_part = true;
  part->name = request_->name;
  part->owner = this;
  if (is_read) part->as<operate::Leader>().seen = task().seen;
  try {
    inner_->start(part, now);
  } catch (...) {
    part->owner = nullptr;
    throw;
  }
  part_ = part;
  phase_ = phase;
  if (!is_read) is_changed_ = false;
  mark();
}

void Observer::review(Nanos now) {
  if (part_ && part_->is_finished()) return take_answer(now);
  if (now >= wait_until_) return fail_late(now);
  const bool is_due = phase_ == Phase::kResting && now >= due_;
  if (is_due) ask(may_track_ ? Phase::kTracking : Phase::kReading, now);
  if (phase_ != Phase::kResting) wake_at(wait_until_);
}

void Observer::fail_late(Nanos now) noexcept {
  const int64_t limit_ms = request_->wait_ms;
  const Quoted name{request_->name};
  if (has_read_) {
    fail(Status::kTimeout,
         message_of({"the leader of ", name, " has not changed within ", limit_ms, " ms"}), now);
  } else {
    fail(Status::kUnavailable,
         message_of({"the server has not named the leader of ", name, " within ", limit_ms, " ms"}),
         now);
  }
}

void Observer::take_answer(Nanos now) {
  const auto part = std::exchange(part_, nullptr);
  part->owner = nullptr;
  const bool was_tracking = phase_ == Phase::kTracking;
  if (is_outage(*part)) {
    is_tracked_ = false;
    return rest(now + kPoll);
  }
  if (was_tracking) {
    const auto &track = part->as<operate::TrackKey>();
    is_tracked_ = may_track_ = part->status.load() == Status::kOk && track.is_tracked;
    if (is_tracked_) key_ = track.key();
    return ask(Phase::kReading, now);
  }
  const Status status = part->status.load();
  if (status != Status::kOk) return fail(status, part->message, now);
  has_read_ = true;
  auto &answer = part->as<operate::Leader>();
  if (answer.is_news()) {
    task().name = std::move(answer.name);
    task().info = std::move(answer.info);
    return end(Status::kOk);
  }
  if (now >= wait_until_) return fail_late(now);
  const int64_t left_ms = answer.info.pttl_ms;
  const Nanos poll = is_tracked_ ? kTrackedPoll : kPoll;
  const Nanos until = left_ms >= 0 ? std::min(poll, left_ms * kMs + kMoment) : poll;
  rest(now + (is_changed_ ? kPause : std::max(until, kPause)));
}

void Observer::rest(Nanos until) noexcept {
  phase_ = Phase::kResting;
  due_ = until;
  wake_at(std::min(due_, wait_until_));
}

void Observer::on_key_changed(std::optional<std::string_view> key) noexcept {
  if (key && *key != key_) return;
  if (!key) may_track_ = true;
  is_tracked_ = false;
  is_changed_ = true;
  if (phase_ != Phase::kResting) return;  // the answer to the read that is under way may be older
  due_ = 0;
  mark();
}

void Observer::on_no_memory(Nanos now) noexcept { fail(Status::kNoMemory, {}, now); }

void Observer::drop_part(Nanos now) noexcept {
  const auto part = std::exchange(part_, nullptr);
  if (!part) return;
  part->owner = nullptr;
  if (!part->is_finished()) inner_->cancel(*part, now);
}

void Observer::fail(Status status, std::string_view message, Nanos now) noexcept {
  drop_part(now);
  end(status, message);
}

void Observer::shut_down(Nanos now) noexcept { fail(Status::kClosed, lock::words::kShutDown, now); }

}  // namespace redlatch::election
