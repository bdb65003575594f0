// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lease_watch.h"

#include <cstdint>
#include <new>
#include <string>

#include "exit_code.h"
#include "signals.h"

namespace redlatch::cli {
namespace {

constexpr std::int64_t kRecalled = 1;
constexpr std::int64_t kEnded = 2;

void check(rl_status status) {
  if (status == RL_E_NO_MEMORY) throw std::bad_alloc();
  if (status == RL_OK) return;
  throw Failure{exit_code_of(status),
                std::string("cannot watch the lease: ") + rl_status_text(status)};
}

}  // namespace

LeaseWatch::LeaseWatch(rl_lease* lease, bool hears_recalls)
    : lease_(lease), queue_(not_null(rl_queue_new(nullptr))) {
  check(rl_lease_watch(lease, queue_.get(), kEnded));
  if (hears_recalls) {
    const rl_status status = rl_lease_watch_recall(lease, queue_.get(), kRecalled);
    // The lease of a quorum has no recalls, and is held without them.
    if (status != RL_E_UNSUPPORTED) check(status);
  }
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
