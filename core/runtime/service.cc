// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/service.h"

#include <algorithm>
#include <utility>

#include "driver/services.h"

namespace redlatch::runtime {

namespace {

Nanos longest_timeout(std::span<const Settings> nodes) {
  Nanos longest = 0;
  for (const Settings &node : nodes) longest = std::max(longest, node.command_timeout);
  return longest;
}

}  // namespace

Service::Service(std::vector<Settings> nodes, std::optional<QuorumSettings> quorum)
    : nodes_(std::move(nodes)), quorum_(quorum), timeout_(longest_timeout(nodes_)) {}

void Service::open(std::span<const uint8_t, 16> id, uint64_t seed, lock::Output &output) {
  service_ = driver::open_service(nodes_, quorum_ ? &*quorum_ : nullptr, id, seed, output);
}

void Service::become_cluster(std::span<const uint8_t, 16> id, uint64_t seed, driver::Log &log) {
  driver::become_cluster(*service_, nodes_.front(), id, seed, log);
}

}  // namespace redlatch::runtime
