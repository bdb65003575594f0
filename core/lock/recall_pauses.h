// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Remembers which locks were recalled while this client retained them. Such a lock is not retained
// again for a while: two clients that take turns would pay for a recall each time. The table
// outlives the records of a lock. Its size is fixed: two locks that share an entry have it in
// turns.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string_view>

#include "base/clock.h"

namespace redlatch::lock {

class RecallPauses {
 public:
  // `key` was recalled while no caller of this client had it.
  void recalled(std::string_view key, Nanos now) {
    Entry &entry = entry_of(key);
    const size_t hash = hash_of(key);
    const bool is_known = entry.hash == hash && now < entry.until + kLongest;
    entry.pause = is_known ? std::min(2 * entry.pause, kLongest) : kFirst;
    entry.hash = hash;
    entry.until = now + entry.pause;
  }
  // It was retained, and no other client asked for it.
  void unwanted(std::string_view key) {
    if (entry_of(key).hash == hash_of(key)) entry_of(key) = {};
  }
  bool is_paused(std::string_view key, Nanos now) const {
    const Entry &entry = entries_[hash_of(key) % kCount];
    return entry.hash == hash_of(key) && now < entry.until;
  }

 private:
  static constexpr size_t kCount = 64;
  static constexpr Nanos kFirst = 10 * kMs;
  static constexpr Nanos kLongest = 1'000 * kMs;

  struct Entry {
    size_t hash = 0;
    Nanos until = 0;
    Nanos pause = 0;
  };
  static size_t hash_of(std::string_view key) { return std::hash<std::string_view>()(key); }
  Entry &entry_of(std::string_view key) { return entries_[hash_of(key) % kCount]; }

  std::array<Entry, kCount> entries_{};
};

}  // namespace redlatch::lock
