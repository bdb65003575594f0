// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "host/fork.h"

#include <pthread.h>

#include <atomic>
#include <new>

namespace redlatch {

namespace {

std::atomic<uint32_t> g_fork_count{0};

// Throws, so that the next call tries again: without the handler a child would act as its parent.
bool watch_forks() {
  if (pthread_atfork(nullptr, nullptr, [] { g_fork_count++; }) != 0) throw std::bad_alloc();
  return true;
}

}  // namespace

uint32_t fork_count() {
  static const bool is_watching = watch_forks();
  (void)is_watching;
  return g_fork_count.load(std::memory_order_relaxed);
}

}  // namespace redlatch
