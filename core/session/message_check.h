// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// MessageCheck: whether messages still arrive on the second connection that they have with RESP2.
// Without a hand-off nothing comes there, so one that died silently looks like one without news:
// each hand-off would wait for the next poll. While a waiter is queued, the server is asked for a
// sign of life when nothing has come for as long as an answer may take, and has as long to answer.
//
//   kAbsent --open--> kIdle --on_waiting--> kWatched --on_time--> kAsked --on_time--> kAbsent
//   kAsked --on_heard--> kWatched --on_time, no waiter is left--> kIdle     all --close--> kAbsent
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace redlatch::session {

class MessageCheck {
 public:
  enum class State : uint8_t {
    kAbsent,   // there is no such connection
    kIdle,     // no waiter relies on it
    kWatched,  // a waiter relies on it
    kAsked,    // and nothing came for long: the server was asked
  };
  enum class Command : uint8_t { kNone, kAsk, kDrop };

  // Such a connection is open. `limit`: how long an answer may take.
  void open(Nanos limit, Nanos now);
  void close() { state_ = State::kAbsent; }
  void on_waiting() {
    if (state_ == State::kIdle) state_ = State::kWatched;
  }
  // Something has come there.
  void on_heard(Nanos now);
  // A poll has found a grant that was made `age` ago.
  Command on_late_grant(Nanos age, Nanos now);
  Command on_time(bool is_waiting, Nanos now);

  // When on_time() has something to do.
  Nanos due() const;
  State state() const { return state_; }
  // The sentence of the model that does not hold, or null.
  const char *check() const;

  // A message that has not come by then is lost.
  static constexpr Nanos kLongestWay = 1'000 * kMs;

 private:
  State state_ = State::kAbsent;
  Nanos limit_ = 0;
  Nanos heard_at_ = 0;
  Nanos asked_at_ = 0;
};

}  // namespace redlatch::session
