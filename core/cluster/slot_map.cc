// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "cluster/slot_map.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace redlatch::cluster {

uint16_t SlotMap::number_of(const HostPort &server) {
  const auto found = std::find(servers_.begin(), servers_.end(), server);
  if (found != servers_.end()) return static_cast<uint16_t>(found - servers_.begin());
  if (servers_.size() >= kMaxServers) return kNone;
  slot_counts_.reserve(servers_.size() + 1);
  servers_.push_back(server);
  slot_counts_.push_back(0);
  return static_cast<uint16_t>(servers_.size() - 1);
}

void SlotMap::replace(std::span<const protocol::SlotRange> ranges) {
  std::vector<uint16_t> owner(protocol::kSlotCount, kNone);
  for (const protocol::SlotRange &range : ranges) {
    assert(range.first <= range.last && range.last < protocol::kSlotCount);
    const uint16_t number = number_of(range.primary);
    std::fill(owner.begin() + range.first, owner.begin() + range.last + 1, number);
  }
  owner_.swap(owner);
  std::fill(slot_counts_.begin(), slot_counts_.end(), 0);
  for (const uint16_t number : owner_) {
    if (number != kNone) slot_counts_[number]++;
  }
}

void SlotMap::set(uint16_t slot, const HostPort &server) {
  assert(slot < protocol::kSlotCount);
  const uint16_t number = number_of(server);
  const uint16_t before = std::exchange(owner_[slot], number);
  if (before != kNone) slot_counts_[before]--;
  if (number != kNone) slot_counts_[number]++;
}

std::vector<protocol::SlotRange> SlotMap::ranges_of(uint16_t number) const {
  std::vector<protocol::SlotRange> ranges;
  for (size_t slot = 0; slot < owner_.size(); slot++) {
    if (owner_[slot] != number) continue;
    const auto at = static_cast<uint16_t>(slot);
    if (!ranges.empty() && ranges.back().last + 1 == at) {
      ranges.back().last = at;
    } else {
      ranges.push_back({at, at, server(number)});
    }
  }
  return ranges;
}

}  // namespace redlatch::cluster
