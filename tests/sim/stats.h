// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Stats: counts the events of a run. A run with few grants, or with a fault that never hit
// anything, proves nothing.
#pragma once

#include <array>
#include <cstdint>

#include "plan.h"

namespace redlatch::sim {

struct Stats {
  std::array<uint64_t, kFaultCount> injected{};  // by kind
  std::array<uint64_t, kFaultCount> hits{};      // by kind: those that had an effect
  uint64_t grants = 0;
  uint64_t waits = 0;  // waiters that entered the server's queue
  uint64_t lost = 0;
  uint64_t openings = 0;  // attempts to connect
  uint64_t struck = 0;    // of them, by a fault
  uint64_t failovers = 0;
  uint64_t lost_grants = 0;  // that a new primary did not know
  uint64_t confirmed = 0;    // grants that replicas have confirmed
  uint64_t unconfirmed = 0;  // .. that too few have confirmed
  uint64_t commands = 0;
  uint64_t events = 0;

  struct Count {
    const char *name;
    uint64_t Stats::*value;
  };
  static const std::array<Count, 11> kCounts;

  void inject(Fault fault, bool is_hit) {
    injected[static_cast<size_t>(fault)]++;
    if (is_hit) hits[static_cast<size_t>(fault)]++;
  }
  void hit(Fault fault) { hits[static_cast<size_t>(fault)]++; }

  void add(const Stats &other) {
    for (size_t i = 0; i < kFaultCount; i++) {
      injected[i] += other.injected[i];
      hits[i] += other.hits[i];
    }
    for (const auto &[name, count] : kCounts) this->*count += other.*count;
  }
};

inline constexpr std::array<Stats::Count, 11> Stats::kCounts = {{
    {"grants", &Stats::grants},
    {"grants after a wait", &Stats::waits},
    {"leases lost", &Stats::lost},
    {"commands", &Stats::commands},
    {"events", &Stats::events},
    {"handshakes", &Stats::openings},
    {"handshakes that a fault struck", &Stats::struck},
    {"failovers", &Stats::failovers},
    {"grants that failovers lost", &Stats::lost_grants},
    {"grants that replicas confirmed", &Stats::confirmed},
    {"grants that too few replicas confirmed", &Stats::unconfirmed},
}};

}  // namespace redlatch::sim
