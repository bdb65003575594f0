// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Waiter: one thread in a wait, and how to wake it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "io/epoll_set.h"

namespace redlatch::runtime {

struct Lease;
struct Request;

// On the stack of the thread that waits, or the runtime's own, of its background thread. Guarded by
// the mutex of the runtime, except the futex word.
struct Waiter {
  Request *request = nullptr;    // what it waits for, if for a request
  const Lease *lease = nullptr;  // .. or for a lease to end
  enum Word : uint32_t { kAwake, kAsleep, kWoken };
  std::atomic<uint32_t> word{kAwake};
  const io::Event *event = nullptr;             // what wakes it while it polls; else the word does
  bool is_interrupted = false;                  // a signal came
  Waiter *previous = nullptr, *next = nullptr;  // in a WaiterList, or among waiters for leases
  Waiter *next_of_request = nullptr;            // others that wait for the same request
  class WaiterList *list = nullptr;
};

// First in, first out; a waiter stands in at most one list.
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

// Sleep while `word` is Waiter::kAsleep, at most until `limit`. @return false after a signal.
bool futex_sleep(std::atomic<uint32_t> &word, Nanos limit);
// Wake the sleeper at `address`, which may be gone by now: the address is never read.
void futex_wake(const void *address);

}  // namespace redlatch::runtime
