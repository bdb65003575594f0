// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "loss_watch.h"

#include "signals.h"

namespace redlatch::cli {

LossWatch::LossWatch(rl_lease* lease)
    : lease_(lease), thread_([lease] {
        rl_status status = RL_PENDING;
        while (status == RL_PENDING) status = rl_lease_wait_lost(lease, -1);
        Signals::wake();
      }) {}

LossWatch::~LossWatch() {
  rl_release(lease_, nullptr);
  thread_.join();
}

}  // namespace redlatch::cli
