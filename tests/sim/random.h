// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Random: numbers from a seed, equal on every machine (distributions of std differ by library).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.h"

namespace redlatch::sim {

class Random {
 public:
  // `stream`: each part of a run has a stream of its own, so that the number of its draws does not
  // change the numbers of other parts.
  Random(uint64_t seed, uint64_t stream)
      : entropy_(Entropy(seed * 0x9E3779B97F4A7C15ULL + stream).next()) {}

  uint64_t next() { return entropy_.next(); }
  // From `low` to `high`, both included.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  size_t below(size_t count) { return static_cast<size_t>(next() % count); }
  bool chance(int per_mille) { return static_cast<int>(next() % 1000) < per_mille; }

 private:
  Entropy entropy_;
};

}  // namespace redlatch::sim
