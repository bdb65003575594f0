// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/service.h"

#include <algorithm>
#include <utility>

#include "cluster/cluster_client.h"
#include "lock/lock_client.h"
#include "quorum/quorum_client.h"
#include "timing/quorum.h"

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
  if (settings().is_cluster()) {
    service_ = std::make_unique<cluster::ClusterClient>(settings(), id, seed, output);
  } else if (quorum_) {
    service_ = std::make_unique<quorum::QuorumClient>(nodes_, *quorum_, id, seed, output);
  } else {
    service_ = std::make_unique<lock::LockClient>(settings(), id, seed, output);
  }
}

void Service::become_cluster(std::span<const uint8_t, 16> id, uint64_t seed, lock::Output &output) {
  Settings &settings = nodes_.front();
  settings.cluster.addresses = {{settings.host, settings.port}};
  std::unique_ptr<lock::LockClient> client(static_cast<lock::LockClient *>(service_.release()));
  try {
    service_ =
        std::make_unique<cluster::ClusterClient>(settings, id, seed, output, std::move(client));
  } catch (...) {
    settings.cluster.addresses.clear();
    service_ = std::move(client);
    throw;
  }
}

size_t Service::enough_drained(size_t node_count) const {
  return settings().is_cluster() ? node_count : timing::majority_of(node_count);
}

}  // namespace redlatch::runtime
