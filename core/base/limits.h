// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Every limit of the library that a user can meet, in one place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace redlatch {

inline constexpr size_t kMaxNameBytes = 1024;
inline constexpr size_t kMaxLabelBytes = 256;
inline constexpr size_t kMaxOwnerBytes = 256;
inline constexpr size_t kMaxNamespaceBytes = 128;
inline constexpr int64_t kMinLeaseMs = 10;
inline constexpr int64_t kMaxLeaseMs = 7LL * 24 * 3600 * 1000;
inline constexpr int64_t kDefaultLeaseMs = 30'000;
inline constexpr int64_t kClaimMs = 3'000;
inline constexpr int kDefaultLocalBurst = 16;
// A fence step of 32 leaves 31 numbers for hand-offs inside the holder's client.
inline constexpr int kMaxLocalBurst = 31;
inline constexpr int kMaxForeignBurst = 1'000'000;
// redis-py looks each 100 ms and a round trip: a window of 100 ms would be missed now and then.
inline constexpr int64_t kDefaultForeignWindowMs = 150;
inline constexpr int64_t kMaxForeignWindowMs = 60'000;
// Readers of Redisson's cut the expiry of the lock key they share to this, its lockWatchdogTimeout.
inline constexpr int64_t kMaxHashRwLeaseMs = 30'000;
inline constexpr size_t kMaxNodes = 15;
inline constexpr int64_t kDefaultRestartGuardMs = 60'000;
// Longer waits are without limit: nanoseconds, and the wire's 13 digits, have no room for them.
inline constexpr int64_t kMaxWaitMs = 9'000'000'000'000;

// What a server can say beyond these is no time (the year 2096) and no fence (what a double holds):
// their sums, also in nanoseconds, must fit 64 bits.
inline constexpr int64_t kMaxServerMs = 4'000'000'000'000;
inline constexpr int64_t kMaxFence = (int64_t{1} << 53) - 1;

// Commands without an answer, beyond which no further lock is asked for: what was cancelled by then
// is never asked for, so that callers who come and go faster than the server answers cost little.
inline constexpr size_t kMaxInFlight = 4096;

// A hostile or broken server can make us hold no more than this.
inline constexpr size_t kMaxReplyBytes = 1 << 20;
inline constexpr int kMaxReplyDepth = 8;
inline constexpr size_t kMaxReplyElements = 4096;

inline constexpr int64_t kDefaultTimeoutMs = 2'000;
inline constexpr int64_t kMaxTimeoutMs = 3'600'000;
inline constexpr int kMaxDatabase = 16'383;

}  // namespace redlatch
