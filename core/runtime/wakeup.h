// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Wakeup: owns the mutex of a runtime, blocks and wakes threads, and posts completions to queues.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "host/fork.h"
#include "lock/request.h"
#include "net/epoll_set.h"
#include "runtime/client_log.h"
#include "runtime/completion_queue.h"
#include "runtime/runtime_mutex.h"

namespace redlatch::runtime {

struct Waiter;

// The request and the lease of core/lock, with their waiters and watchers.
struct Request : lock::Request {
  using lock::Request::Request;
  // Not std::make_shared at each place: that is long code, and the library's size is limited.
  static std::shared_ptr<Request> make(What what);

  Waiter *waiters GUARDED_BY(runtime_mutex) = nullptr;  // threads that wait for the request
  EndWatch watcher GUARDED_BY(runtime_mutex);
};

struct Lease : lock::Lease {
  EndWatch watcher GUARDED_BY(runtime_mutex);
  EndWatch recall_watcher GUARDED_BY(runtime_mutex);
};

// A thread that waits. On its stack; that of the background thread is in Alarm.
struct Waiter {
  Request *request GUARDED_BY(runtime_mutex) = nullptr;    // set if it waits for a request
  const Lease *lease GUARDED_BY(runtime_mutex) = nullptr;  // set if it waits for the end of a lease
  enum Word : uint32_t { kAwake, kAsleep, kWoken };
  std::atomic<uint32_t> word{kAwake};
  // Wakes it while it polls; else the word does.
  const net::Event *event GUARDED_BY(runtime_mutex) = nullptr;
  bool is_interrupted GUARDED_BY(runtime_mutex) = false;  // a signal came
  // In a WaiterList, or among the waiters for leases.
  Waiter *previous GUARDED_BY(runtime_mutex) = nullptr;
  Waiter *next GUARDED_BY(runtime_mutex) = nullptr;
  // The next waiter for the same request.
  Waiter *next_of_request GUARDED_BY(runtime_mutex) = nullptr;
  class WaiterList *list GUARDED_BY(runtime_mutex) = nullptr;
};

// First in, first out; a waiter is in at most one list.
class WaiterList {
 public:
  Waiter *front() const REQUIRES(runtime_mutex) { return first_; }
  void push(Waiter &waiter) REQUIRES(runtime_mutex) {
    assert(waiter.list == nullptr && waiter.lease == nullptr);
    waiter.previous = last_;
    waiter.next = nullptr;
    (last_ != nullptr ? last_->next : first_) = &waiter;
    last_ = &waiter;
    waiter.list = this;
  }
  void remove(Waiter &waiter) REQUIRES(runtime_mutex) {
    assert(waiter.list == this);
    (waiter.previous != nullptr ? waiter.previous->next : first_) = waiter.next;
    (waiter.next != nullptr ? waiter.next->previous : last_) = waiter.previous;
    waiter.list = nullptr;
  }

 private:
  Waiter *first_ GUARDED_BY(runtime_mutex) = nullptr;
  Waiter *last_ GUARDED_BY(runtime_mutex) = nullptr;
};

class Wakeup {
 public:
  class Owner {
   public:
    // Wake the calling thread, which is about to sleep, once `limit` has passed.
    virtual void wake_by(Nanos limit) REQUIRES(runtime_mutex) = 0;
    // The last thread that polls or signals descriptors without the mutex has stopped doing so.
    virtual void descriptors_unused() noexcept REQUIRES(runtime_mutex) = 0;

   protected:
    ~Owner() = default;
  };

  explicit Wakeup(Owner &owner) : owner_(owner), fork_count_(fork_count()) { wakes_.reserve(8); }
  Wakeup(const Wakeup &) = delete;
  Wakeup &operator=(const Wakeup &) = delete;

  // True in a process forked from the one that opened the client: nothing else may be called there.
  bool is_forked() const { return fork_count_ != fork_count(); }

  ClientLog &log() { return log_; }
  RuntimeMutex &mutex() { return mutex_; }

  // ---- calls of users, without the mutex
  // kOk if `lease` is held by the local clock, else why it is not.
  Outcome check(const Lease &lease);
  // Why `lease` is lost, and if asked for in words; kNone if it is not.
  lock::LossReason lost_reason(const Lease &lease, std::string *words);
  // Wait until `lease` has ended or `limit` has passed.
  lock::Lease::State wait_ended(const Lease &lease, Nanos limit);

