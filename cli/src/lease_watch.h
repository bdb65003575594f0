// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Makes Signals::wait() return when a lease ends, and when its holder is asked to finish: a thread
// waits for that in the library.
#pragma once

#include <atomic>
#include <thread>

#include "handles.h"
#include "redlatch/redlatch.h"

namespace redlatch::cli {

class LeaseWatch {
 public:
  // `lease` must outlive this. Throws a Failure, or std::bad_alloc.
  LeaseWatch(rl_lease* lease, bool hears_recalls);
  LeaseWatch(const LeaseWatch&) = delete;
  LeaseWatch& operator=(const LeaseWatch&) = delete;
  // Releases the lock if it is still held, which also ends the thread's wait.
  ~LeaseWatch();

  // True once, when the holder has been asked to finish, however often.
  [[nodiscard]] bool take_recall() { return is_recalled_.exchange(false); }

 private:
  rl_lease* lease_;
  QueueHandle queue_;
  std::atomic<bool> is_recalled_ = false;
  std::thread thread_;
};

}  // namespace redlatch::cli
