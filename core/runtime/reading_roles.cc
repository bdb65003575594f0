// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/reading_roles.h"

#include <array>

namespace redlatch::runtime {

namespace {

using Lead = ReadingRoles::Lead;
using Watch = ReadingRoles::Watch;
using Input = ReadingRoles::Input;

// The next state, for each state before; kCount: it does not allow the event.
template <class State>
using Row = std::array<State, static_cast<size_t>(State::kCount)>;

constexpr Lead kNoLead = Lead::kCount;
//                                   kFree        kLed            kReading     kWaiting
constexpr Row<Lead> kLead = {{Lead::kLed, Lead::kLed, kNoLead, kNoLead}};
constexpr Row<Lead> kRead = {{kNoLead, Lead::kReading, kNoLead, kNoLead}};
constexpr Row<Lead> kWait = {{kNoLead, Lead::kWaiting, kNoLead, kNoLead}};
constexpr Row<Lead> kEndRead = {{kNoLead, kNoLead, Lead::kLed, Lead::kLed}};
constexpr Row<Lead> kStopLeading = {{kNoLead, Lead::kFree, Lead::kFree, Lead::kFree}};

constexpr Watch kNoWatch = Watch::kCount;
constexpr Watch kUnwatched = Watch::kNone;
constexpr Watch kCaller = Watch::kCaller;
constexpr Watch kCallerArmed = Watch::kCallerArmed;
constexpr Watch kBackground = Watch::kBackground;
constexpr Watch kBackgroundArmed = Watch::kBackgroundArmed;
//                                kNone, kCaller, kCallerArmed, kBackground, kBackgroundArmed
constexpr Row<Watch> kFollow = {{kCaller, kNoWatch, kNoWatch, kCaller, kCaller}};
constexpr Row<Watch> kFollowInBackground = {{kBackground, kNoWatch, kNoWatch, kNoWatch, kNoWatch}};
constexpr Row<Watch> kStopFollowing = {{kNoWatch, kUnwatched, kUnwatched, kUnwatched, kUnwatched}};
constexpr Row<Watch> kArm = {{kNoWatch, kCallerArmed, kNoWatch, kBackgroundArmed, kNoWatch}};
constexpr Row<Watch> kDisarm = {{kUnwatched, kCaller, kCaller, kBackground, kBackground}};

constexpr Input kNothing = Input::kNothing;
constexpr Input kDrained = Input::kDrained;
constexpr Input kDue = Input::kDue;
//                                   kNothing, kDrained, kDue
constexpr Row<Input> kLeaveUnread = {{kDue, kDue, kDue}};
constexpr Row<Input> kDrain = {{kDrained, kDrained, kDue}};
constexpr Row<Input> kForgetDrained = {{kNothing, kNothing, kDue}};
constexpr Row<Input> kEndDue = {{kNothing, kDrained, kNothing}};

template <class State>
bool step(State &state, const Row<State> &event) {
  const State next = event[static_cast<size_t>(state)];
  if (next == State::kCount) return false;
  state = next;
  return true;
}

}  // namespace

// ---- the leader --------------------------------------------------------------------------------

bool ReadingRoles::lead(Waiter &waiter) {
  if (leader_ != nullptr && leader_ != &waiter) return false;
  if (!step(lead_, kLead)) return false;
  leader_ = &waiter;
  return true;
}

bool ReadingRoles::read() { return step(lead_, kRead); }

bool ReadingRoles::wait() { return step(lead_, kWait); }

bool ReadingRoles::end_read() { return step(lead_, kEndRead); }

bool ReadingRoles::stop_leading(const Waiter &waiter) {
  if (leader_ != &waiter) return true;
  leader_ = nullptr;
  return step(lead_, kStopLeading);
}

// ---- the follower ------------------------------------------------------------------------------

bool ReadingRoles::follow(Waiter &waiter) {
  if (!step(watch_, kFollow)) return false;
  follower_ = &waiter;
  return true;
}

bool ReadingRoles::follow_in_background(Waiter &waiter) {
  if (!step(watch_, kFollowInBackground)) return false;
  follower_ = &waiter;
  return true;
}

bool ReadingRoles::stop_following() {
  if (!step(watch_, kStopFollowing)) return false;
  follower_ = nullptr;
  return true;
}

// Both would wake for the same input.
bool ReadingRoles::arm() { return lead_ != Lead::kWaiting && step(watch_, kArm); }

bool ReadingRoles::disarm() { return step(watch_, kDisarm); }

ReadingRoles::Choice ReadingRoles::next_follower(bool is_caller_ready,
                                                 bool is_background_needed) const {
  if (is_watched_by_caller()) return Choice::kAsBefore;
  if (is_caller_ready) return Choice::kCaller;
  if (is_background_needed == has_follower()) return Choice::kAsBefore;
  return is_background_needed ? Choice::kBackground : Choice::kNone;
}

// ---- input -------------------------------------------------------------------------------------

bool ReadingRoles::leave_unread() { return step(input_, kLeaveUnread); }

bool ReadingRoles::drain() { return step(input_, kDrain); }

bool ReadingRoles::forget_drained() { return step(input_, kForgetDrained); }

bool ReadingRoles::end_due() { return step(input_, kEndDue); }

const char *ReadingRoles::check() const {
  if ((leader_ != nullptr) != is_led()) return "the role of leader and the leader do not agree";
  if ((follower_ != nullptr) != has_follower()) {
    return "the role of follower and the follower do not agree";
  }
  if (lead_ == Lead::kWaiting && is_armed()) return "a follower is armed while a leader waits";
  return nullptr;
}

}  // namespace redlatch::runtime