  // Post `event` to `queue`, once, when `request` is finished or `lease` has ended, which may be
  // now; its status is set then. Replaces an earlier watch; without a queue it only removes that.
  // Throws std::bad_alloc.
  void watch(Request &request, std::shared_ptr<Queue> queue, QueueEvent &&event);
  void watch(Lease &lease, std::shared_ptr<Queue> queue, QueueEvent &&event);
  // Post `event` once, when another client asks the holder of `lease` to finish, which may have
  // happened already. Dropped at the end of the lease.
  void watch_recall(Lease &lease, std::shared_ptr<Queue> queue, QueueEvent &&event, Lock &lock)
      REQUIRES(runtime_mutex);

  // ---- with the mutex held
  // Lists a waiter with its request and its lease for as long as it exists.
  // Throws std::bad_alloc.
  class Enlisted {
   public:
    Enlisted(Wakeup &in, Waiter &waiter) REQUIRES(runtime_mutex) : in_(in), waiter_(waiter) {
      in_.enlist(waiter_);
    }
    ~Enlisted() REQUIRES(runtime_mutex) { in_.delist(waiter_); }
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
    Using(Wakeup &in, Lock &lock) REQUIRES(runtime_mutex) : in_(in), lock_(lock) {
      in_.using_count_++;
    }
    ~Using() {
      lock_.regain();
      assert(in_.using_count_ > 0);
      if (--in_.using_count_ == 0) in_.owner_.descriptors_unused();
    }
    Using(const Using &) = delete;
    Using &operator=(const Using &) = delete;

   private:
    Wakeup &in_;
    Lock &lock_;
  };
  bool are_descriptors_used() const REQUIRES(runtime_mutex) { return using_count_ > 0; }

  void wake(Waiter &waiter) REQUIRES(runtime_mutex);
  void wake_all(Lock &lock) REQUIRES(runtime_mutex);
  void sleep(Lock &lock, Waiter &me, Nanos limit) REQUIRES(runtime_mutex);
  template <class Wait>
  void poll_as(Lock &lock, Waiter &me, const net::Event &event, const Wait &wait)
      REQUIRES(runtime_mutex);
  // Wake the threads that wait, and post to the queue that watches. @return how many.
  size_t notify_finished(Request &request) noexcept REQUIRES(runtime_mutex);
  void notify_ended(Lease &lease) noexcept REQUIRES(runtime_mutex);
  void notify_recalled(Lease &lease) noexcept REQUIRES(runtime_mutex);
  void forget_watches(Lease &lease) noexcept REQUIRES(runtime_mutex);
  // True if a message may come that a lease is watched for.
  bool awaits_recall() const REQUIRES(runtime_mutex) { return recall_watch_count_ > 0; }
  void wake_lease_waiters() REQUIRES(runtime_mutex);

 private:
  void enlist(Waiter &waiter) REQUIRES(runtime_mutex);
  void delist(Waiter &waiter) noexcept REQUIRES(runtime_mutex);
  void post(Request &request) noexcept REQUIRES(runtime_mutex);
  void post(Lease &lease) noexcept REQUIRES(runtime_mutex);
  void forget_recall_watch(Lease &lease) noexcept REQUIRES(runtime_mutex);
  void post(EndWatch &watcher, int32_t status) noexcept REQUIRES(runtime_mutex);
  template <class Subject>
  void watch(Subject &subject, bool is_over, std::shared_ptr<Queue> &queue, QueueEvent &&event)
      REQUIRES(runtime_mutex);

  Owner &owner_;
  const uint32_t fork_count_;
  ClientLog log_ UNGUARDED("it has a mutex of its own");
  RuntimeMutex mutex_;
  size_t waiter_count_ GUARDED_BY(runtime_mutex) = 0;
  size_t using_count_ GUARDED_BY(runtime_mutex) = 0;
  // Those that wake_all() wakes, and those that it signals: a list by next_due.
  std::vector<Waiter *> wakes_ GUARDED_BY(runtime_mutex);
  std::shared_ptr<Queue> due_queues_ GUARDED_BY(runtime_mutex);
  Waiter *lease_waiters_ GUARDED_BY(runtime_mutex) = nullptr;
  size_t recall_watch_count_ GUARDED_BY(runtime_mutex) = 0;
};

// Run `wait`, which polls descriptors, `event` among them, without the mutex. If `me` was woken
// before, do not run it.
template <class Wait>
void Wakeup::poll_as(Lock &lock, Waiter &me, const net::Event &event, const Wait &wait) {
  uint32_t expected = Waiter::kAwake;
  if (me.word.compare_exchange_strong(expected, Waiter::kAsleep)) {
    const Using used(*this, lock);
    assert(me.event == nullptr && "it polls once at a time");
    me.event = &event;
    lock.unlock();
    wait();
    lock.lock();
    me.event = nullptr;
  }
  me.word.store(Waiter::kAwake);
}

}  // namespace redlatch::runtime
