// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "protocol/cluster_info.h"

#include <string>

#include "protocol/answer.h"
#include "protocol/command.h"

namespace redlatch::protocol {

void ask_slots(const std::function<void(std::span<const std::string_view>)> &send) {
  for (const std::string_view what : {"INFO", "SLOTS"}) {
    Command command;
    command.add("CLUSTER").add(what);
    send(command.argv());
  }
}

bool is_cut_off(const Reply &info) { return info_value(info.text(), "cluster_state") == "fail"; }

Outcome read_cluster(bool is_cut_off, const Reply &slots, const HostPort &asked,
                     std::vector<SlotRange> &ranges) {
  const std::string address = asked.text();
  if (slots.is_error()) {
    const auto refusal = refusal_of(slots);
    const bool is_alone = slots.text().find("cluster support disabled") != std::string_view::npos;
    if (!is_alone) return failure(refusal.status(), address + ": " + refusal.message);
    return failure(Status::kUnsupported,
                   address + " is not in cluster mode: its URL must be redis://" + address);
  }
  if (!read_slots(slots, asked, ranges)) {
    return failure(Status::kServer, address + ": the answer to CLUSTER SLOTS is malformed");
  }
  if (is_cut_off || ranges.empty()) {
    return failure(Status::kUnavailable,
                   address + ": the cluster is down, says this node (CLUSTER INFO)");
  }
  return {};
}

}  // namespace redlatch::protocol
