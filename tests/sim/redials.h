// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Redials: the pauses between the attempts to make one connection. All times are by the clock of
// its process.
//
// Rules: the n-th pause since the last answer lasts for at least half of a step, so that a server
// that is away is dialled ever more seldom; and for at most the whole step, so that one that is
// there again is soon found. The step doubles with each pause, up to a limit: a client that counts
// its pauses wrongly, or never begins anew, breaks one of the two.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace redlatch::sim {

class Redials {
 public:
  // The shortest and the longest step.
  struct Steps {
    Nanos first, last;
  };
  static constexpr Steps kOfServer{10 * kMs, 500 * kMs};
  static constexpr Steps kOfSentinel{50 * kMs, 5'000 * kMs};

  explicit Redials(const Steps &steps) : steps_(steps) {}

  // An attempt has failed, or the connection has ended. `may_skip`: maybe without a pause.
  void ended(Nanos now, bool may_skip) {
    ended_at_ = now;
    is_hurried_ = may_skip;
    if (!may_skip) least_ = next(least_);
    most_ = next(most_);
  }
  // For this pause there is a reason to dial at once.
  void hurry() { is_hurried_ = true; }
  // @return false: too soon.
  [[nodiscard]] bool begin(Nanos now) {
    const bool is_late_enough = is_hurried_ || ended_at_ == kNever || now - ended_at_ >= least_ / 2;
    ended_at_ = kNever;
    return is_late_enough;
  }
  // The server has answered: pauses may be short again; and they must be.
  void may_restart() { least_ = 0; }
  void must_restart() { most_ = 0; }

  // A pause that has lasted since `begin` is too long.
  bool is_too_long(Nanos begin, Nanos now) const {
    constexpr Nanos kSlack = 10 * kMs;  // until a thread runs
    return ended_at_ != kNever && now - std::max(begin, ended_at_) > most_ + kSlack;
  }

 private:
  Nanos next(Nanos step) const {
    return step == 0 ? steps_.first : std::min(2 * step, steps_.last);
  }

  const Steps steps_;
  // The step of this pause is between these; 0: the server has answered.
  Nanos least_ = 0, most_ = 0;
  Nanos ended_at_ = kNever;
  bool is_hurried_ = false;
};

}  // namespace redlatch::sim
