// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "base/clock.h"

#include <algorithm>

namespace redlatch {

namespace {

constexpr Nanos kSecond = 1000 * kMs;

}  // namespace

Nanos boot_now() {
  timespec t{};
  clock_gettime(CLOCK_BOOTTIME, &t);
  return static_cast<Nanos>(t.tv_sec) * kSecond + t.tv_nsec;
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
