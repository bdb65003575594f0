// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// For how long each lock was busy whenever this client asked. A client that waits for a lock again
// and again forgets it in between. The table has a fixed size: a lock that loses its place to
// another one is noticed a little later.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <functional>
#include <string_view>

#include "base/clock.h"
#include "timing/waiting.h"

namespace redlatch::lock {

class Contention {
 public:
  void saw_busy(std::string_view key, Nanos now) {
    Entry &entry = entry_of(key);
    const size_t hash = std::hash<std::string_view>()(key);
    if (entry.hash != hash || !is_recent(entry, now)) entry = {hash, now, now};
    entry.seen_at = now;
    assert(entry.busy_since <= entry.seen_at);
  }

  void saw_free(std::string_view key) {
    Entry &entry = entry_of(key);
    if (entry.hash == std::hash<std::string_view>()(key)) entry = {};
  }

  // True if no answer has found `key` free for long.
  [[nodiscard]] bool is_long(std::string_view key, Nanos now) const {
    const Entry &entry = entries_[std::hash<std::string_view>()(key) % kCount];
    return entry.hash == std::hash<std::string_view>()(key) && is_recent(entry, now) &&
           now - entry.busy_since >= timing::kSearchAfter;
  }

 private:
  static constexpr size_t kCount = 64;

  struct Entry {
    size_t hash = 0;
    Nanos busy_since = 0;
    Nanos seen_at = 0;
  };

  static bool is_recent(const Entry &entry, Nanos now) {
    return entry.seen_at != 0 && now - entry.seen_at < timing::kSearchEvery;
  }

  Entry &entry_of(std::string_view key) {
    return entries_[std::hash<std::string_view>()(key) % kCount];
  }

  std::array<Entry, kCount> entries_;
};

}  // namespace redlatch::lock
