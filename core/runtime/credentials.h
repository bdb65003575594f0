// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Credentials: what driver::Credentials is for many threads. A queue gets an event when
// credentials are wanted, and threads sleep until some are given.
//
// Any thread. The mutex is a leaf, as that of ClientLog: a queue is posted to under it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "driver/credentials.h"
#include "driver/login.h"
#include "runtime/completion_queue.h"

namespace redlatch::runtime {

using driver::Login;

class Credentials {
 public:
  // As driver::Credentials.
  void set(std::string_view user, std::string_view password, Nanos valid_for, Nanos now);
  bool fail(std::string_view why, Nanos now);
  // Post `event` to `queue` when credentials are wanted, which may be now: once, until set() or
  // fail(). There is one watch; nullptr ends it. Throws std::bad_alloc.
  void watch(const std::shared_ptr<Queue> &queue, const QueueEvent &event, Nanos now);

  // Wait until `limit` for valid credentials with a number above `than`. Without set() and watch()
  // `login` gets the number 0 at once.
  Outcome await(Nanos limit, uint64_t than, Login &login);
  // True if there are some with a number above `than`; `login` has them then.
  bool newer(uint64_t than, Login &login) const;
  uint64_t number() const;
  // The server has refused those with `number`. @return true if others are worth waiting for; if
  // they are new, the application is asked after a pause.
  bool refused(uint64_t number, Nanos now);

  // When on_timer() is due.
  Nanos next_due();
  void on_timer(Nanos now);
  // All waits end.
  void stop();

 private:
  void look() noexcept REQUIRES(mutex_);
  bool ask(Nanos now) noexcept REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::condition_variable changed_;
  driver::Credentials machine_ GUARDED_BY(mutex_);
  std::weak_ptr<Queue> queue_ GUARDED_BY(mutex_);
  QueueEvent event_ GUARDED_BY(mutex_);
};

}  // namespace redlatch::runtime
