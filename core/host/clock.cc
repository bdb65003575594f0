// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "host/clock.h"

#include <algorithm>
#include <cerrno>

namespace redlatch {

namespace {

constexpr Nanos kSecond = 1000 * kMs;
// The kernel refuses the clock: later than every deadline, so that no lease is believed, with room
// for a delay to be added.
constexpr Nanos kUnknownTime = kNever / 2;

}  // namespace

Nanos boot_now() {
  timespec t{};
  if (clock_gettime(CLOCK_BOOTTIME, &t) != 0) return kUnknownTime;
  return static_cast<Nanos>(t.tv_sec) * kSecond + t.tv_nsec;
}

int boot_clock_error() {
  timespec t{};
  return clock_gettime(CLOCK_BOOTTIME, &t) == 0 ? 0 : errno;
}

Nanos wall_now() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<Nanos>(t.tv_sec) * kSecond + t.tv_nsec;
}

const timespec *remaining_time(Nanos limit, timespec &left) {
  if (limit == kNever) return nullptr;
  const Nanos ns = std::max<Nanos>(limit - boot_now(), 0);
  left = {ns / kSecond, ns % kSecond};
  return &left;
}

}  // namespace redlatch
