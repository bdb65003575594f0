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

// Capacity for twice the tags that can be in the queue, so that push() moves a tag at most once
// when it drops the taken ones at the front.
void Queue::admit() {
  const MutexLock lock(mutex_);
  const size_t needed = 2 * (tags_.size() - head_ + admitted_count_ + 1);
  if (tags_.capacity() < needed) tags_.reserve(2 * needed);
  admitted_count_++;
}

void Queue::dismiss() noexcept {
  const MutexLock lock(mutex_);
  assert(admitted_count_ > 0);
  admitted_count_--;
}

bool Queue::push(int64_t tag) noexcept {
  const MutexLock lock(mutex_);
  assert(admitted_count_ > 0);
  admitted_count_--;
  if (!ready_) return false;
  if (tags_.size() == tags_.capacity()) {
    tags_.erase(tags_.begin(), tags_.begin() + static_cast<ptrdiff_t>(head_));
    head_ = 0;
  }
  assert(tags_.size() < tags_.capacity() && "admit() made room");
  tags_.push_back(tag);
  if (is_ready_ || is_signal_due_ || reading_count_ > 0) return false;
  is_signal_due_ = true;
  return true;
}

void Queue::signal() noexcept {
  const MutexLock lock(mutex_);
  is_signal_due_ = false;
  if (head_ < tags_.size()) signal_locked();
}

void Queue::signal_locked() noexcept {
  if (is_ready_ || !ready_) return;
  is_ready_ = true;
  ready_->event().signal();
}

void Queue::post(int64_t tag) {
  admit();
  if (push(tag)) signal();
}

void Queue::nudge() noexcept {
  const MutexLock lock(mutex_);
  signal_locked();
}

int64_t Queue::take() noexcept {
  const MutexLock lock(mutex_);
  assert(head_ <= tags_.size());
  const bool is_empty = head_ == tags_.size();
  const int64_t tag = is_empty ? 0 : tags_[head_++];
  if (head_ < tags_.size()) {
    // Tags that were pushed while a thread was reading did not signal.
    if (!is_signal_due_ && reading_count_ == 0) signal_locked();
    return tag;
  }
  tags_.clear();
  head_ = 0;
  if (is_ready_) {
    is_ready_ = false;
    ready_->event().clear();
  }
  return tag;
}

int64_t Queue::next() noexcept {
  for (;;) {
    if (const int64_t tag = take(); tag != 0) return tag;
    const auto source = begin_reading();
    if (!source) return 0;
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

int64_t Queue::wait(Nanos limit) noexcept {
  for (;;) {
    if (const int64_t tag = next(); tag != 0) return tag;
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
