// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Backoff: delays that double up to a limit, with jitter so that many clients do not return in
// step.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "base/clock.h"

namespace redlatch::timing {

class Backoff {
 public:
  constexpr Backoff(Nanos first, Nanos last) : first_(first), last_(last) {
    assert(first > 0 && first <= last);
  }

  // Half of the step is fixed, half is random.
  Nanos next(uint64_t entropy) {
    step_ = step_ == 0 ? first_ : std::min(step_ * 2, last_);
    return step_ / 2 + static_cast<Nanos>(entropy % static_cast<uint64_t>(step_ / 2 + 1));
  }
  void reset() { step_ = 0; }

 private:
  Nanos first_;
  Nanos last_;
  Nanos step_ = 0;
};

inline constexpr Backoff kReconnect{10 * kMs, 500 * kMs};
// Holders of other libraries do not notify our waiters when they release.
inline constexpr Backoff kForeignPoll{10 * kMs, 250 * kMs};
// Rounds of a quorum are repeated, because the queue at one node does not see the other nodes.
inline constexpr Backoff kQuorumRetry{10 * kMs, 250 * kMs};
inline constexpr Backoff kServerRetry{20 * kMs, 500 * kMs};

}  // namespace redlatch::timing
