// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "loss_watch.h"

#include "signals.h"

namespace redlatch::cli {

LossWatch::LossWatch(rl_lease* lease)
    : lease_(lease), thread_([lease] {
        while (rl_lease_wait_lost(lease, -1) == RL_LEASE_HELD) continue;
        Signals::wake();
      }) {}

LossWatch::~LossWatch() {
  rl_release(lease_, nullptr);
  thread_.join();
}

}  // namespace redlatch::cli
