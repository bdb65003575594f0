// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Shutdown: how far the shutdown of a runtime is.
//
//   kOpen --begin--> kDraining --stop--> kStopping --end--> kOver
//
// Without a background thread nothing has to drain or stop: end() follows begin().
#pragma once

#include <cassert>
#include <cstdint>

#include "base/mutex.h"
#include "base/thread_annotations.h"
#include "net/epoll_set.h"
#include "runtime/links.h"
#include "runtime/runtime_mutex.h"
#include "runtime/service.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

class Shutdown {
 public:
  explicit Shutdown(Wakeup &wakeup) : wakeup_(wakeup) {}

  // One shutdown at a time; locked before the mutex of the runtime.
  Mutex &one_at_a_time() { return mutex_; }
  void begin() REQUIRES(runtime_mutex) {
    assert(stage_ == Stage::kOpen);
    stage_ = Stage::kDraining;
  }
  // Waits for the nodes, as Drain says.
  void wait_drained(Lock &lock, const Service &service, const Links &links) REQUIRES(runtime_mutex);
  // Ends the background thread and the attempts to connect.
  void stop() REQUIRES(runtime_mutex) {
    assert(stage_ == Stage::kDraining);
    stage_ = Stage::kStopping;
    stop_event_.signal();
  }
  // The last thread inside closes the descriptors.
  void end() REQUIRES(runtime_mutex) {
    assert(stage_ == Stage::kDraining || stage_ == Stage::kStopping);
    stage_ = Stage::kOver;
  }

  bool has_begun() const REQUIRES(runtime_mutex) { return stage_ != Stage::kOpen; }
  bool is_stopping() const REQUIRES(runtime_mutex) { return stage_ >= Stage::kStopping; }
  bool is_over() const REQUIRES(runtime_mutex) { return stage_ == Stage::kOver; }
  // Some node may have drained.
  void note_progress() REQUIRES(runtime_mutex) {
    if (stage_ == Stage::kDraining) wakeup_.wake(waiter_);
  }
  // Signalled from stop() on: ends attempts to connect.
  const net::Event &stop_event() const { return stop_event_; }
  void close() { stop_event_.close(); }

 private:
  enum class Stage : uint8_t { kOpen, kDraining, kStopping, kOver };

  Mutex mutex_;
  Wakeup &wakeup_;
  Stage stage_ GUARDED_BY(runtime_mutex) = Stage::kOpen;
  Waiter waiter_ GUARDED_BY(runtime_mutex);  // of the thread that shuts down
  net::Event stop_event_ UNGUARDED("any thread may signal it");
};

}  // namespace redlatch::runtime
