// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Trace: the hash of all events of a run and, on request, a text of them.
#pragma once

#include <cstdint>
#include <cstdio>

#include "base/clock.h"

namespace redlatch::sim {

class Trace {
 public:
  // `words`: the file for the text, or nullptr.
  explicit Trace(FILE *words) : words_(words) {}

  void mix(uint64_t value) {
    hash_ = (hash_ ^ value) * 0x100000001b3ULL;
    hash_ ^= hash_ >> 29;
  }
  uint64_t hash() const { return hash_; }

  bool is_told() const { return words_ != nullptr; }
  // As printf. The text does not change the hash.
  [[gnu::format(printf, 3, 4)]] void say(Nanos now, const char *format, ...);

 private:
  FILE *words_;
  uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace redlatch::sim
