// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/waitlist.h"

#include <algorithm>
#include <cassert>

#include "base/limits.h"

namespace redlatch::lock {

namespace {

// How long a vacant place is kept: long enough for callers that come and go, short enough not to
// show a waiter that does not exist.
constexpr Nanos kVacancy = 200 * kMs;

}  // namespace

Waitlist::Step Waitlist::open(Place &place) {
  if (place_ != nullptr) return defect();
  place_ = &place;
  return {};
}

void Waitlist::close(const Place &place) {
  if (place_ == &place) place_ = nullptr;
}

Waitlist::Step Waitlist::join(Caller &caller) {
  if (place_ == nullptr || caller.is_listed_) return defect();
  caller.is_listed_ = true;
  caller.previous_ = last_;
  (last_ != nullptr ? last_->next_ : first_) = &caller;
  last_ = &caller;
  return {};
}

void Waitlist::remove(Caller &caller) {
  assert(caller.is_listed_ && first_ != nullptr);
  (caller.previous_ != nullptr ? caller.previous_->next_ : first_) = caller.next_;
  (caller.next_ != nullptr ? caller.next_->previous_ : last_) = caller.previous_;
  caller.next_ = caller.previous_ = nullptr;
  caller.is_listed_ = false;
}

Waitlist::Step Waitlist::leave(Caller &caller) {
  if (!caller.is_listed_) return defect();
  remove(caller);
  return {.transition = is_empty() ? Transition::kVacated : Transition::kNone, .caller = &caller};
}

Waitlist::Step Waitlist::take() {
  if (is_empty()) return defect();
  return leave(*first_);
}

Waitlist::Step Waitlist::serve(const Place &place, Place *next) {
  const bool is_next_needed = second() != nullptr;
  const bool is_legal = !is_empty() && place_ == &place && is_next_needed == (next != nullptr);
  if (!is_legal) return defect();
  Caller &caller = *first_;
  remove(caller);
  place_ = next;
  return {.caller = &caller};
}

Waitlist::Step Waitlist::hand_off(Nanos now) {
  if (is_empty()) return defect();
  Step step = leave(*first_);
  if (step.transition == Transition::kVacated) step.due = now + kVacancy;
  return step;
}

// Each local hand-off counts as a grant towards the turn of other libraries.
int64_t Waitlist::handoff_limit(int64_t most, int64_t yield_every) {
  most = std::min<int64_t>(most, kMaxLocalHandoffs);
  return yield_every > 0 ? std::min(most, yield_every - 1) : most;
}

const char *Waitlist::check() const {
  if ((first_ == nullptr) != (last_ == nullptr)) return "a list has two ends or none";
  if (first_ != nullptr && place_ == nullptr) return "callers have a place in the server's queue";
  const Caller *before = nullptr;
  int seen = 0;
  for (const Caller *at = first_; at != nullptr; before = at, at = at->next_) {
    if (!at->is_listed_) return "a caller in the list knows it";
    if (at->previous_ != before) return "each caller knows the one before it";
    if (++seen > 100) return nullptr;
  }
  return before != last_ ? "the list ends with its last caller" : nullptr;
}

}  // namespace redlatch::lock
