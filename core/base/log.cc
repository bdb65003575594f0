// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "base/log.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "base/text.h"

namespace redlatch {

namespace {

constexpr std::array<std::string_view, 3> kNames = {"error ", "warning ", "info "};

// Never destroyed: threads of clients that were not closed may still log when the process ends. A
// forked child begins with an empty ring: a thread that does not exist there may have locked the
// parent's, and the parent shows its own lines.
struct Ring {
  std::mutex mutex;  // guards what follows, except has_lines
  std::deque<std::string> lines;
  size_t dropped_count = 0;
  LogLevel level = LogLevel::kError;  // the least grave one that calls the listener
  LogListener listener;
  bool is_told = false;
  std::atomic<bool> has_lines{false};  // so that reading an empty log takes no lock
};

std::atomic<Ring *> g_ring{nullptr};

// A fork handler runs in the host's call and must not fail, so the child makes its ring when it
// first logs.
bool watch_forks() {
  if (pthread_atfork(nullptr, nullptr, [] { g_ring = nullptr; }) != 0) throw std::bad_alloc();
  return true;
}

// Throws std::bad_alloc.
Ring &ring() {
  static const bool is_watching = watch_forks();
  (void)is_watching;
  Ring *current = g_ring.load(std::memory_order_acquire);
  if (current != nullptr) return *current;
  auto fresh = std::make_unique<Ring>();
  return g_ring.compare_exchange_strong(current, fresh.get()) ? *fresh.release() : *current;
}

}  // namespace

void log(LogLevel level, std::string_view text) noexcept {
  try {
    std::string line(kNames[static_cast<size_t>(level)]);
    line.append(clean(text));
    Ring &into = ring();
    const std::lock_guard lock(into.mutex);
    into.lines.push_back(std::move(line));
    if (into.lines.size() > kMaxLogLines) {
      into.lines.pop_front();
      into.dropped_count++;
    }
    into.has_lines.store(true, std::memory_order_release);
    if (level > into.level || into.is_told || !into.listener) return;
    into.listener();
    into.is_told = true;
  } catch (const std::bad_alloc &) {
    return;  // the operation matters more than its log line
  }
}

void watch_log(LogLevel level, LogListener listener) {
  Ring &from = ring();
  const std::lock_guard lock(from.mutex);
  const bool is_told = listener && !from.lines.empty();
  if (is_told) listener();
  from.level = level;
  from.listener.swap(listener);
  from.is_told = is_told;
}

size_t take_log_line(size_t limit, std::string &line) {
  Ring &from = ring();
  if (!from.has_lines.load(std::memory_order_acquire)) return 0;
  const std::lock_guard lock(from.mutex);
  if (from.dropped_count > 0) {
    from.lines.push_front("warning " + std::to_string(from.dropped_count) +
                          " older lines were dropped: they were not taken in time");
    from.dropped_count = 0;
  }
  if (from.lines.empty()) return 0;
  const size_t size = from.lines.front().size();
  if (size > limit) return size;
  line = std::move(from.lines.front());
  from.lines.pop_front();
  from.has_lines.store(!from.lines.empty(), std::memory_order_release);
  if (from.lines.empty()) from.is_told = false;
  return size;
}

}  // namespace redlatch
