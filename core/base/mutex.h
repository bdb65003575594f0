// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Mutex and MutexLock: std::mutex and std::unique_lock with the annotations that libstdc++ has not
// got.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/thread_annotations.h"

namespace redlatch {

class CAPABILITY("mutex") Mutex {
 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds the mutex for as long as it exists.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex &mutex) ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() RELEASE() {}
  MutexLock(const MutexLock &) = delete;
  MutexLock &operator=(const MutexLock &) = delete;

  // The mutex is free meanwhile.
  void wait_for(std::condition_variable &changed, std::chrono::nanoseconds limit) {
    changed.wait_for(lock_, limit);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace redlatch
