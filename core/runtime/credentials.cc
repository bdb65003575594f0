// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "runtime/credentials.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <new>

#include "host/clock.h"

namespace redlatch::runtime {

// A queue that is gone watches no more.
void Credentials::look() noexcept {
  if (queue_.expired()) machine_.end_watch();
  assert(machine_.check() == nullptr);
}

// @return false without memory for the event.
bool Credentials::ask(Nanos now) noexcept {
  const auto queue = queue_.lock();
  if (!queue || !machine_.asks(now)) return true;
  try {
    queue->post(event_);
    machine_.on_asked();
    return true;
  } catch (const std::bad_alloc &) {
    machine_.on_not_asked(now);
    return false;
  }
}

void Credentials::set(std::string_view user, std::string_view password, Nanos valid_for,
                      Nanos now) {
  const MutexLock lock(mutex_);
  machine_.set(user, password, valid_for, now);
  changed_.notify_all();
}

bool Credentials::fail(std::string_view why, Nanos now) {
  const MutexLock lock(mutex_);
  const bool is_first = machine_.fail(why, now);
  changed_.notify_all();
  return is_first;
}

void Credentials::watch(const std::shared_ptr<Queue> &queue, const QueueEvent &event, Nanos now) {
  const MutexLock lock(mutex_);
  const bool is_due = queue && machine_.would_ask(now);
  if (is_due) queue->post(event);
  queue_ = queue;
  event_ = event;
  queue ? machine_.begin_watch() : machine_.end_watch();
  if (is_due) machine_.on_asked();
  changed_.notify_all();
}

Outcome Credentials::await(Nanos limit, uint64_t than, Login &login) {
  using What = driver::Credentials::Given::What;
  MutexLock lock(mutex_);
  struct Waiting {
    explicit Waiting(driver::Credentials &in_) : in(in_) { in.begin_wait(); }
    ~Waiting() { in.end_wait(); }
    driver::Credentials &in;
  } const waiting(machine_);
  while (true) {
    const Nanos now = boot_now();
    look();
    const auto given = machine_.give(than, limit, now);
    if (given.what == What::kLogin) {
      login = machine_.login();
      return {};
    }
    if (!ask(now)) continue;
    if (given.what == What::kFailure) return given.why;
    lock.wait_for(changed_, std::chrono::nanoseconds(std::max(given.until - now, kMs)));
  }
}

bool Credentials::newer(uint64_t than, Login &login) const {
  const MutexLock lock(mutex_);
  if (machine_.login().number <= than) return false;
  login = machine_.login();
  return true;
}

uint64_t Credentials::number() const {
  const MutexLock lock(mutex_);
  return machine_.login().number;
}

bool Credentials::refused(uint64_t number, Nanos now) {
  const MutexLock lock(mutex_);
  look();
  machine_.on_refused(number);
  (void)ask(now);
  return machine_.is_worth_waiting(number, now);
}

Nanos Credentials::next_due() {
  const MutexLock lock(mutex_);
  look();
  return machine_.next_due();
}

void Credentials::on_timer(Nanos now) {
  const MutexLock lock(mutex_);
  look();
  (void)ask(now);
}

void Credentials::stop() {
  const MutexLock lock(mutex_);
  queue_.reset();
  machine_.end_watch();
  changed_.notify_all();
}

}  // namespace redlatch::runtime
