// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/client_log.h"

#include <exception>
#include <new>

namespace redlatch::runtime {

void ClientLog::add(LogLevel level, std::string_view text) noexcept {
  const MutexLock lock(mutex_);
  if (!lines_.add(level, text)) return;
  has_lines_.store(true, std::memory_order_release);
  for (Watch &watch : watches_) {
    if (watch.is_posted || level > watch.level) continue;
    const auto queue = watch.queue.lock();
    if (!queue) continue;
    try {
      queue->post(watch.event);
      watch.is_posted = true;
    } catch (const std::bad_alloc &) {
      continue;  // the next line tries again
    }
  }
}

Status ClientLog::add_caught() noexcept {
  constexpr std::string_view kText = "defect in redlatch: an exception";
  try {
    throw;
  } catch (const std::bad_alloc &) {
    return Status::kNoMemory;
  } catch (const std::exception &caught) {
    try {
      add(LogLevel::kError, std::string(kText) + ": " + caught.what());
    } catch (...) {
      add(LogLevel::kError, kText);
    }
  } catch (...) {
    add(LogLevel::kError, kText);
  }
  return Status::kInternal;
}

void ClientLog::watch(LogLevel level, const std::shared_ptr<Queue> &queue,
                      const QueueEvent &event) {
  const MutexLock lock(mutex_);
  std::erase_if(watches_, [](const Watch &watch) { return watch.queue.expired(); });
  watches_.reserve(watches_.size() + 1);
  const bool is_posted = level != LogLevel::kNone && !lines_.is_empty();
  if (is_posted) queue->post(event);
  std::erase_if(watches_, [&](const Watch &watch) { return watch.queue.lock() == queue; });
  if (level != LogLevel::kNone) watches_.push_back({queue, level, event, is_posted});
}

void ClientLog::end_watches() {
  const MutexLock lock(mutex_);
  watches_.clear();
}

size_t ClientLog::take(size_t limit, std::string &line) {
  if (!has_lines_.load(std::memory_order_acquire)) return 0;
  const MutexLock lock(mutex_);
  const size_t size = lines_.take(limit, line);
  if (lines_.is_empty()) {
    has_lines_.store(false, std::memory_order_release);
    for (Watch &watch : watches_) watch.is_posted = false;
  }
  return size;
}

}  // namespace redlatch::runtime
