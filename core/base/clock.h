// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Time as the core knows it: nanoseconds of a monotonic clock that counts suspend. Wall-clock time
// is never used for a decision.
#pragma once

#include <cstdint>
#include <ctime>

namespace redlatch {

using Nanos = int64_t;

inline constexpr Nanos kMs = 1'000'000;
inline constexpr Nanos kNever = INT64_MAX;

// CLOCK_BOOTTIME, for leases and deadlines. It continues while the machine is suspended, so that a
// lease that expired meanwhile is lost before anything else happens. While the kernel refuses it, a
// time after every deadline: a lease that no clock measures is lost. A runtime is not opened then.
// A program that embeds core/lock without core/runtime passes the time of its own clock to each
// call, and needs no kernel that has this one.
Nanos boot_now();

// CLOCK_REALTIME, since 1970. Only to be shown: it may be stepped.
Nanos wall_now();

// The time until `limit`, at least 0, as system calls take it; nullptr if there is no limit.
const timespec *remaining_time(Nanos limit, timespec &left);

// now + delay without overflow; kNever if the delay is negative or kNever.
constexpr Nanos after(Nanos now, Nanos delay) {
  return delay < 0 || delay > kNever - now ? kNever : now + delay;
}

}  // namespace redlatch
