// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// SlotMap: which server of a cluster serves a slot, as far as is known. Servers have numbers, which
// stay the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/settings.h"
#include "protocol/slots.h"

namespace redlatch::cluster {

class SlotMap {
 public:
  static constexpr uint16_t kNone = UINT16_MAX;
  // Servers that are remembered; no further one gets a slot. A broken node may name any number.
  static constexpr size_t kMaxServers = 8192;

  SlotMap() : owner_(protocol::kSlotCount, kNone) {}

  // All slots anew. Throws std::bad_alloc, and then nothing has changed.
  void replace(std::span<const protocol::SlotRange> ranges);
  // One slot. Throws std::bad_alloc, and then nothing has changed.
  void set(uint16_t slot, const HostPort &server);

  // The number of the server; kNone: not known.
  uint16_t owner(uint16_t slot) const { return owner_[slot]; }
  const HostPort &server(uint16_t number) const { return servers_[number]; }
  size_t server_count() const { return servers_.size(); }
  // Gives it a number if it has none; kNone: there are too many. Throws std::bad_alloc.
  uint16_t number_of(const HostPort &server);
  // True if it serves any slot.
  bool is_primary(uint16_t number) const { return slot_counts_[number] > 0; }
  // The slots of one server.
  std::vector<protocol::SlotRange> ranges_of(uint16_t number) const;

 private:
  std::vector<uint16_t> owner_;      // by slot
  std::vector<HostPort> servers_;    // by number; no server is forgotten
  std::vector<size_t> slot_counts_;  // by number
};

}  // namespace redlatch::cluster
