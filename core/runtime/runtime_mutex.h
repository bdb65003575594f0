// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// RuntimeMutex: the mutex that guards everything in a runtime except where an annotation says
// otherwise. It is never held in a system call that can block, nor while other threads are woken.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/thread_annotations.h"

namespace redlatch::runtime {

class CAPABILITY("mutex") RuntimeMutex {
 private:
  friend class Lock;
  std::mutex mutex_;
};

// The mutex of the runtime at hand, in annotations only: all parts share one, and clang compares
// names, not objects. It is never defined.
extern RuntimeMutex runtime_mutex;

// Holds the mutex. Functions that free it meanwhile get a reference.
class SCOPED_CAPABILITY Lock {
 public:
  explicit Lock(RuntimeMutex &mutex) ACQUIRE(runtime_mutex) : lock_(mutex.mutex_) {}
  ~Lock() RELEASE() {}
  Lock(const Lock &) = delete;
  Lock &operator=(const Lock &) = delete;

  // The analysis does not know that lock_ has this mutex.
  void lock() ACQUIRE(runtime_mutex) NOT_ANALYSED { lock_.lock(); }
  void unlock() RELEASE(runtime_mutex) NOT_ANALYSED { lock_.unlock(); }
  // After an exception, which may have come while it was free.
  void regain() ASSERTS_HELD(runtime_mutex) {
    if (!lock_.owns_lock()) lock_.lock();
  }
  // The mutex is free meanwhile.
  void wait(std::condition_variable &changed) REQUIRES(runtime_mutex) { changed.wait(lock_); }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace redlatch::runtime
