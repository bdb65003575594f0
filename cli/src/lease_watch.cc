// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lease_watch.h"

#include <cstdint>
#include <new>

#include "signals.h"

namespace redlatch::cli {
namespace {

constexpr std::int64_t kRecalled = 1;
constexpr std::int64_t kEnded = 2;

}  // namespace

LeaseWatch::LeaseWatch(rl_lease* lease, bool hears_recalls)
    : lease_(lease), queue_(not_null(rl_queue_new(nullptr))) {
  if (rl_lease_watch(lease, queue_.get(), kEnded) != RL_OK) throw std::bad_alloc();
  // A recall is a hint: a lease without this watch, as that of a quorum, is held all the same.
  if (hears_recalls) (void)rl_lease_watch_recall(lease, queue_.get(), kRecalled);
  thread_ = std::thread([this] {
    while (rl_queue_next(queue_.get(), -1) == kRecalled) {
      is_recalled_ = true;
      Signals::wake();
    }
    Signals::wake();
  });
}

LeaseWatch::~LeaseWatch() {
  rl_release(lease_, nullptr);
  thread_.join();
}

}  // namespace redlatch::cli
