// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Locker: what leases and requests of users belong to, a client of one server or a Redlock; and
// what the two shells share: threads that sleep, how they are woken, and who else is told.
//
// One mutex guards everything in a locker but what is said otherwise; it is never held in a system
// call that can block, nor while others are woken.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/fork.h"
#include "base/status.h"
#include "client/queue.h"
#include "client/subjects.h"
#include "client/waiter.h"
#include "io/watch.h"

namespace redlatch::client {

class Locker {
 public:
  virtual ~Locker() = default;
  Locker(const Locker &) = delete;
  Locker &operator=(const Locker &) = delete;

  // True in a process forked from the one that opened it: nothing else may be called there.
  bool is_forked() const { return fork_count_ != fork_count(); }

  // Start `request` and wait until it is finished. For a caller that wants nothing in between.
  virtual void run(const std::shared_ptr<Request> &request) = 0;
  // Start `request` and return.
  virtual void start(const std::shared_ptr<Request> &request) = 0;
  // Wait until `request` is finished or `limit` has passed. kInterrupted: after a signal.
  virtual Status wait(Request &request, Nanos limit) = 0;
  virtual Status cancel(Request &request) = 0;

  virtual void abandon(Lease &lease) = 0;
  // Release everything, flush, stop the threads. Twice does nothing.
  virtual void shut_down() = 0;

  // kOk if `lease` is held by the local clock, else why not.
  Outcome check(const Lease &lease);
  // Wait until `lease` is not held any more or `limit` has passed.
  void wait_ended(const Lease &lease, Nanos limit);

  // Post `tag` to `queue`, once, when `request` is finished, or `lease` is not held any more; at
  // once if so. In the place of what was asked before; no queue: of nothing. Throws std::bad_alloc.
  void watch(Request &request, std::shared_ptr<Queue> queue, int64_t tag);
  void watch(Lease &lease, std::shared_ptr<Queue> queue, int64_t tag);

 protected:
  using Lock = std::unique_lock<std::mutex>;

  Locker() : fork_count_(fork_count()) { wakes_.reserve(8); }

  // Where `waiter` polls.
  virtual const io::Event &event_of(const Waiter &waiter) const = 0;

  void make_room();
  void enlist(Waiter &waiter);
  void delist(Waiter &waiter);
  void wake(Waiter &waiter);
  void wake_all(Lock &lock);
  void sleep(Lock &lock, Waiter &me, Nanos limit);
  template <class Wait>
  void poll_as(Lock &lock, Waiter &me, const Wait &wait);
  // Wake and tell whoever waits for it. @return how many.
  size_t tell_finished(Request &request) noexcept;
  void tell_ended(Lease &lease) noexcept;

  const uint32_t fork_count_;
  std::mutex mutex_;
  std::mutex shutdown_mutex_;  // one shut_down() at a time; taken before mutex_

 private:
  void tell(Watcher &watcher) noexcept;
  template <class Subject>
  void watch(Subject &subject, bool is_over, std::shared_ptr<Queue> &queue, int64_t tag);

  size_t waiter_count_ = 0;
  std::vector<Waiter *> wakes_;        // to be woken after unlocking
  std::shared_ptr<Queue> due_queues_;  // to be signalled after unlocking, by next_due
  Waiter *lease_waiters_ = nullptr;
};

// Run `wait`, which sleeps on descriptors, without the mutex; not at all if `me` was woken before.
template <class Wait>
void Locker::poll_as(Lock &lock, Waiter &me, const Wait &wait) {
  uint32_t expected = Waiter::kAwake;
  if (me.word.compare_exchange_strong(expected, Waiter::kAsleep)) {
    me.is_polling = true;
    lock.unlock();
    wait();
    lock.lock();
    me.is_polling = false;
  }
  me.word.store(Waiter::kAwake);
}

}  // namespace redlatch::client
