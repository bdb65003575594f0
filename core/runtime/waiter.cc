// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/waiter.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace redlatch::runtime {

bool futex_sleep(std::atomic<uint32_t> &word, Nanos limit) {
  timespec left{};
  timespec *timeout = nullptr;
  if (limit != kNever) {
    const Nanos ns = std::max<Nanos>(limit - boot_now(), 0);
    left = {ns / 1'000'000'000, ns % 1'000'000'000};
    timeout = &left;
  }
  const long result =
      syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, Waiter::kAsleep, timeout, nullptr, 0);
  return result == 0 || errno != EINTR;
}

void futex_wake(const void *address) {
  syscall(SYS_futex, address, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace redlatch::runtime
