// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Slots of a cluster: the slot of a key, the primaries of all slots, and the errors by which a node
// names another one (docs/wire.md, "Cluster"). Values and functions, no state; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"
#include "protocol/scripts.h"

namespace redlatch::protocol {

inline constexpr size_t kSlotCount = 16384;

// The part of `key` that its slot comes from: the text between the first '{' and the first '}'
// behind it if there is any, else all of it.
std::string_view hash_tag(std::string_view key);

// CRC16 (XMODEM) of the hash tag.
uint16_t slot_of(std::string_view key);

struct SlotRange {
  uint16_t first = 0;
  uint16_t last = 0;  // included
  HostPort primary;

  bool contains(uint16_t slot) const { return first <= slot && slot <= last; }
};

// The answer to CLUSTER SLOTS, by rising slots. A slot may be missing: no primary has it. A host of
// '', '?' or nil is that of `asked`, the node that answered.
// @return false if it is no such answer: an error, a host or port that cannot be one, a slot that
// does not exist or has two primaries. Then `ranges` is unchanged.
bool read_slots(const Reply &reply, const HostPort &asked, std::vector<SlotRange> &ranges);

// The meaning of an error for the choice of the node.
struct Redirect {
  enum class Kind : uint8_t {
    kNone,      // any other answer
    kMoved,     // `to` has the slot
    kAsk,       // `to` has the keys already: this command alone goes there, behind ASKING
    kTryAgain,  // the slot is being moved, and the keys are not together
    kDown,      // no primary has the slot now, or this node is a replica, or loads its data
    kNonLocal,  // a script ended in the middle: a key of it, or a channel, is at another node. The
                // outcome is unknown
  };
  Kind kind = Kind::kNone;
  uint16_t slot = 0;  // kMoved, kAsk
  HostPort to = {};   // kMoved, kAsk
};
Redirect read_redirect(const Reply &reply, const HostPort &asked);

// A cid for which the slot of the channel, `prefix` + cid, is in one of `own`: the messages of a
// node's scripts reach such a channel. `random` is from the kernel, and used for this call only.
// Each draw is `random` XOR a fixed sequence, so it is as hard to guess as `random`, and the same
// bytes make the same cid, as a simulation needs. At most 1,000,000 draws; with one slot in `own`,
// 16,384 of them are expected.
// @return an empty text if no draw is in `own`, as when it is empty.
std::string make_cid_within(const std::string &prefix, std::span<const SlotRange> own,
                            std::span<const uint8_t, 16> random);

// All keys of a lock must share a slot. They do, except where the lock key has a '}' and no hash
// tag: that '}' ends the tag of the other keys. In the hash_rw format a '{' without a hash tag is
// refused, too: Redisson's names of the keys beside readers have no tag then.
Outcome check_cluster_name(std::string_view name_space, std::string_view name, Format format);

}  // namespace redlatch::protocol
