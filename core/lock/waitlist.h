// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Waitlist: the callers of one client that wait for the same lock, first come first served. One
// place in the server's queue serves them all: a grant goes to the front caller, and the others get
// a new place. A lease that one of them releases may be handed off to the front caller without
// asking the server.
//
//   kIdle --open--> kVacant --join--> kQueued --serve(none)--> kIdle
//   kVacant --close--> kIdle          kQueued --serve(next)--> kQueued
//   kQueued --leave, take, hand_off of the last caller--> kVacant
//
// The machine keeps no caller alive and knows a place by its address only: LockClient owns both.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace redlatch::lock {

class Waitlist {
 public:
  enum class State : uint8_t {
    kIdle,    // no caller and no place
    kVacant,  // a place without a caller: kept for the next one, for a moment
    kQueued,  // callers, and a place for them
  };
  enum class Transition : uint8_t {
    kNone,
    kVacated,  // the last caller has left its place
    kDefect,   // an event that the state does not allow
  };

  // One caller. Its place in memory must not change while it waits.
  class Caller {
   public:
    Caller() = default;
    Caller(const Caller &) = delete;
    Caller &operator=(const Caller &) = delete;
    bool is_listed() const { return is_listed_; }

   private:
    friend class Waitlist;
    Caller *next_ = nullptr, *previous_ = nullptr;
    bool is_listed_ = false;
  };
  // A place in the server's queue.
  class Place {};

  struct Step {
    Transition transition = Transition::kNone;
    Caller *caller = nullptr;  // that leaves the list
    Nanos due = kNever;        // when to give up the place that has become vacant
  };
  static_assert(sizeof(Step) <= 64);

  // ---- the place. It is opened before the first caller joins.
  Step open(Place &place);
  // Forget `place` if it is the open one.
  void close(const Place &place);

  // ---- callers
  Step join(Caller &caller);
  // The caller stops waiting.
  Step leave(Caller &caller);
  // The front caller is answered; the place stays.
  Step take();
  // The front caller is answered and uses up `place`; `next` is that of the others, if there are
  // any.
  Step serve(const Place &place, Place *next);
  // The lock was handed off to the front caller, and the place is kept.
  Step hand_off(Nanos now);

  // ---- what is known
  State state() const {
    if (first_ != nullptr) return State::kQueued;
    return place_ != nullptr ? State::kVacant : State::kIdle;
  }
  bool is_empty() const { return first_ == nullptr; }
  Caller *front() const { return first_; }
  // The caller behind the front one: serve() needs a place for it.
  Caller *second() const { return first_ != nullptr ? first_->next_ : nullptr; }
  // Null: none is open.
  Place *place() const { return place_; }
  // How often a lease may be handed off to a caller that allows `most`, and wants other libraries
  // to have their turn after `yield_every` grants. <= 0: no such turn.
  static int64_t handoff_limit(int64_t most, int64_t yield_every);

  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  static Step defect() { return {.transition = Transition::kDefect}; }
  void remove(Caller &caller);

  Caller *first_ = nullptr, *last_ = nullptr;
  Place *place_ = nullptr;
};

}  // namespace redlatch::lock
