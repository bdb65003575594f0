// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/services.h"

#include <cassert>
#include <string>
#include <utility>

#include "cluster/cluster_client.h"
#include "composite/composite_client.h"
#include "lock/lock_client.h"
#include "quorum/quorum_client.h"

namespace redlatch::driver {

std::unique_ptr<lock::LockService> open_service(std::span<const Settings> nodes,
                                                const QuorumSettings *quorum,
                                                std::span<const uint8_t, 16> id, uint64_t seed,
                                                lock::Output &output) {
  const Settings &first = nodes.front();
  if (quorum != nullptr) {
    return std::make_unique<quorum::QuorumClient>(nodes, *quorum, id, seed, output);
  }
  auto client = std::make_unique<composite::CompositeClient>(output);
  if (first.is_cluster()) {
    client->inner() = std::make_unique<cluster::ClusterClient>(first, id, seed, client->reports());
  } else {
    client->inner() = std::make_unique<lock::LockClient>(first, id, seed, client->reports());
  }
  return client;
}

void become_cluster(lock::LockService &service, Settings &settings, std::span<const uint8_t, 16> id,
                    uint64_t seed, Log &log) {
  assert(!settings.is_cluster());
  const std::string text = settings.address() +
                           " is a node of a cluster: locks are on all its nodes, as with " +
                           "redis+cluster://";
  settings.cluster.addresses = {{settings.host, settings.port}};
  auto &composites = static_cast<composite::CompositeClient &>(service);
  composite::Inner &inner = composites.inner();
  std::unique_ptr<lock::LockClient> client(static_cast<lock::LockClient *>(inner.release()));
  try {
    inner = std::make_unique<cluster::ClusterClient>(settings, id, seed, composites.reports(),
                                                     std::move(client));
  } catch (...) {
    settings.cluster.addresses.clear();
    inner = std::move(client);
    throw;
  }
  log.add(LogLevel::kInfo, text);
}

}  // namespace redlatch::driver
