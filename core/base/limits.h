// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Limits and defaults that several folders share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace redlatch {

// Those of users, by options.def: RL_MAX_NAME_BYTES of redlatch.h is kMaxNameBytes here.
#define RL_LIMIT(NAME, type, constant, value, text) inline constexpr type constant = value;
#include "config/options.def"

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

}  // namespace redlatch
