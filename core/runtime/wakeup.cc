// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/wakeup.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <new>

#include "host/clock.h"
#include "lock/lock_client.h"

namespace redlatch::runtime {

std::shared_ptr<Request> Request::make(What what) { return std::make_shared<Request>(what); }

namespace {

// Sleep while `word` is Waiter::kAsleep, at most until `limit`. @return false after a signal.
bool futex_sleep(std::atomic<uint32_t> &word, Nanos limit) {
  timespec left{};
  const long result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, Waiter::kAsleep,
                              remaining_time(limit, left), nullptr, 0);
  return result == 0 || errno != EINTR;
}

// Wake the sleeper at `address`, which may be gone by now: the address is never read.
void futex_wake(const void *address) {
  syscall(SYS_futex, address, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

Outcome Wakeup::check(const Lease &lease) {
  const Lock lock(mutex_);
  if (lease.state_at(boot_now()) == lock::Lease::kHeld) return {};
  return lease.why_not_held();
}

lock::LossReason Wakeup::lost_reason(const Lease &lease, std::string *words) {
  const Lock lock(mutex_);
  const auto reason = lease.loss_at(boot_now());
  if (words != nullptr && reason != lock::LossReason::kNone) {
    *words = lease.lost_words();
  }
  return reason;
}

lock::Lease::State Wakeup::wait_ended(const Lease &lease, Nanos limit) {
  Lock lock(mutex_);
  auto state = lease.state_at(boot_now());
  Waiter me;
  me.lease = &lease;
  {
    const Enlisted enlisted(*this, me);
    while (state == lock::Lease::kHeld) {
      // The service's timer ends the lease, or the clock does if the timer is late.
      const Nanos until = std::min(limit, lease.deadline.load());
      if (boot_now() >= limit) break;
      owner_.wake_by(limit);
      sleep(lock, me, until);
      state = lease.state_at(boot_now());
    }
  }
  wake_all(lock);
  return state;
}

template <class Subject>
void Wakeup::watch(Subject &subject, bool is_over, std::shared_ptr<Queue> &queue,
                   QueueEvent &&event) {
  if (queue) queue->admit();
  subject.watcher.forget();
  subject.watcher = EndWatch{std::move(queue), std::move(event)};
  if (is_over) post(subject);
}

void Wakeup::watch(Request &request, std::shared_ptr<Queue> queue, QueueEvent &&event) {
  Lock lock(mutex_);
  watch(request, request.is_finished(), queue, std::move(event));
  wake_all(lock);
}

// If the deadline has passed while the state is still kHeld, the service's timer ends the lease,
// and that posts the event.
void Wakeup::watch(Lease &lease, std::shared_ptr<Queue> queue, QueueEvent &&event) {
  Lock lock(mutex_);
  watch(lease, lease.state.load() != lock::Lease::kHeld, queue, std::move(event));
  wake_all(lock);
}

// ---- waiting and waking ------------------------------------------------------------------------

size_t Wakeup::notify_finished(Request &request) noexcept {
  assert(request.is_finished());
  size_t count = 0;
  for (Waiter *waiter = request.waiters; waiter != nullptr; waiter = waiter->next_of_request) {
    if (waiter->list != nullptr) waiter->list->remove(*waiter);
    wake(*waiter);
    count++;
  }
  if (request.watcher.queue) count++;
  post(request);
  return count;
}

void Wakeup::notify_ended(Lease &lease) noexcept {
  assert(lease.state.load() != lock::Lease::kHeld);
  try {
    if (lease.state.load() == lock::Lease::kLost) {
      log_.add(LogLevel::kError, lease.why_not_held().message);
    }
  } catch (const std::bad_alloc &) {
    // Waiters and the queue are notified all the same.
  }
  for (Waiter *waiter = lease_waiters_; waiter != nullptr; waiter = waiter->next) {
    if (waiter->lease == &lease) wake(*waiter);
  }
  post(lease);
  forget_recall_watch(lease);
}

void Wakeup::notify_recalled(Lease &lease) noexcept {
  if (!lease.recall_watcher.queue) return;
  recall_watch_count_--;
  post(lease.recall_watcher, static_cast<int32_t>(Status::kOk));
}

void Wakeup::forget_watches(Lease &lease) noexcept {
  lease.watcher.forget();
  forget_recall_watch(lease);
}

void Wakeup::forget_recall_watch(Lease &lease) noexcept {
  if (!lease.recall_watcher.queue) return;
  recall_watch_count_--;
  lease.recall_watcher.forget();
}

void Wakeup::watch_recall(Lease &lease, std::shared_ptr<Queue> queue, QueueEvent &&event,
                          Lock &lock) {
  if (queue) queue->admit();
  forget_recall_watch(lease);
  const bool is_held = lease.state.load() == lock::Lease::kHeld;
  if (queue && (is_held || lease.recall_count > 0)) {
    recall_watch_count_++;
    lease.recall_watcher = EndWatch{std::move(queue), std::move(event)};
    if (lease.recall_count > 0) notify_recalled(lease);
  } else if (queue) {
    queue->dismiss();
  }
  wake_all(lock);
}

void Wakeup::wake_lease_waiters() {
  for (Waiter *waiter = lease_waiters_; waiter != nullptr; waiter = waiter->next) wake(*waiter);
}

void Wakeup::post(Request &request) noexcept {
  post(request.watcher, static_cast<int32_t>(request.status.load()));
}

void Wakeup::post(Lease &lease) noexcept { post(lease.watcher, lease.state.load()); }

void Wakeup::post(EndWatch &watcher, int32_t status) noexcept {
  const auto queue = std::move(watcher.queue);
  watcher.event.status = status;
  if (!queue || !queue->push(std::move(watcher.event))) return;
  queue->next_due = std::move(due_queues_);
  due_queues_ = queue;
}

// wake() must not fail: wakes_ has room for this waiter, the background thread and the thread that
// shuts down.
void Wakeup::enlist(Waiter &waiter) {
  assert(waiter.list == nullptr && waiter.next_of_request == nullptr);
  const size_t needed = waiter_count_ + 3;
  if (wakes_.capacity() < needed) wakes_.reserve(2 * needed);
  waiter_count_++;
  if (waiter.request != nullptr) {
    waiter.next_of_request = waiter.request->waiters;
    waiter.request->waiters = &waiter;
  }
  if (waiter.lease != nullptr) {
    waiter.next = lease_waiters_;
    if (lease_waiters_ != nullptr) lease_waiters_->previous = &waiter;
    lease_waiters_ = &waiter;
  }
}

void Wakeup::delist(Waiter &waiter) noexcept {
  assert(waiter_count_ > 0);
  waiter_count_--;
  if (waiter.list != nullptr) waiter.list->remove(waiter);
  if (waiter.request != nullptr) {
    Waiter **link = &waiter.request->waiters;
    while (*link != &waiter) link = &(*link)->next_of_request;
    *link = waiter.next_of_request;
  }
  if (waiter.lease != nullptr) {
    (waiter.previous != nullptr ? waiter.previous->next : lease_waiters_) = waiter.next;
    if (waiter.next != nullptr) waiter.next->previous = waiter.previous;
  }
  std::erase(wakes_, &waiter);
}

void Wakeup::wake(Waiter &waiter) {
  if (waiter.word.exchange(Waiter::kWoken) == Waiter::kAsleep) wakes_.push_back(&waiter);
}

// Wake the waiters and signal the queues that wake() and post() have noted, without the mutex. The
// waiters may be gone by then, so only addresses and the runtime's own events are used. The mutex
// is held again afterwards.
void Wakeup::wake_all(Lock &lock) {
  while (!wakes_.empty() || due_queues_) {
    auto queues = std::move(due_queues_);
    std::array<const void *, 64> words{};
    std::array<const net::Event *, 3> events{};
    size_t word_count = 0;
    size_t event_count = 0;
    size_t taken = 0;
    for (; taken < wakes_.size() && word_count < words.size(); taken++) {
      const Waiter *waiter = wakes_[taken];
      if (waiter->event == nullptr) {
        words[word_count++] = &waiter->word;
        continue;
      }
      if (event_count == events.size()) break;
      events[event_count++] = waiter->event;
    }
    wakes_.erase(wakes_.begin(), wakes_.begin() + static_cast<ptrdiff_t>(taken));
    const Using used(*this, lock);
    lock.unlock();
    for (size_t i = 0; i < event_count; i++) events[i]->signal();
    for (size_t i = 0; i < word_count; i++) futex_wake(words[i]);
    while (queues) {
      const auto queue = std::move(queues);
      queues = std::move(queue->next_due);
      queue->signal();
    }
    lock.lock();
  }
}

void Wakeup::sleep(Lock &lock, Waiter &me, Nanos limit) {
  wake_all(lock);
  assert(me.event == nullptr && "its word wakes it");
  uint32_t expected = Waiter::kAwake;
  if (me.word.compare_exchange_strong(expected, Waiter::kAsleep)) {
    lock.unlock();
    const bool has_slept = futex_sleep(me.word, limit);
    lock.lock();
    me.is_interrupted = !has_slept;
  }
  me.word.store(Waiter::kAwake);
}

}  // namespace redlatch::runtime
