// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The arithmetic of a quorum. No clock, randomness or node in it.
//
// Source: the Redlock algorithm (S. Sanfilippo), with the corrections of docs/design/0012.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/limits.h"
#include "base/server_facts.h"

namespace redlatch::timing {

// Two sets of so many of `node_count` nodes have one in common.
constexpr size_t majority_of(size_t node_count) { return node_count / 2 + 1; }

// How long one node is waited for in a round.
constexpr Nanos node_limit(Nanos lease) { return std::clamp(lease / 20, 5 * kMs, 50 * kMs); }

// The latest time until which at least `needed` of `deadlines` are valid; 0 if there are too few.
// Whoever else wants a quorum then needs a vote that has not run out.
inline Nanos valid_until(std::span<const Nanos> deadlines, size_t needed) {
  std::array<Nanos, kMaxNodes> sorted{};
  if (deadlines.size() < needed || deadlines.size() > sorted.size()) return 0;
  const auto end = std::copy(deadlines.begin(), deadlines.end(), sorted.begin());
  std::sort(sorted.begin(), end, std::greater<>());
  return sorted[needed - 1];
}

// Rendezvous hashing (Thaler and Ravishankar) by FNV-1a: every client puts the nodes of one lock
// in the same order, whatever order and names its URLs have. A higher one comes first.
constexpr uint64_t rank_of_node(std::string_view run_id, std::string_view lock_key) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::string_view part : {run_id, lock_key}) {
    for (const char c : part) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  hash ^= hash >> 32;  // the last bytes have hardly reached the upper half
  return hash * 0x9e3779b97f4a7c15;
}

// What a step can have added to the uptime of `node`: how far its clock is from the right ones.
// Which those are nobody knows; but when no more than a minority of nodes is wrong, and `node` is
// one of them, then of as many others as make a minority at least one is right. So it is not
// further than from the last of the nearest so many. kNever: too few are known. `others`: all but
// `node`.
inline Nanos clock_doubt(const ServerAge &node, std::span<const ServerAge> others,
                         size_t minority) {
  if (others.size() < minority || others.size() > kMaxNodes) return kNever;
  if (minority == 0) return 0;
  std::array<Nanos, kMaxNodes> distances{};
  for (size_t i = 0; i < others.size(); i++) {
    const Nanos apart = node.clock - others[i].clock;
    // Told at different times, and clocks drift.
    const Nanos drift = (node.asked_at - others[i].asked_at) / 100;
    distances[i] = std::max(apart, -apart) + std::max(drift, -drift) + others[i].round_trip;
  }
  const auto end = distances.begin() + static_cast<ptrdiff_t>(others.size());
  std::sort(distances.begin(), end);
  return distances[minority - 1];
}

// The local time from which on a node of this age certainly is older than `guard`. Its uptime is a
// difference of its wall clock, which may have been stepped since it started: see clock_doubt().
constexpr Nanos votes_from(const ServerAge &age, Nanos distance, Nanos guard) {
  if (distance == kNever) return kNever;
  const Nanos doubt = distance + age.round_trip + 1000 * kMs;  // uptime is in whole seconds
  const Nanos uptime = std::min<int64_t>(age.uptime_s, kMaxLeaseMs) * 1000 * kMs;
  return age.asked_at + guard - std::clamp<Nanos>(uptime - doubt, 0, guard);
}

}  // namespace redlatch::timing
