// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/acquisition.h"

#include <algorithm>
#include <cassert>

#include "timing/lease_clock.h"

namespace redlatch::lock {

namespace {

constexpr Nanos kMemoryRetry = 20 * kMs;

}  // namespace

void Acquisition::open(bool is_queueable, int64_t provisional_ms, Nanos ttl) {
  assert(state_ == State::kAsking && !is_unanswered_ && ttl > 0);
  is_queueable_ = is_queueable;
  provisional_ms_ = provisional_ms;
  ttl_ = ttl;
}

void Acquisition::prepare(const Front &front) {
  assert(waits() && !is_unanswered_);
  assert(!front.is_there || front.ttl > 0);
  if (front.is_there) ttl_ = front.ttl;
  poll_hint_at_ = kNever;
}

// One try has no limit of its own at which it would end.
Acquisition::Step Acquisition::not_sent(Nanos now) {
  assert(waits() && !is_unanswered_);
  if (!is_queueable()) return {.transition = Transition::kFailed};
  return {.due = now + kMemoryRetry};
}

Acquisition::Step Acquisition::on_granted(const Answer &answer, const Front &front, Nanos now) {
  if (!waits() || is_unanswered_ || answer.sent_at > now) return defect();
  if (!front.is_there) return {.transition = Transition::kUnwanted};
  const Nanos ttl = std::min(answer.ttl, front.ttl);
  assert(ttl > 0);
  const Nanos deadline = timing::deadline_of(answer.sent_at, ttl);
  if (deadline <= now) {
    if (++too_short_count_ < 2) return {.command = Command::kAcquire};
    return {.transition = Transition::kTooShort};
  }
  // Asked for by a caller that has left meanwhile, and wanted less.
  const bool is_short = ttl < front.ttl;
  return {.transition = Transition::kGranted,
          .grant = {.deadline = deadline,
                    .renewal_at = is_short ? now : timing::renewal_of(answer.sent_at, ttl),
                    .fence = answer.fence,
                    .since_ms = answer.server_ms,
                    .is_provisional = is_short}};
}

Acquisition::Step Acquisition::on_queued(std::string_view ticket, std::string_view key_digest) {
  if (!waits() || is_unanswered_ || !is_queueable()) return defect();
  state_ = State::kQueued;
  ticket_ = ticket;
  key_digest_ = key_digest;
  too_short_count_ = 0;
  return {};
}

Acquisition::Step Acquisition::wait(Nanos delay, bool has_more, const Front &front, Nanos now) {
  if (state_ != State::kQueued) return defect();
  if (has_more && front.is_there) return {.command = Command::kAcquire};
  if (!front.is_there) delay = 0;  // the last caller left meanwhile
  return {.due = std::min(now + delay, std::exchange(poll_hint_at_, kNever))};
}

Acquisition::Step Acquisition::on_postponed(Nanos now, uint64_t random) {
  if (!waits() || is_unanswered_) return defect();
  return {.due = now + retry_.next(random)};
}

Acquisition::Step Acquisition::on_answer_lost(Nanos late_apply_until) {
  is_unanswered_ = false;
  late_apply_until_ = std::max(late_apply_until_, late_apply_until);
  const bool is_failed = state_ == State::kAsking && !is_queueable();
  return {.transition = is_failed ? Transition::kFailed : Transition::kNone};
}

// A grant is believed only if it can still be valid: the message may have lain in a buffer while
// the machine, the process or the network stood still. And only for as long as this waiter asked
// for: what the message says beyond that is not from our scripts. Whatever is in doubt is decided
// by the answer to an ACQUIRE.
Acquisition::Step Acquisition::on_message(const Message &message, const Front &front, Nanos now) {
  if (!waits()) return defect();
  if (!front.is_there) return {.transition = Transition::kUnwanted};
  const Nanos ttl = std::min(message.provisional_ms, provisional_ms_) * kMs;
  const Nanos deadline = message.granted_at ? *message.granted_at + ttl - timing::drift_of(ttl) : 0;
  const bool is_certain =
      message.key_digest == key_digest_ && message.is_plausible && message.is_counted;
  if (!is_certain || front.is_confirmed || deadline <= now) {
    // On a connection of its own it may overtake the answer that brings the digest.
    if (is_unanswered_) poll_hint_at_ = now;
    return {.command = Command::kAcquire};
  }
  // From the grant on: of a late message little of the provisional lease is left.
  const Nanos renewal_at = timing::renewal_of(*message.granted_at, std::min(ttl, front.ttl));
  return {.transition = Transition::kGranted,
          .grant = {.deadline = std::min(deadline, now + front.ttl),
                    .renewal_at = std::max(now, renewal_at),
                    .fence = message.fence,
                    .since_ms = message.server_ms,
                    .is_provisional = true}};
}

bool Acquisition::keep_hint(Nanos at) {
  if (!is_unanswered_) return false;
  if (waits()) poll_hint_at_ = std::min(poll_hint_at_, at);
  return true;
}

ServerFootprint Acquisition::give_up(bool is_unanswered, Nanos now) {
  assert(state_ != State::kOver);
  const bool is_in_queue = state_ == State::kQueued || late_apply_until_ > 0;
  const bool may_be_queued = is_unanswered_ || is_unanswered || (waits() && is_in_queue);
  // An answer to CANCEL says whether the lock is held; one that cannot queue must just release.
  const bool was_asked = is_unanswered_ || late_apply_until_ > now;
  ServerFootprint left;
  left.has_member = is_queueable();
  left.was_queued = was_queued();
  left.may_be_queued = may_be_queued_ || (may_be_queued && is_queueable());
  left.may_be_held = waits() && !is_queueable() && was_asked;
  left.late_apply_until = late_apply_until_;
  left.ttl = ttl_;
  state_ = State::kOver;
  may_be_queued_ = false;
  poll_hint_at_ = kNever;
  return left;
}

ServerFootprint Acquisition::replace_token(Nanos now) {
  assert(waits() && !is_unanswered_ && !may_be_queued_);
  const bool was_queued = state_ == State::kQueued || late_apply_until_ > 0;
  ServerFootprint left;
  left.has_member = is_queueable();
  left.may_be_queued = was_queued && is_queueable();
  left.may_be_held = !is_queueable() && late_apply_until_ > now;
  left.late_apply_until = std::exchange(late_apply_until_, 0);
  left.ttl = ttl_;
  poll_hint_at_ = kNever;
  was_sent_ = false;
  return left;
}

const char *Acquisition::check() const {
  if (may_be_queued_ && !is_queueable()) return "only a member can be queued";
  if (!ticket_.empty() && !is_queueable()) return "one try has no ticket";
  if (!was_sent_ && (is_unanswered_ || late_apply_until_ > 0)) return "what is sent is known";
  if (is_unanswered_ && ttl_ <= 0) return "an ACQUIRE asks for a ttl";
  if (too_short_count_ > 2) return "the second grant in a row that is too short ends the wait";
  switch (state_) {
    case State::kAsking:
      if (may_be_queued_) return "it is queued again only behind a grant";
      return ticket_.empty() ? nullptr : "a ticket comes with the place in the queue";
    case State::kQueued:
      if (may_be_queued_) return "it is queued again only behind a grant";
      return is_queueable() ? nullptr : "only a member can be queued";
    case State::kGranted:
      if (ttl_ <= 0) return "a grant has a ttl";
      return poll_hint_at_ != kNever ? "what is granted does not poll" : nullptr;
    case State::kOver:
      if (poll_hint_at_ != kNever) return "what is over does not poll";
      return may_be_queued_ ? "what is left on the server is the cleanup's" : nullptr;
  }
  return "there is no such state";
}

}  // namespace redlatch::lock
