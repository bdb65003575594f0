// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Makes Signals::wait() return when a lease ends: a thread waits for that in the library.
#pragma once

#include <thread>

#include "redlatch/redlatch.h"

namespace redlatch::cli {

class LossWatch {
 public:
  // `lease` must outlive this.
  explicit LossWatch(rl_lease* lease);
  LossWatch(const LossWatch&) = delete;
  LossWatch& operator=(const LossWatch&) = delete;
  // Releases the lock if it is still held, which also ends the thread's wait.
  ~LossWatch();

 private:
  rl_lease* lease_;
  std::thread thread_;
};

}  // namespace redlatch::cli
