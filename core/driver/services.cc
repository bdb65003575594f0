// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/services.h"

#include <cassert>
#include <string>
#include <utility>

#include "cluster/cluster_client.h"
#include "lock/lock_client.h"
#include "quorum/quorum_client.h"

namespace redlatch::driver {

std::unique_ptr<lock::LockService> open_service(std::span<const Settings> nodes,
                                                const QuorumSettings *quorum,
                                                std::span<const uint8_t, 16> id, uint64_t seed,
                                                lock::Output &output) {
  const Settings &first = nodes.front();
  if (first.is_cluster()) {
    return std::make_unique<cluster::ClusterClient>(first, id, seed, output);
  }
  if (quorum != nullptr) {
    return std::make_unique<quorum::QuorumClient>(nodes, *quorum, id, seed, output);
  }
  return std::make_unique<lock::LockClient>(first, id, seed, output);
}

void become_cluster(std::unique_ptr<lock::LockService> &service, Settings &settings,
                    std::span<const uint8_t, 16> id, uint64_t seed, lock::Output &output,
                    Log &log) {
  assert(!settings.is_cluster());
  const std::string text = settings.address() +
                           " is a node of a cluster: locks are on all its nodes, as with " +
                           "redis+cluster://";
  settings.cluster.addresses = {{settings.host, settings.port}};
  std::unique_ptr<lock::LockClient> client(static_cast<lock::LockClient *>(service.release()));
  try {
    service =
        std::make_unique<cluster::ClusterClient>(settings, id, seed, output, std::move(client));
  } catch (...) {
    settings.cluster.addresses.clear();
    service = std::move(client);
    throw;
  }
  log.add(LogLevel::kInfo, text);
}

}  // namespace redlatch::driver
