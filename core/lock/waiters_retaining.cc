// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Waiters: locks that the client retains when their callers have released them, and recalls.
#include <algorithm>
#include <new>
#include <utility>

#include "lock/waiters.h"

namespace redlatch::lock {

namespace {

// How long a try waits for a holder that was recalled: two round trips, and what its client needs.
constexpr Nanos kRecallWork = 5 * kMs;
constexpr Nanos kLongestRecall = 20 * kMs;

Nanos recall_bound(Nanos round_trip) {
  return std::min(2 * round_trip + kRecallWork, kLongestRecall);
}

}  // namespace

// No caller waits for the lock here, none waited elsewhere when it was granted, and one that comes
// is heard.
bool Waiters::may_retain(const TokenRecord &record, Nanos now) const {
  const LockState &lock = *record.lock;
  const session::Channel &channel = record.server().channel;
  const bool is_wanted = record.retention->is_wanted() && record.is_recallable() && may_hand_off_ &&
                         !pauses_.is_paused(lock.keys.lock, now);
  const bool is_plain = !record.upgrader && !record.held()->is_provisional();
  return is_wanted && is_plain && lock.waitlist->state() == Waitlist::State::kIdle &&
         redirects_.is_up(lock) && channel.hears(record.identity.token) && channel.is_counted();
}

bool Waiters::retain(TokenRecord &record, Nanos now) {
  if (!may_retain(record, now) || !record.retention.give(&Retention::release, now)) return false;
  leases_.end_lease(record, Lease::kReleased, {});
  locks_.set_phase(record, Phase::kRetained);
  timers_.set(record, std::min(record.retention->until(), record.held()->held_until()));
  return true;
}

bool Waiters::may_take(const TokenRecord &record, const AcquireOptions &options, Nanos now) const {
  const bool is_usual = options.mode == record.identity.mode && !options.is_unfenced &&
                        !options.awaits_value && options.candidate.empty();
  const HeldLease &held = record.held().get();
  return is_usual && record.retention->is_idle_until(now) && held.has_fences() &&
         held.held_until() - now >= options.ttl / 2 && redirects_.is_up(*record.lock);
}

// @return whether `request` has what the client retains of this lock. If not, that is given back,
// and the ACQUIRE of `request` follows behind it.
bool Waiters::take_retained(LockState &lock, const std::shared_ptr<Request> &request, Nanos now) {
  while (TokenRecord *record = lock.retained) {
    if (!may_take(*record, request->options, now)) {
      cleanups_.leave_retained(*record, now);
      continue;
    }
    prepare(*request, now);
    set_lock(*request, record->lock);
    record->retention.give(&Retention::take);
    locks_.set_phase(*record, Phase::kHeld);
    give_lease(*record, request, nullptr, now);
    return true;
  }
  return false;
}

void Waiters::on_retained_due(TokenRecord &record, Nanos now) {
  pauses_.unwanted(record.lock->keys.lock);
  cleanups_.leave_retained(record, now);
}

// It may overtake the answer that grants the lock, on a connection of its own.
void Waiters::on_recall_push(TokenRecord &record, const protocol::Push &push, Nanos now) {
  if (record.phase == Phase::kDetaching || record.phase == Phase::kCleanup) return;
  record.retention.give(&Retention::recall);
  if (record.phase == Phase::kRetained) {
    pauses_.recalled(record.lock->keys.lock, now);
    return cleanups_.leave_retained(record, now);
  }
  if (push.is_by_user && record.phase == Phase::kHeld) leases_.on_recall(record, push.reason);
}

// The try of `record` was refused, and the client of the holder knows. It may only retain the lock:
// so the try waits in the queue, no longer than that takes.
bool Waiters::await_recall(TokenRecord &record, Nanos asked_at, Nanos now) {
  Request &request = *record.caller;
  if (request.several.is_part || record.is_vote || request.is_recalling) return false;
  request.wait_ms = std::max<int64_t>(recall_bound(now - asked_at) / kMs, 1);
  request.is_recalling = true;
  try {
    TokenRecord *created = open_place(request, record.lock);
    const auto caller = take_front(record);
    cleanups_.start_gone(record, now);
    caller->wait_until = after(now, caller->wait_ms * kMs);
    timers_.set(*caller, caller->wait_until);
    join(caller, created, now);
  } catch (const std::bad_alloc &) {
    request.wait_ms = 0;
    return false;
  }
  return true;
}

}  // namespace redlatch::lock
