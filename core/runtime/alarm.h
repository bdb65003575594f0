// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Alarm: until when the background thread sleeps, and what wakes it before. Sleeps of callers do
// not count suspended time, but the timer of the background thread does: at the earliest limit of
// the callers that sleep it wakes them, so that they look at the clock.
#pragma once

#include <algorithm>

#include "base/clock.h"
#include "base/thread_annotations.h"
#include "runtime/runtime_mutex.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

class Alarm {
 public:
  explicit Alarm(Wakeup &wakeup) : wakeup_(wakeup) {}

  // The background thread, as a waiter.
  Waiter &waiter() REQUIRES(runtime_mutex) { return waiter_; }
  bool is_waiter(const Waiter &waiter) const { return &waiter == &waiter_; }

  void wake() REQUIRES(runtime_mutex) { wakeup_.wake(waiter_); }
  // A timer of the service may have become due earlier than it was.
  void wake_by(Nanos due) REQUIRES(runtime_mutex) {
    if (due < due_) wake();
  }
  // The calling thread is about to sleep until `limit`.
  void note_limit(Nanos limit) REQUIRES(runtime_mutex) {
    if (limit >= earliest_limit_) return;
    earliest_limit_ = limit;
    wake_by(limit);
  }
  // @return true once one of the limits has passed. Callers that sleep again note theirs again.
  bool take_passed(Nanos now) REQUIRES(runtime_mutex) {
    if (now < earliest_limit_) return false;
    earliest_limit_ = kNever;
    return true;
  }
  // Commands were sent, whose replies would be late one command timeout later.
  void note_sent() REQUIRES(runtime_mutex) { was_active_ = true; }

  Nanos due() const REQUIRES(runtime_mutex) { return due_; }
  // When a limit has passed, or a reply is late.
  Nanos next_due(Nanos now, Nanos timeout) const REQUIRES(runtime_mutex) {
    return was_active_ ? std::min(earliest_limit_, now + timeout) : earliest_limit_;
  }
  // Every command moves the time at which its reply would be late, and every request sets a timer
  // that usually ends early. One wake-up per command timeout, or at the time of a timer that was
  // removed, costs less than a wake-up for each change.
  void set(Nanos due, Nanos now) REQUIRES(runtime_mutex) {
    was_active_ = false;
    if (due < due_ || due_ <= now) due_ = due;
  }

 private:
  Wakeup &wakeup_;
  Waiter waiter_ GUARDED_BY(runtime_mutex);
  Nanos due_ GUARDED_BY(runtime_mutex) = kNever;
  Nanos earliest_limit_ GUARDED_BY(runtime_mutex) = kNever;  // of a thread that sleeps
  bool was_active_ GUARDED_BY(runtime_mutex) =
      false;  // commands were sent since the background thread last looked
};

}  // namespace redlatch::runtime
