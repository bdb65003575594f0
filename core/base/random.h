// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Entropy: numbers from a seed, which host/random.h gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace redlatch {

// splitmix64, to spread retries; not for secrets. Used by one thread at a time. Seeded from
// fill_random() or, in a simulation, from the seed of the run.
class Entropy {
 public:
  explicit Entropy(uint64_t seed) : state_(seed) {}
  // Other bytes, as hard to guess as before.
  void mix_into(std::span<uint8_t, 16> bytes) {
    for (size_t i = 0; i < bytes.size(); i += 8) {
      const uint64_t mask = next();
      for (size_t k = 0; k < 8; k++) bytes[i + k] ^= static_cast<uint8_t>(mask >> k * 8);
    }
  }
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

}  // namespace redlatch
