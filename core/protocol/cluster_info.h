// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The questions by which a node of a cluster says which node serves which slot, and the answers.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"
#include "protocol/slots.h"

namespace redlatch::protocol {

inline constexpr size_t kSlotQuestions = 2;
void ask_slots(const std::function<void(std::span<const std::string_view>)> &send);
// The first answer: whether the node is cut off from most of the cluster.
bool is_cut_off(const Reply &info);
// The second answer, of `asked`. Fails for a server that is no node of a cluster, and for a node
// that is cut off: its slots may be old.
Outcome read_cluster(bool is_cut_off, const Reply &slots, const HostPort &asked,
                     std::vector<SlotRange> &ranges);

}  // namespace redlatch::protocol
