// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The arithmetic of a quorum: majorities, deadlines and node ages. It reads no clock and no random
// source.
//
// Source: the Redlock algorithm (S. Sanfilippo), with the corrections of docs/design/0012.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/limits.h"
#include "base/server_facts.h"

namespace redlatch::timing {

// The size of a majority. Any two majorities have a node in common.
constexpr size_t majority_of(size_t node_count) {
  assert(node_count > 0);
  return node_count / 2 + 1;
}

// The time limit of one node in a round.
constexpr Nanos node_limit(Nanos lease) { return std::clamp(lease / 20, 5 * kMs, 50 * kMs); }

// The latest time until which at least `needed` of `deadlines` are valid; 0 if there are too few.
// Until then every other majority needs a vote that has not expired.
inline Nanos valid_until(std::span<const Nanos> deadlines, size_t needed) {
  assert(needed > 0);
  std::array<Nanos, kMaxNodes> sorted{};
  if (deadlines.size() < needed || deadlines.size() > sorted.size()) return 0;
  const auto end = std::copy(deadlines.begin(), deadlines.end(), sorted.begin());
  std::sort(sorted.begin(), end, std::greater<>());
  return sorted[needed - 1];
}

// Rendezvous hashing (Thaler and Ravishankar) by FNV-1a: every client puts the nodes of one lock
// in the same order, whatever order and names its URLs have. The highest rank comes first.
constexpr uint64_t rank_of_node(std::string_view run_id, std::string_view lock_key) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::string_view part : {run_id, lock_key}) {
    for (const char c : part) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  hash ^= hash >> 32;  // the last bytes have hardly reached the upper half
  return hash * 0x9e3779b97f4a7c15;
}

// An upper bound of what a clock step can have added to the uptime of `node`, or kNever if too few
// nodes are known. `others`: all nodes except `node`; `minority`: how many clocks may be wrong. A
// step that adds to the uptime moves the clock away from the right ones. If `node` is wrong, at
// most minority - 1 others are, so one of the `minority` others whose clocks are nearest is right:
// the step is at most the distance to the farthest of these.
inline Nanos clock_doubt(const ServerAge &node, std::span<const ServerAge> others,
                         size_t minority) {
  if (others.size() < minority || others.size() > kMaxNodes) return kNever;
  if (minority == 0) return 0;
  std::array<Nanos, kMaxNodes> distances{};
  for (size_t i = 0; i < others.size(); i++) {
    const Nanos apart = node.clock - others[i].clock;
    // The nodes were asked at different times, and clocks drift.
    const Nanos drift = (node.asked_at - others[i].asked_at) / 100;
    distances[i] = std::max(apart, -apart) + std::max(drift, -drift) + others[i].round_trip;
  }
  const auto end = distances.begin() + static_cast<ptrdiff_t>(others.size());
  std::sort(distances.begin(), end);
  return distances[minority - 1];
}

// The local time from which a node of this age is certainly older than `guard`. The server computes
// its uptime from its wall clock, which may have been stepped since: see clock_doubt().
constexpr Nanos votes_from(const ServerAge &age, Nanos distance, Nanos guard) {
  if (distance == kNever) return kNever;
  const Nanos doubt = distance + age.round_trip + 1000 * kMs;  // uptime is in whole seconds
  const Nanos uptime = std::min<int64_t>(age.uptime_s, kMaxTtlMs) * 1000 * kMs;
  return age.asked_at + guard - std::clamp<Nanos>(uptime - doubt, 0, guard);
}

}  // namespace redlatch::timing
