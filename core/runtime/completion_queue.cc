// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/completion_queue.h"

#include <cassert>

#include "host/fork.h"
#include "host/poll.h"

namespace redlatch::runtime {

Queue::Queue() : fork_count_(redlatch::fork_count()) {}

bool Queue::is_forked() const { return fork_count_ != redlatch::fork_count(); }

bool Queue::is_open() const {
  const MutexLock lock(mutex_);
  return ready_ && ready_->is_open();
}

void Queue::close() noexcept {
  const MutexLock lock(mutex_);
  ready_.reset();
  is_ready_ = false;
}

// Capacity for twice the events that can be in the queue, so that push() moves one at most once
// when it drops the taken ones at the front.
void Queue::admit() {
  const MutexLock lock(mutex_);
  const size_t needed = 2 * (events_.size() - head_ + admitted_count_ + 1);
  if (events_.capacity() < needed) events_.reserve(2 * needed);
  admitted_count_++;
}

void Queue::dismiss() noexcept {
  const MutexLock lock(mutex_);
  assert(admitted_count_ > 0);
  admitted_count_--;
}

bool Queue::push(QueueEvent event) noexcept {
  assert(event.tag != 0 && "a tag is not 0");
  const MutexLock lock(mutex_);
  assert(admitted_count_ > 0);
  admitted_count_--;
  if (!ready_) return false;
  if (events_.size() == events_.capacity()) {
    events_.erase(events_.begin(), events_.begin() + static_cast<ptrdiff_t>(head_));
    head_ = 0;
  }
  assert(events_.size() < events_.capacity() && "admit() made room");
  events_.push_back(std::move(event));
  if (is_ready_ || is_signal_due_ || reading_count_ > 0) return false;
  is_signal_due_ = true;
  return true;
}

void Queue::signal() noexcept {
  const MutexLock lock(mutex_);
  is_signal_due_ = false;
  if (head_ < events_.size()) signal_locked();
}

void Queue::signal_locked() noexcept {
  if (is_ready_ || !ready_) return;
  is_ready_ = true;
  ready_->event().signal();
}

void Queue::post(QueueEvent event) {
  admit();
  if (push(std::move(event))) signal();
}

void Queue::nudge() noexcept {
  const MutexLock lock(mutex_);
  signal_locked();
}

QueueEvent Queue::take() noexcept {
  const MutexLock lock(mutex_);
  assert(head_ <= events_.size());
  QueueEvent event;
  if (head_ < events_.size()) event = std::move(events_[head_++]);
  if (head_ < events_.size()) {
    // Events that were pushed while a thread was reading did not signal.
    if (!is_signal_due_ && reading_count_ == 0) signal_locked();
    return event;
  }
  events_.clear();
  head_ = 0;
  if (is_ready_) {
    is_ready_ = false;
    ready_->event().clear();
  }
  return event;
}

QueueEvent Queue::next() noexcept {
  for (;;) {
    if (QueueEvent event = take(); event.tag != 0) return event;
    const auto source = begin_reading();
    if (!source) return {};
    const bool has_read = source->read();
    {
      const MutexLock lock(mutex_);
      assert(reading_count_ > 0);
      reading_count_--;
    }
    if (!has_read) return take();
  }
}

std::shared_ptr<Source> Queue::begin_reading() noexcept {
  const MutexLock lock(mutex_);
  auto source = source_.lock();
  if (source) reading_count_++;
  return source;
}

QueueEvent Queue::wait(Nanos limit) noexcept {
  for (;;) {
    if (QueueEvent event = next(); event.tag != 0) return event;
    if (!await_input(fd(), limit, -1)) return next();
  }
}

// ---- the source --------------------------------------------------------------------------------

int Queue::fd() const noexcept {
  const MutexLock lock(mutex_);
  if (!ready_) return -1;
  return is_reader_ ? ready_->fd() : ready_->event().fd();
}

bool Queue::set_source(std::weak_ptr<Source> source) noexcept {
  const MutexLock lock(mutex_);
  if (!source_.expired()) return false;
  source_ = std::move(source);
  is_reader_ = true;
  return true;
}

std::shared_ptr<Source> Queue::source() const noexcept {
  const MutexLock lock(mutex_);
  return source_.lock();
}

void Queue::drop_source() noexcept {
  const MutexLock lock(mutex_);
  source_.reset();
}

int Queue::add_socket(int socket) noexcept {
  const MutexLock lock(mutex_);
  return ready_ ? ready_->add(socket, 0) : 0;
}

void Queue::remove_socket(int socket) noexcept {
  const MutexLock lock(mutex_);
  if (ready_) ready_->remove(socket);
}

}  // namespace redlatch::runtime
