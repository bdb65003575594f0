// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// When a queued waiter looks again by itself, and when a lock passes on inside one client.
#pragma once

#include <algorithm>

#include "base/clock.h"
#include "base/limits.h"

namespace redlatch::policy {

inline constexpr Nanos kLongestPoll = 15'000 * kMs;
inline constexpr Nanos kPollPerRank = 20 * kMs;

// The safety net under the pushes: when the holder's lease can have ended, later for those further
// back, so that one live waiter repairs the queue for all. `pttl_ms` < 0: the key has no expiry, or
// is free without an heir.
constexpr Nanos poll_delay(int64_t pttl_ms, int64_t rank) {
  const Nanos holder_left = pttl_ms == -2 ? kPollPerRank
                            : pttl_ms < 0 ? kLongestPoll
                                          : (std::min(pttl_ms, kMaxLeaseMs) + 1) * kMs;
  const int64_t place = std::clamp<int64_t>(rank, 0, 500);
  return std::min(holder_left + place * kPollPerRank, kLongestPoll);
}

// Readers are let in by whoever looks, and a writer in front of them that has died says nothing:
// those in line behind readers look for it now and then, the further back the less often.
constexpr Nanos look_past(int64_t rank) { return std::clamp<int64_t>(rank, 1, 500) * 1'000 * kMs; }

// Each lease of a hold that passes on inside one client keeps the server's queue waiting.
struct Burst {
  int pass_count = 0;
  Nanos began_at = 0;
};

// `lease`: that of the hold; `next_lease` and `limit`: of the caller that would get it. A pushed
// grant starts with a claim; what is left must be worth at least half of one.
constexpr bool may_pass_on(const Burst &burst, int limit, Nanos now, Nanos deadline, Nanos lease,
                           Nanos next_lease) {
  const Nanos enough = std::min(next_lease, kClaimMs * kMs) / 2;
  return burst.pass_count < limit && now - burst.began_at < lease && deadline - now >= enough;
}

}  // namespace redlatch::policy
