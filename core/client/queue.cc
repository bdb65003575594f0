// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "client/queue.h"

#include "base/fork.h"

namespace redlatch::client {

Queue::Queue() : fork_count_(redlatch::fork_count()) {}

bool Queue::is_forked() const { return fork_count_ != redlatch::fork_count(); }

void Queue::close() noexcept {
  const std::lock_guard lock(mutex_);
  ready_.reset();
  is_ready_ = false;
}

// Twice what can be there: the taken ones at the front are then moved away at most once for each
// tag.
void Queue::admit() {
  const std::lock_guard lock(mutex_);
  const size_t needed = 2 * (tags_.size() - head_ + admitted_count_ + 1);
  if (tags_.capacity() < needed) tags_.reserve(2 * needed);
  admitted_count_++;
}

void Queue::dismiss() noexcept {
  const std::lock_guard lock(mutex_);
  admitted_count_--;
}

bool Queue::push(int64_t tag) noexcept {
  const std::lock_guard lock(mutex_);
  admitted_count_--;
  if (!ready_) return false;
  if (tags_.size() == tags_.capacity()) {
    tags_.erase(tags_.begin(), tags_.begin() + static_cast<ptrdiff_t>(head_));
    head_ = 0;
  }
  tags_.push_back(tag);
  if (is_ready_ || is_signal_due_) return false;
  is_signal_due_ = true;
  return true;
}

void Queue::signal() noexcept {
  const std::lock_guard lock(mutex_);
  is_signal_due_ = false;
  if (head_ == tags_.size() || is_ready_ || !ready_) return;
  is_ready_ = true;
  ready_->signal();
}

void Queue::post(int64_t tag) {
  admit();
  if (push(tag)) signal();
}

int64_t Queue::take() noexcept {
  const std::lock_guard lock(mutex_);
  if (head_ == tags_.size()) return 0;
  const int64_t tag = tags_[head_++];
  if (head_ < tags_.size()) return tag;
  tags_.clear();
  head_ = 0;
  if (is_ready_) {
    is_ready_ = false;
    ready_->clear();
  }
  return tag;
}

int64_t Queue::wait(Nanos limit) noexcept {
  for (;;) {
    if (const int64_t tag = take(); tag != 0) return tag;
    if (!io::await_input(fd(), limit, -1)) return take();
  }
}

}  // namespace redlatch::client
