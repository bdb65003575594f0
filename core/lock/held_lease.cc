// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/held_lease.h"

#include "base/limits.h"
#include "timing/lease_clock.h"

namespace redlatch::lock {

HeldLease::Step HeldLease::start(const Grant &grant, const LeaseTerms &terms, std::string &label,
                                 Nanos now, bool is_up) {
  if (state_ != State::kIdle) return defect();
  state_ = State::kHeld;
  deadline_ = server_until_ = grant.deadline;
  renewal_at_ = grant.renewal_at;
  fence_ = grant.fence;
  fence_count_ = std::max<int64_t>(grant.fence_count, kUsualFences);
  since_ms_ = grant.since_ms;
  attach_count_ = grant.attach_count;
  is_provisional_ = grant.is_provisional;
  handoffs_ = timing::LocalHandoffs{0, now};
  return take(terms, label, now, is_up);
}

bool HeldLease::may_hand_off(Nanos next_ttl, bool must_be_confirmed, int64_t limit,
                             Nanos now) const {
  if (must_be_confirmed && is_provisional_) return false;
  return timing::may_hand_off(handoffs_, limit, now, deadline_, ttl_, next_ttl);
}

HeldLease::Step HeldLease::hand_off(const LeaseTerms &terms, std::string &label, Nanos now,
                                    bool is_up) {
  if (state_ != State::kHeld) return defect();
  if (!terms.is_fence_shared) handoffs_.count++;
  deadline_ = std::min(deadline_, now + terms.ttl);
  // Less than half of what the caller asked for: extend at once, in the background.
  const bool is_short = deadline_ - now < terms.ttl / 2;
  is_provisional_ = is_provisional_ || is_short;
  renewal_at_ = is_short ? now : std::min(renewal_at_, timing::renewal_of(now, terms.ttl));
  // It may be overdue if the lease was retained, and what is left is enough for a while.
  if (!is_short) renewal_at_ = std::max(renewal_at_, now + (deadline_ - now) / 4);
  return take(terms, label, now, is_up);
}

// The description is written with the first extension. At once if the caller has set a label, or if
// the description on the server is of the caller before.
HeldLease::Step HeldLease::take(const LeaseTerms &terms, std::string &label, Nanos now,
                                bool is_up) {
  const bool is_new = handoffs_.count == 0 || label != label_;
  const bool is_urgent = is_new && (!label.empty() || is_described_);
  is_describable_ = terms.is_described;
  must_describe_ = (must_describe_ || is_new) && is_describable_;
  label_.swap(label);
  ttl_ = terms.ttl;
  end_at_ = terms.end_at;
  is_renewed_ = terms.is_renewed;
  granted_at_ = now;
  limit_renewal();
  return is_urgent && must_describe_ ? renew(now, is_up) : Step{};
}

void HeldLease::leave(ServerFootprint &left) const {
  assert(state_ == State::kHeld);
  left.is_provisional = is_provisional_;
  left.held_until = std::max(deadline_, server_until_);
  left.ttl = ttl_;
  left.handoff_count = static_cast<int16_t>(handoffs_.count);
}

HeldLease::Step HeldLease::renew(Nanos now, bool is_up) const {
  assert(state_ == State::kHeld && ttl_ > 0);
  if (!is_up || is_extending_) return {};
  return {.command = Command::kExtend,
          .is_description = must_describe_ && !is_undated(),
          .ttl = timing::lease_within(ttl_, now, end_at_)};
}

HeldLease::Step HeldLease::on_due(Nanos now, bool is_up) const {
  if (state_ != State::kHeld) return defect();
  if (is_over(now)) return {.transition = Transition::kExpired};
  return renew(now, is_up);
}

HeldLease::Step HeldLease::on_connected(Nanos now) const {
  if (state_ != State::kHeld) return defect();
  return is_renewed_ || is_provisional_ ? renew(now, true) : Step{};
}

void HeldLease::sent(bool is_description) {
  assert(state_ == State::kHeld && !is_extending_);
  is_extending_ = true;
  if (is_description) must_describe_ = false;
}

void HeldLease::not_sent(Nanos now) {
  assert(state_ == State::kHeld && !is_extending_);
  renewal_at_ = timing::renewal_retry(now, deadline_);
  limit_renewal();
}

HeldLease::Step HeldLease::on_confirmed(const Extension &answer, Nanos now, bool is_up,
                                        uint64_t random) {
  if (state_ != State::kHeld || is_extending_) return defect();
  is_described_ = is_described_ || answer.is_description;
  is_provisional_ = false;
  const Step step = confirm(answer.sent_at, answer.ttl, now, random);
  const bool is_dated = is_undated();
  if (is_dated) since_ms_ = answer.server_ms - (now - granted_at_) / kMs;
  // Handed off meanwhile: what was just written describes the caller before.
  const bool is_outdated = must_describe_ && (is_described_ || is_dated);
  return is_outdated ? renew(now, is_up) : step;
}

void HeldLease::on_refused(bool is_description, Nanos now) {
  assert(state_ == State::kHeld && !is_extending_);
  must_describe_ = must_describe_ || (is_description && is_describable_);
  renewal_at_ = timing::renewal_retry(now, deadline_);
  limit_renewal();
}

HeldLease::Step HeldLease::on_unknown_script(bool is_description, Nanos now, bool is_up) {
  if (state_ != State::kHeld || is_extending_) return defect();
  must_describe_ = must_describe_ || (is_description && is_describable_);
  return renew(now, is_up);
}

void HeldLease::on_answer_lost(bool is_description) {
  assert(state_ == State::kHeld);
  is_extending_ = false;
  must_describe_ = must_describe_ || (is_description && is_describable_);
}

HeldLease::Step HeldLease::prolong(Nanos sent_at, Nanos ttl, Nanos now, uint64_t random) {
  return confirm(sent_at, ttl, now, random);
}

HeldLease::Step HeldLease::change_ttl(Nanos sent_at, Nanos ttl, Nanos now, uint64_t random) {
  if (state_ != State::kHeld) return defect();
  ttl_ = ttl;
  is_provisional_ = false;
  deadline_ = 0;  // a shorter ttl shortens our own deadline
  return confirm(sent_at, ttl, now, random);
}

// The server has confirmed `ttl` to a message sent at `sent_at`.
HeldLease::Step HeldLease::confirm(Nanos sent_at, Nanos ttl, Nanos now, uint64_t random) {
  if (state_ != State::kHeld || sent_at > now) return defect();
  assert(ttl > 0);
  clock_.reset();
  cut_by_ = 0;
  deadline_ = std::max(deadline_, timing::deadline_of(sent_at, ttl));
  server_until_ = std::max(server_until_, deadline_);
  // A little early and at random: leases taken together do not renew together for good.
  const auto early = static_cast<Nanos>(random % static_cast<uint64_t>(ttl / 12 + 1));
  renewal_at_ = timing::renewal_of(sent_at, ttl) - early;
  limit_renewal();
  return {};
}

void HeldLease::on_upgraded(int64_t fence, int64_t since_ms) {
  assert(state_ == State::kHeld);
  fence_ = fence;
  fence_count_ = kUsualFences;
  handoffs_.count = 0;
  since_ms_ = since_ms;
}

void HeldLease::on_moved(std::optional<Nanos> clock) {
  awaits_clock_ = true;
  if (!clock_) clock_ = clock;
}

// No renewal that the caller does not want, or that reaches beyond its max_hold.
void HeldLease::on_clock(Nanos clock, Nanos now) {
  assert(state_ == State::kHeld);
  awaits_clock_ = false;
  if (!clock_) return;
  // A lease that goes to and fro is cut once.
  const Nanos more = std::max<Nanos>(clock - *clock_ - cut_by_, 0);
  cut_by_ += more;
  const bool was_enough = deadline_ >= end_at_;
  deadline_ = std::max<Nanos>(deadline_ - more, 1);
  server_until_ = std::max(server_until_ - more, deadline_);
  if (was_enough) renewal_at_ = now;
  limit_renewal();
}

void HeldLease::limit_renewal() {
  const bool is_wanted = is_renewed_ || is_provisional_;
  if (!is_wanted || deadline_ >= end_at_) renewal_at_ = kNever;
}

const char *HeldLease::check() const {
  switch (state_) {
    case State::kIdle:
      if (is_extending_ || renewal_at_ != kNever) return "nothing is extended before the grant";
      if (is_provisional_ || ttl_ != 0 || fence_ != 0) return "its terms come with the grant";
      return deadline_ != 0 ? "there is no deadline before the grant" : nullptr;
    case State::kHeld: {
      if (ttl_ <= 0) return "a lease has a ttl";
      if (deadline_ <= 0) return "a lease has a deadline";
      if (server_until_ < deadline_) return "the server keeps it for as long as its caller";
      const bool is_wanted = is_renewed_ || is_provisional_;
      if (!is_wanted && renewal_at_ != kNever) return "it is renewed only if that is wanted";
      if (deadline_ >= end_at_ && renewal_at_ != kNever) return "no renewal beyond max_hold";
      if (is_wanted && deadline_ < end_at_ && renewal_at_ == kNever) return "a renewal is due";
      if (must_describe_ && !is_describable_) return "a shared lease has no description";
      if (end_at_ <= granted_at_) return "max_hold counts from the grant";
      if (handoffs_.count < 0 || attach_count_ < 0) return "hand-offs and attaches are counted";
      return handoffs_.count >= fence_count_ ? "each hand-off has a fence" : nullptr;
    }
  }
  return "there is no such state";
}

}  // namespace redlatch::lock
