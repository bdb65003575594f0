// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Wakeup: owns the mutex of a runtime, blocks and wakes threads, and posts completions to queues.
//
// One mutex guards everything in a runtime except where a comment says otherwise. It is never held
// in a system call that can block, nor while other threads are woken.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/fork.h"
#include "base/status.h"
#include "lock/request.h"
#include "net/epoll_set.h"
#include "runtime/client_log.h"
#include "runtime/completion_queue.h"

namespace redlatch::runtime {

struct Waiter;

using Lock = std::unique_lock<std::mutex>;

// The request and the lease of core/lock, with their waiters and watchers, which the mutex of the
// runtime guards.
struct Request : lock::Request {
  using lock::Request::Request;

  Waiter *waiters = nullptr;  // threads that wait for the request
  TagWatch watcher;
};

struct Lease : lock::Lease {
  TagWatch watcher;
};

// A thread that waits. On its stack; that of the background thread is in Alarm. Guarded
// by the mutex of the runtime, except the futex word.
struct Waiter {
  Request *request = nullptr;    // set if it waits for a request
  const Lease *lease = nullptr;  // set if it waits for the end of a lease
  enum Word : uint32_t { kAwake, kAsleep, kWoken };
  std::atomic<uint32_t> word{kAwake};
  const net::Event *event = nullptr;            // wakes it while it polls; else the word does
  bool is_interrupted = false;                  // a signal came
  Waiter *previous = nullptr, *next = nullptr;  // in a WaiterList, or among waiters for leases
  Waiter *next_of_request = nullptr;            // the next waiter for the same request
  class WaiterList *list = nullptr;
};

// First in, first out; a waiter is in at most one list.
class WaiterList {
 public:
  Waiter *front() const { return first_; }
  void push(Waiter &waiter) {
    waiter.previous = last_;
    waiter.next = nullptr;
    (last_ != nullptr ? last_->next : first_) = &waiter;
    last_ = &waiter;
    waiter.list = this;
  }
  void remove(Waiter &waiter) {
    (waiter.previous != nullptr ? waiter.previous->next : first_) = waiter.next;
    (waiter.next != nullptr ? waiter.next->previous : last_) = waiter.previous;
    waiter.list = nullptr;
  }

 private:
  Waiter *first_ = nullptr;
  Waiter *last_ = nullptr;
};

class Wakeup {
 public:
  class Owner {
   public:
    // Wake the calling thread, which is about to sleep, once `limit` has passed.
    virtual void wake_by(Nanos limit) = 0;
    // The last thread that polls or signals descriptors without the mutex has stopped doing so.
    virtual void descriptors_unused() noexcept = 0;

   protected:
    ~Owner() = default;
  };

  explicit Wakeup(Owner &owner) : owner_(owner), fork_count_(fork_count()) { wakes_.reserve(8); }
  Wakeup(const Wakeup &) = delete;
  Wakeup &operator=(const Wakeup &) = delete;

  // True in a process forked from the one that opened the client: nothing else may be called there.
  bool is_forked() const { return fork_count_ != fork_count(); }

  ClientLog &log() { return log_; }
  std::mutex &mutex() { return mutex_; }

  // ---- calls of users, without the mutex
  // kOk if `lease` is held by the local clock, else why it is not.
  Outcome check(const Lease &lease);
  // Why `lease` is lost, and if asked for in words; kNone if it is not.
  lock::LossReason lost_reason(const Lease &lease, std::string *words);
  // Wait until `lease` has ended or `limit` has passed.
  lock::Lease::State wait_ended(const Lease &lease, Nanos limit);

  // Post `tag` to `queue`, once, when `request` is finished or `lease` has ended, which may be now.
  // Replaces an earlier watch; without a queue it only removes that. Throws std::bad_alloc.
  void watch(Request &request, std::shared_ptr<Queue> queue, int64_t tag);
  void watch(Lease &lease, std::shared_ptr<Queue> queue, int64_t tag);

  // ---- with the mutex held
  // Lists a waiter with its request and its lease for as long as it exists; with the mutex held.
  // Throws std::bad_alloc.
  class Enlisted {
   public:
    Enlisted(Wakeup &in, Waiter &waiter) : in_(in), waiter_(waiter) { in_.enlist(waiter_); }
    ~Enlisted() { in_.delist(waiter_); }
    Enlisted(const Enlisted &) = delete;
    Enlisted &operator=(const Enlisted &) = delete;

   private:
    Wakeup &in_;
    Waiter &waiter_;
  };

  // For as long as it exists, the thread polls or signals descriptors of the runtime without the
  // mutex, and they stay open. Made with the mutex held, which it is at the end as well.
  class Using {
   public:
    Using(Wakeup &in, Lock &lock) : in_(in), lock_(lock) { in_.using_count_++; }
    ~Using() {
      if (!lock_.owns_lock()) lock_.lock();
      if (--in_.using_count_ == 0) in_.owner_.descriptors_unused();
    }
    Using(const Using &) = delete;
    Using &operator=(const Using &) = delete;

   private:
    Wakeup &in_;
    Lock &lock_;
  };
  bool are_descriptors_used() const { return using_count_ > 0; }

  void wake(Waiter &waiter);
  void wake_all(Lock &lock);
  void sleep(Lock &lock, Waiter &me, Nanos limit);
  template <class Wait>
  void poll_as(Lock &lock, Waiter &me, const net::Event &event, const Wait &wait);
  // Wake the threads that wait, and post to the queue that watches. @return how many.
  size_t notify_finished(Request &request) noexcept;
  void notify_ended(Lease &lease) noexcept;
  void wake_lease_waiters();

 private:
  void enlist(Waiter &waiter);
  void delist(Waiter &waiter) noexcept;
  void post(TagWatch &watcher) noexcept;
  template <class Subject>
  void watch(Subject &subject, bool is_over, std::shared_ptr<Queue> &queue, int64_t tag);

  Owner &owner_;
  const uint32_t fork_count_;
  ClientLog log_;
  std::mutex mutex_;
  size_t waiter_count_ = 0;
  size_t using_count_ = 0;
  std::vector<Waiter *> wakes_;        // wake_all() wakes them
  std::shared_ptr<Queue> due_queues_;  // wake_all() signals them; a list by next_due
  Waiter *lease_waiters_ = nullptr;
};

// Run `wait`, which polls descriptors, `event` among them, without the mutex. If `me` was woken
// before, do not run it.
template <class Wait>
void Wakeup::poll_as(Lock &lock, Waiter &me, const net::Event &event, const Wait &wait) {
  uint32_t expected = Waiter::kAwake;
  if (me.word.compare_exchange_strong(expected, Waiter::kAsleep)) {
    const Using used(*this, lock);
    me.event = &event;
    lock.unlock();
    wait();
    lock.lock();
    me.event = nullptr;
  }
  me.word.store(Waiter::kAwake);
}

}  // namespace redlatch::runtime
