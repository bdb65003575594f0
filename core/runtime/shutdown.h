// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Shutdown: how far the shutdown of a runtime is.
//
//   kOpen --begin--> kDraining --stop--> kStopping --end--> kOver
//
// Without a background thread nothing has to drain or stop: end() follows begin().
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/epoll_set.h"
#include "runtime/service.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

class Shutdown {
 public:
  explicit Shutdown(Wakeup &wakeup) : wakeup_(wakeup) {}

  void begin() { stage_ = Stage::kDraining; }
  // Waits for a majority of the nodes, and a short time longer for the others.
  void wait_drained(Lock &lock, const Service &service, size_t node_count);
  // Ends the background thread and the attempts to connect.
  void stop() {
    stage_ = Stage::kStopping;
    stop_event_.signal();
  }
  // The last thread inside closes the descriptors.
  void end() { stage_ = Stage::kOver; }

  bool has_begun() const { return stage_ != Stage::kOpen; }
  bool is_stopping() const { return stage_ >= Stage::kStopping; }
  bool is_over() const { return stage_ == Stage::kOver; }
  // Some node may have drained.
  void note_progress() {
    if (stage_ == Stage::kDraining) wakeup_.wake(waiter_);
  }
  // Signalled from stop() on: ends attempts to connect.
  const net::Event &stop_event() const { return stop_event_; }
  void close() { stop_event_.close(); }

 private:
  enum class Stage : uint8_t { kOpen, kDraining, kStopping, kOver };

  Wakeup &wakeup_;
  Stage stage_ = Stage::kOpen;
  Waiter waiter_;  // of the thread that shuts down
  net::Event stop_event_;
};

}  // namespace redlatch::runtime
