// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "base/clock.h"

#include <ctime>

namespace redlatch {

Nanos boot_now() {
  timespec t{};
  clock_gettime(CLOCK_BOOTTIME, &t);
  return static_cast<Nanos>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

}  // namespace redlatch
