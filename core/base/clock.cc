// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "base/clock.h"

#include <ctime>

namespace redlatch {

Nanos boot_now() {
#ifdef CLOCK_BOOTTIME
  constexpr clockid_t kClock = CLOCK_BOOTTIME;
#else
  constexpr clockid_t kClock = CLOCK_MONOTONIC;
#endif
  timespec t{};
  clock_gettime(kClock, &t);
  return static_cast<Nanos>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

}  // namespace redlatch
