// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Remembers since when each answer about a lock has found it busy. The records of a lock end with
// each wait, and this table outlives them. Its size is fixed: two locks that share an
// entry have it in turns.
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
    const size_t hash = std::hash<std::string_view>()(key);
    Entry &entry = entries_[hash % kCount];
    if (entry.hash != hash && keeps_place(entry, now)) return;
    if (entry.hash != hash || !is_recent(entry, now)) entry = {hash, now, now};
    entry.seen_at = now;
    assert(entry.busy_since <= entry.seen_at);
  }

  void saw_free(std::string_view key) {
    const size_t hash = std::hash<std::string_view>()(key);
    if (entries_[hash % kCount].hash == hash) entries_[hash % kCount] = {};
  }

  // True if every answer about `key` for at least kSearchAfter has found it busy.
  [[nodiscard]] bool is_long(std::string_view key, Nanos now) const {
    const size_t hash = std::hash<std::string_view>()(key);
    const Entry &entry = entries_[hash % kCount];
    return entry.hash == hash && is_recent(entry, now) &&
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

  // Two locks in one place would else keep each other from ever being busy for long.
  static bool keeps_place(const Entry &entry, Nanos now) {
    return is_recent(entry, now) && now - entry.busy_since < 2 * timing::kSearchAfter;
  }

  std::array<Entry, kCount> entries_;
};

}  // namespace redlatch::lock
