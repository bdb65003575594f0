// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Limits and defaults that several folders share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace redlatch {

inline constexpr size_t kMaxNameBytes = 1024;
inline constexpr size_t kMaxLabelBytes = 256;
inline constexpr size_t kMaxOwnerBytes = 256;
inline constexpr size_t kMaxNamespaceBytes = 128;
inline constexpr int64_t kMinTtlMs = 10;
inline constexpr int64_t kMaxTtlMs = 7LL * 24 * 3600 * 1000;
inline constexpr int64_t kDefaultTtlMs = 30'000;
inline constexpr int64_t kProvisionalMs = 3'000;
inline constexpr int kDefaultLocalHandoffs = 16;
// A fence step of 32 leaves 31 numbers for hand-offs inside the holder's client.
inline constexpr int kMaxLocalHandoffs = 31;
inline constexpr int kMaxYieldEvery = 1'000'000;
// redis-py polls every 100 ms plus a round trip: it would sometimes miss a window of 100 ms.
inline constexpr int64_t kDefaultYieldMs = 150;
inline constexpr int64_t kMaxYieldMs = 60'000;
// Redisson's lockWatchdogTimeout: its readers shorten the expiry of the shared lock key to this.
inline constexpr int64_t kMaxHashRwTtlMs = 30'000;
inline constexpr size_t kMaxNodes = 15;
inline constexpr int64_t kDefaultRestartGuardMs = 60'000;
// Longer waits have no limit: neither nanoseconds nor the 13 digits of the wire can hold them.
inline constexpr int64_t kMaxWaitMs = 9'000'000'000'000;

// The largest time (the year 2096) and fence (exact in a double) that a server may send. Sums of
// them, also in nanoseconds, must fit 64 bits.
inline constexpr int64_t kMaxServerMs = 4'000'000'000'000;
inline constexpr int64_t kMaxFence = (int64_t{1} << 53) - 1;

// With this many commands in flight a client sends no further acquire. One that is cancelled before
// it is sent costs nothing, even if callers come and go faster than the server replies.
inline constexpr size_t kMaxInFlight = 4096;

// Limits of a reply, so that a hostile or broken server cannot exhaust memory.
inline constexpr size_t kMaxReplyBytes = 1 << 20;
inline constexpr int kMaxReplyDepth = 8;
inline constexpr size_t kMaxReplyElements = 4096;

inline constexpr int64_t kDefaultTimeoutMs = 2'000;
inline constexpr int64_t kMaxTimeoutMs = 3'600'000;
inline constexpr int kMaxDatabase = 16'383;

}  // namespace redlatch
