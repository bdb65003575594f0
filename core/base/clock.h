// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Time as the core knows it: nanoseconds of a monotonic clock that counts suspend. Wall-clock time
// is never used for a decision. The clocks are those of host/clock.h.
#pragma once

#include <cstdint>

namespace redlatch {

using Nanos = int64_t;

inline constexpr Nanos kMs = 1'000'000;
inline constexpr Nanos kNever = INT64_MAX;

// now + delay without overflow; kNever if the delay is negative or kNever.
constexpr Nanos after(Nanos now, Nanos delay) {
  return delay < 0 || delay > kNever - now ? kNever : now + delay;
}

}  // namespace redlatch
