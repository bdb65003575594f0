// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "base/fork.h"

#include <pthread.h>

#include <atomic>

namespace redlatch {

namespace {

std::atomic<uint32_t> g_fork_count{0};

}  // namespace

uint32_t fork_count() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { g_fork_count++; });
  (void)registered;
  return g_fork_count.load(std::memory_order_relaxed);
}

}  // namespace redlatch
