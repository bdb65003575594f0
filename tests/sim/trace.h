// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Trace: the hash of everything that happens in a run, and on request its story in words.
#pragma once

#include <cstdint>
#include <cstdio>

#include "base/clock.h"

namespace redlatch::sim {

class Trace {
 public:
  // `words`: where the story goes, or nullptr.
  explicit Trace(FILE *words) : words_(words) {}

  void mix(uint64_t value) {
    hash_ = (hash_ ^ value) * 0x100000001b3ULL;
    hash_ ^= hash_ >> 29;
  }
  uint64_t hash() const { return hash_; }

  bool is_told() const { return words_ != nullptr; }
  // As printf. Only the values that are mixed count; words are for people.
  [[gnu::format(printf, 3, 4)]] void say(Nanos now, const char *format, ...);

 private:
  FILE *words_;
  uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace redlatch::sim
