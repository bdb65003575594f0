// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// When a queued waiter polls, and when a client may hand a lock off locally.
#pragma once

#include <algorithm>
#include <cassert>

#include "base/clock.h"
#include "base/limits.h"

namespace redlatch::timing {

inline constexpr Nanos kLongestPoll = 15'000 * kMs;
inline constexpr Nanos kFreePoll = 20 * kMs;
// Waiters that poll for the end of the same lease do not poll at the same moment; the head is
// first.
inline constexpr Nanos kSpreadPerRank = kMs / 20;
inline constexpr Nanos kLongestSpread = 50 * kMs;
// 1,000 waiters for a lock with a very short ttl poll at most 7,500 times a second in total.
inline constexpr Nanos kLeastPollPerRank = kMs;
inline constexpr Nanos kWatchPerRank = 20 * kMs;

// The delay of the poll after the end of the holder's lease, in case a push was lost. One live
// waiter repairs the queue for all, even behind 1,500 waiters that died with the holder, so the
// last waiter polls hardly later than the head. `pttl_ms` < 0: the key has no expiry, or is free.
constexpr Nanos poll_delay(int64_t pttl_ms, int64_t rank) {
  const Nanos holder_left = pttl_ms == -2 ? kFreePoll
                            : pttl_ms < 0 ? kLongestPoll
                                          : (std::min(pttl_ms, kMaxTtlMs) + 1) * kMs;
  const int64_t place = std::clamp<int64_t>(rank, 0, kLongestPoll / kLeastPollPerRank);
  const Nanos due = holder_left + std::min(place * kSpreadPerRank, kLongestSpread);
  return std::min(std::max(due, place * kLeastPollPerRank), kLongestPoll);
}

// A writer that dies in the queue, before readers that could share the lock, sends no message. So
// waiters behind readers poll now and then, those further back less often.
constexpr Nanos poll_past_head(int64_t rank) {
  return std::clamp<int64_t>(rank, 1, 500) * 1'000 * kMs;
}

// A waiter that polls finds its grant by that: the nearer it is to the head, the sooner.
constexpr Nanos poll_unheard(int64_t rank) {
  return (std::clamp<int64_t>(rank, 0, 3) + 1) * 80 * kMs;
}

// When a foreign holder is gone, the first live waiter polls and serves the queue for all. The
// delay grows with the place, so that a live head is first.
constexpr Nanos poll_spacing(int64_t rank) { return std::clamp<int64_t>(rank, 0, 25) * kMs; }

// How long a waiter behind the head stops tracking a foreign holder after a report: a thousand
// waiters must not all poll at each release.
constexpr Nanos quiet_of(int64_t rank) {
  return std::clamp<int64_t>(rank, 0, 1'000) * kWatchPerRank;
}

// A client that has found a lock busy for kSearchAfter may release it with a search: the lock stays
// free for a moment, so that a library that polls is seen. The client forgets a lock after
// kSearchEvery without an answer; the server allows one search in that time.
inline constexpr Nanos kSearchAfter = 1'000 * kMs;
inline constexpr Nanos kSearchEvery = 60'000 * kMs;

// When a wait of `wait` is likely to time out, so that the client asks for the holder's name.
constexpr Nanos slow_after(Nanos wait) { return std::min<Nanos>(wait / 2, 1'000 * kMs); }

// The local hand-offs of one lease, which keep the server's queue waiting.
struct LocalHandoffs {
  int count = 0;
  Nanos began_at = 0;
};

// True if a lease may be handed off locally. `lease`: its ttl; `next_ttl` and `limit`: those of
// the caller that would get it. The remaining time must be at least half a provisional lease.
constexpr bool may_hand_off(const LocalHandoffs &local, int64_t limit, Nanos now, Nanos deadline,
                            Nanos lease, Nanos next_ttl) {
  assert(local.count >= 0 && lease > 0 && next_ttl > 0);
  const Nanos enough = std::min(next_ttl, kProvisionalMs * kMs) / 2;
  return local.count < limit && now - local.began_at < lease && deadline - now >= enough;
}

}  // namespace redlatch::timing
